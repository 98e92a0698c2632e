/** Arrays that were made for the batch under way: no state that is left of it but the last holds them. */
let ownArrays: WeakSet<readonly unknown[]> | undefined

/**
 * Makes a batch of events. The states between its events are seen by no caller, so an array that changes with many of them
 * is copied once, and not for each. The last state is left with it, and what comes after the batch copies again.
 */
export function makeBatch<Batch>(make: () => Batch): Batch {
  const outer = ownArrays
  ownArrays = new WeakSet()
  try {
    return make()
  } finally {
    ownArrays = outer
  }
}

/** Items that may be changed in the place of these: the same, where only the batch under way holds them; else a copy. */
export function changeable<Item>(items: readonly Item[]): Item[] {
  if (ownArrays?.has(items)) return items as Item[]
  const copy = items.slice()
  ownArrays?.add(copy)
  return copy
}

/** The items with one more at their end. */
export function withMore<Item>(items: readonly Item[], item: Item): readonly Item[] {
  const more = changeable(items)
  more.push(item)
  return more
}

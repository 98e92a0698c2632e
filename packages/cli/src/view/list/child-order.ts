import type { RunId } from '@tallystick/core'

/** An entry of a list, at its own place or under its parent run. */
export interface Placed {
  readonly runId: RunId
  /** Its parent run. */
  readonly parent?: RunId
}

/**
 * The same entries with each child run under its parent, the first that was begun first, and its depth
 * there. One whose parent is not in the list stays where it is, and so do runs that are parents of one another in a
 * circle, which only a forged ledger holds: none is left out.
 */
export function underParents<Entry extends Placed>(
  newestFirst: readonly Entry[],
): readonly (readonly [entry: Entry, depth: number])[] {
  const parents = new Map(newestFirst.map(({ runId, parent }) => [runId, parent]))
  const isBelow = ({ runId, parent }: Entry): boolean =>
    parent !== undefined && parents.has(parent) && !isInCircle(runId, parents)
  const children = Map.groupBy(newestFirst.filter(isBelow).toReversed(), ({ parent }) => parent)
  const place = (entry: Entry, depth: number): readonly (readonly [Entry, number])[] => [
    [entry, depth],
    ...(children.get(entry.runId) ?? []).flatMap((child) => place(child, depth + 1)),
  ]
  return newestFirst.filter((entry) => !isBelow(entry)).flatMap((entry) => place(entry, 0))
}

/** Whether a run is its own ancestor. */
function isInCircle(runId: RunId, parents: ReadonlyMap<RunId, RunId | undefined>): boolean {
  const seen = new Set<RunId>()
  for (let at = parents.get(runId); at !== undefined && !seen.has(at); at = parents.get(at)) {
    if (at === runId) return true
    seen.add(at)
  }
  return false
}

import type { RuntimeEvent } from '../vocabulary/events/event.ts'

/**
 * Neighbouring events of one append that say the same, but for their `seq` and their `text`: pieces of one part of a reply that
 * were recorded at one time. Most events are such, so what is looked at once for all of them is not looked at for each.
 */
export interface Stretch {
  /** The place of the first of them among the events of the append. */
  readonly from: number
  /** The place after the last. */
  readonly to: number
  /** The text of each. */
  readonly texts: readonly string[]
}

/** What the machine has made as a list of events. */
interface Made {
  stretches: readonly Stretch[]
  /** The events, in a list that only this file holds. */
  readonly events: readonly RuntimeEvent[]
}

/**
 * A list of events has it under a name of its own, and not in a map of lists: what the values of a `WeakMap` hold, V8 takes for alive
 * until the next full collection.
 */
const made = Symbol('made')
type MadeList = readonly RuntimeEvent[] & { readonly [made]?: Made }

const none: readonly Stretch[] = []

/** Keeps the stretches of events that the caller has made as such, and frozen. */
export function keepStretches(events: readonly RuntimeEvent[], stretches: readonly Stretch[]): void {
  if (stretches.length === 0) return
  const value: Made = { stretches, events: events.slice() }
  Object.defineProperty(events, made, { value })
}

/**
 * The stretches of the events of an append that are known, in order; none where the list of events is not the one that the
 * machine has made, or no longer as it has made it. For stores: what belongs to a stretch is as the machine makes it, and frozen.
 */
export function stretchesOf(events: readonly RuntimeEvent[]): readonly Stretch[] {
  const known = (events as MadeList)[made]
  if (known === undefined) return none
  // To freeze a list would spare this, and make each of its readers slower by far more.
  if (!isSameList(known.events, events)) known.stretches = none
  return known.stretches
}

function isSameList(left: readonly RuntimeEvent[], right: readonly RuntimeEvent[]): boolean {
  if (left.length !== right.length) return false
  for (let place = 0; place < left.length; place++) if (left[place] !== right[place]) return false
  return true
}

/**
 * The events without those of a stretch that follow its first: for whom neither number nor text matters. A store that takes them from
 * outside calls `stretchesOf` first, which looks whether the list is still as it was made.
 */
export function withoutFollowers(events: readonly RuntimeEvent[]): readonly RuntimeEvent[] {
  const { stretches = none } = (events as MadeList)[made] ?? {}
  if (stretches.length === 0) return events
  const kept: RuntimeEvent[] = []
  let place = 0
  for (const { from, to } of stretches) {
    while (place <= from) kept.push(events[place++] as RuntimeEvent)
    place = to
  }
  while (place < events.length) kept.push(events[place++] as RuntimeEvent)
  return kept
}

/** The events of two batches as one list, with the stretches of both. */
export function joinedEvents(
  first: readonly RuntimeEvent[],
  second: readonly RuntimeEvent[],
): readonly RuntimeEvent[] {
  const events = [...first, ...second]
  const after = first.length
  const later = stretchesOf(second).map(({ from, to, texts }) => {
    return { from: from + after, to: to + after, texts }
  })
  keepStretches(events, [...stretchesOf(first), ...later])
  return events
}

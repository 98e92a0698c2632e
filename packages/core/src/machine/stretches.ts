import type { RuntimeEvent } from '../vocabulary/events/event.ts'

/**
 * A stretch: neighbouring deltas of one append that differ only in `seq` and `text`, since they are of one part of a reply and were
 * decided at one time. Most events are in one, so what holds for the first delta of a stretch is checked once, and not for each.
 */
export interface Stretch {
  /** The index of its first event in the append. */
  readonly from: number
  /** The index after its last event. */
  readonly to: number
  /** The text of each of its events. */
  readonly texts: readonly string[]
}

/** What the machine knows of a list of events that it has made. */
interface KnownStretches {
  stretches: readonly Stretch[]
  /** A copy of the list, which no caller can change. */
  readonly events: readonly RuntimeEvent[]
}

/**
 * The property of a list of events that holds its stretches. A `WeakMap` would not do: V8 takes what its values hold for alive until
 * the next full collection.
 */
const known = Symbol('stretches')
type KnownList = readonly RuntimeEvent[] & { readonly [known]?: KnownStretches }

const none: readonly Stretch[] = []

/** Keeps the stretches of a list of events that the caller has made and frozen. */
export function keepStretches(events: readonly RuntimeEvent[], stretches: readonly Stretch[]): void {
  if (stretches.length === 0) return
  const value: KnownStretches = { stretches, events: events.slice() }
  Object.defineProperty(events, known, { value })
}

/**
 * Returns the stretches of the events of an append, in order; none if the machine did not make this list, or if the list was changed
 * since. A store may trust them: every event of a stretch is as the machine made it, and frozen.
 */
export function stretchesOf(events: readonly RuntimeEvent[]): readonly Stretch[] {
  const list = (events as KnownList)[known]
  if (list === undefined) return none
  // Freezing the list would spare this comparison, and cost each reader of the list far more.
  if (!isSameList(list.events, events)) list.stretches = none
  return list.stretches
}

function isSameList(left: readonly RuntimeEvent[], right: readonly RuntimeEvent[]): boolean {
  if (left.length !== right.length) return false
  for (let place = 0; place < left.length; place++) if (left[place] !== right[place]) return false
  return true
}

/**
 * Returns the events without those that follow the first of their stretch, for callers to whom neither `seq` nor `text` matters. A
 * store calls `stretchesOf` first, which notices a list that was changed.
 */
export function withoutFollowers(events: readonly RuntimeEvent[]): readonly RuntimeEvent[] {
  const { stretches = none } = (events as KnownList)[known] ?? {}
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

/** Returns the events of two batches as one list, with the stretches of both. */
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

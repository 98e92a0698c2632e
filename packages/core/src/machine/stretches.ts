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

const known = new WeakMap<readonly RuntimeEvent[], readonly Stretch[]>()
const none: readonly Stretch[] = []

/** Keeps the stretches of events that the caller has made as such, and frozen. The list can change no more from here on. */
export function keepStretches(events: readonly RuntimeEvent[], stretches: readonly Stretch[]): void {
  if (stretches.length > 0) known.set(Object.freeze(events), stretches)
}

/**
 * The stretches of the events of an append that are known, in order; none where the list of events is not the one that the
 * machine has made. For stores: what belongs to a stretch is as the machine makes it, and frozen.
 */
export function stretchesOf(events: readonly RuntimeEvent[]): readonly Stretch[] {
  return known.get(events) ?? none
}

/** The events without those of a stretch that follow its first: for whom neither number nor text matters. */
export function withoutFollowers(events: readonly RuntimeEvent[]): readonly RuntimeEvent[] {
  const stretches = stretchesOf(events)
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

import type { RuntimeEvent } from '../vocabulary/events/event.ts'
import { stretchesOf, withoutFollowers } from '../machine/stretches.ts'
import { deepFreeze } from '../vocabulary/values/deep-freeze.ts'
import { canonicalJson } from '../vocabulary/values/json.ts'
import { storableDigests, storableText } from './append-rules.ts'

/**
 * An event as a memory ledger keeps it: deeply frozen, so that nothing can be written to the record, and without the messages
 * of a history that it carries, which are kept once by their digest. A `ConfigurationError` for what JSON cannot carry.
 *
 * An event that a caller has frozen is kept itself, with a getter that it may have: the runtime makes none, and to look for
 * one would make each append a tenth slower.
 */
export function keptEvent(event: RuntimeEvent): RuntimeEvent {
  const kept = event.type === 'history_carried' ? withoutMessages(event) : event
  return isFrozenJson(kept)
    ? kept
    : deepFreeze(JSON.parse(storableText(kept, () => nameOf(kept))) as RuntimeEvent)
}

/** Events that differ in their numbers and texts alone: the first of them, and the texts of all. */
class KeptStretch {
  readonly #first: RuntimeEvent
  readonly #texts: readonly string[]
  /** The number of the first of them. */
  readonly seq: number

  constructor(first: RuntimeEvent, texts: readonly string[]) {
    this.#first = first
    this.#texts = texts
    this.seq = first.seq
  }

  get length(): number {
    return this.#texts.length
  }

  /** The event of a number. */
  event(seq: number): RuntimeEvent {
    return Object.freeze({ ...this.#first, seq, text: this.#texts[seq - this.seq] }) as RuntimeEvent
  }
}

/** What is kept of one event, or of a stretch. */
export type Kept = RuntimeEvent | KeptStretch

/** The events of an append as a memory ledger keeps them: a stretch by its first event, which the others are made of when they are read. */
export function keptOf(events: readonly RuntimeEvent[]): readonly Kept[] {
  const stretches = stretchesOf(events)
  if (stretches.length === 0) return events.map(keptEvent)
  const kept: Kept[] = []
  let next = 0
  for (const { from, to, texts } of stretches) {
    while (next < from) kept.push(keptEvent(events[next++] as RuntimeEvent))
    kept.push(new KeptStretch(keptEvent(events[from] as RuntimeEvent), texts))
    next = to
  }
  while (next < events.length) kept.push(keptEvent(events[next++] as RuntimeEvent))
  return kept
}

/** The events that are kept so. */
export function* eventsIn(kept: readonly Kept[]): Generator<RuntimeEvent> {
  for (const each of kept) {
    if (each instanceof KeptStretch) for (let at = 0; at < each.length; at++) yield each.event(each.seq + at)
    else yield each
  }
}

/** The events of a run, in order and without a gap. */
export class KeptEvents {
  readonly #kept: Kept[] = []
  #length = 0

  /** How many events there are. */
  get length(): number {
    return this.#length
  }

  add(kept: readonly Kept[]): void {
    for (const each of kept) {
      this.#kept.push(each)
      this.#length += each instanceof KeptStretch ? each.length : 1
    }
  }

  /** The events from one number to another, both included. What is added meanwhile is not among them. */
  *between(fromSeq: number, toSeq: number): Generator<RuntimeEvent> {
    const last = Math.min(toSeq, this.#length)
    let seq = Math.max(fromSeq, 1)
    for (let place = this.#placeOf(seq); seq <= last; place++) {
      const kept = this.#kept[place] as Kept
      if (!(kept instanceof KeptStretch)) {
        yield kept
        seq++
        continue
      }
      const end = Math.min(last, kept.seq + kept.length - 1)
      for (; seq <= end; seq++) yield kept.event(seq)
    }
  }

  /** The place of what holds the event of a number. */
  #placeOf(seq: number): number {
    let [low, high] = [0, Math.min(this.#kept.length, seq) - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if ((this.#kept[middle] as Kept).seq <= seq) low = middle
      else high = middle - 1
    }
    return low
  }
}

function withoutMessages(event: RuntimeEvent & { readonly type: 'history_carried' }): RuntimeEvent {
  const { messages: _kept, ...rest } = event
  return rest as RuntimeEvent
}

/** The digests of the histories that events carry, by the number of the event; `undefined` where none carries one. */
export function carriedHistories(events: readonly RuntimeEvent[]): ReadonlyMap<number, string> | undefined {
  let digests: Map<number, string> | undefined
  for (const event of withoutFollowers(events)) {
    if (event.type !== 'history_carried') continue
    digests ??= new Map()
    digests.set(event.seq, storableDigests(event.messages, () => nameOf(event)).at(-1) ?? '')
  }
  return digests
}

function nameOf({ seq, type, runId }: RuntimeEvent): string {
  return `Event ${seq} (${type}) of run ${runId}`
}

/** Whether two kept events say the same, byte for byte. */
export function isSameEvent(kept: RuntimeEvent, other: RuntimeEvent | undefined): boolean {
  return other !== undefined && (kept === other || textOf(kept) === textOf(other))
}

function textOf(event: RuntimeEvent): string {
  return canonicalJson(event)
}

/** Whether a value is deeply frozen and what JSON would read back. */
function isFrozenJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0)
  if (typeof value === 'object') return value === null || isFrozenObject(value)
  return typeof value === 'string' || typeof value === 'boolean'
}

function isFrozenObject(value: object): boolean {
  if (!Object.isFrozen(value)) return false
  if (Array.isArray(value)) return value.every(isFrozenJson) && !hasHoles(value)
  if (Object.getPrototypeOf(value) !== Object.prototype || Object.getOwnPropertySymbols(value).length > 0)
    return false
  const fields = value as Readonly<Record<string, unknown>>
  for (const key in fields) {
    const field = fields[key]
    // Most fields of most events are texts and numbers.
    const isPlain = typeof field === 'string' || (field !== 0 && Number.isFinite(field))
    if (!isPlain && !isFrozenJson(field)) return false
  }
  return true
}

function hasHoles(items: readonly unknown[]): boolean {
  return Object.keys(items).length !== items.length
}

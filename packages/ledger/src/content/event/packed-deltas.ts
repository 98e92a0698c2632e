import { isJsonObject } from '@tallystick/core/kit'
import type { RuntimeEvent } from '@tallystick/core'
import { type EventType, type Json, type JsonObject } from '@tallystick/core/vocabulary'
import { envelopeOf, maxEventsOfRow, type SegmentEnvelope } from '../../record/envelope.ts'

/** Deltas that differ from their neighbours in nothing but their text, number and time. */
const packedTypes: ReadonlySet<EventType> = new Set([
  'assistant_text_delta',
  'assistant_reasoning_delta',
  'tool_input_delta',
])

/** The most that a segment of deltas holds: characters of text, and milliseconds between its first and its last. */
const maxPackedCharacters = 4096
export const maxPackedMs = 1000

/**
 * Divides the events of one append into those of each segment, in their order: neighbouring deltas of one part share a segment,
 * every other event has its own.
 */
export function eventsBySegment(events: readonly RuntimeEvent[]): readonly (readonly RuntimeEvent[])[] {
  const segments = new SegmentDivider(events)
  for (let place = 0; place < events.length; place++) segments.take(place)
  return segments.end()
}

class SegmentDivider {
  readonly #events: readonly RuntimeEvent[]
  readonly #segments: (readonly RuntimeEvent[])[] = []
  /** The place of the first event of the segment under way, and how many characters its deltas have. */
  #first = 0
  #characters = 0

  constructor(events: readonly RuntimeEvent[]) {
    this.#events = events
  }

  take(place: number): void {
    const event = this.#events[place] as RuntimeEvent
    const text = packedTypes.has(event.type) ? textOf(event) : undefined
    const isNext = text !== undefined && isNextOf(this.#events, this.#first, place)
    if (isNext) this.takeNext(place, text)
    // A segment that begins with an event that is no delta takes no other.
    else this.#begin(place, text?.length ?? Infinity)
  }

  /** Takes a delta that may be packed with those before it, as far as texts are not concerned. */
  takeNext(place: number, { length }: string): void {
    const isFull = place - this.#first >= maxEventsOfRow || this.#characters + length > maxPackedCharacters
    if (isFull) this.#begin(place, length)
    else this.#characters += length
  }

  #begin(place: number, characters: number): void {
    if (place > 0) this.#segments.push(this.#events.slice(this.#first, place))
    this.#first = place
    this.#characters = characters
  }

  end(): readonly (readonly RuntimeEvent[])[] {
    if (this.#events.length > 0) this.#segments.push(this.#events.slice(this.#first))
    return this.#segments
  }
}

/** Whether a delta may be packed with those from a place on, as far as their texts are not concerned. */
function isNextOf(events: readonly RuntimeEvent[], from: number, place: number): boolean {
  const first = events[from]
  const last = events[place - 1]
  const event = events[place]
  if (first === undefined || last === undefined || event === undefined) return false
  return (
    event.seq === last.seq + 1 &&
    event.at >= last.at &&
    event.at - first.at <= maxPackedMs &&
    hasSameFields(last as unknown as Fields, event as unknown as Fields)
  )
}

/** Whether two events say the same, but for their number, time and text. */
function hasSameFields(before: Fields, after: Fields): boolean {
  if (isPlainDelta(before) && isPlainDelta(after)) return hasSamePlainFields(before, after)
  const names = Object.keys(after)
  if (Object.keys(before).length !== names.length) return false
  for (const name of names) {
    if (name === 'seq' || name === 'at' || name === 'text') continue
    const value = after[name]
    if (value !== before[name]) return false
    // A field that is undefined counts among the names: the other event may have another field in its place.
    if (value === undefined && !Object.hasOwn(before, name)) return false
  }
  return true
}

/**
 * Whether a delta has the fields that every delta of its kind has, and no others. Most have: they are compared field by field, since
 * V8 knows the places of these names, and without a list of names for each.
 */
function isPlainDelta(event: Fields): boolean {
  const isOfCall = event['toolCallId'] !== undefined && event['name'] !== undefined
  let count = 0
  for (const _ in event) count++
  return count === (isOfCall ? 12 : 10) && hasEveryField(event)
}

function hasEveryField({ runId, seq, epoch, at, v, type, turn, attempt, part, text }: Fields): boolean {
  const isRecorded = runId !== undefined && seq !== undefined && epoch !== undefined && at !== undefined
  const isOfReply = turn !== undefined && attempt !== undefined && part !== undefined
  return isRecorded && isOfReply && v !== undefined && type !== undefined && text !== undefined
}

function hasSamePlainFields(left: Fields, right: Fields): boolean {
  return (
    left['runId'] === right['runId'] &&
    left['epoch'] === right['epoch'] &&
    left['v'] === right['v'] &&
    left['type'] === right['type'] &&
    left['turn'] === right['turn'] &&
    left['attempt'] === right['attempt'] &&
    left['part'] === right['part'] &&
    left['toolCallId'] === right['toolCallId'] &&
    left['name'] === right['name']
  )
}

type Fields = Readonly<Record<string, unknown>>

function textOf(event: RuntimeEvent): string | undefined {
  return 'text' in event && typeof event.text === 'string' ? event.text : undefined
}

/** What packed deltas say. */
interface PackedBody {
  /** Of each event, how many milliseconds before the last one it was recorded; absent where all have one time. */
  readonly earlier?: readonly number[]
  /** The fields that all of them have alike. */
  readonly same: JsonObject
  readonly text: readonly string[]
}

/** The canonical text of packed deltas. `same` is that of what they have alike. */
export function packedText(events: readonly RuntimeEvent[], same: string): string {
  const { at: lastAt } = events.at(-1) as RuntimeEvent
  const isOneTime = events[0]?.at === lastAt
  const earlier = isOneTime ? '' : `"earlier":${JSON.stringify(events.map(({ at }) => lastAt - at))},`
  return `{${earlier}"same":${same},"text":${JSON.stringify(events.map(textOf))}}`
}

/** Packed deltas, from the value of their body. Throws where the body is no such value. */
export function unpackedEvents(envelope: SegmentEnvelope, body: Json): readonly RuntimeEvent[] {
  const { same, text, earlier } = requirePacked(envelope, body)
  const { firstSeq = envelope.seq } = envelope
  const alike = { ...same, ...envelopeOf(envelope) }
  return text.map((each, index) => {
    const at = envelope.at - (earlier?.[index] ?? 0)
    // A spread keeps a field that is called __proto__; to assign it would change the prototype.
    return { ...alike, text: each, seq: firstSeq + index, at } as unknown as RuntimeEvent
  })
}

/** One event, or several neighbouring deltas, each with these fields. */
export function eventsWith(envelope: SegmentEnvelope, fields: object): readonly RuntimeEvent[] {
  const { firstSeq = envelope.seq, seq: lastSeq } = envelope
  const own = envelopeOf(envelope)
  const events: RuntimeEvent[] = []
  for (let seq = firstSeq; seq <= lastSeq; seq++) events.push({ ...fields, ...own, seq } as RuntimeEvent)
  return events
}

function requirePacked({ type, firstSeq = NaN, seq }: SegmentEnvelope, body: Json): PackedBody {
  const { same, text, earlier } = Object(body) as Partial<Record<keyof PackedBody, unknown>>
  const count = seq - firstSeq + 1
  const isSound =
    packedTypes.has(type) &&
    isJsonObject(same) &&
    isListOf(text, count, (each) => typeof each === 'string') &&
    (earlier === undefined || (isListOf(earlier, count, isWait) && isFalling(earlier as readonly number[])))
  if (!isSound) throw new Error('its body does not hold the events of its row')
  return body as unknown as PackedBody
}

function isListOf(value: unknown, count: number, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length === count && value.every(isItem)
}

function isWait(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) <= maxPackedMs
}

/** Searches by time build on it: no event of a row was recorded after the last one. What falls to 0 is nowhere less. */
function isFalling(earlier: readonly number[]): boolean {
  return (
    earlier.at(-1) === 0 &&
    earlier.every((each, index) => index === 0 || each <= (earlier[index - 1] as number))
  )
}

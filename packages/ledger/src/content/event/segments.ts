import type { RuntimeEvent } from '@tallystick/core'
import type { Json, ToolCallId } from '@tallystick/core/vocabulary'
import { maxEventsOfRow, type SegmentEnvelope } from '../../record/envelope.ts'
import { longCallId } from '../../record/segments/fact-number.ts'
import {
  headFrom,
  headsIn,
  headsOf,
  isGone,
  segmentLines,
  type SegmentHead,
} from '../../record/segments/segmented-body.ts'
import type { StoredRow, StoredSegment } from '../../record/stored-row.ts'
import { maxPackedMs, unpackedEvents } from './packed-deltas.ts'
import { textOf } from './stored-body.ts'

/** Which events of a row are read, by their type. */
export type WantedType = (type: RuntimeEvent['type']) => boolean

/**
 * The events of each segment of a row of which nothing is sealed and nothing was taken away. Throws where the body does
 * not hold them, or is no JSON.
 */
export function plainSegments(
  row: StoredRow,
  body: Uint8Array,
  isWanted?: WantedType,
): readonly (readonly RuntimeEvent[])[] {
  if (isWanted) return wantedSegments(row, body, isWanted)
  const { heads, segments } = Object(JSON.parse(textOf(body))) as Partial<Record<string, unknown>>
  const envelopes = envelopesOf(row, heads)
  if (!Array.isArray(segments) || segments.length !== envelopes.length) throw notHeld()
  return envelopes.map((envelope, index) => eventsOfValue(envelope, segments[index] as Json))
}

/** Parses the lines of wanted segments only: the heads say what a line holds. */
function wantedSegments(
  row: StoredRow,
  body: Uint8Array,
  isWanted: WantedType,
): readonly (readonly RuntimeEvent[])[] {
  const [heads = '', ...lines] = textOf(body).split('\n')
  const envelopes = envelopesOf(row, headsIn(heads).heads)
  // After the segments comes the end of the body.
  if (lines.length !== envelopes.length + 1) throw notHeld()
  const found: (readonly RuntimeEvent[])[] = []
  for (const [index, envelope] of envelopes.entries()) {
    if (!isWanted(envelope.type)) continue
    const line = lines[index] as string
    const isLast = index === envelopes.length - 1
    found.push(eventsOfValue(envelope, JSON.parse(isLast ? line : line.slice(0, -1)) as Json))
  }
  return found
}

/** The value of a body is a new object, so that of one event is completed and not copied. */
function eventsOfValue(envelope: SegmentEnvelope, value: Json): readonly RuntimeEvent[] {
  if (envelope.firstSeq !== undefined) return unpackedEvents(envelope, value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notHeld()
  return [Object.assign(value, envelope) as unknown as RuntimeEvent]
}

/**
 * The segments of a row, each as if it were a row of its own. Throws where the body does not hold them.
 */
export function segmentsIn(row: StoredRow): readonly StoredSegment[] {
  const { payload, pos, bodyCommit, hash, removals = [], decoding } = row
  const lines = payload && segmentLines(payload.body)
  if (payload === undefined || lines === undefined) throw notHeld()
  const { key, heads } = headsOf(lines.heads)
  const envelopes = envelopesOf(row, heads)
  if (lines.segments.length !== envelopes.length) throw notHeld()
  return envelopes.map((envelope, index): StoredSegment => {
    const line = lines.segments[index] as Uint8Array
    const segment = { ...envelope, pos, bodyCommit, hash, ...(decoding && { decoding }) }
    if (!isGone(line)) {
      const body = key === undefined ? line : sealedBytes(line)
      return { ...segment, payload: { salt: payload.salt, body } }
    }
    const { firstSeq = envelope.seq, seq } = envelope
    const removal = removals.find(({ fromSeq, toSeq }) => fromSeq <= firstSeq && seq <= toSeq)
    return removal ? { ...segment, removal } : segment
  })
}

function sealedBytes(line: Uint8Array): Uint8Array {
  const text: unknown = JSON.parse(textOf(line))
  if (typeof text !== 'string') throw notHeld()
  return Buffer.from(text, 'base64')
}

/** The id of the key that the segments of a body are sealed with; `undefined` where they are not, or cannot be read. */
export function keyIdOfSegments(body: Uint8Array): string | undefined {
  const lines = segmentLines(body)
  const key = lines && headsOf(lines.heads).key
  return typeof key === 'string' ? key : undefined
}

/** The envelope of each segment. The chain covers the heads, and yet a forger may have written anything. */
function envelopesOf(row: StoredRow, heads: unknown): readonly SegmentEnvelope[] {
  if (!Array.isArray(heads)) throw notHeld()
  const { runId, epoch, turn, at: lastAt, firstSeq = row.seq } = row
  let seq = firstSeq - 1
  const envelopes = heads.map((each: unknown): SegmentEnvelope => {
    const head = requireHead(each)
    const { type, v = 1, call, events = 1, earlier = 0 } = head
    const first = seq + 1
    seq += events
    const at = lastAt - earlier
    const envelope: { -readonly [Field in keyof SegmentEnvelope]: SegmentEnvelope[Field] } =
      call === undefined
        ? { runId, seq, epoch, turn, type, v, at }
        : { runId, seq, epoch, turn, toolCallId: longCallId(runId, call) as ToolCallId, type, v, at }
    if (events > 1) envelope.firstSeq = first
    return envelope
  })
  if (seq !== row.seq) throw notHeld()
  return envelopes
}

/** The first and the last event of each segment. Throws where the heads are not those of the row. */
export function extentsOf(
  row: { readonly firstSeq: number; readonly seq: number },
  heads: unknown,
): readonly { readonly fromSeq: number; readonly toSeq: number }[] {
  if (!Array.isArray(heads)) throw notHeld()
  let seq = row.firstSeq - 1
  const extents = heads.map((each: unknown) => {
    const { events = 1 } = requireHead(each)
    seq += events
    return { fromSeq: seq - events + 1, toSeq: seq }
  })
  if (seq !== row.seq) throw notHeld()
  return extents
}

const callShape = /^\d+_\d+_\d+$/

/** What each field of a head may be. */
const headFields: Readonly<Record<keyof SegmentHead, (value: unknown) => boolean>> = {
  type: (value) => typeof value === 'string',
  v: (value) => Number.isSafeInteger(value),
  call: (value) => typeof value === 'string' && callShape.test(value),
  events: (value) => isFromTo(value, 1, maxEventsOfRow),
  earlier: (value) => isFromTo(value, 0, maxPackedMs),
}

function requireHead(written: unknown): SegmentHead {
  const head = headFrom(written)
  // Most heads are texts, of which only the call may have another form.
  if (typeof written === 'string' && (head?.['call'] === undefined || headFields.call(head['call']))) {
    return head as unknown as SegmentHead
  }
  if (head?.['type'] === undefined) throw notHeld()
  for (const name in head) {
    if (!Object.hasOwn(headFields, name)) throw notHeld()
    if (!headFields[name as keyof SegmentHead](head[name])) throw notHeld()
  }
  return head as unknown as SegmentHead
}

function isFromTo(value: unknown, from: number, to: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= from && (value as number) <= to
}

function notHeld(): Error {
  return new Error('its body does not hold the events of its row')
}

import type { EventType, Json } from '@tallystick/core/vocabulary'

/**
 * The type that the store records of a segmented row: one that holds neighbouring events of several types, each in a segment of its
 * body. Such a row has a `first_seq`; no event has this type.
 */
export const segmentedType = 'several'

/** The columns that show whether a row is segmented. */
interface TypedRow {
  readonly type: string
  readonly first_seq: number | null
}

/** Whether a row of the table of events is segmented. */
export function isSegmentedRow({ type, first_seq }: TypedRow): boolean {
  return type === segmentedType && first_seq !== null
}

/**
 * The fields of a segment's envelope that differ from those of its row. A segment holds one event, or neighbouring deltas of
 * one part.
 */
export interface SegmentHead {
  readonly type: EventType
  /** Absent where it is 1. */
  readonly v?: number
  /** The turn, attempt and ordinal of the call, as in its id. */
  readonly call?: string
  /** How many events the segment holds; absent where it is one. */
  readonly events?: number
  /** How many milliseconds before the last event of the row the last one of the segment was recorded; absent where none. */
  readonly earlier?: number
}

/** The first line of a body, and the lines of its segments, each without the comma after it. */
export interface SegmentLines {
  readonly heads: Uint8Array
  readonly segments: readonly Uint8Array[]
  /**
   * Present where segments were taken away: of each segment that stays its salt, of each that is gone its commitment, in
   * hex. The line of one that is gone is `null`.
   */
  readonly opened?: readonly string[]
}

/** What divides the lines of a body: each segment but the last has a comma at its end. */
export const newLine = 0x0a
export const comma = 0x2c
const letterH = 0x68
const goneLine = 'null'
const goneBytes: Uint8Array = Buffer.from(goneLine)
const wholeTail = ']}'
const wholeTailBytes: Uint8Array = Buffer.from(wholeTail)
const hexSalt = /^[0-9a-f]{32}$/
const hexCommitment = /^[0-9a-f]{64}$/

/** Lays segments, each of them JSON without a line break, into one body. `keyId` names the key that they are sealed with. */
export function segmentedBody(
  heads: readonly SegmentHead[],
  segments: readonly string[],
  keyId?: string,
): Uint8Array {
  const key = keyId === undefined ? '' : `"key":${JSON.stringify(keyId)},`
  const head = `{${key}"heads":${JSON.stringify(heads.map(writtenHead))},"segments":[`
  return Buffer.from(`${head}\n${segments.join(',\n')}\n${wholeTail}`)
}

/** Most heads say a type, and perhaps a call: they are written as one text. */
function writtenHead(head: SegmentHead): SegmentHead | string {
  const { type, call, v, events, earlier } = head
  if ((v ?? events ?? earlier) !== undefined || type.includes(' ')) return head
  return call === undefined ? type : `${type} ${call}`
}

/** A head as it was written, as far as it has the form of one. */
export function headFrom(written: unknown): Partial<Readonly<Record<string, unknown>>> | undefined {
  if (typeof written !== 'string') {
    return typeof written === 'object' && written !== null ? written : undefined
  }
  const space = written.indexOf(' ')
  return space === -1 ? { type: written } : { type: written.slice(0, space), call: written.slice(space + 1) }
}

function joined(heads: Uint8Array, segments: readonly Uint8Array[], end: Uint8Array): Uint8Array {
  let length = heads.length + end.length + 2 * segments.length
  for (const segment of segments) length += segment.length
  const body = Buffer.allocUnsafe(length)
  body.set(heads, 0)
  body[heads.length] = newLine
  let place = heads.length + 1
  for (const [index, segment] of segments.entries()) {
    body.set(segment, place)
    place += segment.length
    if (index < segments.length - 1) body[place++] = comma
    body[place++] = newLine
  }
  body.set(end, place)
  return body.subarray(0, place + end.length)
}

/** Whether the body of a segmented row can be read from its own bytes: no segment was taken away, and none is sealed. */
export function hasPlainSegments(body: Uint8Array): boolean {
  return body[2] === letterH && hasAllSegments(body)
}

/** Whether no segment of a body was taken away. */
export function hasAllSegments(body: Uint8Array): boolean {
  return body[body.length - wholeTail.length - 1] === newLine
}

/** Whether what follows the last line of a body is the end of one of which no segment was taken away. */
export function isWholeTail(body: Uint8Array, place: number): boolean {
  return (
    body.length === place + 2 && body[place] === wholeTailBytes[0] && body[place + 1] === wholeTailBytes[1]
  )
}

/** The lines of a body; `undefined` if it is not written as the body of a segmented row. */
export function segmentLines(body: Uint8Array): SegmentLines | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const headsEnd = bytes.indexOf(newLine)
  if (headsEnd === -1) return undefined
  const segments: Uint8Array[] = []
  let start = headsEnd + 1
  for (;;) {
    const end = bytes.indexOf(newLine, start)
    if (end === -1) return undefined
    const hasNext = bytes[end - 1] === comma
    segments.push(bytes.subarray(start, hasNext ? end - 1 : end))
    start = end + 1
    if (!hasNext) break
  }
  const lines = { heads: bytes.subarray(0, headsEnd), segments }
  const tail = bytes.toString('utf8', start)
  if (tail === wholeTail) return lines
  const opened = openedOf(tail)
  return opened && isOpened(segments, opened) ? { ...lines, opened } : undefined
}

function openedOf(tail: string): readonly string[] | undefined {
  try {
    const { opened } = JSON.parse(`{"segments":[${tail}`) as { readonly opened?: Json }
    const isList = Array.isArray(opened) && opened.every((each) => typeof each === 'string')
    // What could be written otherwise would be bytes that nothing covers.
    return isList && openedTail(opened) === tail ? opened : undefined
  } catch {
    return undefined
  }
}

function openedTail(opened: readonly string[]): string {
  return `],"opened":${JSON.stringify(opened)}}`
}

function isOpened(segments: readonly Uint8Array[], opened: readonly string[]): boolean {
  return (
    segments.length === opened.length &&
    segments.some(isGone) &&
    opened.every((each, index) => {
      const line = segments[index] as Uint8Array
      return (isGone(line) ? hexCommitment : hexSalt).test(each)
    })
  )
}

/** Whether the line is that of a segment that was taken away. */
export function isGone(line: Uint8Array): boolean {
  return line.length === goneBytes.length && Buffer.compare(line, goneBytes) === 0
}

/** The bytes of a row of which segments were taken away. */
export function openedBody({ heads, segments }: SegmentLines, opened: readonly string[]): Uint8Array {
  return joined(heads, segments, Buffer.from(openedTail(opened)))
}

/** The line in the place of a segment that was taken away. */
export const lineOfGone: Uint8Array = goneBytes

/** What the first line of a body says, as far as it is JSON. */
interface Heads {
  readonly key?: unknown
  readonly heads?: unknown
}

/** Throws what `JSON.parse` throws. */
export function headsOf(line: Uint8Array): Heads {
  return headsIn(Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString())
}

/** The same of a line that is a text. */
export function headsIn(line: string): Heads {
  return JSON.parse(`${line}]}`) as Heads
}

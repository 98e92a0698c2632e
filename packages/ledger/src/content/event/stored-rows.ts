import type { RuntimeEvent } from '@tallystick/core'
import { onceKeyOf } from '@tallystick/core/store-kit'
import { maxEventsOfRow } from '../../record/envelope.ts'
import { isStoredAs, type UnlinkedRow } from '../../record/linked-row.ts'
import { factNumberOf, shortCallId } from '../../record/segments/fact-number.ts'
import { segmentedBody, type SegmentHead } from '../../record/segments/segmented-body.ts'
import type { StoredRow } from '../../record/stored-row.ts'
import type { Sealer } from '../payload/encrypted-bytes.ts'
import { SegmentBytes } from './segment-bytes.ts'
import { eventsBySegment, maxPackedMs } from './packed-deltas.ts'
import { isSharedType } from './shared-types.ts'
import { bytesOf, writtenBody, type StoredBody, type WrittenBody } from './stored-body.ts'

/** The events of a row, and all that a store keeps of what they say. */
export type StorableRow = UnlinkedRow & StoredBody

/** A segment before it is laid into a row. */
interface DraftSegment {
  readonly events: readonly RuntimeEvent[]
  readonly first: RuntimeEvent
  readonly last: RuntimeEvent
  readonly body: WrittenBody
  /** The call that the events are about, by its turn, attempt and ordinal; `undefined` where they are about none of their run. */
  readonly call: string | undefined
  /** The number of the fact that they state about the call. */
  readonly fact: number | undefined
  /** Whether it may share a row with others. */
  readonly isShared: boolean
}

/**
 * Divides the events of one append into rows, in their order. Neighbours of the types that come in every turn share a row,
 * within a turn, a second and some bytes; in it, neighbouring deltas of one part are packed. What is rare, large, or about a
 * call of another run or turn has a row of its own, since it is looked up by the columns of that row. The same events give
 * the same rows.
 */
export function storableRows(events: readonly RuntimeEvent[], sealer?: Sealer): readonly StorableRow[] {
  const rows: DraftSegment[][] = []
  let row: DraftSegment[] = []
  let bytes: SegmentBytes | undefined
  for (const together of eventsBySegment(events)) {
    const segment = draftOf(together, sealer)
    if (bytes && isNextOf(row, segment) && bytes.takes(segment.body)) row.push(segment)
    else {
      row = [segment]
      bytes = new SegmentBytes(segment.body)
      rows.push(row)
    }
  }
  return rows.map((segments) => rowOf(segments, sealer))
}

function draftOf(events: readonly RuntimeEvent[], sealer: Sealer | undefined): DraftSegment {
  const body = writtenBody(events, sealer)
  const first = events[0] as RuntimeEvent
  const last = events[events.length - 1] as RuntimeEvent
  const { runId, toolCallId } = first
  const call = toolCallId === undefined ? undefined : shortCallId(runId, toolCallId)
  const fact = factNumberOf(first)
  return { events, first, last, body, call, fact, isShared: isShared(first, { call, fact, body }) }
}

/**
 * Whether what is stored are these very events: then only the acknowledgement of their append was lost. They are as many
 * as the row holds.
 */
export function isStored(stored: StoredRow, events: readonly RuntimeEvent[], sealer?: Sealer): boolean {
  const [row, ...others] = storableRows(events, sealer)
  return row !== undefined && others.length === 0 && isStoredAs(stored, row)
}

function isShared(
  event: RuntimeEvent,
  { call, fact, body }: Pick<DraftSegment, 'call' | 'fact' | 'body'>,
): boolean {
  return (
    isSharedType(event.type) &&
    body.contents.length === 0 &&
    // Events of a call are looked for by the id of the call, which names its run and its turn.
    (event.toolCallId === undefined || call?.startsWith(`${event.turn}_`) === true) &&
    (fact !== undefined || onceKeyOf(event) === undefined)
  )
}

function isNextOf(row: readonly DraftSegment[], next: DraftSegment): boolean {
  const begin = row[0]
  const before = row[row.length - 1]
  if (begin === undefined || before === undefined || !before.isShared || !next.isShared) return false
  return (
    next.first.turn === begin.first.turn &&
    next.first.at >= before.last.at &&
    next.last.at - begin.first.at <= maxPackedMs &&
    next.last.seq - begin.first.seq < maxEventsOfRow
  )
}

function rowOf(segments: readonly DraftSegment[], sealer: Sealer | undefined): StorableRow {
  const [only] = segments as readonly [DraftSegment]
  if (segments.length === 1) {
    const { written, contents, history } = only.body
    return { events: only.events, bytes: bytesOf(written), contents, history }
  }
  const events = segments.flatMap((segment) => segment.events)
  const { at: lastAt } = events.at(-1) as RuntimeEvent
  const heads = segments.map((segment) => headOf(segment, lastAt))
  const lines = segments.map(({ body }) => lineOf(body))
  const facts = factsOf(segments)
  return { events, bytes: segmentedBody(heads, lines, sealer?.id), isSegmented: true, facts, contents: [] }
}

function factsOf(segments: readonly DraftSegment[]): readonly number[] {
  const facts: number[] = []
  for (const { fact } of segments) if (fact !== undefined) facts.push(fact)
  return facts
}

/** The line of a segment. A sealed body is bytes, written as a text of JSON. */
function lineOf({ written }: WrittenBody): string {
  return typeof written === 'string' ? written : `"${Buffer.from(written).toString('base64')}"`
}

function headOf({ events, last, call }: DraftSegment, lastAt: number): SegmentHead {
  const { type, v, at } = last
  const head: { -readonly [Field in keyof SegmentHead]: SegmentHead[Field] } = { type }
  if (v !== 1) head.v = v
  if (call !== undefined) head.call = call
  if (events.length > 1) head.events = events.length
  if (at < lastAt) head.earlier = lastAt - at
  return head
}

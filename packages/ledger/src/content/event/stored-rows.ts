import type { RuntimeEvent } from '@tallystick/core'
import { onceKeyOf } from '@tallystick/core/store-kit'
import { maxEventsOfRow } from '../../record/envelope.ts'
import { isStoredAs, type UnlinkedRow } from '../../record/linked-row.ts'
import { factNumberOf, shortCallId } from '../../record/several/fact-number.ts'
import { severalBody, type SegmentHead } from '../../record/several/several-form.ts'
import type { StoredRow } from '../../record/stored-row.ts'
import type { Sealer } from '../payload/encrypted-bytes.ts'
import { SegmentBytes } from './segment-bytes.ts'
import { groupsOf, maxPackedMs } from './packed-deltas.ts'
import { isSharedType } from './shared-types.ts'
import { bytesOf, writtenBody, type StoredBody, type WrittenBody } from './stored-body.ts'

/** The events of a row, and all that a store keeps of what they say. */
export type StorableRow = UnlinkedRow & StoredBody

/** What may become a segment: one event, or neighbouring deltas of one part. */
interface Group {
  readonly events: readonly RuntimeEvent[]
  readonly first: RuntimeEvent
  readonly last: RuntimeEvent
  readonly body: WrittenBody
  /** Whether it may share a row; else it has one of its own. */
  readonly isShared: boolean
}

/**
 * Divides the events of one append into rows, in their order. Neighbours of the types that come in every turn share a row,
 * within a turn, a second and some bytes; in it, neighbouring deltas of one part are packed. What is rare, large, or about a
 * call of another run or turn has a row of its own, since it is looked up by the columns of that row. The same events give
 * the same rows.
 */
export function storableRows(events: readonly RuntimeEvent[], sealer?: Sealer): readonly StorableRow[] {
  const rows: Group[][] = []
  let row: Group[] = []
  let bytes: SegmentBytes | undefined
  for (const grouped of groupsOf(events)) {
    const group = groupOf(grouped, sealer)
    if (bytes && isNextOf(row, group) && bytes.takes(group.body)) row.push(group)
    else {
      row = [group]
      bytes = new SegmentBytes(group.body)
      rows.push(row)
    }
  }
  return rows.map((groups) => rowOf(groups, sealer))
}

function groupOf(events: readonly RuntimeEvent[], sealer: Sealer | undefined): Group {
  const body = writtenBody(events, sealer)
  const [first, last] = [events[0] as RuntimeEvent, events.at(-1) as RuntimeEvent]
  return { events, first, last, body, isShared: isShared(first, body) }
}

/**
 * Whether what is stored are these very events: then only the acknowledgement of their append was lost. They are as many
 * as the row holds.
 */
export function isStored(stored: StoredRow, events: readonly RuntimeEvent[], sealer?: Sealer): boolean {
  const [row, ...others] = storableRows(events, sealer)
  return row !== undefined && others.length === 0 && isStoredAs(stored, row)
}

function isShared(event: RuntimeEvent, { contents }: WrittenBody): boolean {
  return (
    isSharedType(event.type) &&
    contents.length === 0 &&
    isFoundByTurn(event) &&
    (factNumberOf(event) !== undefined || onceKeyOf(event) === undefined)
  )
}

/** Events of a call are looked for by the id of the call, which names its run and its turn. */
function isFoundByTurn({ runId, turn, toolCallId }: RuntimeEvent): boolean {
  return toolCallId === undefined || shortCallId(runId, toolCallId)?.startsWith(`${turn}_`) === true
}

function isNextOf(row: readonly Group[], next: Group): boolean {
  const [begin, before] = [row[0], row.at(-1)]
  if (begin === undefined || before === undefined || !before.isShared || !next.isShared) return false
  return (
    next.first.turn === begin.first.turn &&
    next.first.at >= before.last.at &&
    next.last.at - begin.first.at <= maxPackedMs &&
    next.last.seq - begin.first.seq < maxEventsOfRow
  )
}

function rowOf(groups: readonly Group[], sealer: Sealer | undefined): StorableRow {
  const [only] = groups as readonly [Group]
  if (groups.length === 1) {
    const { written, contents, history } = only.body
    return { events: only.events, bytes: bytesOf(written), contents, history }
  }
  const events = groups.flatMap((group) => group.events)
  const { at: lastAt } = events.at(-1) as RuntimeEvent
  const heads = groups.map((group) => headOf(group, lastAt))
  const segments = groups.map(({ body }) => segmentOf(body))
  return { events, bytes: severalBody(heads, segments, sealer?.id), isSeveral: true, contents: [] }
}

/** A sealed body is bytes, and a text within the row. */
function segmentOf({ written }: WrittenBody): string {
  return typeof written === 'string' ? written : `"${Buffer.from(written).toString('base64')}"`
}

function headOf({ events, last }: Group, lastAt: number): SegmentHead {
  const { type, v, at, runId, toolCallId } = last
  const head: { -readonly [Field in keyof SegmentHead]: SegmentHead[Field] } = { type }
  if (v !== 1) head.v = v
  if (toolCallId !== undefined) head.call = shortCallId(runId, toolCallId) ?? ''
  if (events.length > 1) head.events = events.length
  if (at < lastAt) head.earlier = lastAt - at
  return head
}

import type { RunId, RuntimeEvent } from '@tallystick/core'
import {
  emptyHead,
  endsRun,
  placeTaken,
  requireHead,
  requireWellFormed,
  secondFact,
  sessionPlaceOf,
  unreadInbox,
  type SessionPlace,
} from '@tallystick/core/store-kit'
import { type AppendOptions, type ExpectedHead, type Head } from '@tallystick/core/vocabulary'
import type { Selectable } from 'kysely'
import { genesisHash, rowDigest, type RunCell } from '../../record/chain.ts'
import { eventsIn, storedRow } from '../../record/event-row.ts'
import { linkRows, type LinkedRow } from '../../record/linked-row.ts'
import { droppedRunConflict } from '../../removal/dropped-run.ts'
import { sessionOf } from '../../record/run-record.ts'
import type { Sealer } from '../../content/payload/encrypted-bytes.ts'
import { rowsOf } from '../../content/event/packed-deltas.ts'
import { isStored, storedRowBody, type StoredBody } from '../../content/event/stored-body.ts'
import { eventRows } from '../rows/event-batch.ts'
import type { Write } from './group-commit.ts'
import type { MovedHead, ReadQueries, WriteQueries } from '../rows/queries.ts'
import { runRow } from '../rows/run-row.ts'
import type { SqliteRemovals } from './removals.ts'
import { sqliteCode } from '../schema/sqlite-failure.ts'
import type { RunTable } from '../../record/tables.ts'

/** What appends need of an open store. */
export interface AppendStore {
  readonly writes: WriteQueries
  readonly reads: ReadQueries
  readonly removals: SqliteRemovals
}

/** Events to append: the rows that they make, and the body of each as bytes. */
interface Batch {
  readonly runId: RunId
  readonly expected: ExpectedHead
  readonly events: readonly RuntimeEvent[]
  readonly rows: readonly (readonly RuntimeEvent[])[]
  readonly bodies: readonly StoredBody[]
}

/** How an append is to be kept, and what seals it. */
export type SealedOptions = AppendOptions & { readonly sealer?: Sealer | undefined }

/** The append of the port. What can be said of the events alone is checked, and thrown, at once. */
export function append(
  store: AppendStore,
  batch: Omit<Batch, 'rows' | 'bodies'>,
  options: SealedOptions,
): Write<Head> {
  const { runId, expected, events } = batch
  requireWellFormed(runId, expected, events)
  const rows = rowsOf(events)
  const bodies = rows.map((row) => storedRowBody(row, options.sealer))
  return {
    durability: options.durability,
    events: events.length,
    bytes: bodies.reduce((sum, body) => sum + body.bytes.length, 0),
    work: () => appendWithin(store, { ...batch, rows, bodies }, options),
  }
}

function appendWithin(store: AppendStore, batch: Batch, options: SealedOptions): Head {
  const { durability, consumedInboxKeys: takes = [], sealer } = options
  const { runId, expected, events } = batch
  const run = runRow(store.reads, runId)
  const head = run ? { seq: run.head_seq, epoch: run.epoch } : emptyHead
  // Not the head of now: a writer that was relieved in between must not learn its successor's epoch.
  const after = { seq: expected.expectedSeq + events.length, epoch: expected.epoch }
  const isLostAcknowledgement = isAppendedAlready(store, batch, head, sealer)
  if (events.length === 0 || isLostAcknowledgement) {
    // A commit that writes nothing syncs nothing, and the recorded append may have been lazy.
    if (durability === 'barrier') store.writes.raiseBarrier.run({})
  }
  if (isLostAcknowledgement) return after
  requireHead(runId, head, expected)
  const place = run === undefined ? sessionPlaceOf(events) : undefined
  if (place && isTaken(store.reads, place)) throw placeTaken(runId, place)
  // In front of the events: a trigger of the file lets a run end only with its inbox read.
  for (const key of takes) take(store, { runId, key, takenSeq: after.seq }, sealer !== undefined)
  requireReadInbox(store, runId, events)
  if (events.length > 0) writeEvents(store, batch, run)
  return after
}

function requireReadInbox({ reads }: AppendStore, runId: RunId, events: readonly RuntimeEvent[]): void {
  if (endsRun(events) && reads.inbox.get({ runId }) !== undefined) throw unreadInbox(runId)
}

/**
 * Marks a command as taken. Its content is in the events from now on; if the run can be erased, the inbox keeps no
 * copy.
 */
function take(
  { writes, removals }: AppendStore,
  taken: { readonly runId: RunId; readonly key: string; readonly takenSeq: number },
  isSealed: boolean,
): void {
  writes.take.run(taken)
  if (isSealed) removals.blank(taken.runId, taken.key)
}

function isTaken(reads: ReadQueries, { sessionId, sessionPlace }: SessionPlace): boolean {
  const batch = { sessionId, beforePlace: sessionPlace + 1, limit: 1 }
  return reads.sessionRuns.get(batch)?.session_place === sessionPlace
}

/** Whether these very events were written before: then only their acknowledgement was lost. */
function isAppendedAlready(
  { reads }: AppendStore,
  { runId, expected, events }: Batch,
  head: Head,
  sealer: Sealer | undefined,
): boolean {
  const range = { runId, fromSeq: expected.expectedSeq + 1, toSeq: expected.expectedSeq + events.length }
  if (events.length === 0 || head.seq < range.toSeq) return false
  let index = 0
  for (const row of eventRows(reads, range)) {
    const due = events.slice(index, index + eventsIn(row))
    if (!isStored(storedRow(row), due, sealer)) return false
    index += due.length
  }
  return index === events.length
}

function writeEvents(
  { writes, removals }: AppendStore,
  { runId, expected, events, rows, bodies }: Batch,
  run: Selectable<RunTable> | undefined,
): void {
  const bytes = bodies.map((body) => body.bytes)
  const linked = linkRows(run?.head_hash ?? genesisHash, rows, bytes)
  const lastPos = writes.lastPlace.get({})?.seq ?? 0
  const firstPos = lastPos + 1
  const places = placesAfter(lastPos, rows)
  insertRows(writes, linked, places)
  keepElsewhere(removals, bodies, places)
  const cell = {
    runId,
    pos: run?.pos ?? firstPos,
    epoch: expected.epoch,
    headSeq: expected.expectedSeq + events.length,
    headHash: linked.at(-1)?.hash ?? genesisHash,
  }
  if (run) writes.moveHead.run(headRow({ ...cell, session: sessionOf(run) }))
  else insertRun(writes, { ...cell, session: sessionPlaceOf(events) })
}

/** The place of each row after a place: each event takes one, and a row has that of its last event. */
function placesAfter(lastPos: number, rows: Batch['rows']): readonly number[] {
  let pos = lastPos
  return rows.map((events) => (pos += events.length))
}

/** What bodies refer to. */
function keepElsewhere(
  removals: SqliteRemovals,
  bodies: readonly StoredBody[],
  places: readonly number[],
): void {
  for (const [index, { contents, history }] of bodies.entries()) {
    const pos = places[index] as number
    removals.keepContents(pos, contents)
    if (history) removals.histories.keep(pos, history)
  }
}

function insertRun(writes: WriteQueries, cell: RunCell): void {
  const { sessionId = null, sessionPlace = null } = cell.session ?? {}
  const row = { ...headRow(cell), pos: cell.pos, session_id: sessionId, session_place: sessionPlace }
  try {
    writes.insertRun.run(row)
  } catch (error) {
    throw droppedRunConflict(error, cell.runId as RunId) ?? error
  }
}

/** The row of a run's head, as the statement that moves it takes it. */
export function headRow(cell: RunCell): MovedHead {
  const { runId, headSeq, headHash, epoch } = cell
  return { run_id: runId, head_seq: headSeq, head_hash: headHash, epoch, seal: rowDigest(cell) }
}

function insertRows(writes: WriteQueries, linked: readonly LinkedRow[], places: readonly number[]): void {
  const events: unknown[] = []
  const payloads: unknown[] = []
  for (const [index, { envelope, onceKey = null, salt, body, bodyCommit, hash }] of linked.entries()) {
    const pos = places[index]
    const { runId, firstSeq = null, seq, epoch, turn, toolCallId = null, type, v, at } = envelope
    events.push(pos, runId, firstSeq, seq, epoch, type, v, turn, toolCallId, at, onceKey, bodyCommit, hash)
    payloads.push(pos, salt, body)
  }
  try {
    writes.insertEvents.run(events)
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_CONSTRAINT_UNIQUE') throw error
    const second = secondOf(writes, linked)
    throw second === undefined ? error : secondFact(second.runId, second.onceKey)
  }
  writes.insertPayloads.run(payloads)
}

/** The first fact among those that may be recorded once that is recorded already, or is stated twice. */
function secondOf(
  { existing }: WriteQueries,
  linked: readonly LinkedRow[],
): { readonly runId: RunId; readonly onceKey: string } | undefined {
  const stated = new Set<string>()
  for (const { envelope, onceKey } of linked) {
    if (onceKey === undefined) continue
    const { runId } = envelope
    if (stated.has(onceKey) || existing.get({ runId, onceKey })) return { runId, onceKey }
    stated.add(onceKey)
  }
  return undefined
}

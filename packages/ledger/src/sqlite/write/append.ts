import type { RunId, RuntimeEvent } from '@tallystick/core'
import {
  emptyHead,
  endsRun,
  onceKeyOf,
  placeTaken,
  requireHead,
  requireWellFormed,
  secondFact,
  sessionPlaceOf,
  unreadInbox,
  type SessionPlace,
} from '@tallystick/core/store-kit'
import { type AppendOptions, type ExpectedHead, type Head } from '@tallystick/core/vocabulary'
import { genesisHash, rowDigest, type RunCell } from '../../record/chain.ts'
import { eventsIn, storedRow } from '../../record/event-row.ts'
import { factNumberOf } from '../../record/segments/fact-number.ts'
import { segmentedType } from '../../record/segments/segmented-body.ts'
import { linkRows, type LinkedRow } from '../../record/linked-row.ts'
import { droppedRunConflict } from '../../removal/dropped-run.ts'
import { isRunId } from '../../record/stored-ids.ts'
import type { Sealer } from '../../content/payload/encrypted-bytes.ts'
import { isStored, storableRows, type StorableRow } from '../../content/event/stored-rows.ts'
import { eventRows } from '../rows/event-batch.ts'
import type { Write } from './group-commit.ts'
import type { KnownHeads } from './known-heads.ts'
import type { MovedHead, ReadQueries, WriteQueries } from '../rows/queries.ts'
import { cellOf, soundRow } from '../rows/run-row.ts'
import type { SqliteLeases } from './leases.ts'
import type { SqliteRemovals } from './removals.ts'
import { sqliteCode } from '../schema/sqlite-failure.ts'

/** What appends need of an open store. */
export interface AppendStore {
  readonly writes: WriteQueries
  readonly reads: ReadQueries
  readonly removals: SqliteRemovals
  readonly known: KnownHeads
  readonly leases: SqliteLeases
}

/** Events to append, and the rows that they make. */
interface Batch {
  readonly runId: RunId
  readonly expected: ExpectedHead
  readonly events: readonly RuntimeEvent[]
  readonly rows: readonly StorableRow[]
}

/** How an append is to be kept, and what seals it. */
export type SealedOptions = AppendOptions & { readonly sealer?: Sealer | undefined }

/** The append of the port. What can be said of the events alone is checked, and thrown, at once. */
export function append(store: AppendStore, batch: Omit<Batch, 'rows'>, options: SealedOptions): Write<Head> {
  const { runId, expected, events } = batch
  requireWellFormed(runId, expected, events)
  const rows = storableRows(events, options.sealer)
  const bytes = rows.reduce((sum, row) => sum + row.bytes.length, 0)
  return {
    durability: options.durability,
    events: events.length,
    bytes,
    ...(rows.every(isWhole) && { mostBytes: bytes + rows.length * mostBytesBesideBody }),
    work: () => appendWithin(store, { ...batch, rows }, options),
  }
}

/** What a row and its places in indexes take beside its body, at most. */
const mostBytesBesideBody = 1024

/** Whether all that a row says is in its body. */
function isWhole({ contents, history }: StorableRow): boolean {
  return contents.length === 0 && history === undefined
}

function appendWithin(store: AppendStore, batch: Batch, options: SealedOptions): Head {
  const { durability, consumedInboxKeys: takes = [], sealer } = options
  const { runId, expected, events } = batch
  const found = foundRun(store, runId)
  const { run } = found
  const head = run ? { seq: run.headSeq, epoch: run.epoch } : emptyHead
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
  if (place && isTaken(store.writes, place)) throw placeTaken(runId, place)
  // In front of the events: a trigger of the file lets a run end only with its inbox read.
  for (const key of takes) take(store, { runId, key, takenSeq: after.seq }, sealer !== undefined)
  if (events.length > 0) writeSoundEvents(store, batch, found)
  store.leases.appended(runId, events, options.lease)
  return after
}

/** The row of a run, where there is one, and the place of the last event of the file as far as it is known. */
interface FoundRun {
  readonly run?: RunCell
  readonly lastPlace: number | undefined
}

function foundRun({ writes, known }: AppendStore, runId: RunId): FoundRun {
  const run = known.get(runId)
  if (run) return { run, lastPlace: known.lastPlace }
  const row = isRunId(runId) ? writes.runAndLastPlace.get({ runId }) : undefined
  if (row === undefined) return { lastPlace: known.lastPlace }
  return { run: cellOf(runId, soundRow(row)), lastPlace: row.last_place ?? 0 }
}

/** The refusal of an end of a run whose inbox is not read, which a trigger of the file stops; `undefined` for other errors. */
function unreadInboxOf(
  error: unknown,
  { reads }: AppendStore,
  { runId, events }: Pick<Batch, 'runId' | 'events'>,
): Error | undefined {
  if (sqliteCode(error) !== 'SQLITE_CONSTRAINT_TRIGGER' || !endsRun(events)) return undefined
  return reads.inbox.get({ runId }) === undefined ? undefined : unreadInbox(runId)
}

/**
 * Marks a command as taken. Its content is in the events from now on; if the run can be erased, the inbox keeps no
 * copy.
 */
function take(
  store: AppendStore,
  taken: { readonly runId: RunId; readonly key: string; readonly takenSeq: number },
  isSealed: boolean,
): void {
  store.writes.take.run(taken)
  if (isSealed) store.removals.blank(taken.runId, taken.key)
}

function isTaken({ placeOfSession }: WriteQueries, place: SessionPlace): boolean {
  return placeOfSession.get(place) !== undefined
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

function writeSoundEvents(store: AppendStore, batch: Batch, found: FoundRun): void {
  try {
    writeEvents(store, batch, found)
  } catch (error) {
    throw unreadInboxOf(error, store, batch) ?? error
  }
}

function writeEvents(
  store: AppendStore,
  { runId, expected, events, rows }: Batch,
  { run, lastPlace }: FoundRun,
): void {
  const { writes, known } = store
  const linked = linkRows(run?.headHash ?? genesisHash, rows)
  const lastPos = lastPlace ?? writes.lastPlace.get({})?.seq ?? 0
  const firstPos = lastPos + 1
  const places = placesAfter(lastPos, rows)
  const runPos = run?.pos ?? firstPos
  insertRows(writes, { linked, places, runPos })
  keepElsewhere(store, rows, places)
  const cell = {
    runId,
    pos: runPos,
    epoch: expected.epoch,
    headSeq: expected.expectedSeq + events.length,
    headHash: linked.at(-1)?.hash ?? genesisHash,
    session: run ? run.session : sessionPlaceOf(events),
  }
  if (run) writes.moveHead.run(headRow(cell))
  else insertRun(writes, cell)
  known.wrote(cell, lastPos + events.length)
}

/** The place of each row after a place: each event takes one, and a row has that of its last event. */
function placesAfter(lastPos: number, rows: Batch['rows']): readonly number[] {
  let pos = lastPos
  return rows.map(({ events }) => (pos += events.length))
}

/** What bodies refer to. Most refer to nothing, and what writes that is prepared when it is first needed. */
function keepElsewhere(store: AppendStore, rows: readonly StorableRow[], places: readonly number[]): void {
  for (const [index, { contents, history }] of rows.entries()) {
    const pos = places[index] as number
    if (contents.length > 0) store.removals.keepContents(pos, contents)
    if (history) store.removals.histories.keep(pos, history)
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

interface PlacedRows {
  readonly linked: readonly LinkedRow[]
  readonly places: readonly number[]
  /** `pos` of the run. */
  readonly runPos: number
}

function insertRows(writes: WriteQueries, { linked, places, runPos }: PlacedRows): void {
  const events: unknown[] = []
  const payloads: unknown[] = []
  const facts: number[] = []
  for (const [index, row] of linked.entries()) {
    const { envelope, onceKey = null, salt, body, bodyCommit, hash } = row
    const pos = places[index]
    const { runId, firstSeq = null, seq, epoch, turn, toolCallId = null, type, v, at } = envelope
    events.push(pos, runId, firstSeq, seq, epoch, type, v, turn, toolCallId, at, onceKey, bodyCommit, hash)
    payloads.push(pos, salt, body)
    for (const number of row.facts) facts.push(runPos, number)
  }
  try {
    writes.insertFacts.run(facts)
  } catch (error) {
    throw secondFactIn(error, writes, { linked: linked.filter(isSegmented), runPos })
  }
  try {
    writes.insertEvents.run(events)
  } catch (error) {
    throw secondFactIn(error, writes, { linked: linked.filter((row) => !isSegmented(row)), runPos })
  }
  writes.insertPayloads.run(payloads)
}

function isSegmented({ envelope }: LinkedRow): boolean {
  return envelope.type === segmentedType
}

/** The error of an insert of what states facts of these rows; where one of them is recorded already, the refusal that names it. */
function secondFactIn(
  error: unknown,
  writes: WriteQueries,
  { linked, runPos }: Omit<PlacedRows, 'places'>,
): unknown {
  if (!uniqueCodes.has(sqliteCode(error) ?? '')) return error
  return secondOf(writes, linked, runPos) ?? error
}

/** What SQLite says where a name, or a number, is there already. */
const uniqueCodes: ReadonlySet<string> = new Set(['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT_PRIMARYKEY'])

/** The refusal of the first fact that is recorded already, or is stated twice, though it may be recorded only once. */
function secondOf(
  { existing, fact }: WriteQueries,
  linked: readonly LinkedRow[],
  runPos: number,
): Error | undefined {
  const stated = new Set<string>()
  for (const event of linked.flatMap(({ events }) => events)) {
    const { runId } = event
    const [onceKey, number] = [onceKeyOf(event), factNumberOf(event)]
    if (onceKey === undefined) continue
    const isRecorded =
      existing.get({ runId, onceKey }) ?? (number !== undefined && fact.get({ run: runPos, number }))
    if (stated.has(onceKey) || isRecorded) return secondFact(runId, onceKey)
    stated.add(onceKey)
  }
  return undefined
}

import { LedgerDamagedError, RunNotFoundError, type RunId } from '@tallystick/core'
import { isStorableName, requireDueFilter, requireRunFilter, toWholeTime } from '@tallystick/core/store-kit'
import type { DueFilter, DueRun, Head, Lease, RunFilter, RunRecord } from '@tallystick/core/vocabulary'
import type { ImportNote, RemovalRow } from '../format/chain.ts'
import {
  isRunId,
  formatRunId,
  createOutOfOrderError,
  RunIdSieve,
  type EventRow,
} from '../format/event-row.ts'
import type { HistoryRow } from '../format/history.ts'
import {
  eventColumnsText,
  type InboxRow,
  runColumnsText,
  type RunRow,
  type StoreDatabase,
} from './database.ts'

/* What both stores read of the record. */

/** Events of one run with `seq` in a range, both ends included. */
export interface EventRange {
  readonly runId: string
  readonly fromSeq: number
  readonly toSeq: number
}

type Asked = Pick<StoreDatabase, 'ask' | 'askBatch' | 'now'>

export async function readRun({ ask }: Asked, runId: string): Promise<RunRow | undefined> {
  if (!isRunId(runId)) return undefined
  const [row] = await ask<RunRow>(`select ${runColumnsText} from @.run where run_id = $1`, [runId])
  return row && requireSound(row)
}

export async function readHead(database: Asked, runId: RunId): Promise<Head | undefined> {
  const run = await readRun(database, runId)
  return run && { seq: run.head_seq, epoch: run.epoch }
}

/** The key that the first event of a run is sealed with; null for none, `undefined` if there is no such run. */
export async function readKeyId({ ask }: Asked, runId: RunId): Promise<string | null | undefined> {
  if (!isRunId(runId)) return undefined
  const [row] = await ask<Pick<EventRow, 'key_id'>>(
    'select key_id from @.event where run_id = $1 and seq = 1',
    [runId],
  )
  return row?.key_id
}

/** The first rows of a range, in the order of `seq`. */
export async function readRows(
  { askBatch }: Asked,
  { runId, fromSeq, toSeq }: EventRange,
): Promise<readonly EventRow[]> {
  if (!isRunId(runId)) return []
  const rows = await askBatch(
    `select ${eventColumnsText} from @.event where run_id = $1 and seq >= $2 and seq <= $3`,
    ['seq'],
    [runId, fromSeq, toSeq],
  )
  let last = fromSeq - 1
  for (const { seq } of rows) {
    // An index that is out of order would have the same batch read for ever.
    if (!(seq > last)) throw createOutOfOrderError(`the events of run ${runId}`)
    last = seq
  }
  return rows
}

/** The row of a message of what runs begin with. */
export async function readHistoryRow(
  { ask }: Pick<StoreDatabase, 'ask'>,
  name: string,
): Promise<HistoryRow | undefined> {
  if (!isStorableName(name)) return undefined
  const text = 'select digest, before, message from @.history where digest = $1'
  return (await ask<HistoryRow>(text, [name]))[0]
}

/** The entries of an inbox that were not taken, in the order in which they were put. */
export async function readInbox({ ask }: Asked, runId: RunId): Promise<readonly InboxRow[]> {
  if (!isRunId(runId)) return []
  return await ask<InboxRow>(
    'select key, at, command from @.inbox where run_id = $1 and taken_seq is null order by pos',
    [runId],
  )
}

/** The lease of a run, unless it has ended. */
export async function readLease({ ask, now }: Asked, runId: RunId): Promise<Lease | undefined> {
  if (!isRunId(runId)) return undefined
  const text = `select lease_holder as holder, lease_until - ${now} as "leftMs" from @.run
    where run_id = $1 and lease_until > ${now}`
  return (await ask<Lease>(text, [runId]))[0]
}

/** When and by whom a run was imported, if it was. */
export async function readImport(
  { ask }: Asked,
  runId: RunId,
): Promise<Omit<ImportNote, 'runId'> | undefined> {
  const text = `select at, by, reason from @.removal where run_id = $1 and kind = 'imported' limit 1`
  const [row] = await ask<Pick<RemovalRow, 'at' | 'by' | 'reason'>>(text, [runId])
  return row && { at: row.at, by: row.by, ...(row.reason !== null && { reason: row.reason }) }
}

const runsPerBatch = 256

/** The runs of the port, batch after batch. Between batches the store may be written. */
export async function* listRuns(
  database: Asked & Pick<StoreDatabase, 'requireOpen'>,
  filter: RunFilter = {},
): AsyncGenerator<RunRecord> {
  requireRunFilter(filter)
  const { sessionId } = filter
  let { limit: left = Infinity } = filter
  if (!isStorableName(sessionId ?? '')) return
  const order = sessionId === undefined ? 'pos' : 'session_place'
  const placeIn = (row: RunRow): number | null => {
    if (sessionId === undefined) return row.pos
    return row.session_id === sessionId ? row.session_place : null
  }
  let before = Number.MAX_SAFE_INTEGER
  if (filter.before !== undefined) {
    const row = await readRun(database, filter.before)
    const place = row && placeIn(row)
    if (place == null) throw new RunNotFoundError(filter.before)
    before = place
  }
  const sieve = new RunIdSieve()
  while (left > 0) {
    const asked = Math.min(runsPerBatch, Math.ceil(left))
    const batch = await database.ask<RunRow>(
      `select ${runColumnsText} from @.run where ${order} < $1 ${sessionId === undefined ? '' : 'and session_id = $3'}
        order by ${order} desc limit $2`,
      [before, asked, ...(sessionId === undefined ? [] : [sessionId])],
    )
    for (const row of batch.map(requireSound)) {
      const place = placeIn(row)
      // An index that is out of order would have the same batch listed for ever.
      if (place === null || place >= before) throw createOutOfOrderError('its runs')
      before = place
      if (!sieve.keeps(row.run_id)) continue
      left -= 1
      database.requireOpen()
      yield toRunRecord(row)
    }
    if (batch.length < asked) return sieve.end()
  }
}

/** The due runs of the port, batch after batch, by the index of those that are due at any time. */
export async function* listDue(
  database: Asked & Pick<StoreDatabase, 'requireOpen'>,
  filter: DueFilter,
): AsyncGenerator<DueRun> {
  requireDueFilter(filter)
  const { before, after, limit = Infinity } = filter
  const first = { due_at: -1, pos: -1 }
  let last = first
  if (after) {
    const run = await readRun(database, after.runId)
    if (run === undefined) throw new RunNotFoundError(after.runId)
    last = { due_at: toWholeTime(after.dueAt), pos: run.pos }
  }
  const latest = toWholeTime(before)
  const sieve = new RunIdSieve()
  // Those of the same time, then those of later ones: SQLite would read a comparison of pairs from the start of that time each time.
  let isSameTime = last !== first
  for (let left = limit; left > 0;) {
    const asked = Math.min(runsPerBatch, left)
    if (last.due_at > latest) return sieve.end()
    const batch = await database.ask<{ run_id: string; due_at: number; pos: number }>(
      `select run_id, due_at, pos from @.run where ${isSameTime ? 'due_at = $1 and pos > $2' : 'due_at > $1 and due_at <= $2'}
        and (lease_until is null or lease_until <= ${database.now}) order by due_at, pos limit $3`,
      [last.due_at, isSameTime ? last.pos : latest, asked],
    )
    for (const row of batch) {
      // An index that is out of order would have the same batch listed for ever.
      if (row.due_at < last.due_at || (row.due_at === last.due_at && row.pos <= last.pos))
        throw createOutOfOrderError('its due runs')
      last = row
      if (!sieve.keeps(row.run_id)) continue
      left -= 1
      database.requireOpen()
      yield { runId: row.run_id as RunId, dueAt: row.due_at }
    }
    if (batch.length === asked) isSameTime = true
    else if (isSameTime) isSameTime = false
    else return sieve.end()
  }
}

function toRunRecord({ run_id, head_seq, epoch, session_id, session_place }: RunRow): RunRecord {
  const session = session_id !== null &&
    session_place !== null && { sessionId: session_id, sessionPlace: session_place }
  return { runId: run_id as RunId, head: { seq: head_seq, epoch }, ...session }
}

/** Damaged bytes may be read as another type than their column has. */
export function requireSound(row: RunRow): RunRow {
  const { pos, head_seq, epoch, head_hash, seal, session_id, session_place, ended_at } = row
  const isSound =
    [pos, head_seq, epoch, ended_at ?? 0].every(Number.isSafeInteger) &&
    [head_hash, seal].every((value: unknown) => typeof value === 'string') &&
    (session_id === null ? session_place === null : Number.isSafeInteger(session_place))
  if (isSound) return row
  throw new LedgerDamagedError(
    `The row of run ${formatRunId(row.run_id)} is damaged: a column holds a value of another type. What it says cannot be ` +
      'trusted. Run verify on the ledger, and restore a copy.',
  )
}

const removalsPerBatch = 256

/** Every removal and import on record, in order; those of one run if it is named. */
export async function* readRemovals(
  { query }: Pick<StoreDatabase, 'query'>,
  runId?: RunId,
): AsyncGenerator<RemovalRow> {
  for (let pos = 0; ;) {
    const batch = await query(({ db }) => {
      const removals = db
        .selectFrom('removal')
        .selectAll()
        .where('pos', '>', pos)
        .orderBy('pos')
        .limit(removalsPerBatch)
      return runId === undefined ? removals : removals.where('run_id', '=', runId)
    })
    yield* batch
    const last = batch.at(-1)
    if (last === undefined) return
    pos = last.pos
  }
}

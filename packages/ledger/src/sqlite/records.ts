import { RunNotFoundError, type RunId } from '@tallystick/core'
import {
  createDrivenByOtherError,
  emptyHead,
  createEndedError,
  createPlaceTakenError,
  requireHead,
  createSecondFactError,
  readSessionPlace,
  createUnreadInboxError,
} from '@tallystick/core/store-kit'
import type { Head, Lease, LeaseClaim, TakeOverClaim } from '@tallystick/core/vocabulary'
import type { Database, Statement } from 'better-sqlite3'
import { genesisHash, sealRun, type RunCell } from '../format/chain.ts'
import { type EventRow, isRunId, isSameEvent, linkEvents, type NewRow } from '../format/event-row.ts'
import { eventColumnsText, type InboxRow, runColumnsText, type RunRow } from '../store/database.ts'
import { requireSound } from '../store/records.ts'
import {
  createDroppedRunConflict,
  listFactsOnce,
  type AppendRequest,
  type StoredWait,
} from '../store/store.ts'
import { readSqliteCode } from './open-database.ts'

/** The time of this machine, which all processes with the file share, in milliseconds since 1970 UTC. */
export const now = `cast(unixepoch('subsec') * 1000 as integer)`

/** The writes of a store, each within a transaction. All of them are synchronous. */
export class SqliteRecords {
  readonly #statements: ReturnType<typeof prepareStatements>
  readonly #blanked: () => void

  /** `blanked` is called when content was overwritten; the log still has copies of it. */
  constructor(database: Database, blanked: () => void) {
    this.#statements = prepareStatements(database)
    this.#blanked = blanked
  }

  append(request: AppendRequest): Head {
    const { runId, expected, events } = request
    const run = this.#run(runId)
    const head = run ? { seq: run.head_seq, epoch: run.epoch } : emptyHead
    // Not the head of now: a writer that was relieved in between must not learn its successor's epoch.
    const after = { seq: expected.expectedSeq + events.length, epoch: expected.epoch }
    if (this.#isAppended(request, head)) return after
    requireHead(runId, head, expected)
    this.#requireOnce(request, run)
    for (const key of request.takes) {
      this.#statements.take.run(after.seq, runId, key)
      if (!request.isSealed) continue
      this.#statements.blank.run(runId, key)
      this.#blanked()
    }
    if (events.length === 0) return after
    this.#write(request, run)
    if (request.wakes !== undefined && isRunId(request.wakes)) this.#statements.wake.run(request.wakes)
    return after
  }

  /** Raises the epoch of a run. From then on the writer before can append nothing. */
  acquire(runId: RunId, claim?: TakeOverClaim): Head {
    const run = this.#requireRun(runId)
    if (claim) {
      const lease = this.#statements.lease.get(runId)
      if (lease && lease.holder !== claim.holder && lease.holder !== claim.from)
        throw createDrivenByOtherError(runId, lease)
    }
    this.#statements.wake.run(runId)
    this.#moveRun({ ...run, epoch: run.epoch + 1 }, claim ?? noLease)
    return { seq: run.head_seq, epoch: run.epoch + 1 }
  }

  renew(runIds: readonly RunId[], { holder, forMs }: LeaseClaim): readonly RunId[] {
    return runIds.filter(
      (runId) => isRunId(runId) && this.#statements.renew.run(Math.ceil(forMs), runId, holder).changes > 0,
    )
  }

  release(runId: RunId, holder: string, wait?: StoredWait): void {
    if (wait === undefined) this.#statements.release.run(runId, holder)
    else this.#statements.rest.run(JSON.stringify(wait.children), wait.dueAt, runId, holder)
  }

  /** Returns whether the key is new. */
  put(runId: RunId, { key, at, command }: InboxRow): boolean {
    const run = this.#requireRun(runId)
    if (this.#statements.inboxKey.get(runId, key) !== undefined) return false
    if (run.ended_at !== null) throw createEndedError(runId)
    this.#statements.put.run(runId, key, at, command)
    this.#statements.wake.run(runId)
    return true
  }

  #run(runId: RunId): RunRow | undefined {
    const row = isRunId(runId) ? this.#statements.run.get(runId) : undefined
    return row && requireSound(row)
  }

  #requireRun(runId: RunId): RunRow {
    const run = this.#run(runId)
    if (run === undefined) throw new RunNotFoundError(runId)
    return run
  }

  /** If these very events were written before, only their acknowledgement was lost. */
  #isAppended({ runId, expected, events }: AppendRequest, head: Head): boolean {
    const toSeq = expected.expectedSeq + events.length
    if (events.length === 0 || head.seq < toSeq) return false
    let index = 0
    for (const row of this.#statements.events.iterate(runId, expected.expectedSeq + 1, toSeq)) {
      const event = events[index++]
      if (event === undefined || !isSameEvent(row, event)) return false
    }
    return index === events.length
  }

  /** Refuses what no index can: a second end, a taken place of a session, an end with unread commands. */
  #requireOnce({ runId, events, takes }: AppendRequest, run: RunCell | undefined): void {
    let ended = run?.ended_at != null
    for (const { event } of events) {
      if (event.type !== 'run_finished') continue
      if (ended) throw createSecondFactError(runId, event.type)
      ended = true
      if (this.#statements.unread.all(runId).some((key) => !takes.includes(key)))
        throw createUnreadInboxError(runId)
    }
    const place = run === undefined ? readSessionPlace(events.map(({ event }) => event)) : undefined
    if (place && this.#statements.placeTaken.get(place.sessionId, place.sessionPlace) !== undefined) {
      throw createPlaceTakenError(runId, place)
    }
  }

  #write({ runId, events, lease }: AppendRequest, run: RunRow | undefined): void {
    const rows = linkEvents(run?.head_hash ?? genesisHash, events)
    const lastRow = rows.at(-1) as NewRow
    const end = events.find(({ event }) => event.type === 'run_finished')
    const history = events.find((event) => event.history)?.history
    if (history) {
      const added = history.rowsAfter((name) => this.#statements.isHistory.get(name) !== undefined)
      for (const { digest, before, message } of added)
        this.#statements.insertHistory.run(digest, before, message)
    }
    const begun = run ?? toNewRun(runId, events, (this.#statements.lastPlace.get() ?? 0) + 1)
    const cell: RunCell = {
      ...begun,
      ...{ head_seq: lastRow.seq, head_hash: lastRow.hash, epoch: lastRow.epoch },
      ended_at: begun.ended_at ?? end?.event.at ?? null,
      history: begun.history ?? history?.name ?? null,
    }
    // Events refer to the row of their run, so a new one is written first.
    if (run === undefined) this.#insertRun(cell, lease)
    try {
      insertRows(this.#statements.insertEvents, rows, lastRow)
    } catch (error) {
      throw this.#secondFactIn(error, events) ?? error
    }
    if (run) this.#moveRun(cell, lease)
    if (run && history) this.#statements.nameHistory.run(cell.history, runId)
    if (end) this.#statements.end.run(runId)
  }

  #insertRun(cell: RunCell, lease: Partial<LeaseClaim> = noLease): void {
    const { pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history } = cell
    try {
      const columns = [pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history]
      this.#statements.insertRun.run(columns, sealRun(cell), toLeaseValues(lease))
    } catch (error) {
      throw this.#statements.dropped.get(run_id) === undefined ? error : createDroppedRunConflict(run_id)
    }
  }

  /** Writes the row of a run where it stands now. Without `lease` it keeps the one that it has. */
  #moveRun(cell: RunCell, lease?: Partial<LeaseClaim>): void {
    const { run_id, head_seq, head_hash, epoch, ended_at } = cell
    const { moveRun, driveRun } = this.#statements
    const columns = [head_seq, head_hash, epoch, ended_at, sealRun(cell), run_id]
    if (lease) driveRun.run(columns, toLeaseValues(lease))
    else moveRun.run(columns)
  }

  /** The refusal of the first fact that is recorded already, or is stated twice, though it may be recorded once. */
  #secondFactIn(error: unknown, events: AppendRequest['events']): Error | undefined {
    if (readSqliteCode(error) !== 'SQLITE_CONSTRAINT_UNIQUE') return undefined
    for (const { key, envelope, isRepeated } of listFactsOnce(events)) {
      const { tool_call_id, run_id, type, attempt } = envelope
      const recorded = isRepeated ? 1 : this.#statements.fact.get(tool_call_id, run_id, type, attempt)
      if (recorded !== undefined) return createSecondFactError(run_id as RunId, key)
    }
    return undefined
  }
}

/** Nobody drives the run. */
const noLease: Partial<LeaseClaim> = {}

function toLeaseValues({ holder, forMs }: Partial<LeaseClaim>): object {
  return { holder: holder ?? null, forMs: forMs === undefined ? null : Math.ceil(forMs) }
}

function toNewRun(run_id: RunId, events: AppendRequest['events'], pos: number): RunCell {
  const place = readSessionPlace(events.map(({ event }) => event))
  return {
    ...{ pos, run_id, head_seq: 0, head_hash: genesisHash, epoch: emptyHead.epoch },
    session_id: place?.sessionId ?? null,
    session_place: place?.sessionPlace ?? null,
    ...{ ended_at: null, history: null },
  }
}

/** Columns with an index are left out: to set one writes its entry anew. */
const moved = 'head_seq = ?, head_hash = ?, epoch = ?, ended_at = ?, seal = ?'

function prepareStatements(database: Database) {
  const rows = <Row>(text: string) => database.prepare<unknown[], Row>(text)
  const values = <Value>(text: string) => database.prepare<unknown[], Value>(text).pluck()
  return {
    run: rows<RunRow>(`select ${runColumnsText} from run where run_id = ?`),
    events: rows<EventRow>(
      `select ${eventColumnsText} from event where run_id = ? and seq >= ? and seq <= ? order by seq`,
    ),
    placeTaken: values<number>('select 1 from run where session_id = ? and session_place = ?'),
    lastPlace: values<number>(`select seq from sqlite_sequence where name = 'event'`),
    insertRun: rows(
      `insert into run (${runColumnsText}, lease_holder, lease_until, due_at)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, @holder, ${now} + @forMs, 0)`,
    ),
    moveRun: rows(`update run set ${moved} where run_id = ?`),
    driveRun: rows(
      `update run set ${moved}, lease_holder = @holder, lease_until = ${now} + @forMs where run_id = ?`,
    ),
    nameHistory: rows('update run set history = ? where run_id = ?'),
    insertEvents: prepareInserts(database),
    fact: values<number>(
      'select 1 from event where tool_call_id = ? and run_id = ? and type = ? and attempt = ?',
    ),
    dropped: values<number>(`select 1 from removal where run_id = ? and kind = 'dropped'`),
    isHistory: values<number>('select 1 from history where digest = ?'),
    insertHistory: rows('insert into history (digest, before, message) values (?, ?, ?)'),
    unread: values<string>('select key from inbox where run_id = ? and taken_seq is null'),
    inboxKey: values<number>('select 1 from inbox where run_id = ? and key = ?'),
    put: rows('insert into inbox (run_id, key, at, command) values (?, ?, ?, ?)'),
    take: rows('update inbox set taken_seq = ? where run_id = ? and key = ? and taken_seq is null'),
    blank: rows(
      `update inbox set command = '' where run_id = ? and key = ? and taken_seq is not null and command <> ''`,
    ),
    lease: rows<Lease>(
      `select lease_holder as holder, lease_until - ${now} as leftMs from run where run_id = ? and lease_until > ${now}`,
    ),
    renew: rows(`update run set lease_until = ${now} + ? where run_id = ? and lease_holder = ?`),
    release: rows(
      'update run set lease_holder = null, lease_until = null where run_id = ? and lease_holder = ?',
    ),
    rest: rows(
      `update run set lease_holder = null, lease_until = null, due_at = case
        when ended_at is not null then null
        when exists (select 1 from inbox where inbox.run_id = run.run_id and taken_seq is null) then 0
        when exists (select 1 from json_each(?) join run as child on child.run_id = value where child.ended_at is not null) then 0
        else ? end
      where run_id = ? and lease_holder = ?`,
    ),
    end: rows('update run set lease_holder = null, lease_until = null, due_at = null where run_id = ?'),
    wake: rows('update run set due_at = 0 where run_id = ? and ended_at is null and due_at is not 0'),
  }
}

/** The most rows of one statement, which takes half as long as one each. */
const rowsPerInsert = 64

/** The columns of an event that its append gives: the database gives each its place. */
const givenColumns = [
  'seq',
  'type',
  'turn',
  'tool_call_id',
  'attempt',
  'at',
  'v',
  'body',
  'salt',
  'hash',
] as const

/** The statement that inserts so many events of one append: what these share is bound once. */
function prepareInserts(database: Database): (count: number) => Statement {
  const known: Statement[] = []
  const row = `(@run_id, @epoch, @key_id, ${givenColumns.map(() => '?').join(', ')})`
  return (count) =>
    (known[count] ??= database.prepare(
      `insert into event (run_id, epoch, key_id, ${givenColumns.join(', ')}) values ${Array(count).fill(row).join(', ')}`,
    ))
}

function insertRows(
  insert: (count: number) => Statement,
  rows: readonly NewRow[],
  { run_id, epoch, key_id }: NewRow,
): void {
  for (let from = 0; from < rows.length; from += rowsPerInsert) {
    const some = rows.slice(from, from + rowsPerInsert)
    const values: unknown[] = []
    for (const { seq, type, turn, tool_call_id, attempt, at, v, body, salt, hash } of some)
      values.push(seq, type, turn, tool_call_id, attempt, at, v, body, salt, hash)
    insert(some.length).run(values, { run_id, epoch, key_id })
  }
}

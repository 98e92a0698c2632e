import { LedgerDamagedError, type RunId, RunNotFoundError } from '@tallystick/core'
import {
  drivenByOther,
  emptyHead,
  endedBefore,
  isStorableName,
  onceKeyOf,
  placeTaken,
  requireHead,
  requireRunFilter,
  secondFact,
  sessionPlaceOf,
  unreadInbox,
} from '@tallystick/core/store-kit'
import type {
  Head,
  Lease,
  LeaseClaim,
  RunFilter,
  RunRecord,
  TakeOverClaim,
} from '@tallystick/core/vocabulary'
import type { Database, Statement } from 'better-sqlite3'
import { genesisHash, type RunCell, sealRun } from '../format/chain.ts'
import {
  eventColumns,
  type EventRow,
  isRunId,
  isSameEvent,
  linkEvents,
  namedRun,
  outOfOrder,
  RunIdSieve,
} from '../format/event-row.ts'
import type { HistoryRow } from '../format/history.ts'
import { type AppendRequest, droppedRunConflict, type EventRange, type InboxRow } from '../store/store.ts'
import type { KnownHeads } from './commit.ts'
import { sqliteCode } from './open-database.ts'
import type { RunRow } from './schema.ts'

/** A statement that SQLite prepares when it is first used: there are many, and most processes use few of them. */
export class LateStatement<Row = unknown> {
  readonly #prepare: () => Statement<unknown[], Row>
  #prepared: Statement<unknown[], Row> | undefined

  constructor(prepare: () => Statement<unknown[], Row>) {
    this.#prepare = prepare
  }

  run(...values: readonly unknown[]): { readonly changes: number } {
    return this.#statement.run(...values)
  }

  /** The first row. */
  get(...values: readonly unknown[]): Row | undefined {
    return this.#statement.get(...values)
  }

  all(...values: readonly unknown[]): readonly Row[] {
    return this.#statement.all(...values)
  }

  /** Holds the connection until the iteration ends, so it must end before control is given back. */
  iterate(...values: readonly unknown[]): IterableIterator<Row> {
    return this.#statement.iterate(...values)
  }

  get #statement(): Statement<unknown[], Row> {
    return (this.#prepared ??= this.#prepare())
  }
}

/** Statements of a database by their text. */
export class Statements {
  readonly #database: Database
  readonly #byText = new Map<string, Statement<[Readonly<Record<string, unknown>>]>>()

  constructor(database: Database) {
    this.#database = database
  }

  /** Rows are objects. */
  rows<Row>(text: string): LateStatement<Row> {
    return new LateStatement(() => this.#database.prepare<unknown[], Row>(text))
  }

  /** Of each row the first value. */
  values<Value>(text: string): LateStatement<Value> {
    return new LateStatement(() => this.#database.prepare<unknown[], Value>(text).pluck())
  }

  /** A statement whose parameters are `$1`, `$2` …, prepared once for its text. */
  numbered(text: string): Statement<[Readonly<Record<string, unknown>>]> {
    const known = this.#byText.get(text)
    if (known) return known
    const statement = this.#database.prepare<[Readonly<Record<string, unknown>>]>(text)
    this.#byText.set(text, statement)
    return statement
  }
}

/** The values of parameters `$1`, `$2` …, which SQLite takes for names. */
export function numberedValues(values: readonly unknown[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(values.map((value, index) => [index + 1, value]))
}

/**
 * How many rows a statement takes: to prepare a statement for another number takes as long as to insert dozens of rows.
 */
const rowsOfStatements: readonly number[] = [64, 16, 8, 4, 3, 2, 1]

/** Inserts any number of rows into a table with few statements, in their order. */
export class RowsInsert {
  readonly #database: Database
  readonly #statements = new Map<number, Statement>()
  readonly #head: string
  readonly #row: string
  readonly #width: number

  constructor(database: Database, table: string, columns: readonly string[]) {
    this.#database = database
    this.#head = `insert into ${table} (${columns.join(', ')}) values `
    this.#row = `(${columns.map(() => '?').join(', ')})`
    this.#width = columns.length
  }

  /** `values` are those of the first row in the order of the columns, then those of the second, and so on. */
  run(values: readonly unknown[]): void {
    for (let start = 0; start < values.length;) {
      const left = (values.length - start) / this.#width
      const rows = rowsOfStatements.find((count) => count <= left) ?? left
      const end = start + rows * this.#width
      this.#statement(rows).run(values.length === end - start ? values : values.slice(start, end))
      start = end
    }
  }

  #statement(rows: number): Statement {
    const known = this.#statements.get(rows)
    if (known) return known
    const statement = this.#database.prepare(this.#head + Array(rows).fill(this.#row).join(', '))
    this.#statements.set(rows, statement)
    return statement
  }
}

/** The time of this machine, which all processes with the file share, in milliseconds since 1970 UTC. */
const now = `cast(unixepoch('subsec') * 1000 as integer)`

/** The leases of a ledger: columns of the row of a run. All but `of` is called within a transaction. */
class SqliteLeases {
  readonly #statements: ReturnType<typeof leaseStatements>

  constructor(database: Database) {
    this.#statements = leaseStatements(database)
  }

  of(runId: RunId): Lease | undefined {
    return isRunId(runId) ? this.#statements.lease.get(runId) : undefined
  }

  appended({ runId, events, lease }: AppendRequest): void {
    if (events.some(({ event }) => event.type === 'run_finished')) this.#statements.end.run(runId)
    else if (lease && events.length > 0) this.#give(runId, lease)
  }

  /** Throws a `LedgerConflictError` while another holder has the run. */
  acquired(runId: RunId, claim: TakeOverClaim | undefined): void {
    if (claim === undefined) return void this.#statements.end.run(runId)
    const lease = this.of(runId)
    if (lease && lease.holder !== claim.holder && lease.holder !== claim.from)
      throw drivenByOther(runId, lease)
    this.#give(runId, claim)
  }

  renew(runIds: readonly RunId[], { holder, forMs }: LeaseClaim): readonly RunId[] {
    return runIds.filter(
      (runId) => isRunId(runId) && this.#statements.renew.run(Math.ceil(forMs), runId, holder).changes > 0,
    )
  }

  release(runId: RunId, holder: string): void {
    if (isRunId(runId)) this.#statements.release.run(runId, holder)
  }

  #give(runId: RunId, { holder, forMs }: LeaseClaim): void {
    this.#statements.give.run(holder, Math.ceil(forMs), runId)
  }
}

function leaseStatements(database: Database) {
  const statements = new Statements(database)
  return {
    lease: statements.rows<Lease>(
      `select lease_holder as holder, lease_until - ${now} as leftMs from run where run_id = ? and lease_until > ${now}`,
    ),
    give: statements.rows(`update run set lease_holder = ?, lease_until = ${now} + ? where run_id = ?`),
    renew: statements.rows(`update run set lease_until = ${now} + ? where run_id = ? and lease_holder = ?`),
    release: statements.rows(
      'update run set lease_holder = null, lease_until = null where run_id = ? and lease_holder = ?',
    ),
    end: statements.rows(
      'update run set lease_holder = null, lease_until = null where run_id = ? and lease_holder is not null',
    ),
  }
}

/** A batch holds at most this many rows, and ends with the first that takes its bodies over this many characters. */
export const rowsPerBatch = 256
export const charactersPerBatch: number = 1024 * 1024

/** How many rows of runs are read at once. */
const runsPerBatch = 256

const runColumns =
  'pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history, seal' as const

/** The columns of events, each with the name of its table. */
export const eventColumnsText: string = eventColumns.map((column) => `event.${column}`).join(', ')

/** The record in an open file: what the port writes and reads. All of it is synchronous. */
export class SqliteRecords {
  readonly #statements: ReturnType<typeof statementsOf>
  readonly #known: KnownHeads
  readonly leases: SqliteLeases
  readonly #blanked: () => void

  /** `blanked` is called when content was written over, of which the log keeps copies. */
  constructor(database: Database, known: KnownHeads, blanked: () => void) {
    this.#statements = statementsOf(database)
    this.#known = known
    this.leases = new SqliteLeases(database)
    this.#blanked = blanked
  }

  run(runId: RunId): RunRow | undefined {
    const row = isRunId(runId) ? this.#statements.run.get(runId) : undefined
    return row && soundRun(row)
  }

  head(runId: RunId): Head | undefined {
    const run = this.run(runId)
    return run && { seq: run.head_seq, epoch: run.epoch }
  }

  keyIdOf(runId: RunId): string | null | undefined {
    return isRunId(runId) ? this.#statements.keyId.get(runId) : undefined
  }

  events({ runId, fromSeq, toSeq }: EventRange): readonly EventRow[] {
    return batchOf(this.#statements.events.iterate(runId, fromSeq, toSeq), (row, last) => {
      if (last && row.seq <= last.seq) throw outOfOrder(`the events of run ${runId}`)
    })
  }

  history(digest: string): HistoryRow | undefined {
    return this.#statements.history.get(digest)
  }

  inbox(runId: RunId): readonly InboxRow[] {
    return this.#statements.inbox.all(runId)
  }

  /** Whether content of a run was removed. */
  hasLost(runId: RunId): boolean {
    return this.#statements.lost.get(runId) !== undefined
  }

  /** Raises the epoch of a run. From then on the writer before can append nothing. */
  acquire(runId: RunId, claim?: TakeOverClaim): Head {
    const run = this.run(runId)
    if (run === undefined) throw new RunNotFoundError(runId)
    this.leases.acquired(runId, claim)
    const { seal: _seal, ...cell } = run
    this.writeRun({ ...cell, epoch: run.epoch + 1 })
    return { seq: run.head_seq, epoch: run.epoch + 1 }
  }

  /** Whether the key is new. */
  put(runId: RunId, { key, at, command }: InboxRow): boolean {
    const run = this.run(runId)
    if (run === undefined) throw new RunNotFoundError(runId)
    if (this.#statements.inboxKey.get(runId, key) !== undefined) return false
    if (run.ended_at !== null) throw endedBefore(runId)
    this.#statements.put.run(runId, key, at, command)
    return true
  }

  append(request: AppendRequest): Head {
    const { runId, expected, events } = request
    const run = this.#known.get(runId) ?? this.run(runId)
    const head = run ? { seq: run.head_seq, epoch: run.epoch } : emptyHead
    // Not the head of now: a writer that was relieved in between must not learn its successor's epoch.
    const after = { seq: expected.expectedSeq + events.length, epoch: expected.epoch }
    if (this.#isAppended(request, head)) return after
    requireHead(runId, head, expected)
    this.#requireOnce(request, run)
    for (const key of request.takes) {
      this.#statements.take.run(after.seq, runId, key)
      if (request.isSealed) this.blankInbox(runId, key)
    }
    if (events.length > 0) this.#write(request, run)
    this.leases.appended(request)
    return after
  }

  /** Whether these very events were written before: then only their acknowledgement was lost. */
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

  /** What an index cannot refuse: a second end, a taken place of a session, an end with commands unread. */
  #requireOnce({ runId, events, takes }: AppendRequest, run: RunCell | undefined): void {
    let ended = run?.ended_at != null
    for (const { event } of events) {
      if (event.type !== 'run_finished') continue
      if (ended) throw secondFact(runId, event.type)
      ended = true
      const waiting = this.inbox(runId).filter(({ key }) => !takes.includes(key))
      if (waiting.length > 0) throw unreadInbox(runId)
    }
    const place = run === undefined ? sessionPlaceOf(events.map(({ event }) => event)) : undefined
    if (place && this.#statements.placeTaken.get(place.sessionId, place.sessionPlace) !== undefined) {
      throw placeTaken(runId, place)
    }
  }

  #write({ runId, events }: AppendRequest, run: RunCell | undefined): void {
    const last = this.#known.lastPlace ?? this.#statements.lastPlace.get() ?? 0
    const rows = linkEvents({ hash: run?.head_hash ?? genesisHash, pos: last }, events)
    const lastRow = rows.at(-1) as EventRow
    let cell = run ?? this.#newRun(runId, events, last + 1)
    const end = events.find(({ event }) => event.type === 'run_finished')
    const history = events.find((event) => event.history)?.history
    if (history) {
      const added = history.rowsAfter((name) => this.#statements.isHistory.get(name) !== undefined)
      for (const { digest, before, message } of added)
        this.#statements.insertHistory.run(digest, before, message)
    }
    // Events refer to the row of their run, so a new one is written first.
    const moved = { head_seq: lastRow.seq, head_hash: lastRow.hash, epoch: lastRow.epoch }
    cell = {
      ...cell,
      ...moved,
      ended_at: cell.ended_at ?? end?.event.at ?? null,
      history: cell.history ?? history?.name ?? null,
    }
    if (run === undefined) this.#insertRun(cell)
    const values: unknown[] = []
    for (const row of rows) for (const column of eventColumns) values.push(row[column])
    try {
      this.#statements.insertEvents.run(values)
    } catch (error) {
      throw this.#secondFactIn(error, events) ?? error
    }
    if (run) this.writeRun(cell)
    this.#known.wrote(cell, lastRow.pos)
  }

  #newRun(runId: RunId, events: AppendRequest['events'], pos: number): RunCell {
    const place = sessionPlaceOf(events.map(({ event }) => event))
    return {
      pos,
      run_id: runId,
      ...{ head_seq: 0, head_hash: genesisHash, epoch: emptyHead.epoch },
      session_id: place?.sessionId ?? null,
      session_place: place?.sessionPlace ?? null,
      ...{ ended_at: null, history: null },
    }
  }

  #insertRun(cell: RunCell): void {
    const { pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history } = cell
    try {
      const columns = [pos, run_id, head_seq, head_hash, epoch, session_id, session_place, ended_at, history]
      this.#statements.insertRun.run(...columns, sealRun(cell))
    } catch (error) {
      throw this.#statements.dropped.get(run_id) === undefined ? error : droppedRunConflict(run_id)
    }
  }

  /** Writes the row of a run where it stands now. */
  writeRun(cell: RunCell): void {
    const { run_id, head_seq, head_hash, epoch, ended_at, history } = cell
    this.#statements.moveRun.run(head_seq, head_hash, epoch, ended_at, history, sealRun(cell), run_id)
    this.#known.forget(run_id)
  }

  /** A command that was taken says nothing any more: its content is in the events. */
  blankInbox(runId: string, key?: string): void {
    if (key === undefined) this.#statements.blankTaken.run(runId)
    else this.#statements.blankOne.run(runId, key)
    this.#blanked()
  }

  /** The refusal of the first fact that is recorded already, or is stated twice, though it may be recorded once. */
  #secondFactIn(error: unknown, events: AppendRequest['events']): Error | undefined {
    if (sqliteCode(error) !== 'SQLITE_CONSTRAINT_UNIQUE') return undefined
    const stated = new Set<string>()
    for (const { event, envelope } of events) {
      const onceKey = onceKeyOf(event)
      const { tool_call_id, run_id, type, attempt } = envelope
      if (onceKey === undefined || attempt === null) continue
      const isRecorded = this.#statements.fact.get(tool_call_id, run_id, type, attempt) !== undefined
      if (stated.has(onceKey) || isRecorded) return secondFact(event.runId, onceKey)
      stated.add(onceKey)
    }
    return undefined
  }

  /** The runs of the port, batch after batch. Between batches the store may be written. */
  *runs(filter: RunFilter = {}): Generator<RunRecord> {
    requireRunFilter(filter)
    const { sessionId } = filter
    let { limit: left = Infinity } = filter
    if (!isStorableName(sessionId ?? '')) return
    let before = this.#placeBefore(filter)
    const sieve = new RunIdSieve()
    while (left > 0) {
      const asked = Math.min(runsPerBatch, Math.ceil(left))
      const batch =
        sessionId === undefined
          ? this.#statements.runs.all(before, asked)
          : this.#statements.sessionRuns.all(sessionId, before, asked)
      for (const row of batch.map(soundRun)) {
        const place = placeIn(row, filter)
        // An index that is out of order would have the same batch listed for ever.
        if (place === undefined || place >= before) throw outOfOrder('its runs')
        before = place
        if (!sieve.keeps(row.run_id)) continue
        left -= 1
        yield recordOf(row)
      }
      if (batch.length < asked) return sieve.end()
    }
  }

  #placeBefore(filter: RunFilter): number {
    if (filter.before === undefined) return Number.MAX_SAFE_INTEGER
    const row = this.run(filter.before)
    const place = row && placeIn(row, filter)
    if (place === undefined) throw new RunNotFoundError(filter.before)
    return place
  }

  /** Every run of a session. */
  sessionRuns(sessionId: string): readonly RunRow[] {
    const all = Number.MAX_SAFE_INTEGER
    return this.#statements.sessionRuns.all(sessionId, all, all).map(soundRun)
  }
}

/** The first rows of a list. */
export function batchOf<Row extends EventRow>(
  rows: Iterable<Row>,
  check: (row: Row, last: Row | undefined) => void = () => {},
): readonly Row[] {
  const batch: Row[] = []
  let characters = 0
  for (const row of rows) {
    check(row, batch.at(-1))
    batch.push(row)
    characters += row.body.length
    if (batch.length === rowsPerBatch || characters >= charactersPerBatch) break
  }
  return batch
}

function placeIn(row: RunRow, { sessionId }: RunFilter): number | undefined {
  if (sessionId === undefined) return row.pos
  return row.session_id === sessionId ? (row.session_place ?? undefined) : undefined
}

function recordOf({ run_id, head_seq, epoch, session_id, session_place }: RunRow): RunRecord {
  const session = session_id !== null &&
    session_place !== null && { sessionId: session_id, sessionPlace: session_place }
  return { runId: run_id as RunId, head: { seq: head_seq, epoch }, ...session }
}

/** The row, if it holds what its columns hold; damaged bytes may be read as anything. */
function soundRun(row: RunRow): RunRow {
  const { pos, head_seq, epoch, head_hash, seal, session_id, session_place, ended_at } = row
  const isSound =
    [pos, head_seq, epoch, ended_at ?? 0].every(Number.isSafeInteger) &&
    [head_hash, seal].every((value: unknown) => typeof value === 'string') &&
    (session_id === null ? session_place === null : Number.isSafeInteger(session_place))
  if (isSound) return row
  throw new LedgerDamagedError(
    `The row of run ${namedRun(row.run_id)} is damaged: it does not hold what its columns hold. What it says cannot be ` +
      'trusted. Run verify on the ledger, and restore a copy.',
  )
}

function statementsOf(database: Database) {
  const statements = new Statements(database)
  return {
    run: statements.rows<RunRow>(`select ${runColumns} from run where run_id = ?`),
    keyId: statements.values<string | null>('select key_id from event where run_id = ? and seq = 1'),
    events: statements.rows<EventRow>(
      `select ${eventColumnsText} from event where run_id = ? and seq >= ? and seq <= ? order by seq`,
    ),
    runs: statements.rows<RunRow>(`select ${runColumns} from run where pos < ? order by pos desc limit ?`),
    sessionRuns: statements.rows<RunRow>(
      `select ${runColumns} from run where session_id = ? and session_place < ? order by session_place desc limit ?`,
    ),
    placeTaken: statements.values<number>('select 1 from run where session_id = ? and session_place = ?'),
    lastPlace: statements.values<number>(`select seq from sqlite_sequence where name = 'event'`),
    insertRun: statements.rows(`insert into run (${runColumns}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`),
    moveRun: statements.rows(
      'update run set head_seq = ?, head_hash = ?, epoch = ?, ended_at = ?, history = ?, seal = ? where run_id = ?',
    ),
    insertEvents: new RowsInsert(database, 'event', eventColumns),
    fact: statements.values<number>(
      'select 1 from event where tool_call_id = ? and run_id = ? and type = ? and attempt = ?',
    ),
    dropped: statements.values<number>(`select 1 from removal where run_id = ? and kind = 'dropped'`),
    lost: statements.values<number>('select 1 from removal where run_id = ? limit 1'),
    history: statements.rows<HistoryRow>('select digest, before, message from history where digest = ?'),
    isHistory: statements.values<number>('select 1 from history where digest = ?'),
    insertHistory: statements.rows('insert into history (digest, before, message) values (?, ?, ?)'),
    inbox: statements.rows<InboxRow>(
      'select key, at, command from inbox where run_id = ? and taken_seq is null order by pos',
    ),
    inboxKey: statements.values<number>('select 1 from inbox where run_id = ? and key = ?'),
    put: statements.rows('insert into inbox (run_id, key, at, command) values (?, ?, ?, ?)'),
    take: statements.rows(
      'update inbox set taken_seq = ? where run_id = ? and key = ? and taken_seq is null',
    ),
    blankTaken: statements.rows(
      `update inbox set command = '' where run_id = ? and taken_seq is not null and command <> ''`,
    ),
    blankOne: statements.rows(
      `update inbox set command = '' where run_id = ? and key = ? and taken_seq is not null and command <> ''`,
    ),
  }
}

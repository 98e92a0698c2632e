import { LedgerUnavailableError, type Clock, type RunId } from '@tallystick/core'
import { refuseTransaction } from '@tallystick/core/store-kit'
import type { Head, LeaseClaim, TakeOverClaim } from '@tallystick/core/vocabulary'
import type { Database, Statement } from 'better-sqlite3'
import type { Observable } from 'rxjs'
import type { RemovalRequest } from '../format/chain.ts'
import type { EventRow, Fault } from '../format/event-row.ts'
import {
  type Build,
  bytesPerBatch,
  type Durability,
  type FoundRow,
  type InboxRow,
  isFull,
  loadQueries,
  type Queries,
  rowsPerBatch,
  selectLinked,
  type Steps,
  type StoreDatabase,
} from '../store/database.ts'
import { removeContent } from '../store/removals.ts'
import type { AppendRequest, Store, StoredWait } from '../store/store.ts'
import type { BegunTail, TailStart } from '../store/tail-events.ts'
import { findFileFault } from './audit.ts'
import { ChangeFeed } from './changes.ts'
import { GroupCommit, Transactions } from './commit.ts'
import { LogSync, maxWalBytesUnlessGiven, OpenFiles, processTime, WalCheckpointer } from './log.ts'
import {
  toLedgerError,
  readSqliteCode,
  type OpenedDatabase,
  type SqliteLedgerOptions,
} from './open-database.ts'
import { now, SqliteRecords } from './records.ts'

/** How often, and after which pauses, a change is tried again that another process was in the way of. */
const maxTries = 40
const pauseMs = 25

/** As many statements stay prepared; the texts of most have one form, and of some one for each length of a list. */
const maxStatements = 200

/** One writer at a time holds the file, so the order of `pos` is that of commits. */
const xid = '0'

type Named = Readonly<Record<string, unknown>>

/** A ledger file as a store: it waits for commits that are under way, and speaks of failures in our words. */
export class SqliteStore implements Store {
  readonly transactions: Transactions
  readonly database: StoreDatabase
  readonly #opened: OpenedDatabase
  readonly #isWritable: boolean
  readonly #group: GroupCommit
  #knownRecords: SqliteRecords | undefined
  readonly #files: OpenFiles
  readonly #log: WalCheckpointer
  readonly #sync: LogSync
  readonly #feed: ChangeFeed
  readonly #statements = new Map<string, Statement<[Named]>>()
  #queries: Promise<Queries> | undefined
  #isClosed = false

  constructor(
    opened: OpenedDatabase,
    { readOnly = false, maxWalBytes, pollIntervalMs = 250 }: SqliteLedgerOptions = {},
    clock: Pick<Clock, 'now' | 'schedule'> = processTime,
  ) {
    const { database, path } = opened
    this.#opened = opened
    this.#isWritable = !readOnly
    const maxBytes = maxWalBytes ?? maxWalBytesUnlessGiven
    this.#log = new WalCheckpointer(database, { path, maxBytes, clock })
    this.#files = new OpenFiles(database, path)
    this.transactions = new Transactions(database, {
      admit: (durability) => this.#requireSameFiles(durability),
      committed: (durability) => {
        this.#requireSameFiles(durability)
        this.#log.committed()
        this.#sync.committed(durability)
      },
    })
    this.#sync = new LogSync({ path, clock, hasUnsynced: () => this.transactions.hasUnsynced })
    this.#group = new GroupCommit(this.transactions)
    this.#feed = new ChangeFeed(database, pollIntervalMs)
    this.database = this.#storeDatabase()
  }

  /** Made by the first write: most readers need no statement of it. */
  get #records(): SqliteRecords {
    return (this.#knownRecords ??= new SqliteRecords(this.#opened.database, () => this.#log.tookAway()))
  }

  append(request: AppendRequest): Promise<Head> {
    const { durability, events } = request
    const bytes = events.reduce((sum, { body }) => sum + body.length, 0)
    return this.#write(() =>
      this.#group.submit({
        ...{ durability, events: events.length, bytes },
        work: () => this.#records.append(request),
      }),
    )
  }

  acquire(runId: RunId, claim?: TakeOverClaim): Promise<Head> {
    return this.#submit('barrier', () => this.#records.acquire(runId, claim))
  }

  renew(runIds: readonly RunId[], claim: LeaseClaim): Promise<readonly RunId[]> {
    return this.#submit('lazy', () => this.#records.renew(runIds, claim))
  }

  release(runId: RunId, holder: string, wait?: StoredWait): Promise<void> {
    return this.#submit('lazy', () => this.#records.release(runId, holder, wait))
  }

  put(runId: RunId, entry: InboxRow, within?: unknown): Promise<boolean> {
    refuseTransaction({ within })
    return this.#submit('barrier', () => this.#records.put(runId, entry), entry.command.length)
  }

  changes(runId?: RunId, part?: 'inbox'): Observable<void> {
    return this.#feed.of(runId, part)
  }

  changed(runId: RunId, isInbox: boolean): void {
    this.#feed.notify(runId, isInbox)
  }

  async beginTail(after: TailStart): Promise<BegunTail> {
    const { ask, askBatch } = this.database
    const toPos = await this.#lastPlace()
    const [atCursor] = await ask<{ readonly runId: string; readonly hash: string }>(
      'select run_id as "runId", hash from @.event where pos = $1',
      [after.pos],
    )
    const dropped = await ask(`select pos from @.removal where run_id = $1 and kind = 'dropped' limit 1`, [
      after.runId,
    ])
    return {
      atCursor: after.xid === xid ? atCursor : undefined,
      isDropped: dropped.length > 0 && after.xid === xid,
      batch: async ({ pos }) => {
        const text = selectLinked('event.pos > $1 and event.pos <= $2')
        const rows = await askBatch<FoundRow>(text, ['pos'], [pos, toPos])
        return { rows: rows.map((found) => ({ ...found, xid })), isLast: !isFull(rows) }
      },
    }
  }

  findFault(): Promise<Fault | undefined> {
    return this.#read(() => findFileFault(this.#opened.database))
  }

  async remove(requests: readonly RemovalRequest[]): Promise<number> {
    const queries = await this.#loadQueries()
    const removed = await this.#write(() => {
      const count = this.transactions.transact('barrier', () => {
        // First, since a commit that cannot be acknowledged has removed the content all the same.
        this.#log.tookAway()
        return this.#carryOut(removeContent(queries, requests))
      })
      // The log has copies of removed content. If a reader prevents truncating it now, that happens later.
      this.#opened.database.pragma('wal_checkpoint(truncate)')
      return count
    })
    for (const runId of new Set(requests.map((request) => request.runId))) this.changed(runId, true)
    return removed
  }

  #carryOut<T>(steps: Steps<T>): T {
    let next = steps.next([])
    while (!next.done) {
      const { sql, parameters } = next.value
      const statement = this.#prepared(sql)
      const values = nameValues(parameters)
      if (!statement.reader) statement.run(values)
      next = steps.next(statement.reader ? statement.all(values) : [])
    }
    return next.value
  }

  /** Refuses every use, then ends the hints: who follows them looks once more, and is refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#feed.close()
    await this.#sync.close()
    const { database, path } = this.#opened
    try {
      if (this.#isWritable) {
        this.#group.flush()
        if (this.transactions.hasUnsynced) this.transactions.transact('barrier', () => undefined)
        if (this.#files.hasOwnLog) leaveOneFile(database)
      }
    } catch (error) {
      throw toLedgerError(error, path)
    } finally {
      this.#log.close()
      database.close()
    }
  }

  /** Lazy commits may be lost until a barrier, so only barriers check that the files are in their places. */
  #requireSameFiles(durability: Durability): void {
    if (durability === 'barrier') this.#files.requireSame()
  }

  #requireOpen(): void {
    if (!this.#isClosed) return
    throw new LedgerUnavailableError(
      `The ledger ${this.#opened.path} was closed, so it can neither be read nor written. Open it again with sqliteLedger().`,
    )
  }

  /** Reads what is committed: a reader that awaits nothing else would keep a commit from its turn of the event loop. */
  async #read<T>(work: () => T): Promise<T> {
    this.#requireOpen()
    if (this.#group.turn) await this.#group.turn
    this.#requireOpen()
    try {
      return work()
    } catch (error) {
      throw toLedgerError(error, this.#opened.path)
    }
  }

  async #write<T>(work: () => T | Promise<T>): Promise<T> {
    this.#requireOpen()
    if (!this.#isWritable) throw createReadOnlyError(this.#opened.path)
    try {
      return await work()
    } catch (error) {
      throw toLedgerError(error, this.#opened.path)
    }
  }

  #submit<T>(durability: Durability, work: () => T, bytes = 0): Promise<T> {
    return this.#write(() => this.#group.submit({ durability, events: 1, bytes, work }))
  }

  /** The statement of a text in the SQL of both databases. */
  #prepared(text: string): Statement<[Named]> {
    const known = this.#statements.get(text)
    if (known) return known
    if (this.#statements.size === maxStatements) this.#statements.clear()
    const statement = this.#opened.database.prepare<[Named]>(text.replaceAll('@.', ''))
    this.#statements.set(text, statement)
    return statement
  }

  #storeDatabase(): StoreDatabase {
    const ask = <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
      this.#read(() => this.#prepared(text).all(nameValues(values)) as readonly Row[])
    const queries = (): Promise<Queries> => this.#loadQueries()
    return {
      isWritable: this.#isWritable,
      maxScanned: 8192,
      now,
      requireOpen: () => this.#requireOpen(),
      ask,
      askBatch: <Row extends EventRow>(text: string, order: readonly string[], values: readonly unknown[]) =>
        this.#read(() =>
          takeBatch<Row>(
            this.#prepared(orderQuery(text, order)).iterate(nameValues(values)) as Iterable<Row>,
          ),
        ),
      query: async <Row>(build: Build<Row>) => {
        const on = await queries()
        const { sql, parameters } = build(on).compile(on.db)
        return await this.#read(() => this.#prepared(sql).all(nameValues(parameters)) as readonly Row[])
      },
      change: (steps) => this.#change(steps),
    }
  }

  async #lastPlace(): Promise<number> {
    const [last] = await this.database.ask<{ readonly pos: number | null }>(
      'select max(pos) as pos from @.event',
    )
    return last?.pos ?? 0
  }

  /** Loaded by the first search, list or change: most users of a file need none of it. */
  #loadQueries(): Promise<Queries> {
    return (this.#queries ??= loadQueries())
  }

  async #change<T>(steps: (queries: Queries) => Steps<T>): Promise<T> {
    const { database } = this.#opened
    const queries = await this.#loadQueries()
    const work = (): T =>
      doWithoutWaiting(database, () =>
        this.transactions.transact('lazy', () => this.#carryOut(steps(queries))),
      )
    for (let tries = 1; ; tries++) {
      try {
        return await this.#write(work)
      } catch (error) {
        if (tries === maxTries || !isBusy(error)) throw error
        await new Promise((resolve) => void setTimeout(resolve, pauseMs))
      }
    }
  }
}

function orderQuery(query: string, order: readonly string[]): string {
  return `${query} order by ${order.map((column) => `event.${column}`).join(', ')}`
}

/** The values of parameters `$1`, `$2` …, which SQLite takes for names. */
function nameValues(values: readonly unknown[]): Named {
  return Object.fromEntries(values.map((value, index) => [index + 1, value]))
}

/** The rows of a batch: the query ends when it is full. */
function takeBatch<Row extends EventRow>(rows: Iterable<Row>): readonly Row[] {
  const batch: Row[] = []
  let bytes = 0
  for (const row of rows) {
    batch.push(row)
    bytes += row.body.length
    if (batch.length === rowsPerBatch || bytes >= bytesPerBatch) break
  }
  return batch
}

/** Runs work that may fail as soon as another process writes: derived data is not worth a wait. */
function doWithoutWaiting<T>(database: Database, work: () => T): T {
  const waited = database.pragma('busy_timeout', { simple: true }) as number
  database.pragma('busy_timeout = 0')
  try {
    return work()
  } finally {
    database.pragma(`busy_timeout = ${waited}`)
  }
}

function isBusy(error: unknown): boolean {
  return (
    error instanceof LedgerUnavailableError &&
    (readSqliteCode(error.cause)?.startsWith('SQLITE_BUSY') ?? false)
  )
}

/**
 * Ends the write-ahead log unless another process has the file open: a ledger at rest is one file, which can be
 * copied, and read where nothing can be written. If other processes have it open SQLite refuses at once, and the last
 * of them ends the log. SQLite removes the log by its name, whichever ledger's it is.
 */
function leaveOneFile(database: Database): void {
  try {
    database.pragma('busy_timeout = 0')
    database.pragma('journal_mode = delete')
  } catch {
    // The log stays, which is as safe.
  }
}

function createReadOnlyError(path: string): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `The ledger ${path} was opened with readOnly, so nothing was written. Open it without readOnly to drive or command runs.`,
  )
}

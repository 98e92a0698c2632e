import { LedgerUnavailableError, type Clock, type RunId } from '@tallystick/core'
import type {
  EventType,
  Head,
  Lease,
  LeaseClaim,
  RunFilter,
  RunRecord,
  TakeOverClaim,
} from '@tallystick/core/vocabulary'
import type { Observable } from 'rxjs'
import type { EventRow, Fault } from '../format/event-row.ts'
import type { HistoryRow } from '../format/history.ts'
import type { RemovalRequest, RemovalRow } from '../format/chain.ts'
import type { ProjectionDatabase } from '../projection/database.ts'
import type { AskedEvents, Cursor, FoundBatch, SearchedRun, SearchSource } from '../store/find-events.ts'
import {
  type AppendRequest,
  type AuditedRow,
  type Batch,
  type EndedRun,
  type EventRange,
  type InboxRow,
  isRareType,
  type RemovableQuery,
  type Store,
  type StoredRun,
} from '../store/store.ts'
import type { BegunTail, TailStart } from '../store/tail-events.ts'
import { SqliteAudit } from './audit.ts'
import { ChangeFeed } from './changes.ts'
import { GroupCommit, KnownHeads, Transactions, type Durability } from './commit.ts'
import { ledgerFailure, type OpenedDatabase } from './open-database.ts'
import { LogSync, maxWalBytesUnlessGiven, OpenFiles, processTime, WalCheckpointer } from './log.ts'
import type { SqliteLedgerOptions } from './open-database.ts'
import { sqliteProjections } from './projections.ts'
import { SqliteRecords } from './records.ts'
import { SqliteRemovals } from './removals.ts'
import { SqliteSearch } from './search.ts'

/** What a row and its places in indexes take beside its body, at most, in bytes. */
const mostBytesBesideBody = 1024

/** A ledger file as a store: it waits for commits that are under way, and speaks of failures in our words. */
export class SqliteStore implements Store {
  readonly isWritable: boolean
  readonly transactions: Transactions
  readonly projections: ProjectionDatabase
  readonly #opened: OpenedDatabase
  readonly #group: GroupCommit
  readonly #records: SqliteRecords
  readonly #removals: SqliteRemovals
  readonly #search: SqliteSearch
  readonly #audit: SqliteAudit
  readonly #known = new KnownHeads()
  readonly #files: OpenFiles
  readonly #log: WalCheckpointer
  readonly #sync: LogSync
  readonly #feed: ChangeFeed
  #isClosed = false

  constructor(
    opened: OpenedDatabase,
    { readOnly = false, maxWalBytes, pollIntervalMs = 250 }: SqliteLedgerOptions = {},
    clock: Pick<Clock, 'now' | 'schedule'> = processTime,
  ) {
    const { database, path } = opened
    this.#opened = opened
    this.isWritable = !readOnly
    const maxBytes = maxWalBytes ?? maxWalBytesUnlessGiven
    this.#log = new WalCheckpointer(database, { path, maxBytes, clock })
    this.#files = new OpenFiles(database, path)
    this.transactions = new Transactions(
      database,
      {
        admit: (durability) => void this.#requireSameFiles(durability),
        committed: (durability, written) => {
          this.#log.committed({ logBytes: this.#requireSameFiles(durability), written })
          this.#sync.committed(durability)
        },
      },
      this.#known,
    )
    this.#sync = new LogSync({ path, clock, hasUnsynced: () => this.transactions.hasUnsynced })
    this.#group = new GroupCommit(this.transactions)
    this.#records = new SqliteRecords(database, this.#known, () => this.#log.tookAway())
    this.#removals = new SqliteRemovals(database, this.#records)
    this.#search = new SqliteSearch(database, this.#records)
    this.#audit = new SqliteAudit(database, this.#records)
    this.#feed = new ChangeFeed(database, pollIntervalMs)
    this.projections = sqliteProjections(this, database)
  }

  /** What is lazy may be lost until a barrier, so only barriers have to find the files in their places. */
  #requireSameFiles(durability: Durability): number | undefined {
    return durability === 'barrier' ? this.#files.requireSame() : undefined
  }

  /** Reads what is committed: a reader that awaits nothing else would keep a commit from its turn of the event loop. */
  async read<T>(work: () => T): Promise<T> {
    this.requireOpen()
    if (this.#group.turn) await this.#group.turn
    this.requireOpen()
    return this.#speaking(work)
  }

  async write<T>(work: () => T | Promise<T>): Promise<T> {
    this.requireOpen()
    if (!this.isWritable) throw refusedReadOnly(this.#opened.path)
    try {
      return await work()
    } catch (error) {
      throw ledgerFailure(error, this.#opened.path)
    }
  }

  append(request: AppendRequest): Promise<Head> {
    const { durability, events } = request
    const bytes = events.reduce((sum, { body }) => sum + body.length, 0)
    const isSmall = events.every(({ history }) => history === undefined)
    // A code unit is at most three bytes of UTF-8.
    const mostBytes = isSmall ? 3 * bytes + events.length * mostBytesBesideBody : Infinity
    return this.write(() =>
      this.#group.submit({
        ...{ durability, events: events.length, bytes, mostBytes },
        work: () => this.#records.append(request),
      }),
    )
  }

  acquire(runId: RunId, claim?: TakeOverClaim): Promise<Head> {
    const work = (): Head => this.#records.acquire(runId, claim)
    return this.write(() => this.#group.submit({ durability: 'barrier', events: 0, bytes: 0, work }))
  }

  lease(runId: RunId): Promise<Lease | undefined> {
    return this.read(() => this.#records.leases.of(runId))
  }

  renew(runIds: readonly RunId[], claim: LeaseClaim): Promise<readonly RunId[]> {
    const work = (): readonly RunId[] => this.#records.leases.renew(runIds, claim)
    return this.write(() => this.#group.submit({ durability: 'lazy', events: 0, bytes: 0, work }))
  }

  release(runId: RunId, holder: string): Promise<void> {
    const work = (): void => this.#records.leases.release(runId, holder)
    return this.write(() => this.#group.submit({ durability: 'lazy', events: 0, bytes: 0, work }))
  }

  put(runId: RunId, entry: InboxRow): Promise<boolean> {
    const work = (): boolean => this.#records.put(runId, entry)
    const bytes = entry.command.length
    return this.write(() => this.#group.submit({ durability: 'barrier', events: 1, bytes, work }))
  }

  head(runId: RunId): Promise<Head | undefined> {
    return this.read(() => this.#records.head(runId))
  }

  keyIdOf(runId: RunId): Promise<string | null | undefined> {
    return this.read(() => this.#records.keyIdOf(runId))
  }

  events(range: EventRange): Promise<readonly EventRow[]> {
    return this.read(() => this.#records.events(range))
  }

  history(name: string): Promise<HistoryRow | undefined> {
    return this.read(() => this.#records.history(name))
  }

  async *runs(filter?: RunFilter): AsyncGenerator<RunRecord> {
    const runs = await this.read(() => this.#records.runs(filter))
    for (;;) {
      this.requireOpen()
      const next = this.#speaking(() => runs.next())
      if (next.done) return
      yield next.value
    }
  }

  inbox(runId: RunId): Promise<readonly InboxRow[]> {
    return this.read(() => this.#records.inbox(runId))
  }

  hasLost(runId: RunId): Promise<boolean> {
    return this.read(() => this.#records.hasLost(runId))
  }

  changes(runId?: RunId, part?: 'inbox'): Observable<void> {
    return this.#feed.of(runId, part)
  }

  changed(runId: RunId, isInbox: boolean): void {
    this.#feed.notify(runId, isInbox)
    this.#feed.found(this.transactions.version)
  }

  searchedRuns(asked: AskedEvents): Promise<readonly SearchedRun[]> {
    return this.read(() => this.#search.runs(asked))
  }

  places(asked: AskedEvents): Promise<{ readonly fromPos: number; readonly toPos: number } | undefined> {
    return this.read(() => this.#search.places(asked))
  }

  search(asked: AskedEvents, source: SearchSource, after: Cursor): Promise<FoundBatch> {
    return this.read(() => this.#search.batch(asked, source, after))
  }

  hasIndexOf(type: EventType): boolean {
    return isRareType(type)
  }

  async beginTail(after: TailStart): Promise<BegunTail> {
    const begun = await this.read(() => this.#search.beginTail(after))
    return { ...begun, batch: async (place) => await this.read(() => begun.batch(place)) }
  }

  storedRun(runId: RunId): Promise<StoredRun | undefined> {
    return this.read(() => this.#audit.run(runId))
  }

  auditedEvents(range: EventRange): Promise<readonly AuditedRow[]> {
    return this.read(() => this.#audit.events(range))
  }

  orphans(): Promise<readonly string[]> {
    return this.read(() => this.#audit.orphans())
  }

  async storeFault(): Promise<Fault | undefined> {
    const found = await this.read(() => this.#audit.fault())
    if (found) return found
    for (let after = ''; ;) {
      const from = after
      const checked = await this.read(() => this.#audit.historyFault(from))
      if (checked === undefined) return undefined
      if ('fault' in checked) return checked.fault
      after = checked.next
    }
  }

  removalsAfter(pos: number, runId?: RunId): Promise<readonly RemovalRow[]> {
    return this.read(() => this.#removals.after(pos, runId))
  }

  removable(query: RemovableQuery): Promise<Batch<EventRow>> {
    return this.read(() => this.#removals.removable(query))
  }

  endedRuns(query: Omit<RemovableQuery, 'types'>): Promise<Batch<EndedRun>> {
    return this.read(() => this.#removals.endedRuns(query))
  }

  async remove(requests: readonly RemovalRequest[]): Promise<number> {
    const removed = await this.write(() => {
      const count = this.transactions.transact('barrier', () => {
        // First: a commit that cannot be acknowledged has removed what was to go.
        this.#known.forgetAll()
        this.#log.tookAway()
        return this.#removals.remove(requests)
      })
      // The log keeps copies of what was removed. Where a reader prevents it, it is truncated later.
      this.#opened.database.pragma('wal_checkpoint(truncate)')
      return count
    })
    for (const runId of new Set(requests.map((request) => request.runId))) this.changed(runId, true)
    return removed
  }

  requireOpen(): void {
    if (!this.#isClosed) return
    throw new LedgerUnavailableError(
      `The ledger ${this.#opened.path} was closed, so it can neither be read nor written. Open it again with sqliteLedger().`,
    )
  }

  /** Refuses every use, then ends the hints: who follows them looks once more, and is refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#feed.close()
    await this.#sync.close()
    const { database, path } = this.#opened
    try {
      if (this.isWritable) {
        this.#group.flush()
        if (this.transactions.hasUnsynced) this.transactions.transact('barrier', () => undefined)
        if (this.#files.hasOwnLog) leaveOneFile(database)
      }
    } catch (error) {
      throw ledgerFailure(error, path)
    } finally {
      this.#log.close()
      database.close()
    }
  }

  #speaking<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw ledgerFailure(error, this.#opened.path)
    }
  }
}

/**
 * Ends the write-ahead log unless another process has the file open: a ledger at rest is one file, which can be
 * copied, and read where nothing can be written. If other processes have it open SQLite refuses at once, and the last
 * of them ends the log. SQLite removes the log by its name, whichever ledger's it is.
 */
function leaveOneFile(database: OpenedDatabase['database']): void {
  try {
    database.pragma('busy_timeout = 0')
    database.pragma('journal_mode = delete')
  } catch {
    // The log stays, which is as safe.
  }
}

function refusedReadOnly(path: string): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `The ledger ${path} was opened with readOnly, so nothing was written. Open it without readOnly to drive or command runs.`,
  )
}

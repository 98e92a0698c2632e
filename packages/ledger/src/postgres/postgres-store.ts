import { LedgerUnavailableError, type RunId } from '@tallystick/core'
import { requireOptions } from '@tallystick/core/internal'
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
import { Appender } from './append.ts'
import { PostgresAudit } from './audit.ts'
import { ChangeFeed } from './changes.ts'
import { Connections, ledgerFailure, loadPg, requirePg } from './connections.ts'
import {
  databasePlace,
  postgresLedgerOptions,
  type DatabasePlace,
  type PostgresLedgerOptions,
} from './options.ts'
import { postgresProjections } from './projections.ts'
import { PostgresRecords } from './records.ts'
import { PostgresRemovals } from './removals.ts'
import { inspectSchema, makeSchema } from './schema.ts'
import { PostgresSearch, tailHorizon } from './search.ts'
import type { TailHorizon } from './options.ts'

/** A schema that is open. */
interface Opened {
  readonly connections: Connections
  readonly records: PostgresRecords
  readonly appender: Appender
  readonly search: PostgresSearch
  readonly removals: PostgresRemovals
  readonly audit: PostgresAudit
}

/**
 * A schema as a store: it is opened at the first use, and where that fails the next use tries again. Refuses what must not
 * be, and speaks of failures in our words.
 */
export class PostgresStore implements Store {
  readonly isWritable: boolean
  readonly projections: ProjectionDatabase
  readonly #place: DatabasePlace
  readonly #options: PostgresLedgerOptions
  readonly #feed: ChangeFeed
  #connections: Promise<Connections> | undefined
  #opened: Promise<Opened> | undefined
  readonly #underWay = new Set<Promise<unknown>>()
  #isClosed = false

  /** Throws a `ConfigurationError` where the options cannot work. Connects to nothing yet. */
  constructor(options: PostgresLedgerOptions) {
    requireOptions('postgresLedger', postgresLedgerOptions, options)
    requirePg()
    this.#place = databasePlace(options)
    this.#options = options
    this.isWritable = !options.readOnly
    this.projections = postgresProjections(
      {
        isWritable: this.isWritable,
        read: <Row>(statement: Parameters<Connections['rows']>[0]) =>
          this.#read(({ connections }) => connections.rows<Row>(statement)),
        write: <Row>(statement: Parameters<Connections['rows']>[0]) =>
          this.#write(({ connections }) => connections.rows<Row>(statement)),
      },
      this.#place.quotedSchema,
    )
    this.#feed = new ChangeFeed(
      {
        marks: (runIds) => this.#read(({ records }) => records.marks(runIds)),
        tailMark: () => this.#read(({ search }) => search.mark()),
        // Over the connections of the store that is open, and also while it closes.
        tell: async (channel, payload) => await (await this.#opened)?.records.tell(channel, payload),
      },
      options,
      this.#place.schema,
    )
  }

  append(request: AppendRequest): Promise<Head> {
    return this.#write(({ appender }) => appender.append(request))
  }

  acquire(runId: RunId, claim?: TakeOverClaim): Promise<Head> {
    return this.#write(({ appender }) => appender.acquire(runId, claim))
  }

  lease(runId: RunId): Promise<Lease | undefined> {
    return this.#read(({ records }) => records.lease(runId))
  }

  renew(runIds: readonly RunId[], claim: LeaseClaim): Promise<readonly RunId[]> {
    return this.#write(({ records }) => records.renew(runIds, claim))
  }

  release(runId: RunId, holder: string): Promise<void> {
    return this.#write(({ records }) => records.release(runId, holder))
  }

  put(runId: RunId, entry: InboxRow): Promise<boolean> {
    return this.#write(({ records }) => records.put(runId, entry))
  }

  head(runId: RunId): Promise<Head | undefined> {
    return this.#read(({ records }) => records.head(runId))
  }

  keyIdOf(runId: RunId): Promise<string | null | undefined> {
    return this.#read(({ records }) => records.keyIdOf(runId))
  }

  events(range: EventRange): Promise<readonly EventRow[]> {
    return this.#read(({ records }) => records.events(range))
  }

  history(name: string): Promise<HistoryRow | undefined> {
    return this.#read(({ records }) => records.history(name))
  }

  /** Between two items no connection is held. */
  async *runs(filter?: RunFilter): AsyncGenerator<RunRecord> {
    const runs = await this.#read(async ({ records }) => records.runs(filter))
    for (;;) {
      this.requireOpen()
      const next = await this.#attend(() => runs.next())
      if (next.done) return
      yield next.value
    }
  }

  inbox(runId: RunId): Promise<readonly InboxRow[]> {
    return this.#read(({ records }) => records.inbox(runId))
  }

  hasLost(runId: RunId): Promise<boolean> {
    return this.#read(({ records }) => records.hasLost(runId))
  }

  changes(runId?: RunId, part?: 'inbox'): Observable<void> {
    return runId === undefined ? this.#feed.ofAll() : this.#feed.of(runId, part)
  }

  changed(runId: RunId, isInbox: boolean): void {
    this.#feed.notify(runId, isInbox)
  }

  searchedRuns(asked: AskedEvents): Promise<readonly SearchedRun[]> {
    return this.#read(({ search }) => search.runs(asked))
  }

  places(asked: AskedEvents): Promise<{ readonly fromPos: number; readonly toPos: number } | undefined> {
    return this.#read(({ search }) => search.places(asked))
  }

  search(asked: AskedEvents, source: SearchSource, after: Cursor): Promise<FoundBatch> {
    return this.#read(({ search }) => search.batch(asked, source, after))
  }

  hasIndexOf(type: EventType): boolean {
    return isRareType(type)
  }

  async beginTail(after: TailStart): Promise<BegunTail> {
    const begun = await this.#read(({ search }) => search.beginTail(after))
    if (begun.isHeldBack) this.#feed.pollSoon()
    return { ...begun, batch: (place) => this.#read(() => begun.batch(place)) }
  }

  storedRun(runId: RunId): Promise<StoredRun | undefined> {
    return this.#read(({ audit }) => audit.run(runId))
  }

  auditedEvents(range: EventRange): Promise<readonly AuditedRow[]> {
    return this.#read(({ audit }) => audit.events(range))
  }

  orphans(): Promise<readonly string[]> {
    return this.#read(({ audit }) => audit.orphans())
  }

  storeFault(): Promise<Fault | undefined> {
    return this.#read(({ audit }) => audit.fault())
  }

  removalsAfter(pos: number, runId?: RunId): Promise<readonly RemovalRow[]> {
    return this.#read(({ removals }) => removals.after(pos, runId))
  }

  removable(query: RemovableQuery): Promise<Batch<EventRow>> {
    return this.#read(({ removals }) => removals.removable(query))
  }

  endedRuns(query: Omit<RemovableQuery, 'types'>): Promise<Batch<EndedRun>> {
    return this.#read(({ removals }) => removals.endedRuns(query))
  }

  async remove(requests: readonly RemovalRequest[]): Promise<number> {
    const removed = await this.#write(({ removals }) => removals.remove(requests))
    for (const runId of new Set(requests.map((request) => request.runId))) this.changed(runId, true)
    return removed
  }

  horizon(): Promise<TailHorizon> {
    return this.#read(({ connections }) => tailHorizon(connections, this.#place.quotedSchema))
  }

  requireOpen(): void {
    if (!this.#isClosed) return
    throw new LedgerUnavailableError(
      `The ledger at ${this.#place.description} was closed, so it can neither be read nor written. Open it again with postgresLedger().`,
    )
  }

  /** Lets what is under way end, makes what was lazy durable, and ends every connection. */
  async close(): Promise<void> {
    this.#isClosed = true
    try {
      await Promise.allSettled(this.#underWay)
      await this.#feed.close()
      const opened = await this.#opened?.catch(() => undefined)
      await opened?.appender.harden()
    } catch (error) {
      throw this.#failure(error)
    } finally {
      await this.#connections?.then(
        (connections) => connections.end(),
        () => undefined,
      )
    }
  }

  async #read<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
    this.requireOpen()
    return await this.#attend(async () => work(await this.#open()))
  }

  #write<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
    return this.#read((opened) => {
      if (!this.isWritable) throw this.#refusedReadOnly()
      return work(opened)
    })
  }

  /** Closing waits for it, and what it throws is an error of ours. */
  async #attend<T>(work: () => Promise<T>): Promise<T> {
    const working = work()
    this.#underWay.add(working)
    try {
      return await working
    } catch (error) {
      throw this.#failure(error)
    } finally {
      this.#underWay.delete(working)
    }
  }

  #failure(error: unknown): Error {
    return ledgerFailure(error, this.#place.description)
  }

  #open(): Promise<Opened> {
    this.#opened ??= this.#openAnew()
    this.#opened.catch(() => {
      this.#opened = undefined
    })
    return this.#opened
  }

  async #openAnew(): Promise<Opened> {
    const connections = await this.#connect()
    const { quotedSchema } = this.#place
    const found = await inspectSchema(
      (statement) => connections.rows(statement),
      this.#place,
      !this.isWritable,
    )
    if (found.kind === 'nothing') await makeSchema(this.#options, this.#place, connections.pg)
    const records = new PostgresRecords(connections, quotedSchema)
    return {
      connections,
      records,
      appender: new Appender(connections, records, quotedSchema),
      search: new PostgresSearch(connections, records, this.#place),
      removals: new PostgresRemovals(connections, quotedSchema),
      audit: new PostgresAudit(connections, this.#place),
    }
  }

  #connect(): Promise<Connections> {
    this.#connections ??= loadPg().then((pg) => new Connections(this.#options, pg))
    this.#connections.catch(() => {
      this.#connections = undefined
    })
    return this.#connections
  }

  #refusedReadOnly(): LedgerUnavailableError {
    return new LedgerUnavailableError(
      `The ledger at ${this.#place.description} was opened with readOnly, so nothing was written. Open it without readOnly to drive or command runs.`,
    )
  }
}

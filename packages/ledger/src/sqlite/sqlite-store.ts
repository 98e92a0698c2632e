import { RunNotFoundError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { endedBefore, requireInboxKey, storableText } from '@tallystick/core/store-kit'
import {
  type ExpectedHead,
  type Head,
  type InboxEntry,
  type LeaseClaim,
  type RunFilter,
  type RunRecord,
  type TakeOverClaim,
} from '@tallystick/core/vocabulary'
import type { Database } from 'better-sqlite3'
import type { Kysely } from 'kysely'
import { commandOf } from '../read/inbox-command.ts'
import type { EventRow } from '../record/event-row.ts'
import { fault, type Fault } from '../record/link-check.ts'
import { acquire } from './write/raise-epoch.ts'
import { append, type SealedOptions } from './write/append.ts'
import { auditQueries, type AuditQueries } from './rows/audit-queries.ts'
import { SqliteContentAudit } from './rows/content-audit.ts'
import { Transactions, type AroundCommits } from './write/transactions.ts'
import { GroupCommit } from './write/group-commit.ts'
import { KnownHeads } from './write/known-heads.ts'
import { SqliteLeases } from './write/leases.ts'
import { ProjectionStatements } from './write/projection-statements.ts'
import { listRuns } from './rows/list-runs.ts'
import { readQueries, writeQueries, type ReadQueries, type WriteQueries } from './rows/queries.ts'
import { SqliteRemovals } from './write/removals.ts'
import { runRow } from './rows/run-row.ts'
import { SqliteSearch } from './rows/search.ts'
import type { LedgerTables } from './schema/tables.ts'

/**
 * The members of the port on an open database of the newest schema. Those that read are synchronous; those that write
 * share their commits.
 */
export class SqliteStore {
  readonly transactions: Transactions
  readonly group: GroupCommit
  readonly reads: ReadQueries
  readonly known: KnownHeads = new KnownHeads()
  readonly #database: Database
  readonly #tables: Kysely<LedgerTables>
  readonly #around: AroundCommits | undefined
  #writes: WriteQueries | undefined
  #audits: AuditQueries | undefined
  #contentAudit: SqliteContentAudit | undefined
  #search: SqliteSearch | undefined
  #removals: SqliteRemovals | undefined
  #leases: SqliteLeases | undefined
  #projections: ProjectionStatements | undefined

  constructor(database: Database, tables: Kysely<LedgerTables>, around?: AroundCommits) {
    this.#database = database
    this.#tables = tables
    this.#around = around
    this.transactions = new Transactions(database, around, this.known)
    this.group = new GroupCommit(this.transactions)
    this.reads = readQueries(database, tables)
  }

  /** Prepared when they are first needed: a file whose triggers are damaged can still be read and verified. */
  get writes(): WriteQueries {
    this.#writes ??= writeQueries(this.#database, this.#tables)
    return this.#writes
  }

  get audits(): AuditQueries {
    this.#audits ??= auditQueries(this.#database, this.#tables)
    return this.#audits
  }

  get contentAudit(): SqliteContentAudit {
    this.#contentAudit ??= new SqliteContentAudit(this.#database)
    return this.#contentAudit
  }

  get removals(): SqliteRemovals {
    this.#removals ??= new SqliteRemovals(this.#database, () => this.#around?.tookAway?.())
    return this.#removals
  }

  get leases(): SqliteLeases {
    this.#leases ??= new SqliteLeases(this.#database)
    return this.#leases
  }

  get projections(): ProjectionStatements {
    this.#projections ??= new ProjectionStatements(this.#database)
    return this.#projections
  }

  get search(): SqliteSearch {
    this.#search ??= new SqliteSearch(this.#database, this.#tables, this.reads)
    return this.#search
  }

  /** What `work` reads is the store as it was when it began, whatever others write meanwhile. */
  atOneMoment<T>(work: () => T): T {
    return this.#database.transaction(work).deferred()
  }

  /** Pages that are broken, and indexes that do not say what their tables say. */
  pageFault(): Fault | undefined {
    const [first] = this.#database.pragma('integrity_check(1)') as readonly { integrity_check: string }[]
    const found = first?.integrity_check ?? 'no answer'
    return found === 'ok' ? undefined : fault('pages', 'ok', found)
  }

  append(
    runId: RunId,
    expected: ExpectedHead,
    events: readonly RuntimeEvent[],
    options: SealedOptions,
  ): Promise<Head> {
    return this.group.submit(append(this, { runId, expected, events }, options))
  }

  acquire(runId: RunId, claim?: TakeOverClaim): Promise<Head> {
    return this.group.submit(acquire(this, runId, claim))
  }

  renew(runIds: readonly RunId[], claim: LeaseClaim): Promise<readonly RunId[]> {
    const work = (): readonly RunId[] => this.leases.renew(runIds, claim)
    return this.group.submit({ durability: 'lazy', events: 0, bytes: 0, work })
  }

  release(runId: RunId, holder: string): Promise<void> {
    const work = (): void => this.leases.release(runId, holder)
    return this.group.submit({ durability: 'lazy', events: 0, bytes: 0, work })
  }

  head(runId: RunId): Head | undefined {
    const run = runRow(this.reads, runId)
    return run && { seq: run.head_seq, epoch: run.epoch }
  }

  /** The first event of a run that still has its payload. */
  firstRow(runId: RunId): EventRow | undefined {
    return this.reads.firstPayload.get({ runId })
  }

  runs(filter?: RunFilter): Generator<RunRecord> {
    return listRuns(this.reads, filter)
  }

  /** Whether the key is new. */
  put(runId: RunId, { key, command, at }: InboxEntry): Promise<boolean> {
    requireInboxKey(key)
    const body = Buffer.from(storableText(command, `The command under ${key} for run ${runId}`))
    const work = (): boolean => {
      if (runRow(this.reads, runId) === undefined) throw new RunNotFoundError(runId)
      if (this.writes.inboxEntry.get({ runId, key }) !== undefined) return false
      if (this.writes.existing.get({ runId, onceKey: 'run_finished' }) !== undefined) throw endedBefore(runId)
      this.writes.put.run({ run_id: runId, key, kind: command.type, body, at, taken_seq: null })
      return true
    }
    return this.group.submit({ durability: 'barrier', events: 1, bytes: body.length, work })
  }

  inbox(runId: RunId): readonly InboxEntry[] {
    return this.reads.inbox.all({ runId }).map(({ key, body, at }) => {
      return { key, command: commandOf(runId, key, body), at }
    })
  }

  /** Carries out what waits for company, and makes every lazy append durable. */
  harden(): void {
    this.group.flush()
    if (this.transactions.hasUnsynced)
      this.transactions.transact('barrier', () => this.writes.raiseBarrier.run({}))
  }
}

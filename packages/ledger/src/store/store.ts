import { ConfigurationError, type Ledger, LedgerConflictError, type RunId } from '@tallystick/core'
import type {
  AppendOptions,
  EventType,
  ExpectedHead,
  Head,
  LeaseClaim,
  RunFilter,
  RunLeases,
  RunRecord,
  TakeOverClaim,
} from '@tallystick/core/vocabulary'
import type { Observable } from 'rxjs'
import type { EncodedEvent } from '../format/body.ts'
import type { RemovalRequest, RemovalRow, RunCell } from '../format/chain.ts'
import type { EventRow, Fault } from '../format/event-row.ts'
import type { HistoryRow } from '../format/history.ts'
import type { ProjectionDatabase } from '../projection/database.ts'
import type { AskedEvents, Cursor, FoundBatch, SearchedRun, SearchSource } from './find-events.ts'
import type { RowReader } from './read-events.ts'
import type { BegunTail, TailStart } from './tail-events.ts'

/*
 * What a database has to be able to do, so that `openLedger` makes a ledger of it. SQLite and Postgres each implement these
 * interfaces, with the same tables. Members reject with a `TallystickError`.
 */

/** Events of one run with `seq` in a range, both ends included. */
export interface EventRange {
  readonly runId: string
  readonly fromSeq: number
  readonly toSeq: number
}

/** An append of which everything was checked that can be checked without the store. */
export interface AppendRequest {
  readonly runId: RunId
  readonly expected: ExpectedHead
  readonly events: readonly EncodedEvent[]
  readonly durability: AppendOptions['durability']
  /** Who drives the run from this append on. */
  readonly lease?: LeaseClaim | undefined
  /** Keys of inbox entries that leave the inbox. */
  readonly takes: readonly string[]
  /** Whether the run can be erased by its key: then the inbox keeps no copy of what it takes. */
  readonly isSealed: boolean
}

/** An entry of an inbox, with its command as canonical JSON. */
export interface InboxRow {
  readonly key: string
  readonly at: number
  readonly command: string
}

/** What the port asks of a store. */
export interface PortStore extends RunLeases {
  append(request: AppendRequest): Promise<Head>
  /** Raises the epoch of a run, durably, and gives its lease to who claims it. */
  acquire(runId: RunId, claim?: TakeOverClaim): Promise<Head>
  head(runId: RunId): Promise<Head | undefined>
  /** The key that the first event of a run is sealed with; null for none, `undefined` if there is no such run. */
  keyIdOf(runId: RunId): Promise<string | null | undefined>
  /** The first rows of a range, in the order of `seq`: some hundred, or some megabytes. */
  events(range: EventRange): Promise<readonly EventRow[]>
  /** The row of a message of what runs begin with. */
  history(name: string): Promise<HistoryRow | undefined>
  runs(filter?: RunFilter): AsyncIterable<RunRecord>
  put(runId: RunId, entry: InboxRow): Promise<boolean>
  /** The entries that were not taken, in the order in which they were put. */
  inbox(runId: RunId): Promise<readonly InboxRow[]>
  /** Whether content of a run was removed. */
  hasLost(runId: RunId): Promise<boolean>
  /** Hints as `Ledger.changes` gives them. */
  changes(runId?: RunId, part?: 'inbox'): Observable<void>
  /** Called after this process wrote to a run; `isInbox` says whether its inbox may have changed. */
  changed(runId: RunId, isInbox: boolean): void
  /** Throws if the ledger was closed. */
  requireOpen(): void
  close(): Promise<void>
}

/** What `find` and `tail` ask of a store. Each answer is the store at one moment. */
export interface SearchStore {
  /** The runs that match all filters: with that id, of that session, with events of that call. */
  searchedRuns(asked: AskedEvents): Promise<readonly SearchedRun[]>
  /** The first and the last place of an event in the time that is asked for; `undefined` if there is none. */
  places(asked: AskedEvents): Promise<{ readonly fromPos: number; readonly toPos: number } | undefined>
  search(asked: AskedEvents, source: SearchSource, after: Cursor): Promise<FoundBatch>
  /** Whether an index finds events of this type within their run. */
  hasIndexOf(type: EventType): boolean
  /** Finds the event that a cursor names, and settles how far the tail goes. */
  beginTail(after: TailStart): Promise<BegunTail>
  requireOpen(): void
}

/** A row of a run beneath the port, as its seal says. */
export type SealedRun = RunCell & { readonly seal: string }

/** What a store holds of a run at one moment. */
export interface StoredRun {
  /** Absent where there are events and no row. */
  readonly row?: SealedRun
  /** How many events there are under the id of the run. */
  readonly events: number
  readonly lastSeq: number
}

/** A row of an event, with the digest of the removal that is on record for it. */
export type AuditedRow = EventRow & { readonly removal: string | null }

/** The rows of a store, unchecked, as `verify` and checkpoints read them beneath the port. */
export interface AuditStore {
  /** `undefined` if the store has nothing of the run. */
  storedRun(runId: RunId): Promise<StoredRun | undefined>
  /** The first rows of a range, as `events` has them. */
  auditedEvents(range: EventRange): Promise<readonly AuditedRow[]>
  /** Runs that have events and that no list reaches, as without a row, by what stands in the column of ids. */
  orphans(): Promise<readonly string[]>
  /** The removals after a place, in order; of one run where it is named. */
  removalsAfter(pos: number, runId?: RunId): Promise<readonly RemovalRow[]>
  /** The first fault of the store as a whole: pages, indexes, numbering, schema, histories. */
  storeFault(): Promise<Fault | undefined>
}

/** Which content a rule of retention may remove. */
export interface RemovableQuery {
  /** Events of these types. */
  readonly types: readonly EventType[]
  /** Earlier than this, in milliseconds since 1970 UTC. */
  readonly before: number
  /** After this place in the store; 0 at first. */
  readonly afterPos: number
  readonly limit: number
}

/** Some of what a search finds. It may be empty and yet not the last. */
export interface Batch<Item> {
  readonly items: readonly Item[]
  /** The place after which the next batch begins; absent after the last. */
  readonly next?: number
}

/** A run that has ended, which a rule of retention may drop whole. */
export interface EndedRun {
  readonly runId: RunId
  readonly pos: number
  readonly headSeq: number
  readonly headHash: string
}

/** What removing content asks of a store. */
export interface RemovalStore {
  events(range: EventRange): Promise<readonly EventRow[]>
  /** Rows of runs that have ended, whose content is there. */
  removable(query: RemovableQuery): Promise<Batch<EventRow>>
  /** Runs that have ended before a moment, in the order of their places. */
  endedRuns(query: Omit<RemovableQuery, 'types'>): Promise<Batch<EndedRun>>
  /**
   * Removes what is asked for, all of it or nothing, durably, and the projections, snapshots and taken commands of the runs.
   * Skips what is gone already. Returns how many events lost their content.
   */
  remove(requests: readonly RemovalRequest[]): Promise<number>
}

/** Everything that a store lends to this package. */
export interface Store extends PortStore, SearchStore, AuditStore, RemovalStore {
  readonly isWritable: boolean
  readonly projections: ProjectionDatabase
}

/** The refusal of a run whose id a dropped run had. */
export function droppedRunConflict(runId: string): LedgerConflictError {
  return new LedgerConflictError(
    'unique',
    `Run ${runId} was dropped from this ledger, on record, and cannot come back: its removed content would be there again. ` +
      'Nothing was written. Import it into another ledger, or start another run.',
  )
}

/** Every removal on record, in order; those of one run where it is named. */
export async function* eachRemoval(store: AuditStore, runId?: RunId): AsyncGenerator<RemovalRow> {
  for (let pos = 0; ;) {
    const batch = await store.removalsAfter(pos, runId)
    yield* batch
    const last = batch.at(-1)
    if (last === undefined) return
    pos = last.pos
  }
}

/** What a ledger of this package lends to its functions beneath the port. */
export interface Internals {
  readonly store: Store
  readonly rows: RowReader
}

/** The member under which it does. Not part of the port. */
export const internals: unique symbol = Symbol.for('tallystick.ledger.internals')

/** The store beneath a ledger; `undefined` for a ledger from elsewhere, and for one that something is wrapped around. */
export function internalsOf(ledger: Ledger): Internals | undefined {
  return (ledger as { readonly [internals]?: Internals })[internals]
}

/** Throws a `ConfigurationError` for a ledger that cannot remove content. */
export function requireRemovable(ledger: Ledger): Internals {
  const found = internalsOf(ledger)
  if (found) return found
  throw new ConfigurationError(
    'This ledger cannot remove content: only sqliteLedger and postgresLedger can. ' +
      'Pass the ledger itself, not something wrapped around it.',
  )
}

/* What the schemas of SQLite and Postgres have in common beside the names of tables and columns. */

/** Types that come in every turn: their events are found with their run, and all others by an index of their own. */
const typesOfEveryTurn: readonly string[] = [
  ...['model_call_started', 'assistant_started', 'assistant_text_delta', 'assistant_reasoning_delta'],
  ...['tool_input_delta', 'tool_request_ready', 'usage_updated', 'assistant_message_finished'],
  ...['tool_requests_collected', 'tool_started', 'tool_progress', 'tool_result', 'tool_results_injected'],
]

/** The condition of the index by type. A query that is to use the index has to state the same. */
export const rareType: string = `type not in (${typesOfEveryTurn.map((type) => `'${type}'`).join(', ')})`

/** Whether the index by type has the events of a type. */
export function isRareType(type: string): boolean {
  return !typesOfEveryTurn.includes(type)
}

/** The columns of sums, each a whole number of a type of the database. */
export function amountsOf(type: string): string {
  return [
    ...['unpriced', 'cost_nano', 'input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens'],
    ...[
      'reasoning_tokens',
      'cache_write_long_tokens',
      'web_searches',
      'cache_write_long_told',
      'web_searches_told',
    ],
    ...['input_told', 'output_told', 'cache_read_told', 'cache_write_told', 'reasoning_told'],
  ]
    .map((name) => `${name} ${type} not null`)
    .join(', ')
}

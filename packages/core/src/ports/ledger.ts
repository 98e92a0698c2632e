import type { Observable } from 'rxjs'
import type { OutsideCommand } from '../vocabulary/events/command.ts'
import type { EventType, RuntimeEvent } from '../vocabulary/events/event.ts'
import type { RunId, ToolCallId } from '../vocabulary/values/ids.ts'

/** Where a run's ledger ends, and who may append to it. */
export interface Head {
  /** The last event's number; 0 before the first. */
  readonly seq: number
  /** The epoch of the writer that holds the run. */
  readonly epoch: number
}

/** What the writer believes the head to be. */
export interface ExpectedHead {
  readonly expectedSeq: number
  readonly epoch: number
}

/** How an append is to be kept, and which commands it answers. */
export interface AppendOptions {
  /** `barrier`: durable when the promise resolves, and so is everything before it. `lazy`: in order, durable later. */
  readonly durability: 'barrier' | 'lazy'
  /** Keys of inbox entries that these events answer; they leave the inbox in the same transaction. */
  readonly consumedInboxKeys?: readonly string[]
}

/** A command from outside, waiting for the run's writer. */
export interface InboxEntry {
  /** Unique within the run: the same key put twice is one entry. */
  readonly key: string
  readonly command: OutsideCommand
  /** Milliseconds since 1970 UTC. */
  readonly at: number
}

/** A run as a list shows it. */
export interface RunRecord {
  readonly runId: RunId
  readonly head: Head
  /** The conversation that it belongs to, and its place there, as its `run_started` says. */
  readonly sessionId?: string
  readonly sessionPlace?: number
}

/** Which runs a list shows: those that are all of what is named. */
export interface RunFilter {
  /** Runs of one session; the last place comes first. */
  readonly sessionId?: string
  /** Only what comes behind this run in the list: the last run of a page begins the next one. */
  readonly before?: RunId
  /** At most so many. */
  readonly limit?: number
}

/** Which events a search finds: those that are all of what is named, so every event where nothing is. */
export interface EventQuery {
  readonly sessionId?: string
  readonly runId?: RunId
  readonly turn?: number
  readonly toolCallId?: ToolCallId
  /** Events of any of these types; of an empty list, none. */
  readonly types?: readonly EventType[]
  /** The earliest and the latest `at`, both included, in milliseconds since 1970 UTC. */
  readonly fromAt?: number
  readonly toAt?: number
}

/**
 * A place in the one order in which a ledger tells the events of all its runs. To whoever keeps it a text, and no more:
 * it may be stored, and serves any process. It belongs to the ledger that gave it out.
 */
export type TailCursor = string

/** An event of any run, and the place behind which a tail goes on. */
export interface TailedEvent {
  readonly cursor: TailCursor
  readonly event: RuntimeEvent
}

/**
 * An append-only store of events. Every member may reject with a `TallystickError`; none loses what it acknowledged.
 *
 * - `append` is one atomic compare-and-swap: all events or none. Events carry `seq` from `expectedSeq + 1` without
 *   gaps and the epoch of `expected`. A run that is not there has the head `{ seq: 0, epoch: 1 }`, and its first append
 *   makes it. When the head is another, `LedgerConflictError`, with nothing written; except that events which stand
 *   there already, byte for byte, from the same epoch, are a lost acknowledgement and succeed.
 *   One `run_finished` a run, one `tool_result` a call, one `tool_started` and one `approval_decided` a call and attempt:
 *   a second is a `LedgerConflictError` of kind `unique` too, whatever the head. So is a second run at one place of a
 *   session, whatever the run. A run ends with its inbox read: `run_finished` is a `LedgerConflictError` of kind `inbox`
 *   where entries stand in the inbox that the same append does not take; nothing is written, and the writer goes on
 *   when it has read them. Ids and types with a NUL or half a surrogate pair, and what JSON cannot carry, are a
 *   `ConfigurationError`; asked for, they name nothing.
 * - `acquire` raises the epoch by one, durably, and answers the head. From then on no other writer can append.
 *   `RunNotFoundError` for a run that is not there.
 * - `read` yields events in order of `seq`, in constant memory; bounds are inclusive. A run that is not there is empty.
 * - `find` yields the events that a query asks for, in an order that stays the same for ever: those of a run by `seq`,
 *   and what was acknowledged before another append began stands before that. Events of appends that were under way
 *   at once may stand between each other. All that was acknowledged when the first is asked for is found; of what is
 *   appended meanwhile some may be, none without those before it in its run, and the search ends all the same.
 *   Memory does not grow with what is found or passed over. What names a run, session or call that is not there is empty.
 * - `runs` yields every run, or those of a session, the newest first; `before` and `limit` cut a page out of that list.
 *   `RunNotFoundError` for a `before` that is not in it.
 * - `put` adds to the inbox of a run, from any process, durably; it answers `false` when the key was there before
 *   (taken or not). `RunNotFoundError` for a run that is not there. A new key for a run that has ended is a
 *   `LedgerConflictError` of kind `ended`, so that of a put and the end of a run one comes first, for every process.
 * - `inbox` answers the entries not yet taken, in the order they were put.
 * - `tail` yields every event of every run behind a cursor, or from the first one on: each run's by `seq`, what was
 *   acknowledged before another append began in front of that, none left out and none twice, also while many processes
 *   append. It ends when it has yielded all that was settled when its first event was asked for: what was acknowledged,
 *   as soon as no append that began before it can stand in front of it any more. What comes behind a cursor is the same
 *   for ever, but for runs that were dropped, on record. `ConfigurationError` for a cursor that names no event of this
 *   ledger: another ledger's, or one of events that were lost with a disk or an older copy that was restored.
 * - `changes` emits, without content, when the run's events or inbox may have changed, also by another process; those
 *   of any run where none is named. A hint: it may come late, merged or for nothing.
 * - `release`, where a ledger has it, says that the writer of an epoch, or of any where none is named, lets go of a run:
 *   nothing of it is under way here any more, until it is appended to or taken over again. It changes nothing that is
 *   stored. A store that lets one process write has others wait no longer than that. A `run_finished` says the same.
 * - `isDriven`, where a ledger has it, answers whether a process drives a run: has appended to it or taken it over, and
 *   has neither let go of it nor ended since. `undefined` where the store cannot know. So a run that has not ended, waits
 *   for nothing and is not driven was interrupted.
 * - `close` lets go of files and connections; what was lazy is durable after it.
 */
export interface Ledger {
  append(
    runId: RunId,
    expected: ExpectedHead,
    events: readonly RuntimeEvent[],
    options: AppendOptions,
  ): Promise<Head>
  acquire(runId: RunId): Promise<Head>
  head(runId: RunId): Promise<Head | undefined>
  read(
    runId: RunId,
    range?: { readonly fromSeq?: number; readonly toSeq?: number },
  ): AsyncIterable<RuntimeEvent>
  find(query?: EventQuery): AsyncIterable<RuntimeEvent>
  runs(filter?: RunFilter): AsyncIterable<RunRecord>
  put(runId: RunId, entry: InboxEntry): Promise<boolean>
  inbox(runId: RunId): Promise<readonly InboxEntry[]>
  tail(after?: TailCursor): AsyncIterable<TailedEvent>
  changes(runId?: RunId): Observable<void>
  release?(runId: RunId, epoch?: number): void | Promise<void>
  isDriven?(runId: RunId): Promise<boolean | undefined>
  close(): Promise<void>
}

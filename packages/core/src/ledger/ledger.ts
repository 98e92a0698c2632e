/// <reference lib="esnext.disposable" preserve="true" />
import type { Observable } from 'rxjs'
import type { OutsideCommand } from '../events/commands.ts'
import type { EventType, RuntimeEvent } from '../events/event.ts'
import type { RunId, ToolCallId } from '../values/ids.ts'
import { requireOptions, valueThat } from '../values/option.ts'

/** The end of a run's ledger, and the epoch that may append to it. */
export interface Head {
  /** The last event's number; 0 before the first. */
  readonly seq: number
  /** The epoch of the writer that holds the run. */
  readonly epoch: number
}

export interface ExpectedHead {
  readonly expectedSeq: number
  readonly epoch: number
}

/** How durable an append is, and which commands it answers. */
export interface AppendOptions {
  /**
   * `barrier`: when the promise resolves, these events and everything before them are durable. `lazy`: recorded in
   * order, durable later. A lazy append survives the end of the process; if the machine loses power, or the server
   * crashes, the newest lazy events may be lost, never one without those after it. A store should soon make them
   * durable without a barrier: they may hold a reply that was paid for, and the next barrier may be as far away as the
   * end of a tool.
   */
  readonly durability: 'barrier' | 'lazy'
  /** Keys of inbox entries that these events answer; they leave the inbox in the same transaction. */
  readonly consumedInboxKeys?: readonly string[]
  /** Who drives the run from this append on: its lease begins, or is renewed, in the same transaction (`RunLeases`). */
  readonly lease?: LeaseClaim | undefined
  /** A run that becomes due in the same transaction, unless it has ended: the parent of a child run that ends (`Ledger.due`). */
  readonly wakes?: RunId | undefined
}

/** A command from outside, waiting for the run's writer. */
export interface InboxEntry {
  /** Unique within the run: the same key put twice is one entry. */
  readonly key: string
  readonly command: OutsideCommand
  /** Milliseconds since 1970 UTC. */
  readonly at: number
}

export interface PutOptions {
  /**
   * A client of the store's own database with an open transaction: the entry is there once that is committed. A store without
   * such clients refuses it with a `ConfigurationError`.
   */
  readonly within?: unknown
}

export interface RunRecord {
  readonly runId: RunId
  readonly head: Head
  /** The conversation that it belongs to, and its place there, as its `run_started` says. */
  readonly sessionId?: string
  readonly sessionPlace?: number
}

/** The runs that a list shows. All filters must match. */
export interface RunFilter {
  /** Runs of one session; the last place comes first. */
  readonly sessionId?: string | undefined
  /** Only runs after this one in the list: pass the last run of a page to get the next page. */
  readonly before?: RunId | undefined
  /** The most runs to yield. */
  readonly limit?: number | undefined
}

/** A run that has something to do, though no process drives it. */
export interface DueRun {
  readonly runId: RunId
  /** Since when, in milliseconds since 1970 UTC; 0 for at once. */
  readonly dueAt: number
}

export interface DueFilter {
  /** Runs that are due at this time, in milliseconds since 1970 UTC, or earlier. */
  readonly before: number
  /** Only runs after this one in the list: pass the last run of a page to get the next page. */
  readonly after?: DueRun | undefined
  /** The most runs to yield. */
  readonly limit?: number | undefined
}

/** Who removes content, when (in milliseconds since 1970 UTC), and why. It is recorded instead of the content. */
export interface ContentRemoval {
  readonly by: string
  readonly reason: string
  readonly at: number
}

/** The events that a search finds. All filters must match; without filters, every event matches. */
export interface EventQuery {
  readonly sessionId?: string | undefined
  readonly runId?: RunId | undefined
  readonly turn?: number | undefined
  readonly toolCallId?: ToolCallId | undefined
  /** Events of any of these types; an empty list matches no event. */
  readonly types?: readonly EventType[] | undefined
  /** The earliest and the latest `at`, both included, in milliseconds since 1970 UTC. */
  readonly fromAt?: number | undefined
  readonly toAt?: number | undefined
}

/**
 * A place in the one order in which a ledger yields the events of all its runs. An opaque string: store it as it is
 * and use it from any process. It is valid only for the ledger that returned it.
 */
export type TailCursor = string

/** An event of any run, with the cursor after which a tail continues. */
export interface TailedEvent {
  readonly cursor: TailCursor
  readonly event: RuntimeEvent
}

/**
 * An append-only store of events. Every member may reject with a `TallystickError`; none loses what it acknowledged.
 *
 * - `append` is one atomic compare-and-swap: all events or none. Events carry `seq` from `expectedSeq + 1` without
 *   gaps and the epoch of `expected`. A run that does not exist has the head `{ seq: 0, epoch: 1 }`, and its first
 *   append creates it. If the head differs from `expected`, `append` writes nothing and rejects with a
 *   `LedgerConflictError`. Exception: if the same events are already stored, byte for byte, from the same epoch, an
 *   acknowledgement was lost, and `append` succeeds. A run has one `run_finished`, a call has one `tool_result`, and
 *   each attempt of a call has one `tool_started` and one `approval_decided` that is not of `elsewhere`: a second is a `LedgerConflictError` of
 *   kind `unique`, whatever the head. So is a second run at the same place of a session. A run can end only when its
 *   inbox is empty: if the inbox holds entries that this append does not take, `run_finished` is a
 *   `LedgerConflictError` of kind `inbox`; nothing is written, and the writer may append again after reading them.
 *   Appends of a run that a process begins without waiting for each other are carried out in the order in which it
 *   began them.
 *   Ids and types that contain a NUL or half a surrogate pair, and values that JSON cannot carry, are a
 *   `ConfigurationError` in an append and match nothing in a read.
 * - `acquire` raises the epoch by one, durably, and returns the head. From then on no other writer can append.
 *   `RunNotFoundError` if the run does not exist. With a claim it takes the lease of the run too, and rejects with a
 *   `LedgerConflictError` of kind `lease` while another holder has it.
 * - `lease`, `renew` and `release` say who drives a run, and for how long: see `RunLeases`.
 * - `read` yields events in order of `seq`, in constant memory; bounds are inclusive. It yields nothing for a run
 *   that does not exist.
 * - `find` yields the events that match a query, in an order that never changes: the events of one run by `seq`, and
 *   events acknowledged before another append began come before that append's. Events of concurrent appends may be
 *   interleaved. It finds every event acknowledged before the first one is requested. It may also find events
 *   appended meanwhile, never one without those before it in its run, and the search always ends. Memory does not
 *   grow with the events found or skipped. Turns never fall from one event of a run to the next, and a search by turn may
 *   rely on that. A query for a run, session or call that does not exist yields nothing.
 * - `runs` yields every run, or those of a session, the newest first; `before` and `limit` select one page of that
 *   list. `RunNotFoundError` if `before` is not in the list.
 * - `due` yields the runs that have something to do by a time and that no process drives, the earliest first: see `RunLeases`.
 *   `RunNotFoundError` if the run of `after` does not exist.
 *   Every member refuses a run id that is not a text with a `ConfigurationError`; a text that is not an id names no run.
 *   `read`, `find`, `runs` and `due` refuse a filter that they do not know, and a value of another kind, with a
 *   `ConfigurationError`: an answer without the filter would be another answer.
 * - `put` adds an entry to the inbox of a run, from any process, durably; it returns `false` if the key was there
 *   before (taken or not). `RunNotFoundError` if the run does not exist. A new key for a run that has ended is a
 *   `LedgerConflictError` of kind `ended`: every process sees the same order of a put and the end of the run.
 * - `inbox` returns the entries not yet taken, in the order they were put.
 * - `tail` yields every event of every run after a cursor, or from the first one on: the events of one run by `seq`,
 *   and events acknowledged before another append began come before that append's; it skips none and repeats none,
 *   even while many processes append. It ends after all events that were settled when its first event was requested:
 *   an acknowledged event is settled once no append that began before it can still come before it. The events after a
 *   cursor never change, except that a run can be dropped, on record. `ConfigurationError` for a cursor that names no
 *   event of this ledger: the cursor is from another ledger, or its events were lost with a disk or by restoring an
 *   older copy.
 * - `changes` emits, without content, when the run's events or inbox may have changed, also in another process;
 *   without a run id, when any run may have changed. A hint: it may come late, merged or without a change. With
 *   `inbox` the caller follows only what is put into the inbox and taken out of it: a ledger that can tell emits
 *   nothing for an append that takes no entry and makes no run due, so that a writer does not read its inbox after each of its own appends. An
 *   `acquire` emits for those too: the writer that lost the run stops its tools when it learns of it.
 *   It completes when the ledger is closed, for those that subscribe later, too, and by then every read is refused: so
 *   what follows a run is cut off with the error of a read, and does not wait for ever.
 * - `removeContent`, where a ledger has it, removes the content of every event of a run that has ended, durably and for good: the
 *   facts stay, and who removed the rest, when and why. What was removed before stays as it is.
 * - `deltaDelayMs`, where a ledger has it, is how long deltas of a reply may wait for further ones, in milliseconds up to 1000, so
 *   that one append records them: a store that keeps neighbouring deltas as one row asks for it. The first delta of a reply never
 *   waits, and no delta waits any longer once something else has arrived.
 * - `close` releases files and connections; lazy appends are durable after it, and every other use is refused.
 * - `beforeClose`, where a ledger has it, takes what has to end before the ledger closes, and returns a function that
 *   takes it back. `close` first calls each of these, and waits for them while the ledger still works. A runtime gives
 *   one while it drives runs, which drains it. A ledger without `beforeClose` stops no run: close it when its runtimes
 *   drive none (`runtime.idle()`), or a call that is under way will be in doubt.
 */
export interface Ledger extends RunLeases {
  readonly deltaDelayMs?: number
  append(
    runId: RunId,
    expected: ExpectedHead,
    events: readonly RuntimeEvent[],
    options: AppendOptions,
  ): Promise<Head>
  acquire(runId: RunId, claim?: TakeOverClaim): Promise<Head>
  head(runId: RunId): Promise<Head | undefined>
  read(
    runId: RunId,
    range?: { readonly fromSeq?: number | undefined; readonly toSeq?: number | undefined },
  ): AsyncIterable<RuntimeEvent>
  find(query?: EventQuery): AsyncIterable<RuntimeEvent>
  runs(filter?: RunFilter): AsyncIterable<RunRecord>
  due(filter: DueFilter): AsyncIterable<DueRun>
  put(runId: RunId, entry: InboxEntry, options?: PutOptions): Promise<boolean>
  inbox(runId: RunId): Promise<readonly InboxEntry[]>
  tail(after?: TailCursor): AsyncIterable<TailedEvent>
  changes(runId?: RunId, part?: 'inbox'): Observable<void>
  removeContent?(runId: RunId, why: ContentRemoval): Promise<void>
  beforeClose?(end: () => Promise<unknown>): () => void
  close(): Promise<void>
}

/** A process's claim to drive a run alone, for a while. */
export interface LeaseClaim {
  /** Names the one that asks, unique among all that use the store, such as `process 4711 on web-1 … 0b1c…`. */
  readonly holder: string
  /** How long the lease lasts unless it is renewed, in milliseconds. */
  readonly forMs: number
}

/** The claim of a process that takes a run over. */
export interface TakeOverClaim extends LeaseClaim {
  /**
   * The holder whose lease ends here, though it lasts: that process has died, or a person has said that it has. The lease
   * of any other holder, which may have taken the run over since, is respected.
   */
  readonly from?: string | undefined
}

export interface Lease {
  readonly holder: string
  /** How long it lasts unless it is renewed, in milliseconds, by the store's clock. */
  readonly leftMs: number
}

/** The waits of a run that its driver releases. Without one, only a command wakes the run. */
export interface RunWait {
  /** The earliest time at which it has something to do by itself, in milliseconds since 1970 UTC. */
  readonly wakeAt?: number | undefined
  /** Child runs whose end it waits for. */
  readonly children?: readonly RunId[] | undefined
}

/**
 * Leases of runs: who drives a run now, and when a run that nobody drives has something to do. They are part of the `Ledger` port,
 * three columns of the row of a run (`lease_holder`, `lease_until`, `due_at`), and no part of the record: hashes, exports and
 * `tail` know nothing of them, and a lease that is lost with a disk costs nothing but a wait.
 *
 * For authors of stores:
 * - Time is the store's: the server's clock, or the machine's where a file is shared by its processes. `until` is that clock
 *   plus `forMs`, computed where the row is written; the clocks of the processes may differ. A lease with `until` of now or
 *   earlier has ended, so `forMs: 0` ends at once, which is how the contract tests ends without waiting.
 * - `append` with `lease` gives the run to that holder for `forMs` from then on, in the same transaction, whoever had it: the
 *   epoch has decided already that this writer may. So the first append of a run takes its lease, and later ones renew it. An
 *   append without `lease` leaves it as it is; so may one without events, or one that was stored before and is recognised. An
 *   append that is refused changes nothing. An append with `run_finished` ends the lease, whatever it is given: a run that has
 *   ended has none. Runtimes do not send `lease` with each append, only when a good part of it is over.
 * - `acquire` with a claim raises the epoch and gives the run to the holder in one transaction, unless a lease of another holder
 *   lasts that `from` does not name: then nothing changes, and it rejects with a `LedgerConflictError` of kind `lease`, whose
 *   `lease` says who has the run and for how long. Of several that acquire at once one wins. Without a claim it raises the epoch
 *   in any case, and ends the lease.
 * - `renew` lets the leases of a holder last `forMs` from now, of those of these runs that it has, and returns them. One that has
 *   ended and that nobody has taken since is renewed too. It is called when a tool or a model has been silent for long, for all
 *   such runs of a process at once. It need not be durable, and must not wait behind long work.
 * - `release` ends the lease of a run if that holder has it. It need not be durable. With `wait` it says when the run is due next.
 * - `lease` returns the lease of a run that lasts; `undefined` if there is none, or no such run.
 * - A lease refuses no append: only the epoch decides which writer may. It keeps others from raising the epoch while a tool is
 *   at work, which no epoch can stop.
 * - A store judges nothing else. Whether the process of a holder has died is for the runtime to say, which knows its machine.
 * - `changes` need not emit for a lease that is taken, renewed or released.
 * - A run is due at once (`dueAt` 0) from its first append, from each `acquire`, `put` of a new key and append that names it in
 *   `wakes` on, in the transaction of each. So a process that dies leaves a run that is due once its lease has ended. `release`
 *   with `wait` makes it due at `wakeAt`, or never without one; but at once while its inbox has entries that were not taken, or once
 *   one of `children` has ended: none of these may come in between unseen. `release` without `wait`, and an append to a run that is
 *   there, leave it as it is. A run that has ended is never due.
 * - `due` yields what is due and has no lease that lasts, by `dueAt`, then by the place in the store. It finds them by an index: what it
 *   costs does not depend on how many runs wait. It may leave out, or yield, what becomes due or is taken while it is read.
 * - There is no feed of its own of what becomes due: a start, a put and the end of a child run each make a run due, and are hinted
 *   at by `changes(undefined, 'inbox')`. To follow them, look with `due({ before: now })` after a hint and at the next `wakeAt`, and from time to time,
 *   since a lease ends without a hint.
 */
export interface RunLeases {
  lease(runId: RunId): Promise<Lease | undefined>
  renew(runIds: readonly RunId[], claim: LeaseClaim): Promise<readonly RunId[]>
  release(runId: RunId, holder: string, wait?: RunWait): Promise<void>
}

/** A ledger that is closed at the end of the block in which it is declared with `await using`. */
export interface OpenLedger extends Ledger {
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * The same ledger, closed by `await using`: for authors of stores, as the last step of making one. A host without that, such as an older browser, gets the ledger as
 * it is.
 */
export function closeByUsing<Opened extends Ledger>(ledger: Opened): Opened & OpenLedger {
  if (typeof Symbol.asyncDispose === 'symbol') {
    // Of whatever object it is called on: a copy with a `close` of its own is closed by that.
    const dispose = function (this: Ledger): Promise<void> {
      return this.close()
    }
    Object.assign(ledger, { [Symbol.asyncDispose]: dispose })
  }
  return ledger as Opened & OpenLedger
}

/** A runtime asks for more (`someLedger`): what is only read may be given as its `read` alone. */
const anyLedger = valueThat(
  'a ledger, such as sqliteLedger(path) makes',
  (value) =>
    typeof value === 'object' && value !== null && 'read' in value && typeof value.read === 'function',
)

/** Refuses a value that is not a ledger, such as the path of one. Throws a `ConfigurationError`. */
export function requireLedger(subject: string, ledger: Pick<Ledger, 'read'>): void {
  requireOptions(subject, anyLedger, ledger, 'the ledger')
}

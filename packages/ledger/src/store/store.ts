import {
  ConfigurationError,
  type Ledger,
  LedgerConflictError,
  type RunId,
  TallystickError,
} from '@tallystick/core'
import { deriveOnceKey } from '@tallystick/core/store-kit'
import type { ExpectedHead, Head, LeaseClaim, RunLeases, TakeOverClaim } from '@tallystick/core/vocabulary'
import type { Observable } from 'rxjs'
import type { EncodedEvent } from '../format/body.ts'
import type { RemovalRequest, RowEnvelope } from '../format/chain.ts'
import type { Fault } from '../format/event-row.ts'
import type { Durability, InboxRow, StoreDatabase } from './database.ts'
import type { RowReader } from './read-events.ts'
import type { BegunTail, TailStart } from './tail-events.ts'

/** An append that has passed every check that needs no store. */
export interface AppendRequest {
  readonly runId: RunId
  readonly expected: ExpectedHead
  readonly events: readonly EncodedEvent[]
  readonly durability: Durability
  /** Who drives the run from this append on. */
  readonly lease?: LeaseClaim | undefined
  /** A run that becomes due, unless it has ended. */
  readonly wakes?: RunId | undefined
  /** Keys of inbox entries that leave the inbox. */
  readonly takes: readonly string[]
  /** The run can be erased by its key, so the inbox keeps no copy of the commands that it takes. */
  readonly isSealed: boolean
}

export interface StoredWait {
  /** When it is due; null for never. */
  readonly dueAt: number | null
  /** Ids of child runs whose end it waits for. */
  readonly children: readonly RunId[]
}

/**
 * The work that SQLite and Postgres each do in their own way, over the same tables. `openLedger` makes a ledger of it; reading is the
 * same for both, by statements to its `database`. Members reject with a `TallystickError`.
 */
export interface Store extends Pick<RunLeases, 'renew'> {
  readonly database: StoreDatabase
  append(request: AppendRequest): Promise<Head>
  /** Raises the epoch of a run, durably, and gives its lease to who claims it. */
  acquire(runId: RunId, claim?: TakeOverClaim): Promise<Head>
  /** Ends the lease of a run if that holder has it. With `wait` the run is due then, or at once for what came in meanwhile. */
  release(runId: RunId, holder: string, wait?: StoredWait): Promise<void>
  /** Returns whether the key is new. Postgres puts it within a transaction of the caller's, if one is given. */
  put(runId: RunId, entry: InboxRow, within?: unknown): Promise<boolean>
  /**
   * Removes what is asked for, all of it or nothing, durably, and the projections, snapshots and taken commands of the runs.
   * Skips content that is removed already. Returns how many events lost their content.
   */
  remove(requests: readonly RemovalRequest[]): Promise<number>
  /** Finds the event that a cursor names, and settles how far the tail goes. */
  beginTail(after: TailStart): Promise<BegunTail>
  /** Hints as `Ledger.changes` gives them. */
  changes(runId?: RunId, part?: 'inbox'): Observable<void>
  /** Called after this process wrote to a run; `isInbox` says whether its inbox may have changed. */
  changed(runId: RunId, isInbox: boolean): void
  /** The first fault of the database itself, such as of its pages or its schema. */
  findFault(): Promise<Fault | undefined>
  close(): Promise<void>
}

/** The refusal of a run whose id a dropped run had. */
export function createDroppedRunConflict(runId: string): LedgerConflictError {
  return new LedgerConflictError(
    'unique',
    `Run ${runId} was dropped from this ledger, on record, and cannot come back: its removed content would be there again. ` +
      'Nothing was written. Import it into another ledger, or start another run.',
  )
}

/** The parts of a ledger that functions of this package use beneath the port. */
export interface Internals {
  readonly store: Store
  readonly rows: RowReader
}

/** The member under which it does. Not part of the port. */
export const internals: unique symbol = Symbol.for('tallystick.ledger.internals')

/** The store beneath a ledger; `undefined` for a ledger from elsewhere, and for one that something is wrapped around. */
export function getInternals(ledger: Ledger): Internals | undefined {
  return (ledger as { readonly [internals]?: Internals })[internals]
}

/** The database beneath a ledger, with what is derived from its events; `undefined` for a ledger from elsewhere. */
export function getDatabase(ledger: Ledger): StoreDatabase | undefined {
  return getInternals(ledger)?.store.database
}

/** Throws a `ConfigurationError` for a ledger that cannot remove content. */
export function requireRemovable(ledger: Ledger): Internals {
  const found = getInternals(ledger)
  if (found) return found
  throw new ConfigurationError(
    'This ledger cannot remove content: only sqliteLedger and postgresLedger can. ' +
      'Pass the ledger itself, not something wrapped around it.',
  )
}

/** Returns `otherwise` if what is derived from events cannot be read. Errors that show a bug are thrown. */
export async function orElse<T>(otherwise: T, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof TallystickError) return otherwise
    throw error
  }
}

/** The facts of an append that may be recorded once, each with whether the append states it a second time. */
export function* listFactsOnce(
  events: readonly EncodedEvent[],
): Generator<{ readonly key: string; readonly envelope: RowEnvelope; readonly isRepeated: boolean }> {
  const stated = new Set<string>()
  for (const { event, envelope } of events) {
    const key = deriveOnceKey(event)
    if (key === undefined || envelope.attempt === null) continue
    yield { key, envelope, isRepeated: stated.has(key) }
    stated.add(key)
  }
}

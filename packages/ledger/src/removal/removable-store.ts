import type { EventType, Ledger, RunId } from '@tallystick/core'
import type { StoredEvent } from '../stored-event.ts'
import type { Removal, StoredRemoval } from './removal.ts'

/** Which payloads a search for what may be taken away finds. */
export interface RemovableQuery {
  /** Events of these types. */
  readonly types: readonly EventType[]
  /** Earlier than this, in milliseconds since 1970 UTC. */
  readonly before: number
  /** Behind this place in the store; 0 at first. */
  readonly afterPos: number
  /** At most so many. */
  readonly limit: number
}

/** A run that has ended, which a rule of retention may drop whole. */
export interface EndedRun {
  readonly runId: RunId
  /** Place of its first event, by which such runs are gone through. */
  readonly pos: number
  readonly headSeq: number
  readonly headHash: Uint8Array
}

/** What taking payloads away needs of a store, beneath its port. */
export interface RemovableStore {
  /** Events of runs that have ended, which still have their payload, in the order of their places, each with what it needs to be read. */
  payloads(query: RemovableQuery): Promise<readonly StoredEvent[]>
  /** Some events of a run, each with what it needs to be read; the payloads of some may be gone. */
  events(runId: RunId, fromSeq: number, toSeq: number): Promise<readonly StoredEvent[]>
  /** Runs that have ended before a moment, behind a place; at most so many. */
  endedRuns(query: Omit<RemovableQuery, 'types'>): Promise<readonly EndedRun[]>
  /**
   * Takes away what the removals name, all of it or nothing, durably: payloads, large contents that nobody refers to any
   * more, commands that were taken out of the runs' inboxes, and what was derived from the runs. A removal of payloads
   * that are gone already is left out. Answers how many events lost their payload.
   */
  remove(removals: readonly Removal[]): Promise<number>
  /** Every removal on record, in order; those of one run where it is named. */
  removals(runId?: RunId): AsyncIterable<StoredRemoval>
}

/** The member under which a ledger of this package lets payloads be taken away. No part of the port. */
export const removableStore: unique symbol = Symbol.for('tallystick.ledger.removable-store')

/** The store beneath a ledger, where payloads of it can be taken away. */
export function removableStoreOf(ledger: Ledger): RemovableStore | undefined {
  return (ledger as { readonly [removableStore]?: RemovableStore })[removableStore]
}

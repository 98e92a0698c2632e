import type { Ledger, RunId } from '@tallystick/core'
import type { EventType } from '@tallystick/core/vocabulary'
import type { StoredRow } from '../record/stored-row.ts'
import type { Removal, StoredRemoval } from '../record/removal.ts'

/** How many removals a store reads at once. */
export const removalsPerBatch = 256

/** The tables that lose their rows of a run that is dropped, in this order. */
export const droppedTables = ['inbox', 'event', 'run'] as const

/** Which payloads a search for what may be taken away finds. */
export interface RemovableQuery {
  /** Events of these types. */
  readonly types: readonly EventType[]
  /** Earlier than this, in milliseconds since 1970 UTC. */
  readonly before: number
  /** After this place in the store; 0 at first. */
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

/** Some of what a search for payloads finds. It may be empty and yet not the last. */
export interface Batch<Item> {
  readonly items: readonly Item[]
  /** The place after which the next batch begins; absent after the last. */
  readonly next?: number
}

/** A batch of the places after one up to another, without a place after `lastPos`. */
export function batchOf<Item extends { readonly pos: number }>(
  items: readonly Item[],
  { limit, toPos, lastPos }: { readonly limit: number; readonly toPos: number; readonly lastPos: number },
): Batch<Item> {
  const last = items.at(-1)
  if (last && items.length >= limit) return { items, next: last.pos }
  return toPos < lastPos ? { items, next: toPos } : { items }
}

/** A run, and when it ended, where it has. */
export type ListedRun = EndedRun & { readonly endedAt: number | null }

/** Of a batch of runs, those that have ended before a moment. */
export function endedBatch(
  runs: readonly ListedRun[],
  { before, limit }: Omit<RemovableQuery, 'types'>,
): Batch<EndedRun> {
  const items = runs.filter(({ endedAt }) => endedAt !== null && endedAt < before)
  const last = runs.at(-1)
  return last && runs.length >= limit ? { items, next: last.pos } : { items }
}

/** What taking payloads away needs of a store, beneath its port. */
export interface RemovableStore {
  /**
   * Rows of runs that have ended, which may hold events of these types with their payload, each with what it needs to be
   * read. A row of segments may hold others as well, and later ones.
   */
  payloads(query: RemovableQuery): Promise<Batch<StoredRow>>
  /** Some events of a run, each with what it needs to be read; the payloads of some may be gone. */
  events(runId: RunId, fromSeq: number, toSeq: number): Promise<readonly StoredRow[]>
  /** Runs that have ended before a moment. A batch looks at `limit` runs. */
  endedRuns(query: Omit<RemovableQuery, 'types'>): Promise<Batch<EndedRun>>
  /**
   * Removes what the removals name, all of it or nothing, durably: payloads, large contents without any reference
   * left, taken commands in the inboxes of the runs, and the runs' projections. Skips removals of payloads that are
   * gone already. Returns how many events lost their payload.
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

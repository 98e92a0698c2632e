import type { Ledger, RunId } from '@tallystick/core'
import type { RunCell } from './chain.ts'
import type { Fault } from './link-check.ts'
import type { StoredRemoval } from './removal.ts'
import type { StoredRow } from './stored-row.ts'

/** The contents and histories that a store keeps for a place, as its tables of uses say. */
export interface StoredUses {
  readonly pos: number
  readonly digests: readonly string[]
  readonly histories: readonly string[]
}

/** What a store holds of a run at one moment. */
export interface StoredRun {
  /** Absent where the run has events and no row. */
  readonly row?: RunCell & { readonly seal: Uint8Array }
  /** How many events the store holds under the run's id. */
  readonly events: number
  readonly lastSeq: number
  /** The numbers of the facts that may be recorded once, as the store holds them of the run: see `factNumberOf`. */
  readonly facts: ReadonlySet<number>
}

/**
 * The stored rows of a ledger, unchecked, as `verify` reads them beneath the port. Members reject with
 * `LedgerDamagedError` if the store itself cannot read its bytes.
 */
export interface AuditSource {
  /** `undefined` if the store has nothing of the run. */
  forget(): void | Promise<void>
  /** `undefined` where the store knows nothing of the run. */
  run(runId: RunId): Promise<StoredRun | undefined>
  /** Batch after batch, from seq 1 on, in the order of seq, with whatever gaps there are. */
  events(runId: RunId, toSeq: number): AsyncIterable<readonly StoredRow[]>
  /** What is in use at these places, of those whose payload is there now. */
  uses(places: readonly number[]): Promise<readonly StoredUses[]>
  /** Runs that have events and no row, by the value in the column of ids. */
  orphans(): Promise<readonly string[]>
  /** Everything that was ever taken away, in order; from one run where it is named. */
  removals(runId?: RunId): AsyncIterable<StoredRemoval>
  /** The first fault of the store as a whole: its pages, its indexes, its numbering, its triggers, its large contents. */
  fault(): Promise<Fault | undefined>
}

/** The member under which a ledger of this package lends its rows to `verify`. No part of the port. */
export const auditSource: unique symbol = Symbol.for('tallystick.ledger.audit-source')

/** A ledger that can be verified beneath its port. */
export interface AuditedLedger extends Ledger {
  readonly [auditSource]: AuditSource
}

/** The rows of a ledger, where it lends them. */
export function auditSourceOf(ledger: Ledger): AuditSource | undefined {
  return (ledger as Partial<AuditedLedger>)[auditSource]
}

import type { Ledger } from '@tallystick/core'
import { foldVersion } from '@tallystick/core/machine'
import { internalsOf } from '../store/store.ts'

/** The parts of SQL that differ between databases. Parameters are `$1`, `$2` … everywhere. */
export interface ProjectionDialect {
  /** A table of the ledger, by its name. */
  readonly table: (name: string) => string
  /** Events of types that do not come in every turn, as `event`: a run and a type are found by an index. */
  readonly rareEvents: string
  /** The strings of a JSON array, as a table `item` with the column `value`. */
  readonly texts: (parameter: string) => string
  /** The objects of a JSON array, as a table `item` with the column `value`, of which `->>` takes fields. */
  readonly objects: (parameter: string) => string
  /** The condition that a JSON array of strings holds one. */
  readonly hasText: (array: string, parameter: string) => string
  /** Appended to a query whose rows are to stay unchanged until its transaction ends. */
  readonly held: string
  /** A column as a term that no index is chosen by. */
  readonly unindexed: (column: string) => string
}

/** One statement of a change. All of a change share their values, from `$1` on. */
export interface ChangePart {
  readonly name: string
  /** The statement; `when` stands for the condition under which the change is made at all. */
  readonly text: (when: string) => string
}

/** Runs that may have changed after a place. */
export interface ChangedRuns {
  readonly runIds: readonly string[]
  /** Where to continue; the place that was given, where nothing has settled after it. */
  readonly cursor: string
  /** Whether nothing more comes after it now. */
  readonly isLast: boolean
  /** Whether the events after the place are unknown, because the ledger has no event at the place any more. */
  readonly isLost?: true
}

/**
 * The tables of a store that are derived from its events: snapshots and projections. Dropping them costs only time,
 * so a caller that cannot read or write them continues without them. Members reject with a `TallystickError`.
 */
export interface ProjectionDatabase {
  readonly dialect: ProjectionDialect
  readonly isWritable: boolean
  ask<Row>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /**
   * Makes a change, all of it or nothing, in a transaction that keeps no writer waiting. The first part decides: where
   * it changes no row, nothing is done, and the answer is `false`.
   */
  change(parts: readonly ChangePart[], values: readonly unknown[]): Promise<boolean>
  /** Runs with events after a place; from the first event on, where it is `''`. */
  changedRuns(after: string): Promise<ChangedRuns>
  /** Whether an event comes after a place. */
  isAfter(place: string, runId: string, seq: number): Promise<boolean>
  /** About how many events come after a place. */
  eventsAfter(after: string): Promise<number>
}

/** The tables beneath a ledger, where it has them. */
export function projectionDatabaseOf(ledger: Ledger): ProjectionDatabase | undefined {
  return internalsOf(ledger)?.store.projections
}

/** Rises whenever the outline of any run changes in value or in its stored form. */
const outlineVersion = 1

/** What snapshots were made by, as a column holds it: others are ignored. */
export const snapshotVersion: string = `fold ${foldVersion}, outline ${outlineVersion}`

/**
 * Rises whenever a summary of any run, or a total, changes in value or in its stored form. The golden ledgers hold
 * the result of each version, and fail when the result changes and the version does not.
 */
const version = 3

/** What projections were made by, as a column holds it: those of another version are made anew. */
export const projectionVersion: string = `projection ${version}, fold ${foldVersion}`

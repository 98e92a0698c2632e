import type { Ledger } from '@tallystick/core'
import type { LinkedRow } from '../src/record/linked-row.ts'

/** The baseline, written by hand without any promise: the same rows into the same tables and indexes. */
export interface RawStore {
  /** One group of a run's rows, durable when it resolves. */
  append(rows: readonly LinkedRow[]): void | Promise<void>
  /** Reads a run's rows in order and parses what they say; answers how many. */
  read(runId: string): number | Promise<number>
}

/** A ledger, and the same database without one. */
export interface Compared {
  readonly name: string
  readonly ledger: Ledger
  readonly raw: RawStore
  close(): Promise<void>
}

import type { RunId } from '@tallystick/core'
import type { Fault } from '../record/link-check.ts'
import type { MissingContent } from '../removal/missing-content.ts'

/** The first place where a run is not what was written, or breaks a law. */
export interface BrokenPlace extends Fault {
  readonly runId: RunId
  /** The event, or where it should be; the last event's where the run's row is at fault. */
  readonly seq: number
}

/** What verifying found out about one run. */
export interface RunVerdict {
  readonly scope: 'run'
  readonly runId: RunId
  readonly ok: boolean
  /** Events that were found sound, from the first on. */
  readonly events: number
  readonly broken?: BrokenPlace
  /**
   * What was projected from the run's events and is not what they say: a snapshot, or its projection. Nothing that was
   * recorded is wrong, so the run is `ok` all the same; rebuilding mends it.
   */
  readonly differs?: Fault
  /** Content that is not there, on record, and content that is sealed; absent where all of it was read. */
  readonly missing?: readonly MissingContent[]
}

/** What verifying found out about the store around its runs, and about all of them together. */
export interface StoreVerdict {
  readonly scope: 'store'
  /** Whether the store and every run are sound. */
  readonly ok: boolean
  readonly runs: number
  readonly brokenRuns: number
  readonly events: number
  /** Runs that were dropped, on record. */
  readonly droppedRuns: number
  /** Runs of which something that was derived is not what their events say, where there are any. */
  readonly differingRuns?: number
  /** Totals that differ from the sum of the runs' projections. */
  readonly differs?: Fault
  /** What is wrong with the store itself: its pages, its numbering, its triggers. */
  readonly broken?: Fault
}

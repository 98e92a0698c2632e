import type { RunId } from '@tallystick/core'
import type { Fault } from '../format/event-row.ts'
import type { MissingContent } from '../store/redact.ts'

/** The first place where a run is not what was written, or breaks a law. */
export interface BrokenPlace extends Fault {
  readonly runId: RunId
  /** The number of the event, or where it should be; that of the last event if the run's row is at fault. */
  readonly seq: number
}

/** The verdict on one run. */
export interface RunVerdict {
  readonly scope: 'run'
  readonly runId: RunId
  readonly ok: boolean
  /** Events that were found sound, from the first on. */
  readonly events: number
  readonly broken?: BrokenPlace
  /**
   * A snapshot or a projection of the run that differs from its events. The recorded events are sound, so the run is
   * `ok`; rebuilding corrects it.
   */
  readonly differs?: Fault
  /** Content that was removed, on record, and content that is encrypted; absent if all of it was read. */
  readonly missing?: readonly MissingContent[]
}

/** The verdict on the store around its runs, and on all of them together. */
export interface StoreVerdict {
  readonly scope: 'store'
  /** Whether the store and every run are sound. */
  readonly ok: boolean
  readonly runs: number
  readonly brokenRuns: number
  readonly events: number
  /** Runs that were dropped, on record. */
  readonly droppedRuns: number
  /** The number of runs whose snapshots or projections differ from their events. */
  readonly differingRuns?: number
  /** Totals that differ from the sum of the runs' projections. */
  readonly differs?: Fault
  /** What is wrong with the store itself: its pages, its numbering, its triggers. */
  readonly broken?: Fault
}

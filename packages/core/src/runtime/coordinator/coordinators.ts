import type { RunState } from '../../machine/state.ts'
import type { RunId } from '../../values/ids.ts'
import type { ChildRuns } from '../children/child-runs.ts'
import type { RelatedRuns } from '../children/related-runs.ts'
import type { RunResult } from '../reading/run-result.ts'

/** A run that this process drives. */
export interface DrivenRun {
  /** The result of the drive session under way, or of the last one. */
  readonly whenStopped: Promise<RunResult>
  /** Lets what is in flight end, begins nothing, and returns the result of the run as it stopped. */
  drain(graceMs: number): Promise<RunResult>
}

/** The coordinators of one runtime, as each of them sees the others. */
export interface Coordinators extends RelatedRuns {
  readonly children: ChildRuns
  /** A drive session of the run begins. */
  began(run: DrivenRun): void
  /** The drive session of the run has ended. */
  stopped(run: DrivenRun): void
  /** The writer of the run has failed: its coordinator drives no more. */
  failed(runId: RunId): void
  /** Reports the end of a run to its parent, if it has one. */
  reportEnd(state: RunState, context: unknown): Promise<void>
}

import type { RunId } from '../vocabulary/values/ids.ts'

/**
 * Leases of runs, for processes that look for runs to resume: the one that has the lease of a run resumes it, and the
 * others leave that run alone. A lease refuses no append: only the epoch decides which writer of a run may append. All times
 * are those of the store's own clock, so the clocks of the processes may differ.
 *
 * - `take` takes the lease of a run for `forMs` milliseconds, and returns whether the holder has it now: no other
 *   holder has one that has not expired. Returns `false` if the run does not exist.
 * - `renew` lets every lease of a holder last `forMs` milliseconds from now.
 * - `giveBack` ends the lease of a run, if that holder has it.
 * - `expired` returns the runs whose holder neither renewed its lease in time nor gave it back, and which have neither
 *   ended nor been taken over by another process since: their holder has died, or it is cut off from the store.
 */
export interface RunLeases {
  take(runId: RunId, holder: string, forMs: number): Promise<boolean>
  renew(holder: string, forMs: number): Promise<void>
  giveBack(runId: RunId, holder: string): Promise<void>
  expired(): Promise<readonly RunId[]>
}

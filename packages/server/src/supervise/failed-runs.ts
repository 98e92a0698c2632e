import type { Clock, Ledger, RunId } from '@tallystick/core'
import type { DueRun } from './due-runs.ts'

interface Failed {
  /** The last event of the run after the failure. */
  readonly seq: number
  readonly failures: number
  readonly waitsUntil: number
}

const [firstWaitMs, maxWaitMs] = [5_000, 3_600_000]

/**
 * Runs whose resume failed in this process. Each waits longer after each failure, since a resume records events, calls
 * tools and models, and usually fails in the same way as before.
 */
export class FailedRuns {
  readonly #ledger: Ledger
  readonly #clock: Clock
  readonly #failed = new Map<RunId, Failed>()

  constructor(ledger: Ledger, clock: Clock) {
    this.#ledger = ledger
    this.#clock = clock
  }

  /** Returns whether a run may be resumed now: its wait is over, or it has an event that came after the failure. */
  mayResume({ runId, seq }: DueRun): boolean {
    const failed = this.#failed.get(runId)
    return failed === undefined || failed.seq !== seq || failed.waitsUntil <= this.#clock.now()
  }

  /** Never rejects: if the ledger cannot say where the run ends, the wait counts from the event at which it was found. */
  async add({ runId, seq }: DueRun): Promise<void> {
    const failures = (this.#failed.get(runId)?.failures ?? 0) + 1
    const waitsUntil = this.#clock.now() + Math.min(firstWaitMs * 2 ** (failures - 1), maxWaitMs)
    const head = await this.#ledger.head(runId).catch(() => undefined)
    this.#failed.set(runId, { seq: head?.seq ?? seq, failures, waitsUntil })
  }

  delete(runId: RunId): void {
    this.#failed.delete(runId)
  }
}

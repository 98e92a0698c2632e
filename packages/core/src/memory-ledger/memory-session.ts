import { RunNotFoundError } from '../vocabulary/errors.ts'
import type { RunId } from '../vocabulary/values/ids.ts'
import type { MemoryRun } from './memory-run.ts'

/** The runs of one session of a `memoryLedger`. */
export class MemorySession {
  readonly #byPlace = new Map<number, MemoryRun>()
  /** In the order of their places. */
  readonly #runs: MemoryRun[] = []

  has(place: number): boolean {
    return this.#byPlace.has(place)
  }

  /** Adds a run at a place that is free. */
  add(run: MemoryRun): this {
    this.#byPlace.set(run.sessionPlace, run)
    const behind = this.#runs.findLastIndex((other) => other.sessionPlace < run.sessionPlace) + 1
    this.#runs.splice(behind, 0, run)
    return this
  }

  /** The last place first, after a run where it is named. `RunNotFoundError` where that one is not in the session. */
  listed(before: RunId | undefined, limit: number): readonly MemoryRun[] {
    const end =
      before === undefined ? this.#runs.length : this.#runs.findIndex(({ runId }) => runId === before)
    if (end < 0) throw new RunNotFoundError(before ?? '')
    return this.#runs.slice(Math.max(0, end - limit), end).toReversed()
  }
}

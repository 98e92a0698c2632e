import type { Ledger } from '../ports/ledger.ts'
import type { RuntimeEvent } from '../vocabulary/events/event.ts'
import type { RunId } from '../vocabulary/values/ids.ts'

/** The runs that are under way, with the epochs of their writers. */
export class DrivenRuns {
  readonly #epochs = new Map<RunId, number>()

  /** What a ledger that has these runs answers of them. */
  get members(): Required<Pick<Ledger, 'release' | 'isDriven'>> {
    return {
      release: (runId, epoch) => this.#release(runId, epoch),
      isDriven: (runId) => Promise.resolve(this.#epochs.has(runId)),
    }
  }

  taken(runId: RunId, epoch: number): void {
    this.#epochs.set(runId, Math.max(epoch, this.#epochs.get(runId) ?? 0))
  }

  appended(runId: RunId, epoch: number, events: readonly RuntimeEvent[]): void {
    if (events.at(-1)?.type === 'run_finished') this.#epochs.delete(runId)
    else this.taken(runId, epoch)
  }

  /** The writer of an epoch, or of any, releases its run; a later one keeps it. */
  #release(runId: RunId, epoch: number = Infinity): void {
    if ((this.#epochs.get(runId) ?? Infinity) <= epoch) this.#epochs.delete(runId)
  }
}

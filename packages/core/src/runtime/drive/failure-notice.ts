import type { Host } from '../../ports/clock.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'

/**
 * Sees to it that the failure of a run's writer is heard once: by those who wait for the run or are subscribed to it,
 * or else by the host. A failure that nobody hears of would look like a run that does nothing.
 */
export class FailureNotice {
  readonly #runId: RunId
  readonly #report: Host['report']
  #failure: { readonly error: unknown } | undefined
  #settled = false
  #watchers = 0

  constructor(runId: RunId, report: Host['report']) {
    this.#runId = runId
    this.#report = report
  }

  /** The run is driven on: whoever waited for its last rest waits no more. */
  begin(): void {
    this.#settled = false
  }

  /** Somebody waits for the run or for a command to it, and hears of a failure. */
  heard(): void {
    this.#settled = true
  }

  /** Somebody is subscribed, until the answer is called. */
  watch(): () => void {
    this.#watchers++
    return () => void this.#watchers--
  }

  /** The writer has failed: those who are subscribed are told first. */
  failed(error: unknown, tellSubscribers: () => void): void {
    this.#failure = { error }
    tellSubscribers()
    this.#tellUnlessHeard()
  }

  /** An error came to a subscriber that does not listen for errors. */
  unheard(error: unknown): void {
    if (this.#failure?.error === error) this.#tellUnlessHeard()
    else this.#report(error, `The events of run ${this.#runId} could not be read`)
  }

  /** Where none of those who are subscribed listens for errors, the host is told when the last of them is gone. */
  #tellUnlessHeard(): void {
    void Promise.resolve().then(() => {
      if (this.#settled || this.#watchers > 0) return
      this.#settled = true
      this.#report(this.#failure?.error, `Run ${this.#runId} failed and is driven here no more`)
    })
  }
}

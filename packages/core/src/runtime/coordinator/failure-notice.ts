import type { Host } from '../../values/host.ts'
import type { RunId } from '../../values/ids.ts'

/**
 * Reports the failure of a run's writer exactly once: to the callers that wait for the run or are subscribed to it,
 * or else to the host. An unreported failure would look like a run that does nothing.
 */
export class FailureNotice {
  readonly #runId: RunId
  readonly #report: Host['report']
  #failure: { readonly error: unknown } | undefined
  /** The errors of subscribers whose ledger the application closed. */
  #cutOff: WeakSet<object> | undefined
  #observed = false
  #watchers = 0

  constructor(runId: RunId, report: Host['report']) {
    this.#runId = runId
    this.#report = report
  }

  /** Whether there is a subscriber. */
  get isWatched(): boolean {
    return this.#watchers > 0
  }

  /** A drive session begins: the failure of the last one was awaited or reported. */
  begin(): void {
    this.#observed = false
  }

  /** A caller waits for the run or for a command to it, and gets a failure. */
  markObserved(): void {
    this.#observed = true
  }

  /** Counts one subscriber more. */
  watch(): void {
    this.#watchers++
  }

  /** Counts one subscriber less. */
  unwatch(): void {
    this.#watchers--
  }

  /** The writer has failed: subscribers are notified first. */
  onFailure(error: unknown, notifySubscribers: () => void): void {
    this.#failure = { error }
    notifySubscribers()
    this.#reportUnlessObserved()
  }

  /** A subscriber is about to get the error of a ledger that the application closed, which knows that it did. */
  onCutOff(error: unknown): void {
    this.#cutOff = (this.#cutOff ?? new WeakSet()).add(Object(error))
  }

  /** An error came to a subscriber without an error handler. */
  onUnhandledError(error: unknown): void {
    if (this.#cutOff?.has(Object(error))) return
    if (this.#failure?.error === error) this.#reportUnlessObserved()
    else this.#report(error, `The events of run ${this.#runId} could not be read`)
  }

  /** Where no subscriber has an error handler, the host gets the failure when the last subscriber is gone. */
  #reportUnlessObserved(): void {
    void Promise.resolve().then(() => {
      if (this.#observed || this.isWatched) return
      this.#observed = true
      this.#report(this.#failure?.error, `Run ${this.#runId} failed and is driven here no more`)
    })
  }
}

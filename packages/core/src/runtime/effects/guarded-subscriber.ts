import { Subscriber, UnsubscriptionError, type Observer } from 'rxjs'

/**
 * Subscribes to the reports of a model or a tool. Their cleanup code may throw at any time after unsubscribing, for
 * example in a timer, where no caller could catch it. This subscriber reports the error, and the run continues.
 */
export class GuardedSubscriber<T> extends Subscriber<T> {
  readonly #report: (error: unknown) => void

  constructor(observer: Observer<T>, report: (error: unknown) => void) {
    super(observer)
    this.#report = report
  }

  override unsubscribe(): void {
    try {
      super.unsubscribe()
    } catch (thrown) {
      const errors: readonly unknown[] = thrown instanceof UnsubscriptionError ? thrown.errors : [thrown]
      for (const error of errors) this.#report(error)
    }
  }
}

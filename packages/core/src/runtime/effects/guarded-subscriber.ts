import { Subscriber, UnsubscriptionError, type Observer } from 'rxjs'

/**
 * Subscribes to what a model or a tool reports. Code of theirs that cleans up may throw, whenever they are let go: in a
 * timer, say, where nobody could catch it. Here it is reported, and the run goes on.
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

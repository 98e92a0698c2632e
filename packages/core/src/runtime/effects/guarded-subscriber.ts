import { Subscriber, type Observable, type Observer, type UnsubscriptionError } from 'rxjs'
import { ignoreRejection } from '../../values/option.ts'

interface GuardedObserver<T> extends Observer<T> {
  /** The cleanup code of what it observes threw. */
  onCleanupFault(error: unknown): void
}

/**
 * Subscribes to the reports of a model or a tool. Their cleanup code may throw at any time after unsubscribing, for
 * example in a timer, where no caller could catch it. This subscriber has its observer report the error, and the run continues.
 */
export class GuardedSubscriber<T> extends Subscriber<T> {
  readonly #observer: GuardedObserver<T>

  constructor(observer: GuardedObserver<T>) {
    super(observer)
    this.#observer = observer
  }

  /** Subscribes to what a model or a tool answered. Returns `false` where that is no Observable: either may be written without a compiler. */
  follow(answer: Observable<T>): boolean {
    const isObservable = typeof (Object(answer) as Partial<Observable<T>>).subscribe === 'function'
    if (isObservable) answer.subscribe(this)
    else ignoreRejection(answer)
    return isObservable
  }

  override unsubscribe(): void {
    try {
      super.unsubscribe()
    } catch (thrown) {
      const errors: readonly unknown[] = isUnsubscriptionError(thrown) ? thrown.errors : [thrown]
      for (const error of errors) this.#observer.onCleanupFault(error)
    }
  }
}

/** By its name: to load its class takes longer than it should for an error that hardly ever comes. */
function isUnsubscriptionError(thrown: unknown): thrown is UnsubscriptionError {
  return thrown instanceof Error && thrown.name === 'UnsubscriptionError' && 'errors' in thrown
}

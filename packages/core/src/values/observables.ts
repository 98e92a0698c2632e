import {
  Observable,
  type Observer,
  type Operator,
  Subscriber,
  type Subscription,
  UnsubscriptionError,
} from 'rxjs'
import { ignoreRejection } from './option.ts'

/** Gets errors that no caller on the stack can catch. */
export interface ErrorListener {
  /** A subscriber threw. */
  readonly onThrow: (error: unknown) => void
  /** The source failed, and a subscriber has an error handler. */
  readonly onObserved?: () => void
  /** The source failed, and a subscriber has no error handler. */
  readonly onUnhandledError: (error: unknown) => void
}

/**
 * An Observable whose subscribers cannot hurt each other. RxJS answers a throwing subscriber with an error that
 * no caller can catch, which ends the process, and with it the run. Here the throwing subscriber is unsubscribed, its
 * error is reported, and that is all. What is piped from it is isolated as well.
 */
export class IsolatedObservable<T> extends Observable<T> {
  readonly #listener: ErrorListener

  constructor(listener: ErrorListener, subscribe?: ConstructorParameters<typeof Observable<T>>[0]) {
    super(subscribe)
    this.#listener = listener
  }

  override lift<R>(operator?: Operator<T, R>): Observable<R> {
    const lifted = new IsolatedObservable<R>(this.#listener)
    lifted.source = this as unknown as Observable<R>
    lifted.operator = operator
    return lifted
  }

  override subscribe(
    observerOrNext?: Partial<Observer<T>> | ((value: T) => void) | null,
    error?: ((error: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscription {
    const observer: Partial<Observer<T>> =
      typeof observerOrNext === 'function' || observerOrNext == null
        ? {
            ...(observerOrNext && { next: observerOrNext }),
            ...(error && { error }),
            ...(complete && { complete }),
          }
        : observerOrNext
    // Operators subscribe with subscribers of their own, which pass errors on by themselves.
    if ('closed' in observer && 'add' in observer) return super.subscribe(observer as Observer<T>)
    return this.#subscribeGuarded(observer)
  }

  #subscribeGuarded(observer: Partial<Observer<T>>): Subscription {
    const guarded = new IsolatedObserver(observer, this.#listener)
    const subscription = super.subscribe(guarded)
    guarded.attach(subscription)
    return subscription
  }
}

/** Passes a source on to an observer, until that throws. */
class IsolatedObserver<T> implements Observer<T> {
  readonly #observer: Partial<Observer<T>>
  readonly #listener: ErrorListener
  #subscription: Subscription | undefined
  #failed = false

  constructor(observer: Partial<Observer<T>>, listener: ErrorListener) {
    this.#observer = observer
    this.#listener = listener
  }

  /** Gives it the subscription that ends when the observer throws. It may have thrown before there was one. */
  attach(subscription: Subscription): void {
    this.#subscription = subscription
    if (this.#failed) subscription.unsubscribe()
  }

  next(value: T): void {
    if (this.#failed) return
    try {
      this.#observer.next?.(value)
    } catch (thrown) {
      this.#fail(thrown)
    }
  }

  error(thrown: unknown): void {
    if (this.#observer.error === undefined) return this.#listener.onUnhandledError(thrown)
    this.#listener.onObserved?.()
    if (this.#failed) return
    try {
      this.#observer.error(thrown)
    } catch (second) {
      this.#fail(second)
    }
  }

  complete(): void {
    if (this.#failed) return
    try {
      this.#observer.complete?.()
    } catch (thrown) {
      this.#fail(thrown)
    }
  }

  #fail(thrown: unknown): void {
    this.#failed = true
    this.#listener.onThrow(thrown)
    this.#subscription?.unsubscribe()
  }
}

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

  /** Subscribes to what a model or a tool answered. Returns `false` if that is not an Observable: either may be written without a compiler. */
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
      const errors: readonly unknown[] = thrown instanceof UnsubscriptionError ? thrown.errors : [thrown]
      for (const error of errors) this.#observer.onCleanupFault(error)
    }
  }
}

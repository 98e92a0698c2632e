import { Observable, type Observer, type Operator, type Subscription } from 'rxjs'

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
    let failed = false
    let subscription: Subscription | undefined
    const fail = (thrown: unknown): void => {
      failed = true
      this.#listener.onThrow(thrown)
      subscription?.unsubscribe()
    }
    const guard = (call: () => void): void => {
      if (failed) return
      try {
        call()
      } catch (thrown) {
        fail(thrown)
      }
    }
    subscription = super.subscribe({
      next: (value) => {
        if (failed) return
        try {
          observer.next?.(value)
        } catch (thrown) {
          fail(thrown)
        }
      },
      error: (thrown: unknown) => {
        if (observer.error === undefined) return this.#listener.onUnhandledError(thrown)
        this.#listener.onObserved?.()
        guard(() => observer.error?.(thrown))
      },
      complete: () => guard(() => observer.complete?.()),
    })
    if (failed) subscription.unsubscribe()
    return subscription
  }
}

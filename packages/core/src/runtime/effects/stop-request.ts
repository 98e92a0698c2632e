import { type Observable, type Observer, type Subscriber, Subscription } from 'rxjs'
import { IsolatedObservable, type ErrorListener } from '../reading/isolated.ts'

/** Asks a running tool to stop, once. */
export class StopRequest {
  /** Why the tool is to stop, for each subscriber, however late. A subscriber that throws is let go, and the others still get it. */
  readonly reason$: Observable<string>
  readonly #threw: (error: unknown) => void
  #listeners: readonly Listener[] = none
  #reason: string | undefined

  /** `threw` gets what a subscriber throws. */
  constructor(threw: (error: unknown) => void) {
    this.#threw = threw
    this.reason$ = new Reasons(this, { onThrow: threw, onUnhandledError: threw })
  }

  ask(reason: string): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    for (const listener of this.#listeners) this.#tell(listener, reason)
  }

  /** Tells an observer the reason, once there is one, until it unsubscribes. */
  follow(observer: Partial<Observer<string>>): Subscription {
    const listener = new Listener(this, observer)
    this.#listeners = this.#listeners.concat(listener)
    if (this.#reason !== undefined) this.#tell(listener, this.#reason)
    return listener
  }

  leave(listener: Listener): void {
    this.#listeners = this.#listeners.filter((other) => other !== listener)
  }

  #tell(listener: Listener, reason: string): void {
    if (listener.closed) return
    try {
      listener.observer.next?.(reason)
    } catch (error) {
      listener.unsubscribe()
      this.#threw(error)
    }
  }
}

/** The reasons of a request. A plain observer follows it without the subscriber that RxJS would make for each of thousands of calls. */
class Reasons extends IsolatedObservable<string> {
  readonly request: StopRequest

  constructor(request: StopRequest, errors: ErrorListener) {
    super(errors, followRequest)
    this.request = request
  }

  override subscribe(
    observerOrNext?: Partial<Observer<string>> | ((value: string) => void) | null,
    error?: ((error: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscription {
    const isPlain =
      typeof observerOrNext === 'object' && observerOrNext !== null && !('closed' in observerOrNext)
    return isPlain ? this.request.follow(observerOrNext) : super.subscribe(observerOrNext, error, complete)
  }
}

/** One function for all of them: thousands of calls may run at once. */
function followRequest(this: Observable<string>, subscriber: Subscriber<string>): Subscription {
  return (this as Reasons).request.follow(subscriber)
}

/** An observer of a request, and its subscription. */
class Listener extends Subscription {
  readonly #request: StopRequest
  readonly observer: Partial<Observer<string>>

  constructor(request: StopRequest, observer: Partial<Observer<string>>) {
    super()
    this.#request = request
    this.observer = observer
  }

  override unsubscribe(): void {
    if (!this.closed) this.#request.leave(this)
    super.unsubscribe()
  }
}

/** Most tools have one listener, and many calls run at once: each array is as long as it has to be. */
const none: readonly Listener[] = []

import type { Observable, Subscriber } from 'rxjs'
import { IsolatedObservable } from '../reading/isolated.ts'

/** Asks a running tool to stop, once. */
export class StopRequest {
  /** Why the tool is to stop, for each subscriber, however late. A subscriber that throws is let go, and the others still get it. */
  readonly reason$: Observable<string>
  #listeners: readonly Subscriber<string>[] = none
  #reason: string | undefined

  /** `threw` gets what a subscriber throws. */
  constructor(threw: (error: unknown) => void) {
    this.reason$ = new IsolatedObservable<string>(
      { onThrow: threw, onUnhandledError: threw },
      (subscriber) => {
        if (this.#reason !== undefined) subscriber.next(this.#reason)
        this.#listeners = this.#listeners.concat(subscriber)
        return () => {
          this.#listeners = this.#listeners.filter((other) => other !== subscriber)
        }
      },
    )
  }

  ask(reason: string): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    for (const listener of this.#listeners) listener.next(reason)
  }
}

/** Most tools have one listener, and many calls run at once: each array is as long as it has to be. */
const none: readonly Subscriber<string>[] = []

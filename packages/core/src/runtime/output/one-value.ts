import { Observable, type Subscription } from 'rxjs'

// RxJS has both functions. Its own load thirty files, and take longer for that than the rest of what core needs of it.

/** Reports one value and completes. */
export function oneValue<T>(value: T): Observable<T> {
  return new Observable((subscriber) => {
    subscriber.next(value)
    subscriber.complete()
  })
}

/** Resolves to the first value of a source. Rejects where it fails or completes without one. */
export function nextValue<T>(source: Observable<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    let isTaken = false
    let listening: Subscription | undefined
    const stop = (): void => listening?.unsubscribe()
    listening = source.subscribe({
      next: (value) => {
        resolve(value)
        isTaken = true
        stop()
      },
      error: reject,
      complete: () => reject(new Error('It completed without a value.')),
    })
    // The value came before there was a subscription.
    if (isTaken) stop()
  })
}

import { Observable, Subscription } from 'rxjs'

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
    const subscription = new Subscription()
    const listening = source.subscribe({
      next: (value) => {
        resolve(value)
        subscription.unsubscribe()
      },
      error: reject,
      complete: () => reject(new Error('It completed without a value.')),
    })
    subscription.add(listening)
  })
}

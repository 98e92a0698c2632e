import { Observable } from 'rxjs'

// RxJS has this function. Its own loads many files, and takes longer for that than the rest of what core needs of it.

/** Reports one value and completes. */
export function oneValue<T>(value: T): Observable<T> {
  return new Observable((subscriber) => {
    subscriber.next(value)
    subscriber.complete()
  })
}

import { Subscriber, type Observable } from 'rxjs'

/** Reports each of what a function makes of a value. Subscribers are as isolated from each other as those of the source. */
export function flattened<T, R>(source: Observable<T>, valuesOf: (value: T) => readonly R[]): Observable<R> {
  // By `lift`, as operators of RxJS do: what a subscriber throws reaches the source, which drops this subscriber alone.
  return source.lift<R>({
    call: (subscriber, lifted) => lifted.subscribe(new Flattening(subscriber, valuesOf)),
  })
}

/** Passes on what a function makes of each value, and errors and the end as they are. */
class Flattening<T, R> extends Subscriber<T> {
  readonly #subscriber: Subscriber<R>
  readonly #valuesOf: (value: T) => readonly R[]

  constructor(subscriber: Subscriber<R>, valuesOf: (value: T) => readonly R[]) {
    super(subscriber)
    this.#subscriber = subscriber
    this.#valuesOf = valuesOf
  }

  protected override _next(value: T): void {
    for (const each of this.#valuesOf(value)) this.#subscriber.next(each)
  }
}

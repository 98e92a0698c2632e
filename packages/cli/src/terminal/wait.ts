import { fromEvent, lastValueFrom, merge, type Observable, ReplaySubject } from 'rxjs'

/**
 * Runs `work`, and passes it an observable that emits on Ctrl-C or SIGTERM. It listens from the start, so that no stop
 * leaves a ledger open.
 */
export async function runUntilStopped<Result>(
  work: (stop$: Observable<unknown>) => Promise<Result>,
): Promise<Result> {
  const stop$ = new ReplaySubject<unknown>(1)
  const signals = merge(fromEvent(process, 'SIGINT'), fromEvent(process, 'SIGTERM')).subscribe(stop$)
  try {
    return await work(stop$)
  } finally {
    signals.unsubscribe()
  }
}

/** Handles each item before it reads the next, until a stop. Returns false if it was stopped. */
export async function handleAll<Item>(
  items: AsyncIterable<Item>,
  handle: (item: Item) => Promise<unknown>,
  stop$: Observable<unknown>,
): Promise<boolean> {
  let isStopped = false
  const stopping = stop$.subscribe(() => (isStopped = true))
  try {
    for await (const item of items) {
      if (isStopped) break
      await handle(item)
    }
    return !isStopped
  } finally {
    stopping.unsubscribe()
  }
}

/** Keeps the process alive until the feed completes. */
export async function awaitCompletion(events$: Observable<unknown>): Promise<void> {
  await keepAlive(() => lastValueFrom(events$, { defaultValue: undefined }))
}

/**
 * Keeps the process alive until `work` has ended: a run may wait for an event of another process, and such a wait holds
 * no timer or socket that would keep this process alive.
 */
export async function keepAlive<Result>(work: () => Promise<Result>): Promise<Result> {
  const awake = setInterval(() => {}, 2 ** 31 - 1)
  try {
    return await work()
  } finally {
    clearInterval(awake)
  }
}

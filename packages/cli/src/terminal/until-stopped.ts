import { fromEvent, lastValueFrom, merge, ReplaySubject, type Observable } from 'rxjs'

/** The longest that a timer waits, in milliseconds. */
const longMs = 2 ** 31 - 1

/**
 * Works until it is done, and hands it what says that somebody wants an end: Ctrl-C, from the first moment on, so that
 * whoever ends it leaves no ledger open.
 */
export async function untilStopped<Result>(
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

/** Reads what is there no faster than it is heard, until somebody wants an end; answers whether nobody did. */
export async function heardAll<Item>(
  items: AsyncIterable<Item>,
  hear: (item: Item) => Promise<unknown>,
  stop$: Observable<unknown>,
): Promise<boolean> {
  let isStopped = false
  const stopping = stop$.subscribe(() => (isStopped = true))
  try {
    for await (const item of items) {
      if (isStopped) break
      await hear(item)
    }
    return !isStopped
  } finally {
    stopping.unsubscribe()
  }
}

/** Waits for what looking for changes keeps no process alive for by itself. */
export async function ended(live$: Observable<unknown>): Promise<void> {
  const awake = setInterval(() => {}, longMs)
  try {
    await lastValueFrom(live$, { defaultValue: undefined })
  } finally {
    clearInterval(awake)
  }
}

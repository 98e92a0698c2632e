import type { ContentRemoval, Ledger } from '../../ledger/ledger.ts'
import type { RunId } from '../../values/ids.ts'
import { someLedger } from '../../runtime/runtime-options.ts'
import { requireOptions } from '../../values/option.ts'
import { omitUndefined } from '../../values/json.ts'

/** A ledger, and what it is waiting for. */
export interface WatchedLedger {
  readonly ledger: Ledger
  /** Resolves when one of the calls that are under way has ended; `undefined` where none is. */
  readonly outside: () => Promise<unknown> | undefined
}

/**
 * Watches the calls of a ledger that waits for a disk or a server: `untilSettled` and `simulate` let time stand still while one
 * is under way.
 */
export function watchedLedger(ledger: Ledger): WatchedLedger {
  requireOptions('watchedLedger', someLedger, ledger, 'the ledger')
  const underWay = new Set<Promise<unknown>>()
  const watch = <T>(call: Promise<T>): Promise<T> => {
    const ended: Promise<unknown> = call.then(
      () => underWay.delete(ended),
      () => underWay.delete(ended),
    )
    underWay.add(ended)
    return call
  }
  async function* each<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
    const iterator = items[Symbol.asyncIterator]()
    for (let next = await watch(iterator.next()); !next.done; next = await watch(iterator.next()))
      yield next.value
  }
  return {
    outside: () => (underWay.size > 0 ? Promise.race(underWay) : undefined),
    ledger: {
      ...omitUndefined({ deltaDelayMs: ledger.deltaDelayMs }),
      append: (...args) => watch(ledger.append(...args)),
      acquire: (...args) => watch(ledger.acquire(...args)),
      head: (runId) => watch(ledger.head(runId)),
      read: (...args) => each(ledger.read(...args)),
      find: (query) => each(ledger.find(query)),
      runs: (filter) => each(ledger.runs(filter)),
      put: (...args) => watch(ledger.put(...args)),
      inbox: (runId) => watch(ledger.inbox(runId)),
      changes: (...args) => ledger.changes(...args),
      tail: (after) => each(ledger.tail(after)),
      lease: (runId) => watch(ledger.lease(runId)),
      renew: (...args) => watch(ledger.renew(...args)),
      release: (...args) => watch(ledger.release(...args)),
      ...(ledger.isWhole && {
        isWhole: (runId: RunId) => watch(ledger.isWhole?.(runId) ?? Promise.resolve(undefined)),
      }),
      ...(ledger.removeContent && {
        removeContent: (runId: RunId, why: ContentRemoval) =>
          watch(ledger.removeContent?.(runId, why) ?? Promise.resolve()),
      }),
      close: () => watch(ledger.close()),
    },
  }
}

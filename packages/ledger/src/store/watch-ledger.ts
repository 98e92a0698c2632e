import type { Ledger } from '@tallystick/core'
import { caughtUp, changesOfEveryRun, requireLedger } from '@tallystick/core/kit'
import type { TailCursor, TailedEvent } from '@tallystick/core/vocabulary'
import { Observable } from 'rxjs'

/**
 * Emits the events of every run after a cursor, or from the first one on: the stored ones, then live ones of any
 * process, in the order of `Ledger.tail`: no gap, no repeat. Store the cursor of the last processed event to continue
 * there, in any process. It never completes.
 *
 * It keeps no event in memory, and drives no run. Errors with a `ConfigurationError` for a cursor that names no event
 * of the ledger, and with the errors of the ledger: with `LedgerUnavailableError` when it is closed.
 */
export function watchLedger(ledger: Ledger, after?: TailCursor): Observable<TailedEvent> {
  requireLedger('watchLedger', ledger)
  return new Observable((subscriber) => {
    const changes = changesOfEveryRun(ledger, after)
    const follow = async (): Promise<void> => {
      for await (const tailed of changes) if (tailed !== caughtUp) subscriber.next(tailed)
    }
    follow().catch((error: unknown) => subscriber.error(error))
    return () => void changes.return()
  })
}

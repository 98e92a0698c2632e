import type { Ledger, TailCursor, TailedEvent } from '@tallystick/core'
import { Observable } from 'rxjs'

/**
 * The events of every run behind a cursor, or from the first one on: those that are there, then live, whichever process
 * appends them, in the order of `Ledger.tail`: no gap, no repeat. Whoever stored the cursor of the last event that it has
 * dealt with goes on there, in any process. Completes when the ledger is closed.
 *
 * Nothing is kept in memory, and nobody is driven. Errors with a `ConfigurationError` for a cursor that names no event
 * of the ledger, and with what the ledger rejects with.
 */
export function watchLedger(ledger: Ledger, after?: TailCursor): Observable<TailedEvent> {
  return new Observable((subscriber) => {
    let cursor = after
    let [isReading, isChanged, isClosed] = [false, false, false]
    const readOn = async (): Promise<void> => {
      isChanged = true
      if (isReading) return
      isReading = true
      while (isChanged && !subscriber.closed) {
        isChanged = false
        for await (const tailed of ledger.tail(cursor)) {
          if (subscriber.closed) return
          cursor = tailed.cursor
          subscriber.next(tailed)
        }
      }
      isReading = false
    }
    const readAgain = (): void => {
      readOn().catch((error: unknown) => (isClosed ? subscriber.complete() : subscriber.error(error)))
    }
    // Listening begins before the first look: what is appended in between is looked for again.
    const hints = ledger.changes().subscribe({
      next: readAgain,
      error: (error) => subscriber.error(error),
      complete() {
        isClosed = true
        if (!isReading) subscriber.complete()
      },
    })
    if (!subscriber.closed) readAgain()
    return hints
  })
}

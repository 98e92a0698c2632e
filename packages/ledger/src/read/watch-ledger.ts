import type { Ledger } from '@tallystick/core'
import type { TailCursor, TailedEvent } from '@tallystick/core/vocabulary'
import { Observable } from 'rxjs'

/**
 * Emits the events of every run after a cursor, or from the first one on: the stored ones, then live ones of any
 * process, in the order of `Ledger.tail`: no gap, no repeat. Store the cursor of the last processed event to continue
 * there, in any process. Completes when the ledger is closed.
 *
 * It keeps no event in memory, and drives no run. Errors with a `ConfigurationError` for a cursor that names no event
 * of the ledger, and with the errors of the ledger.
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

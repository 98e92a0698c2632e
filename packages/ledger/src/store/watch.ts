import { type Ledger, type RunId, RunNotFoundError, type RuntimeEvent } from '@tallystick/core'
import { requireLedger } from '@tallystick/core/internal'
import { caughtUp, type Changes, followChanges, followAllChanges } from '@tallystick/core/store-kit'
import { isAfterEnd, type TailCursor, type TailedEvent } from '@tallystick/core/vocabulary'
import { Observable } from 'rxjs'

/**
 * Emits the events of a run from `fromSeq` on: the stored ones, then live ones of any process: no gap, no repeat.
 * Completes after the end of the run, with the feedback that it has by then. `(runId, seq)` is a cursor: after event n, continue from n + 1.
 *
 * It keeps no event in memory, and drives no run. Errors with `RunNotFoundError` if the ledger has no such run, and
 * with the errors of the ledger: with `LedgerUnavailableError` when the ledger is closed before the run has ended.
 */
export function watch(ledger: Ledger, runId: RunId, fromSeq = 1): Observable<RuntimeEvent> {
  requireLedger('watch', ledger)
  return new Observable((subscriber) => {
    let changes: Changes<RuntimeEvent> | undefined
    const follow = async (): Promise<void> => {
      const head = await ledger.head(runId)
      if (head === undefined) throw new RunNotFoundError(runId)
      if (subscriber.closed) return
      // Reads the last event, though it is not asked for: after the end of a run there may be nothing else.
      changes = followChanges(ledger, runId, { after: Math.max(1, Math.min(fromSeq, head.seq)) - 1 })
      let isOver = false
      for await (const event of changes) {
        if (event === caughtUp) {
          if (isOver) break
          continue
        }
        if (event.seq >= fromSeq) subscriber.next(event)
        isOver = isAfterEnd(event)
      }
      subscriber.complete()
    }
    follow().catch((error: unknown) => subscriber.error(error))
    return () => void changes?.return()
  })
}

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
    const changes = followAllChanges(ledger, after)
    const follow = async (): Promise<void> => {
      for await (const tailed of changes) if (tailed !== caughtUp) subscriber.next(tailed)
    }
    follow().catch((error: unknown) => subscriber.error(error))
    return () => void changes.return()
  })
}

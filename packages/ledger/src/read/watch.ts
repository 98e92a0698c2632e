import { RunNotFoundError, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { Observable } from 'rxjs'

/**
 * Emits the events of a run from `fromSeq` on: the stored ones, then live ones of any process: no gap, no repeat.
 * Completes after `run_finished`. `(runId, seq)` is a cursor: after event n, continue from n + 1.
 *
 * It keeps no event in memory, and drives no run. Errors with `RunNotFoundError` if the ledger has no such run, and
 * with the errors of the ledger.
 */
export function watch(ledger: Ledger, runId: RunId, fromSeq = 1): Observable<RuntimeEvent> {
  return new Observable((subscriber) => {
    let next = Math.max(1, fromSeq)
    let reading = false
    let changed = false
    const readOn = async (): Promise<void> => {
      changed = true
      if (reading) return
      reading = true
      while (changed && !subscriber.closed) {
        changed = false
        for await (const event of ledger.read(runId, { fromSeq: next })) {
          if (subscriber.closed) return
          next = event.seq + 1
          subscriber.next(event)
          if (event.type === 'run_finished') return subscriber.complete()
        }
      }
      reading = false
    }
    const begin = async (): Promise<void> => {
      const head = await ledger.head(runId)
      if (head === undefined) throw new RunNotFoundError(runId)
      await readOn()
      // No event follows the end of a run.
      if (next > head.seq && (await hasEnded(ledger, runId, head.seq))) subscriber.complete()
    }
    const fail = (error: unknown): void => subscriber.error(error)
    // Listening begins before the first look: what is appended in between is looked for again.
    const hints = ledger.changes(runId).subscribe({ next: () => void readOn().catch(fail), error: fail })
    begin().catch(fail)
    return hints
  })
}

async function hasEnded(ledger: Ledger, runId: RunId, seq: number): Promise<boolean> {
  for await (const { type } of ledger.read(runId, { fromSeq: seq, toSeq: seq }))
    return type === 'run_finished'
  return false
}

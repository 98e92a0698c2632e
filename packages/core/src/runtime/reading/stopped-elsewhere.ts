import type { LiveEvents } from './event-source.ts'
import { LedgerUnavailableError } from '../../vocabulary/errors.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { untilStopped, type Waiting } from './follow-run.ts'

/** Follows how a run continues in other processes after it stopped here, and publishes what they record. */
export class StoppedElsewhere {
  readonly #runId: RunId
  readonly #waiting: Waiting
  readonly #live: LiveEvents
  #from: RunState | undefined
  #refreshing: Promise<RunState> | undefined

  constructor(runId: RunId, waiting: Waiting, live: LiveEvents) {
    this.#runId = runId
    this.#waiting = waiting
    this.#live = live
  }

  /** Sets the state in which the run stopped here; `undefined` while this process drives it. */
  stoppedAt(state: RunState | undefined): void {
    this.#from = state
  }

  /** Returns the state in which the run has stopped now; `undefined` where it has not stopped here. */
  refresh(): Promise<RunState> | undefined {
    const from = this.#from
    if (from === undefined) return undefined
    this.#refreshing ??= this.#follow(from).finally(() => (this.#refreshing = undefined))
    return this.#refreshing
  }

  /**
   * Reads what other processes record, until the returned function is called. `onCutOff` gets the error where the ledger
   * was closed, so that nothing can be read any more.
   */
  watch(onCutOff: (error: unknown) => void): () => void {
    // Without hints, what this process records still comes; a ledger that was closed refuses to be read.
    const isOver = (): void => void this.#waiting.ledger.head(this.#runId).then(() => undefined, onCutOff)
    try {
      const hints = this.#waiting.ledger.changes(this.#runId).subscribe({
        next: () => void this.refresh()?.catch(() => {}),
        error: isOver,
        complete: isOver,
      })
      return () => hints.unsubscribe()
    } catch {
      return () => {}
    }
  }

  async #follow(from: RunState): Promise<RunState> {
    try {
      const state = await untilStopped(from, this.#waiting, (event) => this.#live.next(event))
      if (this.#from === from) this.#from = state
      return state
    } catch (error) {
      // What was known before holds, as long as the ledger cannot be read.
      if (error instanceof LedgerUnavailableError) return from
      throw error
    }
  }
}

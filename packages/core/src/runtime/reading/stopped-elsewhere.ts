import type { Unsubscribable } from 'rxjs'
import type { LiveEvents } from './event-source.ts'
import { LedgerUnavailableError } from '../../values/errors.ts'
import type { RunState } from '../../machine/state.ts'
import type { RunId } from '../../values/ids.ts'
import { untilStopped, type Waiting } from './follow-run.ts'

/** Learns that readers are cut off before they get the error. */
interface CutOffListener {
  onCutOff(error: unknown): void
}

/**
 * Follows how a run continues in other processes while this one does not drive it, and publishes what they record. It listens
 * to the ledger only then, and only for readers: a driver of this process publishes what it records itself.
 */
export class StoppedElsewhere {
  readonly #runId: RunId
  readonly #waiting: Waiting
  readonly #live: LiveEvents
  readonly #listener: CutOffListener
  #from: RunState | undefined
  #isDrivenHere = false
  #isDone = false
  #refreshing: Promise<RunState> | undefined
  #readers = 0
  #hints: Unsubscribable | undefined

  constructor(runId: RunId, waiting: Waiting, live: LiveEvents, listener: CutOffListener) {
    this.#runId = runId
    this.#waiting = waiting
    this.#live = live
    this.#listener = listener
  }

  /** This process begins to drive the run. */
  began(): void {
    this.#isDrivenHere = true
    this.#from = undefined
    this.#listen()
  }

  /** Sets the state in which the run stopped here; `undefined` where it is not followed from there. */
  stoppedAt(state: RunState | undefined): void {
    this.#isDrivenHere = false
    this.#isDone = state?.phase === 'done'
    this.#from = this.#isDone ? undefined : state
    // What others recorded after the stop, and before this listens, no hint is about.
    if (this.#listen()) this.#refreshUnobserved()
  }

  /** Returns the state in which the run has stopped now; `undefined` where it has not stopped here. */
  refresh(): Promise<RunState> | undefined {
    const from = this.#from
    if (from === undefined) return undefined
    this.#refreshing ??= this.#follow(from).finally(() => (this.#refreshing = undefined))
    return this.#refreshing
  }

  /**
   * Reads what other processes record for one reader more. Where the ledger was closed, so that nothing can be read any more,
   * all readers of the live events are cut off.
   */
  watch(): void {
    this.#readers++
    this.#listen()
  }

  /** One reader less, of those that it reads for. */
  unwatch(): void {
    this.#readers--
    if (this.#readers === 0) this.#leave()
  }

  /** Listens to the ledger where that is needed; returns whether it begins to. */
  #listen(): boolean {
    const isNeeded = this.#readers > 0 && !this.#isDrivenHere && !this.#isDone
    if (!isNeeded) this.#leave()
    if (!isNeeded || this.#hints) return false
    this.#subscribe()
    return true
  }

  #leave(): void {
    this.#hints?.unsubscribe()
    this.#hints = undefined
  }

  #subscribe(): void {
    const onEnd = (): void => this.#onEndOfHints()
    // Subscribers read the ledger too, and get its failures there.
    try {
      const hints = this.#waiting.ledger.changes(this.#runId).subscribe({
        next: () => this.#refreshUnobserved(),
        error: onEnd,
        complete: onEnd,
      })
      if (!hints.closed) this.#hints = hints
    } catch {
      // Nothing is hinted at.
    }
  }

  /** Without hints, what this process records still comes; a ledger that was closed refuses to be read. */
  #onEndOfHints(): void {
    this.#hints = undefined
    this.#waiting.ledger.head(this.#runId).catch((error: unknown) => this.#cutOff(error))
  }

  /** A driver that fails since the ledger was closed says so itself: readers get the error from here once it has stopped. */
  #cutOff(error: unknown): void {
    if (this.#isDrivenHere) return
    this.#listener.onCutOff(error)
    this.#live.cutOff(error)
  }

  #refreshUnobserved(): void {
    void this.refresh()?.catch(() => {})
  }

  async #follow(from: RunState): Promise<RunState> {
    try {
      const state = await untilStopped(from, this.#waiting, (event) => this.#live.next(event))
      if (this.#from === from) this.stoppedAt(state)
      return state
    } catch (error) {
      // What was known before holds, as long as the ledger cannot be read.
      if (error instanceof LedgerUnavailableError) return from
      throw error
    }
  }
}

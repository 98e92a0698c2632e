import { defer } from 'rxjs'
import { LedgerUnavailableError } from '../../vocabulary/errors.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { restOf, type Waiting } from './follow-run.ts'

/** What other processes have made of a run since it came to rest here. */
export class RestElsewhere {
  readonly #runId: RunId
  readonly #waiting: Waiting
  readonly #hear: (event: RuntimeEvent) => void
  #from: RunState | undefined
  #looking: Promise<RunState> | undefined

  constructor(runId: RunId, waiting: Waiting, hear: (event: RuntimeEvent) => void) {
    this.#runId = runId
    this.#waiting = waiting
    this.#hear = hear
  }

  /** Where the run has come to rest here; `undefined` while this process drives it. */
  rests(state: RunState | undefined): void {
    this.#from = state
  }

  /** The state in which the run rests now; `undefined` where it has not come to rest here. */
  look(): Promise<RunState> | undefined {
    const from = this.#from
    if (from === undefined) return undefined
    this.#looking ??= this.#follow(from).finally(() => (this.#looking = undefined))
    return this.#looking
  }

  /** Hears what others record while the run rests here, until the answer is called. */
  watch(): () => void {
    const hints = defer(() => this.#waiting.ledger.changes(this.#runId)).subscribe({
      next: () => void this.look()?.catch(() => {}),
      // Who is subscribed reads the ledger too, and hears of its failures there.
      error: () => {},
    })
    return () => hints.unsubscribe()
  }

  async #follow(from: RunState): Promise<RunState> {
    try {
      const state = await restOf(from, this.#waiting, this.#hear)
      if (this.#from === from) this.#from = state
      return state
    } catch (error) {
      // What was known before holds, as long as nobody can say otherwise.
      if (error instanceof LedgerUnavailableError) return from
      throw error
    }
  }
}

import type { Ledger, RunId, RunState } from '@tallystick/core'
import { callsAwaitingChild, nextAction } from '@tallystick/core/machine'
import { childRunIdOf } from '@tallystick/core/vocabulary'
import { foldTo, type RunSummary } from '@tallystick/ledger'

/** What can end the wait of a run, besides a command. */
export interface RunWait {
  /** When the run has something to do of its own, in milliseconds since 1970 UTC; `Infinity` if never. */
  readonly dueAt: number
  readonly children: readonly RunId[]
}

/** What the suspended runs of a ledger wait for. A run is folded once for each event at which it waits. */
export class KnownWaits {
  readonly #ledger: Ledger
  readonly #known = new Map<RunId, RunWait & { readonly seq: number }>()

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  async of({ runId, seq }: RunSummary): Promise<RunWait> {
    const known = this.#known.get(runId)
    if (known?.seq === seq) return known
    const state = await foldTo(this.#ledger, runId, seq)
    const children = callsAwaitingChild(state).map(({ toolCallId }) => childRunIdOf(runId, toolCallId))
    const wait = { seq, dueAt: dueTime(state), children }
    this.#known.set(runId, wait)
    return wait
  }

  /** Forgets every other run. */
  keepOnly(waiting: ReadonlySet<RunId>): void {
    for (const runId of this.#known.keys()) if (!waiting.has(runId)) this.#known.delete(runId)
  }
}

/** The first millisecond at which the controller has an action for a run that waits. What is due stays due. */
function dueTime(state: RunState): number {
  const isDue = (now: number): boolean => nextAction(state, now).kind !== 'suspend'
  let [waits, due] = [state.at - 1, Number.MAX_SAFE_INTEGER]
  if (!isDue(due)) return Infinity
  while (due - waits > 1) {
    const middle = Math.floor(waits + (due - waits) / 2)
    if (isDue(middle)) due = middle
    else waits = middle
  }
  return due
}

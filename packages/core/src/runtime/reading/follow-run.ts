import { audit } from '../../machine/laws.ts'
import { isSuspended } from '../../machine/next-action.ts'
import type { RunState } from '../../machine/state.ts'
import type { Clock } from '../../values/host.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { RuntimeEvent } from '../../events/event.ts'
import type { RunId } from '../../values/ids.ts'
import { drainedMeanwhile, interruptedMeanwhile } from './busy-run.ts'
import { caughtUp, changesOf } from '../../ledger/changes.ts'

/** How often the ledger is asked whether a process drives the run. */
const pollIntervalMs = 1_000

/** The runs of this process, as a reader that waits for one of them needs them. */
export interface DrivenRuns {
  /** Whether a process drives a run. */
  isDriven(runId: RunId): Promise<boolean>
  /** Whether the runtime was drained, and continues no run. */
  readonly isDrained: boolean
}

/** What waiting for a run has to know. */
export interface Waiting {
  readonly ledger: Ledger
  readonly clock: Clock
  readonly runs: DrivenRuns
}

/**
 * Follows a run that another process drives, and returns the state in which it has ended. Rejects with a
 * `LedgerConflictError` of kind `session` where that cannot be: no process drives it, or this runtime is drained.
 */
export function untilEnded(from: RunState, waiting: Waiting): Promise<RunState> {
  return new FollowedRun(from, waiting).until(({ phase }) => phase === 'done')
}

/** The same for the state in which the run has stopped: ended, or suspended. */
export function untilStopped(
  from: RunState,
  waiting: Waiting,
  onEvent: (event: RuntimeEvent) => void,
): Promise<RunState> {
  return new FollowedRun(from, waiting, onEvent).until(
    (state) => state.phase === 'done' || isSuspended(state),
  )
}

/**
 * The same for the state in which the run has shown its model the input of an id, or is suspended with it on record;
 * `undefined` where the run did not take it, or ended without showing it. `shown` says which.
 */
export async function untilInputTaken(
  from: RunState,
  waiting: Waiting,
  inputId: string,
): Promise<{ readonly state: RunState; readonly shown: boolean } | undefined> {
  let taken = from.pendingInputs.some((input) => input.inputId === inputId)
  let shown: boolean | undefined
  const onEvent = (event: RuntimeEvent): void => {
    if (event.type === 'input_received' && event.receipt === inputId) taken = true
    if (event.type === 'input_settled' && event.receipt === inputId) shown = event.delivered
  }
  const isOver = (state: RunState): boolean =>
    shown !== undefined || state.phase === 'done' || (taken && isSuspended(state))
  const state = await new FollowedRun(from, waiting, onEvent).until(isOver)
  if (shown === true) return { state, shown }
  return shown === undefined && state.phase !== 'done' ? { state, shown: false } : undefined
}

class FollowedRun {
  readonly #waiting: Waiting
  readonly #onEvent: (event: RuntimeEvent) => void
  #state: RunState
  /** The event after which no process drove the run, and it had not stopped: what came since is to be read first. */
  #undrivenAt: number | undefined

  constructor(from: RunState, waiting: Waiting, onEvent: (event: RuntimeEvent) => void = () => {}) {
    this.#state = from
    this.#waiting = waiting
    this.#onEvent = onEvent
  }

  async until(isOver: (state: RunState) => boolean): Promise<RunState> {
    const { ledger, clock } = this.#waiting
    const { runId, seq } = this.#state
    const poll = { clock, delayMs: () => pollIntervalMs }
    const changes = changesOf(ledger, runId, { after: seq, poll })
    for await (const event of changes) {
      if (event !== caughtUp) {
        this.#take(event)
        continue
      }
      if (isOver(this.#state)) return this.#state
      if (!changes.isWoken && (await this.#mayHaveStopped())) changes.wake()
    }
    return this.#state
  }

  #take(event: RuntimeEvent): void {
    this.#state = audit(this.#state, event)
    this.#onEvent(event)
  }

  /** Throws where waiting is in vain; returns whether to look again at once, since the run seems to have stopped. */
  async #mayHaveStopped(): Promise<boolean> {
    const { runs } = this.#waiting
    if (runs.isDrained) throw drainedMeanwhile(this.#state)
    if (!isSuspended(this.#state) && !(await runs.isDriven(this.#state.runId))) {
      // Its driver may have come to the end between the look at the run and the look at the driver.
      if (this.#undrivenAt === this.#state.seq) throw interruptedMeanwhile(this.#state)
      this.#undrivenAt = this.#state.seq
      return true
    }
    this.#undrivenAt = undefined
    return false
  }
}

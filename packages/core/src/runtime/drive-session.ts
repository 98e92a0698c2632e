import type { RuntimeEvent } from '../events/event.ts'
import { caughtUp, followChanges } from '../ledger/changes.ts'
import type { RunWait } from '../ledger/ledger.ts'
import { listCallsAwaitingChild } from '../machine/calls.ts'
import { findWakeTime, isSuspended } from '../machine/next-action.ts'
import type { RunState } from '../machine/state.ts'
import type { LedgerConflictError } from '../values/errors.ts'
import { deriveChildRunId } from '../values/ids.ts'
import { isOvertaken } from './commands.ts'
import type { Stretch } from './drive.ts'
import { isDrivenByOther, leaseMs } from './leases.ts'
import { RunLoop } from './run-loop.ts'
import type { RunDriver } from './run-driver.ts'
import { foldFollowed, loadState } from './run-result.ts'
import type { BegunRun } from './runtime-parts.ts'
import { isPlaceTaken } from './session.ts'

/** How often the ledger is asked whether a process drives the run. */
const pollIntervalMs = 1_000

/** How long the commands that were sent wait for the process that has taken the run over. */
const patienceMs = 5_000

/**
 * One drive session of a run: from the moment in which this process begins to drive it, until it has stopped and was
 * released. Loops follow each other in it, one at a time: each begins as `start`, `fork`, `resume` or
 * `awaitDecisions` says.
 */
export class DriveSession {
  readonly #run: RunDriver
  /** The stretch that it belongs to; without one, the run is driven until it stops. */
  readonly stretch: Stretch | undefined
  /** The error with which the session was ended, whatever it waited for. */
  #aborted: { readonly error: unknown } | undefined
  /** Ends what is waited for with an error. */
  #endWait: ((error: unknown) => void) | undefined
  #loop: RunLoop
  #released: Promise<void> | undefined

  constructor(run: RunDriver, stretch?: Stretch) {
    this.#run = run
    this.stretch = stretch
    this.#loop = new RunLoop(run, stretch)
  }

  /** The loop that drives the run now, or drove it last. */
  get loop(): RunLoop {
    return this.#loop
  }

  /** It continues the run no more, since it or its runtime is drained. */
  get isDrained(): boolean {
    return this.#loop.isDraining || this.#run.parts.runs.isDrained
  }

  /** Ends with an error, whatever it waits for. */
  abort(error: unknown): void {
    this.#aborted ??= { error }
    this.#endWait?.(error)
  }

  /**
   * Drives the run, as it was begun, until it has stopped and every command that was sent is decided. Calls `onStopped` in
   * the moment in which that is so: a command that is sent later begins a session of its own. If another process takes the
   * run over, it rejects once that process has decided the commands, which the inbox had for it.
   */
  async drive(begun: Promise<RunState>, onStopped: (state: RunState) => void): Promise<RunState> {
    const { sent } = this.#run
    try {
      let state = await this.#unlessAborted(begun)
      while (sent.hasPending && state.phase !== 'done' && !this.#loop.isDraining) {
        // Until then the ledger names this process as the driver, and the command would be left to that one.
        await this.#tellLedger()
        // A drain in between reached the loop that has ended.
        if (this.#loop.isDraining) break
        this.#loop = new RunLoop(this.#run, this.stretch)
        state = await this.#unlessAborted(this.awaitDecisions())
      }
      // In the inbox or not: no sender waits for an answer that this process will not give.
      if (this.#loop.isDraining) await sent.allDelivered()
      onStopped(state)
      return state
    } catch (error) {
      if (isOvertaken(error)) await this.#decidedByOther()
      throw error
    }
  }

  /**
   * Starts the run with what `prepare` answers. If another run takes the place in the session that it names, it is asked
   * again, and refuses the run or waits, as for a run that began before. A run that does not wait is refused also where the
   * other one has ended by then: its caller knew nothing of the other, and both may want the same done.
   */
  async start(run: BegunRun): Promise<RunState> {
    try {
      return await this.#loop.start(await run.prepare(), run)
    } catch (error) {
      // The same loop begins again: it knows whether it has been drained.
      if (!isPlaceTaken(error) || (await this.#run.ledger.head(this.#run.runId))) throw error
      if (run.waits) return await this.start(run)
      await run.prepare()
      throw error
    }
  }

  /** Makes the run of the first events of another, and drives it from there. */
  async fork(prepare: () => Promise<readonly RuntimeEvent[]>): Promise<RunState> {
    return await this.#loop.fork(await prepare())
  }

  /**
   * Takes the run over; with `withChildren`, its child runs, too. As long as another process drives it, follows it there, so
   * that its work in flight is not repeated.
   */
  async resume(withChildren: boolean): Promise<RunState> {
    for (;;) {
      try {
        return await this.#loop.resume({ withChildren, takeOver: this.#run.takesOver })
      } catch (error) {
        // A stretch ends where another process drives the run.
        if (!isDrivenByOther(error) || this.stretch) throw error
        const state = await this.#followedElsewhere(error)
        if (state) return state
      }
    }
  }

  /** Leaves the commands that were sent to the process that drives the run; where none does, this one takes it over. */
  async awaitDecisions(): Promise<RunState> {
    const { sent, runId, parts } = this.#run
    await sent.allDelivered()
    const isElsewhere = (await parts.leases.elsewhereMs(runId)) > 0
    const state = (isElsewhere ? await this.#followedElsewhere() : undefined) ?? (await this.resume(false))
    // The last command may have ended the run before this process could take it over.
    if (!this.#loop.isWriter) await sent.acknowledgeLeft()
    return state
  }

  /**
   * Follows the run while another process drives it. Returns the state in which the run stopped with every command
   * acknowledged; `undefined` once no process drives it, so that this one has to. Ends early where this process is drained.
   */
  async #followedElsewhere(driven?: LedgerConflictError): Promise<RunState | undefined> {
    const { runId, parts, sent, live } = this.#run
    const { clock, report } = parts.host
    let state = await loadState(parts.ledger, runId)
    if (state === undefined) return undefined
    let leftMs = pollIntervalMs
    let isReported = driven === undefined
    const poll = { clock, delayMs: () => Math.max(1, Math.min(leftMs, pollIntervalMs)) }
    const changes = followChanges(parts.ledger, runId, { after: state.seq, poll })
    for await (const event of changes) {
      if (event !== caughtUp) {
        state = await foldFollowed(parts.ledger, state, event)
        live.next(event)
        continue
      }
      // After the events: the command that ended the run is acknowledged, too.
      await sent.acknowledgeLeft()
      // Whoever resumes waits until that process has let the run go: it may have yet to read what lets the run continue.
      const rests = driven === undefined && !sent.hasPending && isSuspended(state)
      if (state.phase === 'done' || rests || this.isDrained) return state
      leftMs = await parts.leases.elsewhereMs(runId)
      if (leftMs === 0 && !changes.isWoken) return undefined
      // A process that lives renews its lease before that.
      if (isReported || leftMs === 0 || leftMs > leaseMs / 2 - pollIntervalMs) continue
      report(
        driven,
        `Run ${runId} is taken over in ${leftMs} ms, unless the process that drives it renews its lease`,
      )
      isReported = true
    }
    return state
  }

  /** Acknowledges the sent commands by the events of the process that has taken the run over. */
  async #decidedByOther(): Promise<void> {
    const { runId, parts, sent } = this.#run
    const { clock } = parts.host
    const givenUpAt = clock.now() + patienceMs
    const poll = { clock, delayMs: () => pollIntervalMs }
    try {
      const after = (await parts.ledger.head(runId))?.seq ?? 0
      for await (const event of followChanges(parts.ledger, runId, { after, poll })) {
        if (event !== caughtUp) continue
        await sent.acknowledgeLeft()
        if (!sent.hasPending || this.isDrained || clock.now() >= givenUpAt) return
      }
    } catch {
      // Those that are left are rejected with the error that ended the session.
    }
  }

  /** Releases the run, in the state in which it stopped: tells the ledger at once, before any caller has the result. */
  release(state?: RunState): Promise<void> {
    return (this.#released ??= this.#tellLedger(state && this.#toWait(state)))
  }

  /** A run that has ended has no lease any more. */
  async #tellLedger(wait?: RunWait): Promise<void> {
    const { runId, parts } = this.#run
    if (this.#loop.isWriter && !this.#loop.isDone) await parts.leases.release(runId, wait)
  }

  /** Describes the wait of a run that has stopped here; `undefined` if it has something to do now. */
  #toWait(state: RunState): RunWait | undefined {
    if (this.#loop.isDraining && !isSuspended(state)) return undefined
    const children = listCallsAwaitingChild(state).map(({ toolCallId }) =>
      deriveChildRunId(state.runId, toolCallId),
    )
    return { wakeAt: findWakeTime(state), children }
  }

  #unlessAborted(driving: Promise<RunState>): Promise<RunState> {
    return new Promise((resolve, reject) => {
      driving.then(resolve, reject)
      this.#endWait = reject
      if (this.#aborted) reject(this.#aborted.error)
    })
  }
}

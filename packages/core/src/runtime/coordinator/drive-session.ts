import type { RunState } from '../../machine/state/state.ts'
import type { OutsideCommand, StartCommand } from '../../vocabulary/events/command.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import { RunLoop } from '../drive/run-loop.ts'
import { isPlaceTaken } from '../session/session.ts'
import type { HeldRun } from './held-run.ts'

/** How a run begins. */
export interface BegunRun {
  readonly prepare: () => Promise<StartCommand>
  /** Whether to ask anew where another run takes its place in the session. */
  readonly again?: boolean
  /** What is asked of it in the moment in which it begins. */
  readonly asked?: () => OutsideCommand | undefined
}

/**
 * One drive session of a run: from the moment in which this process begins to drive it, until it has stopped and was
 * released. Loops follow each other in it, one at a time: each begins as `start`, `fork`, `resume` or
 * `awaitDecisions` says.
 */
export class DriveSession {
  readonly #run: HeldRun
  /** Ends the session, whatever it waits for. */
  readonly #aborted: PromiseWithResolvers<never> = Promise.withResolvers<never>()
  #loop: RunLoop
  #released: Promise<void> | undefined

  constructor(run: HeldRun) {
    this.#run = run
    this.#loop = new RunLoop(run.drive)
  }

  /** Whether this process is, or was, the writer of the run. */
  get isWriter(): boolean {
    return this.#loop.isWriter
  }

  get isDraining(): boolean {
    return this.#loop.isDraining
  }

  /** Whether it continues the run no more, since it or its runtime is drained. */
  get isDrained(): boolean {
    return this.isDraining || this.#run.runs.isDrained
  }

  /** Reads the inbox again, soon. */
  wake(): void {
    this.#loop.wake()
  }

  /** Begins nothing more, and stops when what is in flight has ended, or after the grace time. */
  drain(graceMs: number): void {
    this.#loop.drain(graceMs)
  }

  /** Ends with an error, whatever it waits for. */
  abort(error: unknown): void {
    this.#aborted.reject(error)
  }

  /**
   * Drives the run from `begin` until it has stopped and every command that was sent is decided. Calls `onStopped` in
   * the moment in which that is so: a command that is sent later begins a session of its own.
   */
  async drive(begin: () => Promise<RunState>, onStopped: (state: RunState) => void): Promise<RunState> {
    const { acknowledgements } = this.#run
    let state = await this.#unlessAborted(begin())
    while (acknowledgements.hasPending && state.phase !== 'done' && !this.isDraining) {
      // Until then the ledger names this process as the driver, and the command would be left to that one.
      await this.#tellLedger()
      this.#loop = new RunLoop(this.#run.drive)
      state = await this.#unlessAborted(this.awaitDecisions())
    }
    // In the inbox or not: no sender waits for an answer that this process will not give.
    if (this.isDraining) await acknowledgements.allDelivered()
    onStopped(state)
    return state
  }

  /**
   * Starts the run with what `prepare` answers. Where another run takes the place in the session that it names, and
   * `again` says so, it is asked anew.
   */
  async start({ prepare, again, asked }: BegunRun): Promise<RunState> {
    const { runId, parts } = this.#run
    for (;;) {
      const command = await prepare()
      try {
        return await this.#loop.start(command, asked?.())
      } catch (error) {
        if (!again || !isPlaceTaken(error) || (await parts.ledger.head(runId))) throw error
        this.#loop = new RunLoop(this.#run.drive)
      }
    }
  }

  /** Makes the run of the first events of another, and drives it from there. */
  async fork(prepare: () => Promise<readonly RuntimeEvent[]>): Promise<RunState> {
    return await this.#loop.fork(await prepare())
  }

  /** Takes the run over; with `takeOver`, its child runs too. */
  resume(takeOver: boolean): Promise<RunState> {
    return this.#loop.resume(takeOver)
  }

  /** Leaves the commands that were sent to the process that drives the run; where none does, this one takes it over. */
  async awaitDecisions(): Promise<RunState> {
    const { acknowledgements, left } = this.#run
    await acknowledgements.allDelivered()
    const state = (await left.decidedElsewhere(this)) ?? (await this.#loop.resume(false))
    // The run may have ended by what it obeyed last, before this process came to take it over.
    if (!this.isWriter) await left.acknowledgeTaken()
    return state
  }

  /** Releases the run: tells the ledger at once, before any caller has the result. */
  release(): Promise<void> {
    return (this.#released ??= this.#tellLedger())
  }

  async #tellLedger(): Promise<void> {
    const { runId, parts } = this.#run
    try {
      if (this.#loop.isWriter) await parts.ledger.release?.(runId, this.#loop.epoch)
    } catch (error) {
      parts.host.report(error, `The ledger failed while run ${runId} was released`)
    }
  }

  #unlessAborted(driving: Promise<RunState>): Promise<RunState> {
    return Promise.race([driving, this.#aborted.promise])
  }
}

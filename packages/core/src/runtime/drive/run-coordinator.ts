import { firstValueFrom, Subject } from 'rxjs'
import type { RunState } from '../../machine/state/state.ts'
import type { OutsideCommand, StartCommand } from '../../vocabulary/events/command.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import { runIdOfCall, type RunId } from '../../vocabulary/values/ids.ts'
import { deepFreeze } from '../../vocabulary/values/deep-freeze.ts'
import { unlessEnded } from '../../memory-ledger/append-rules.ts'
import { changedInputRefusal } from './changed-input-check.ts'
import { answerTimeoutMs, ledgerSilent, refusedAtEnd, refusedByDrain } from '../commands/closed-refusals.ts'
import { sentBefore } from '../commands/once-conflict.ts'
import { FailureNotice } from './failure-notice.ts'
import { untilStopped } from '../reading/follow-run.ts'
import { forwardedCommand } from './forwarded-command.ts'
import type { CoordinatorOptions } from './coordinator-options.ts'
import { stateOf } from '../reading/load-state.ts'
import { CommandAcknowledgements, type CommandAcknowledgement } from '../commands/command-acknowledgement.ts'
import {
  awaitDecisionElsewhere,
  acknowledgeTaken,
  type LeftCommand,
  type LeftCommands,
} from '../commands/left-commands.ts'
import { StoppedElsewhere } from '../reading/stopped-elsewhere.ts'
import { PendingWork } from './pending-work.ts'
import { RunLoop } from './run-loop.ts'
import { wholeResult, type RunResult } from '../reading/run-result.ts'
import { isPlaceTaken, unlessSessionBusy } from '../session/session.ts'

/** Everything that this process holds of one run, shared by all its handles: at most one drive session, one event stream. */
export class RunCoordinator {
  readonly runId: RunId
  readonly live: Subject<RuntimeEvent> = new Subject<RuntimeEvent>()
  readonly notice: FailureNotice
  /** How the run continues in other processes after it stopped here. */
  readonly elsewhere: StoppedElsewhere
  readonly #options: CoordinatorOptions
  readonly #acknowledgements = new CommandAcknowledgements()
  /** Commands that may be decided by another process, by their keys. */
  readonly #sent = new Map<string, LeftCommand>()
  #loop: RunLoop | undefined
  #created: Promise<unknown> = Promise.resolve()
  /** The result of the drive session under way, or of the last one. */
  #driveSession: Promise<RunResult> | undefined
  /** Commands on their way: about calls of child runs, until what became of them has come up, or being checked. */
  readonly #forwards = new PendingWork()
  #reported: Promise<void> = Promise.resolve()
  #done = false
  /** What the application gave the run. */
  #context: unknown
  /** Ends the drive session under way, whatever it waits for. */
  #abortDrive: (error: unknown) => void = () => {}
  /** The failure after which this coordinator drives no more. */
  #failure: { readonly error: unknown } | undefined

  constructor(options: CoordinatorOptions) {
    this.#options = options
    this.runId = options.runId
    this.elsewhere = new StoppedElsewhere(options.runId, options, (event) => this.live.next(event))
    this.notice = new FailureNotice(options.runId, options.host.report)
  }

  /** Like `whenStopped`, for a caller that handles a failure. */
  get result(): Promise<RunResult> {
    this.notice.markObserved()
    return this.whenStopped
  }

  /** Takes what the application gives the run from here on; a drive session under way keeps the context that it has. */
  setContext(context: unknown): void {
    if (context !== undefined) this.#context = context
  }

  /** The result of the drive session under way, or of the last one. */
  get whenStopped(): Promise<RunResult> {
    if (!this.#forwards.isEmpty) return this.#afterForwards()
    const refreshed = this.#loop ? undefined : this.elsewhere.refresh()
    if (refreshed && this.#driveSession) return this.#stoppedElsewhere(refreshed, this.#driveSession)
    return (this.#driveSession ??= this.#ensureDriven(false))
  }

  /** Another process may have continued the run since it stopped here: then the result is of its last event. */
  async #stoppedElsewhere(refreshed: Promise<RunState>, session: Promise<RunResult>): Promise<RunResult> {
    const state = await refreshed
    const result = await (this.#driveSession ?? session)
    if (this.#loop || state.seq <= result.seq) return result
    this.#done = state.phase === 'done'
    return await this.#resultOf(state)
  }

  /** Resolves when the end of the run was reported to its parent. */
  get reported(): Promise<void> {
    return this.#reported
  }

  /**
   * Starts the run with what `prepare` answers. Where another run takes the place in the session that it names, and
   * `again` says so, it is asked anew.
   */
  start(prepare: () => Promise<StartCommand>, again = false): void {
    this.#awaitFirstEvent()
    void this.#beginDrive(async (loop) => {
      for (;;) {
        const command = await prepare()
        try {
          return await (this.#loop ?? loop).start(command)
        } catch (error) {
          const { ledger } = this.#options
          if (!again || !isPlaceTaken(error) || (await ledger.head(this.runId))) throw error
          this.#loop = this.#newLoop()
        }
      }
    })
  }

  /** Whether the run has begun: `false` where another run of its session is under way, so that it has to be joined. */
  async hasBegun(): Promise<boolean> {
    this.notice.markObserved()
    return await unlessSessionBusy(this.#created)
  }

  /** Makes the run of the first events of another, and drives it from there. */
  fork(prepare: () => Promise<readonly RuntimeEvent[]>): void {
    this.#awaitFirstEvent()
    void this.#beginDrive(async (loop) => await loop.fork(await prepare()))
  }

  /** Commands wait until the run is there. */
  #awaitFirstEvent(): void {
    this.#created = firstValueFrom(this.live)
    this.#created.catch(() => {})
  }

  /** A new id for input, unique for ever. */
  newInputId(): string {
    return this.#options.newKey()
  }

  /**
   * Drives the run until it stops; joins the drive session under way. With `takeOver`, it takes child runs over too, since
   * no other process is taken to drive them.
   */
  resume({ takeOver }: { readonly takeOver: boolean }): Promise<RunResult> {
    const result = this.#ensureDriven(takeOver)
    this.notice.markObserved()
    return result
  }

  /** Does the same without waiting for the result. */
  drive({ takeOver }: { readonly takeOver: boolean }): void {
    void this.#ensureDriven(takeOver)
  }

  #ensureDriven(takeOver: boolean): Promise<RunResult> {
    if (this.#loop && this.#driveSession) return this.#driveSession
    return this.#beginDrive((loop) => loop.resume(takeOver))
  }

  /** Waits until the run stops in another process, which drives it. Joins a drive session of this process. */
  follow(from: RunState, quietMs: number | undefined): void {
    if (this.#loop) return
    const stopped = untilStopped(from, { ...this.#options, quietMs }, (event) => this.live.next(event))
    this.#driveSession = stopped.then((state) => {
      this.elsewhere.stoppedAt(state)
      return this.#resultOf(state)
    })
    stopped.catch((error: unknown) => this.#onFailure(error))
  }

  /** Puts a command into the inbox of the run, and does not wait for its acknowledgement. */
  async enqueue(command: OutsideCommand, key: string): Promise<void> {
    const { ledger, host } = this.#options
    await ledger.put(this.runId, { key, command, at: host.clock.now() })
  }

  /** Whether the run is being driven here. */
  get driving(): boolean {
    return this.#loop !== undefined
  }

  /** Sends a command by way of the ledger's inbox, under a new key unless given, and sees to it that a process decides it. */
  send(given: OutsideCommand, key: string = this.#options.newKey()): Promise<CommandAcknowledgement> {
    const command = deepFreeze(given)
    if (this.#done) return Promise.resolve({ accepted: false, ...refusedAtEnd(this.runId) })
    if (this.#options.isDrained()) return Promise.resolve({ accepted: false, ...refusedByDrain(this.runId) })
    const targetRunId = 'toolCallId' in command ? runIdOfCall(command.toolCallId) : undefined
    if (targetRunId !== undefined && targetRunId !== this.runId) return this.#forward(command, targetRunId)
    return command.type === 'approve' && command.input
      ? this.#sendChecked(command, key)
      : this.#deliver(command, key)
  }

  /** Approves a call with another input, once that is known to run: else its sender is refused with the reason, and the model reads nothing of it. */
  #sendChecked(command: OutsideCommand, key: string): Promise<CommandAcknowledgement> {
    const acknowledgement = this.#created
      .then(() => changedInputRefusal(command, this.runId, { ...this.#options, context: this.#context }))
      .then((fault) => (fault ? { accepted: false as const, ...fault } : this.#deliver(command, key)))
    this.#forwards.add(acknowledgement)
    return acknowledgement
  }

  #deliver(command: OutsideCommand, key: string): Promise<CommandAcknowledgement> {
    // A coordinator whose writer failed takes no run over again: resume makes a new handle for that.
    if (this.#failure) return Promise.reject(this.#failure.error)
    const { ledger, host } = this.#options
    const acknowledgement = this.#acknowledgements.send(key, async () => {
      await this.#created
      if (!this.#loop?.isWriter)
        this.#sent.set(key, { command, afterSeq: (await ledger.head(this.runId))?.seq ?? 0 })
      const fresh = await unlessEnded(ledger.put(this.runId, { key, command, at: host.clock.now() }))
      if (fresh === undefined) return this.#acknowledgements.acknowledge(key, refusedAtEnd(this.runId))
      if (!fresh) throw sentBefore(this.runId, key)
      this.#loop?.wake()
    })
    if (this.#loop === undefined) void this.#beginDrive((loop) => this.#awaitDecisions(loop))
    return acknowledgement.finally(() => this.#sent.delete(key))
  }

  /** A command about a call of a child run goes to that run; what becomes of it comes up to this one. */
  #forward(command: OutsideCommand, targetRunId: RunId): Promise<CommandAcknowledgement> {
    const sent = forwardedCommand(command, targetRunId, {
      ...this.#options,
      ...{ created: this.#created, context: this.#context },
    })
    this.#forwards.add(sent.followed)
    return sent.acknowledgement
  }

  /** The child's end may have taken this run further. */
  async #afterForwards(): Promise<RunResult> {
    await this.#forwards.ended()
    if (this.#loop && this.#driveSession) return await this.#driveSession
    const state = await stateOf(this.#options.ledger, this.runId)
    return state ? await this.#resultOf(state) : await this.resume({ takeOver: false })
  }

  #resultOf(state: RunState): Promise<RunResult> {
    const { ledger, findAgent } = this.#options
    return wholeResult(state, ledger, findAgent(state.agent))
  }

  /** Lets what is in flight end, begins nothing, and returns the result of the run as it stopped. */
  async drain(graceMs: number): Promise<RunResult> {
    this.#loop?.drain(graceMs)
    const silent = ledgerSilent(this.runId)
    const stopTimer = this.#options.host.clock.schedule(graceMs + answerTimeoutMs, () =>
      this.#abortDrive(silent),
    )
    return await this.whenStopped.finally(stopTimer)
  }

  #beginDrive(drive: (loop: RunLoop) => Promise<RunState>): Promise<RunResult> {
    const loop = this.#newLoop()
    this.#loop = loop
    this.elsewhere.stoppedAt(undefined)
    this.notice.begin()
    this.#options.onDriving(true)
    const result = this.#driveUntilStopped(drive, loop)
    // A failure that no caller awaits is reported by the notice.
    result.catch(() => {})
    this.#driveSession = result
    return result
  }

  async #driveUntilStopped(drive: (loop: RunLoop) => Promise<RunState>, loop: RunLoop): Promise<RunResult> {
    let state: RunState
    let released: Promise<void>
    try {
      const givenUp = new Promise<never>((_resolve, reject) => {
        this.#abortDrive = reject
      })
      state = await Promise.race([drive(loop), givenUp])
      // Nothing is awaited between this check and the release: a later command begins a drive session of its own.
      while (this.#acknowledgements.hasPending && state.phase !== 'done' && !this.#loop?.isDraining) {
        state = await Promise.race([this.#awaitDecisions((this.#loop = this.#newLoop())), givenUp])
      }
      // In the inbox or not: no sender waits for an answer that this process will not give.
      if (this.#loop?.isDraining) await this.#acknowledgements.allDelivered()
      released = this.#onStopped(state)
    } catch (error) {
      await this.#onFailure(error)
      throw error
    }
    if (this.#done) {
      this.#reported = this.#options.onEnd(state, this.#context)
      const what = `The parent of run ${this.runId} was not told of its end`
      this.#reported.catch((error: unknown) => this.#options.host.report(error, what))
    }
    await released
    return await this.#resultOf(state)
  }

  /** Releases the run that has stopped, and refuses the commands that come too late for it. */
  #onStopped(state: RunState): Promise<void> {
    const draining = this.#loop?.isDraining ?? false
    this.#done = state.phase === 'done'
    this.elsewhere.stoppedAt(this.#done || draining ? undefined : state)
    if (this.#done) this.#acknowledgements.refuseAll(refusedAtEnd(this.runId))
    else if (draining) this.#acknowledgements.refuseAll(refusedByDrain(this.runId))
    return this.#release()
  }

  /** Leaves the commands that were sent to the process that drives the run; where none does, this one takes it over. */
  async #awaitDecisions(loop: RunLoop): Promise<RunState> {
    await this.#acknowledgements.allDelivered()
    const { runId, ledger, host } = this.#options
    const commands: LeftCommands = {
      ...{ runId, ledger, clock: host.clock, acknowledgements: this.#acknowledgements, sent: this.#sent },
      onEvent: (event) => this.live.next(event),
      isDrained: () => this.#options.isDrained() || loop.isDraining,
    }
    const state = (await awaitDecisionElsewhere(commands)) ?? (await loop.resume(false))
    // The run may have ended by what it obeyed last, before this process came to take it over.
    if (!loop.isWriter) await acknowledgeTaken(commands)
    return state
  }

  /** This coordinator drives no more, and rejects all who wait for it. */
  async #onFailure(error: unknown): Promise<void> {
    this.#failure = { error }
    const released = this.#loop && this.#release()
    this.#options.onFailure()
    if (this.#acknowledgements.hasPending) this.notice.markObserved()
    this.#acknowledgements.fail(error)
    this.notice.onFailure(error, () => this.live.error(error))
    await released
  }

  /** Ends the drive session: tells the ledger at once, before any caller has the result. */
  async #release(): Promise<void> {
    const { ledger, host, onDriving } = this.#options
    const { epoch, isWriter = false } = this.#loop ?? {}
    this.#loop = undefined
    onDriving(false)
    try {
      if (isWriter) await ledger.release?.(this.runId, epoch)
    } catch (error) {
      host.report(error, `The ledger failed while run ${this.runId} was released`)
    }
  }

  #newLoop(): RunLoop {
    const { runId, ledger, host, findAgent, onDrift, children } = this.#options
    return new RunLoop({
      ...{ runId, ledger, host, findAgent, onDrift, context: this.#context },
      children: children(this.#context),
      ...{ acknowledgements: this.#acknowledgements, live: this.live },
    })
  }
}

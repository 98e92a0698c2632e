import { firstValueFrom, Subject } from 'rxjs'
import type { RunState } from '../../machine/state/state.ts'
import type { OutsideCommand, StartCommand } from '../../vocabulary/events/command.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import { runIdOfCall, type RunId } from '../../vocabulary/values/ids.ts'
import { deepFreeze } from '../../vocabulary/values/deep-freeze.ts'
import { unlessEnded } from '../../memory-ledger/append-rules.ts'
import { changedInputRefusal } from './changed-input-check.ts'
import { ledgerSilent, refusedAtEnd, refusedByDrain } from '../commands/closed-refusals.ts'
import { sentBefore } from '../commands/once-conflict.ts'
import { FailureNotice } from './failure-notice.ts'
import { restOf } from '../reading/follow-run.ts'
import { forwardedCommand } from './forwarded-command.ts'
import type { HubOptions } from './coordinator-options.ts'
import { stateOf } from '../reading/load-state.ts'
import { Receipts, type CommandReceipt } from '../commands/command-acknowledgement.ts'
import {
  decidedElsewhere,
  settleTaken,
  type LeftCommand,
  type LeftCommands,
} from '../commands/left-commands.ts'
import { RestElsewhere } from '../reading/stopped-elsewhere.ts'
import { PendingWork } from './pending-work.ts'
import { RunLoop } from './run-loop.ts'
import { wholeResult, type RunResult } from '../reading/run-result.ts'
import { isPlaceTaken, unlessSessionBusy } from '../session/session.ts'

/** How long a drain waits for the ledger behind the grace time, in milliseconds. */
const answerMsMax = 5_000

/** Everything that this process holds of one run, shared by all its handles: at most one live driver, one event stream. */
export class RunHub {
  readonly runId: RunId
  readonly live: Subject<RuntimeEvent> = new Subject<RuntimeEvent>()
  readonly notice: FailureNotice
  /** What other processes make of the run while it rests here. */
  readonly elsewhere: RestElsewhere
  readonly #options: HubOptions
  readonly #receipts = new Receipts()
  /** Commands that may be decided by another process, by their keys. */
  readonly #sent = new Map<string, LeftCommand>()
  #loop: RunLoop | undefined
  #existing: Promise<unknown> = Promise.resolve()
  /** The stretch that is being driven, or the last one. */
  #stretch: Promise<RunResult> | undefined
  /** Commands on their way: about calls of child runs, until what became of them has come up, or being checked. */
  readonly #forwards = new PendingWork()
  #reported: Promise<void> = Promise.resolve()
  #done = false
  /** What the application gave the run. */
  #context: unknown
  /** Ends the stretch that is being driven, whatever it waits for. */
  #giveUp: (error: unknown) => void = () => {}
  /** Why this hub drives no more. */
  #failure: { readonly error: unknown } | undefined

  constructor(options: HubOptions) {
    this.#options = options
    this.runId = options.runId
    this.elsewhere = new RestElsewhere(options.runId, options, (event) => this.live.next(event))
    this.notice = new FailureNotice(options.runId, options.host.report)
  }

  /** What `rest` answers, for somebody who hears of a failure. */
  get result(): Promise<RunResult> {
    this.notice.heard()
    return this.rest
  }

  /** Takes what the application gives the run from here on; a stretch that is under way keeps what it has. */
  give(context: unknown): void {
    if (context !== undefined) this.#context = context
  }

  /** How the run stands when it rests: of the stretch that is being driven, or the last one. */
  get rest(): Promise<RunResult> {
    if (!this.#forwards.isEmpty) return this.#afterForwards()
    const look = this.#loop ? undefined : this.elsewhere.look()
    if (look && this.#stretch) return this.#restElsewhere(look, this.#stretch)
    return (this.#stretch ??= this.#driveOn(false))
  }

  /** Another process may have taken the run further since it came to rest here: then that one says how it stands. */
  async #restElsewhere(look: Promise<RunState>, stretch: Promise<RunResult>): Promise<RunResult> {
    const state = await look
    const result = await (this.#stretch ?? stretch)
    if (this.#loop || state.seq <= result.seq) return result
    this.#done = state.phase === 'done'
    return await this.#resultOf(state)
  }

  /** Resolves when whoever has to know of the run's end does. */
  get reported(): Promise<void> {
    return this.#reported
  }

  /**
   * Starts the run with what `prepare` answers. Where another run takes the place in the session that it names, and
   * `again` says so, it is asked anew.
   */
  start(prepare: () => Promise<StartCommand>, again = false): void {
    this.#awaitFirst()
    void this.#begin(async (loop) => {
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
  async begun(): Promise<boolean> {
    this.notice.heard()
    return await unlessSessionBusy(this.#existing)
  }

  /** Makes the run of the first events of another, and drives it from there. */
  fork(prepare: () => Promise<readonly RuntimeEvent[]>): void {
    this.#awaitFirst()
    void this.#begin(async (loop) => await loop.fork(await prepare()))
  }

  /** Commands wait until the run is there. */
  #awaitFirst(): void {
    this.#existing = firstValueFrom(this.live)
    this.#existing.catch(() => {})
  }

  /** A name for input, unique for ever. */
  newReceipt(): string {
    return this.#options.newKey()
  }

  /**
   * Drives the run until it rests; joins the driver that is at it already. With `takeOver`, nobody else is taken to
   * drive the runs that work for it.
   */
  resume({ takeOver }: { readonly takeOver: boolean }): Promise<RunResult> {
    const rest = this.#driveOn(takeOver)
    this.notice.heard()
    return rest
  }

  /** The same, for somebody who does not wait. */
  drive({ takeOver }: { readonly takeOver: boolean }): void {
    void this.#driveOn(takeOver)
  }

  #driveOn(takeOver: boolean): Promise<RunResult> {
    if (this.#loop && this.#stretch) return this.#stretch
    return this.#begin((loop) => loop.resume(takeOver))
  }

  /** Waits for the run's rest without driving it: another process does. Joins the driver of this process. */
  follow(from: RunState, quietMs: number | undefined): void {
    if (this.#loop) return
    const rest = restOf(from, { ...this.#options, quietMs }, (event) => this.live.next(event))
    this.#stretch = rest.then((state) => {
      this.elsewhere.rests(state)
      return this.#resultOf(state)
    })
    rest.catch((error: unknown) => this.#fail(error))
  }

  /** Puts a command into the run's inbox for whoever drives it, and does not wait for what becomes of it. */
  async leave(command: OutsideCommand, key: string): Promise<void> {
    const { ledger, host } = this.#options
    await ledger.put(this.runId, { key, command, at: host.clock.now() })
  }

  /** Whether the run is being driven here. */
  get driving(): boolean {
    return this.#loop !== undefined
  }

  /** Sends a command by way of the ledger's inbox, under a new key unless given, and sees to it that a process decides it. */
  send(given: OutsideCommand, key: string = this.#options.newKey()): Promise<CommandReceipt> {
    const command = deepFreeze(given)
    if (this.#done) return Promise.resolve({ accepted: false, ...refusedAtEnd(this.runId) })
    if (this.#options.drained()) return Promise.resolve({ accepted: false, ...refusedByDrain(this.runId) })
    const owner = 'toolCallId' in command ? runIdOfCall(command.toolCallId) : undefined
    if (owner !== undefined && owner !== this.runId) return this.#forward(command, owner)
    return command.type === 'approve' && command.input ? this.#checked(command, key) : this.#put(command, key)
  }

  /** Approves a call with another input, once that is known to run: else whoever gave it hears why, and not the model. */
  #checked(command: OutsideCommand, key: string): Promise<CommandReceipt> {
    const receipt = this.#existing
      .then(() => changedInputRefusal(command, this.runId, { ...this.#options, context: this.#context }))
      .then((fault) => (fault ? { accepted: false as const, ...fault } : this.#put(command, key)))
    this.#forwards.add(receipt)
    return receipt
  }

  #put(command: OutsideCommand, key: string): Promise<CommandReceipt> {
    // Whoever was relieved takes nothing back by itself: that is for a new handle, made by resume.
    if (this.#failure) return Promise.reject(this.#failure.error)
    const { ledger, host } = this.#options
    const receipt = this.#receipts.send(key, async () => {
      await this.#existing
      if (!this.#loop?.held)
        this.#sent.set(key, { command, afterSeq: (await ledger.head(this.runId))?.seq ?? 0 })
      const fresh = await unlessEnded(ledger.put(this.runId, { key, command, at: host.clock.now() }))
      if (fresh === undefined) return this.#receipts.settle(key, refusedAtEnd(this.runId))
      if (!fresh) throw sentBefore(this.runId, key)
      this.#loop?.poke()
    })
    if (this.#loop === undefined) void this.#begin((loop) => this.#decide(loop))
    return receipt.finally(() => this.#sent.delete(key))
  }

  /** A command about a call of a child run goes to that run; what becomes of it comes up to this one. */
  #forward(command: OutsideCommand, owner: RunId): Promise<CommandReceipt> {
    const sent = forwardedCommand(command, owner, {
      ...this.#options,
      ...{ existing: this.#existing, context: this.#context },
    })
    this.#forwards.add(sent.followed)
    return sent.receipt
  }

  /** The child's end may have taken this run further. */
  async #afterForwards(): Promise<RunResult> {
    await this.#forwards.ended()
    if (this.#loop && this.#stretch) return await this.#stretch
    const state = await stateOf(this.#options.ledger, this.runId)
    return state ? await this.#resultOf(state) : await this.resume({ takeOver: false })
  }

  #resultOf(state: RunState): Promise<RunResult> {
    const { ledger, agentNamed } = this.#options
    return wholeResult(state, ledger, agentNamed(state.agent))
  }

  /** Lets what is in flight end, begins nothing, and answers where the run rests. */
  async drain(graceMs: number): Promise<RunResult> {
    this.#loop?.drain(graceMs)
    const silent = ledgerSilent(this.runId, answerMsMax)
    const stopTimer = this.#options.host.clock.schedule(graceMs + answerMsMax, () => this.#giveUp(silent))
    return await this.rest.finally(stopTimer)
  }

  #begin(drive: (loop: RunLoop) => Promise<RunState>): Promise<RunResult> {
    const loop = this.#newLoop()
    this.#loop = loop
    this.elsewhere.rests(undefined)
    this.notice.begin()
    this.#options.onDriving(true)
    const result = this.#driveToRest(drive, loop)
    // Whoever wants the result awaits it; a failure that nobody awaits, the notice sees to.
    result.catch(() => {})
    this.#stretch = result
    return result
  }

  async #driveToRest(drive: (loop: RunLoop) => Promise<RunState>, loop: RunLoop): Promise<RunResult> {
    let state: RunState
    let resting: Promise<void>
    try {
      const givenUp = new Promise<never>((_resolve, reject) => {
        this.#giveUp = reject
      })
      state = await Promise.race([drive(loop), givenUp])
      // Nothing is awaited between this look and the letting go: a command that comes later begins a stretch of its own.
      while (this.#receipts.open && state.phase !== 'done' && !this.#loop?.draining) {
        state = await Promise.race([this.#decide((this.#loop = this.#newLoop())), givenUp])
      }
      // In the inbox or not: no sender waits for an answer that this process will not give.
      if (this.#loop?.draining) await this.#receipts.delivery()
      resting = this.#cameToRest(state)
    } catch (error) {
      await this.#fail(error)
      throw error
    }
    if (this.#done) {
      this.#reported = this.#options.onEnd(state, this.#context)
      const what = `The parent of run ${this.runId} could not be told of its end`
      this.#reported.catch((error: unknown) => this.#options.host.report(error, what))
    }
    await resting
    return await this.#resultOf(state)
  }

  /** Lets the run go where it rests, and refuses the commands that come too late for it. */
  #cameToRest(state: RunState): Promise<void> {
    const draining = this.#loop?.draining ?? false
    this.#done = state.phase === 'done'
    this.elsewhere.rests(this.#done || draining ? undefined : state)
    if (this.#done) this.#receipts.settleAll(refusedAtEnd(this.runId))
    else if (draining) this.#receipts.settleAll(refusedByDrain(this.runId))
    return this.#letGo()
  }

  /** Leaves the commands that were sent to the process that drives the run; where none does, this one takes it over. */
  async #decide(loop: RunLoop): Promise<RunState> {
    await this.#receipts.delivery()
    const { runId, ledger, host } = this.#options
    const commands: LeftCommands = {
      ...{ runId, ledger, clock: host.clock, receipts: this.#receipts, sent: this.#sent },
      hear: (event) => this.live.next(event),
      drained: () => this.#options.drained() || loop.draining,
    }
    const state = (await decidedElsewhere(commands)) ?? (await loop.resume(false))
    // The run may have ended by what it obeyed last, before this process came to take it over.
    if (!loop.held) await settleTaken(commands)
    return state
  }

  /** This hub drives no more, and all who wait are told why. */
  async #fail(error: unknown): Promise<void> {
    this.#failure = { error }
    const resting = this.#loop && this.#letGo()
    this.#options.onFailure()
    if (this.#receipts.open) this.notice.heard()
    this.#receipts.fail(error)
    this.notice.failed(error, () => this.live.error(error))
    await resting
  }

  /** The run is driven here no more: the ledger hears of it at once, and resolves before anybody has the result. */
  async #letGo(): Promise<void> {
    const { ledger, host, onDriving } = this.#options
    const { epoch, held = false } = this.#loop ?? {}
    this.#loop = undefined
    onDriving(false)
    try {
      if (held) await ledger.release?.(this.runId, epoch)
    } catch (error) {
      host.report(error, `The ledger failed while run ${this.runId} came to rest`)
    }
  }

  #newLoop(): RunLoop {
    const { runId, ledger, host, agentNamed, onDrift, children } = this.#options
    return new RunLoop({
      ...{ runId, ledger, host, agentNamed, onDrift, context: this.#context },
      children: children(this.#context),
      ...{ receipts: this.#receipts, live: this.live },
    })
  }
}

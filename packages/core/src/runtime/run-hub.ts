import { Subject } from 'rxjs'
import { LedgerConflictError } from '../errors.ts'
import type { Refusal } from '../machine/decision.ts'
import type { RunState } from '../machine/state.ts'
import type { Host } from '../ports/clock.ts'
import type { Ledger } from '../ports/ledger.ts'
import type { OutsideCommand, StartCommand } from '../vocabulary/command.ts'
import type { RuntimeEvent } from '../vocabulary/event.ts'
import { runIdOfCall, type RunId } from '../vocabulary/ids.ts'
import type { Agent } from './agent.ts'
import type { ChildRuns } from './child-runs.ts'
import { restOf } from './follow-run.ts'
import { stateOf } from './load-state.ts'
import { Receipts, type CommandReceipt } from './receipts.ts'
import { RunLoop } from './run-loop.ts'
import { wholeResult, type RunResult } from './run-result.ts'

/** What a hub needs of its runtime. */
export interface HubOptions {
  readonly runId: RunId
  readonly ledger: Ledger
  readonly host: Host
  readonly agentNamed: (name: string) => Agent<unknown> | undefined
  readonly children: ChildRuns
  /** The hub of another run of the same runtime. */
  readonly hubOf: (runId: RunId) => RunHub
  /** Whether a run works for this one. */
  readonly worksFor: (runId: RunId, root: RunId) => Promise<boolean>
  /** Hears of the run's end. */
  readonly onEnd: (state: RunState) => Promise<void>
  /** Makes keys for inbox entries, unique for ever. */
  readonly newKey: () => string
  readonly onDrift: 'continue' | 'refuse'
  /** Hears when the run begins to be driven here, and when it is not any more. */
  readonly onDriving: (driving: boolean) => void
  /** Whether the runtime takes no run further any more. */
  readonly drained: () => boolean
  /** Called when the run's writer has failed: this hub drives no more. */
  readonly onFailure: () => void
}

/** Everything that this process holds of one run, shared by all its handles: at most one live driver, one event stream. */
export class RunHub {
  readonly runId: RunId
  readonly live: Subject<RuntimeEvent> = new Subject<RuntimeEvent>()
  readonly #options: HubOptions
  readonly #receipts = new Receipts()
  #loop: RunLoop | undefined
  #existing: Promise<unknown> = Promise.resolve()
  /** The stretch that is being driven, or the last one. */
  #stretch: Promise<RunResult> | undefined
  /** Commands about calls of child runs, until what became of them has come up to this run. */
  readonly #forwards = new Set<Promise<unknown>>()
  #reported: Promise<void> = Promise.resolve()
  #done = false
  /** Why this hub drives no more. */
  #failure: { readonly error: unknown } | undefined

  constructor(options: HubOptions) {
    this.#options = options
    this.runId = options.runId
  }

  /** How the run stands when it rests: of the stretch that is being driven, or the last one. */
  get result(): Promise<RunResult> {
    return this.#forwards.size > 0
      ? this.#afterForwards()
      : (this.#stretch ??= this.resume({ takeOver: false }))
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

  /** Makes the run of the first events of another, and drives it from there. */
  fork(prepare: () => Promise<readonly RuntimeEvent[]>): void {
    this.#awaitFirst()
    void this.#begin(async (loop) => await loop.fork(await prepare()))
  }

  /** Commands wait until the run is there. */
  #awaitFirst(): void {
    this.#existing = new Promise((resolve, reject) => {
      const first = this.live.subscribe({
        next: (event) => {
          resolve(event)
          first.unsubscribe()
        },
        error: reject,
      })
    })
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
    if (this.#loop && this.#stretch) return this.#stretch
    return this.#begin((loop) => loop.resume(takeOver))
  }

  /** Waits for the run's rest without driving it: another process does. Joins the driver of this process. */
  follow(from: RunState): void {
    if (this.#loop) return
    const { ledger } = this.#options
    const followed = restOf(ledger, from, (event) => this.live.next(event)).then((state) =>
      this.#resultOf(state),
    )
    followed.catch(() => {})
    this.#stretch = followed
  }

  /** Puts a command into the run's inbox for whoever drives it, and does not wait for what becomes of it. */
  async leave(command: OutsideCommand): Promise<void> {
    const { ledger, host, newKey } = this.#options
    await ledger.put(this.runId, { key: newKey(), command, at: host.clock.now() })
  }

  /** Whether the run is being driven here. */
  get driving(): boolean {
    return this.#loop !== undefined
  }

  /** Sends a command by way of the ledger's inbox, and sees to it that somebody decides about it. */
  send(command: OutsideCommand): Promise<CommandReceipt> {
    if (this.#done) {
      const message = `Run ${this.runId} is finished; nothing can be asked of it any more.`
      return Promise.resolve({ accepted: false, code: 'run_finished', message })
    }
    if (this.#options.drained()) return Promise.resolve({ accepted: false, ...this.#drained() })
    const owner = 'toolCallId' in command ? runIdOfCall(command.toolCallId) : undefined
    if (owner !== undefined && owner !== this.runId) return this.#forward(command, owner)
    // Whoever was relieved takes nothing back by itself: that is for a new handle, made by resume.
    if (this.#failure) return Promise.reject(this.#failure.error)
    const { ledger, host, newKey } = this.#options
    const key = newKey()
    const receipt = this.#receipts.send(key, async () => {
      await this.#existing
      const fresh = await ledger.put(this.runId, { key, command, at: host.clock.now() })
      if (!fresh)
        throw new LedgerConflictError(
          'unique',
          `Run ${this.runId} has had a command of the key ${key} before; send it again.`,
        )
      this.#loop?.poke()
    })
    if (this.#loop === undefined) {
      void this.#begin(async (loop) => {
        await this.#receipts.delivery()
        return await loop.resume(false)
      })
    }
    return receipt
  }

  /** A command about a call of a child run goes to that run; what becomes of it comes up to this one. */
  #forward(command: OutsideCommand, owner: RunId): Promise<CommandReceipt> {
    const { hubOf, worksFor } = this.#options
    const child = hubOf(owner)
    const receipt = (async (): Promise<CommandReceipt> => {
      await this.#existing
      if (await worksFor(owner, this.runId)) return await child.send(command)
      const message = `Run ${this.runId} has no open tool call of that id, nor has a run that works for it; show the run to see which wait.`
      return { accepted: false, code: 'unknown_call', message }
    })()
    const forward = (async (): Promise<void> => {
      if (!(await receipt).accepted) return
      await child.result
      await child.reported
    })()
    const done: Promise<void> = forward.catch(() => {}).finally(() => this.#forwards.delete(done))
    this.#forwards.add(done)
    return receipt
  }

  /** The child's end may have taken this run further. */
  async #afterForwards(): Promise<RunResult> {
    while (this.#forwards.size > 0) await Promise.all(this.#forwards)
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
    return await this.result
  }

  #begin(drive: (loop: RunLoop) => Promise<RunState>): Promise<RunResult> {
    const loop = this.#newLoop()
    this.#loop = loop
    this.#options.onDriving(true)
    const result = this.#driveToRest(drive, loop)
    // Whoever wants the result awaits it; a failure that nobody awaits is on the event stream too.
    result.catch(() => {})
    this.#stretch = result
    return result
  }

  async #driveToRest(drive: (loop: RunLoop) => Promise<RunState>, loop: RunLoop): Promise<RunResult> {
    let state: RunState
    let resting: Promise<void>
    try {
      state = await drive(loop)
      // A command may have come in while the last driver came to rest.
      while (this.#receipts.open && state.phase !== 'done' && !this.#loop?.draining) {
        await this.#receipts.delivery()
        this.#loop = this.#newLoop()
        state = await this.#loop.resume(false)
      }
      // In the inbox or not: nobody waits for an answer that this process will not give.
      if (this.#loop?.draining) await this.#receipts.delivery()
      this.#done = state.phase === 'done'
      const message = `Run ${this.runId} is finished; nothing can be asked of it any more.`
      if (this.#done) this.#receipts.settleAll({ code: 'run_finished', message })
      else if (this.#loop?.draining) this.#receipts.settleAll(this.#drained())
      resting = this.#letGo()
    } catch (error) {
      this.#failure = { error }
      resting = this.#letGo()
      this.#options.onFailure()
      this.#receipts.fail(error)
      this.live.error(error)
      await resting
      throw error
    }
    if (this.#done) {
      this.#reported = this.#options.onEnd(state)
      this.#reported.catch(this.#options.host.report)
    }
    await resting
    return await this.#resultOf(state)
  }

  /** The run is driven here no more: the ledger hears of it at once, and resolves before anybody has the result. */
  async #letGo(): Promise<void> {
    const { ledger, host, onDriving } = this.#options
    this.#loop = undefined
    onDriving(false)
    try {
      await ledger.rest?.(this.runId)
    } catch (error) {
      host.report(error)
    }
  }

  #drained(): Refusal {
    const message = `The runtime that holds this handle of run ${this.runId} was drained and takes no run further. Send the command from another process; one that is in the inbox already, whoever drives the run next decides about.`
    return { code: 'drained', message }
  }

  #newLoop(): RunLoop {
    const { runId, ledger, host, agentNamed, onDrift, children } = this.#options
    return new RunLoop({
      ...{ runId, ledger, host, agentNamed, onDrift, children },
      ...{ receipts: this.#receipts, live: this.live },
    })
  }
}

function isPlaceTaken(error: unknown): boolean {
  return error instanceof LedgerConflictError && error.kind === 'unique'
}

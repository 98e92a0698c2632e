import type { Subject } from 'rxjs'
import { RunNotFoundError } from '../../vocabulary/errors.ts'
import { advance, type AdvanceOptions, type EventBatch, type WaitingAction } from '../../machine/advance.ts'
import type { Stamp } from '../../machine/state/decision.ts'
import { audit } from '../../machine/laws/invariants.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { Cancel, Host } from '../../ports/clock.ts'
import type { InboxEntry, Ledger } from '../../ports/ledger.ts'
import { childRunIdOf } from '../../vocabulary/values/child-run-id.ts'
import type { Command, OutsideCommand, StartCommand } from '../../vocabulary/events/command.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import { runIdOfCall, type RunId, type ToolCallId } from '../../vocabulary/values/ids.ts'
import { outsideCommandSchema } from '../../vocabulary/events/command-schema.ts'
import { faultOf } from '../../vocabulary/values/schema.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import { isUnreadInbox } from '../../memory-ledger/append-rules.ts'
import { changedInputFault } from './changed-input-check.ts'
import { settleCommandOf, type ChildRuns } from '../children/child-runs.ts'
import { Effects } from '../effects/effects.ts'
import { durabilityOf } from './durability.ts'
import { Mailbox } from './mailbox.ts'
import { postEndedChildren } from '../children/awaited-children.ts'
import type { CommandAcknowledgements } from '../commands/command-acknowledgement.ts'
import { recordedResults } from '../fork/recorded-results.ts'
import { steadyClock, type SteadyClock } from './steady-clock.ts'
import {
  takenElsewhere,
  drivingAgent,
  drivingRules,
  isBareTakeOver,
  overtaken,
  requireLast,
  requireDrivable,
  takeOverOf,
  type Driver,
} from './taking-over.ts'

/** What a run is driven with. */
export interface Drive extends Driver {
  readonly ledger: Ledger
  readonly host: Host
  readonly acknowledgements: CommandAcknowledgements
  /** Publishes every event once it is appended. */
  readonly live: Subject<RuntimeEvent>
  readonly children: ChildRuns
}

/** A message that has arrived; `key` names it in the ledger's inbox, where it came from there. */
interface Item {
  readonly message: Command | Signal
  readonly key?: string
}

/**
 * THE RUN LOOP: the only writer of a run. Takes what has arrived, lets the machine decide, appends, folds, publishes, then
 * starts what is required: always in this order. Drives until the run stops, and decides nothing itself.
 */
export class RunLoop {
  readonly #drive: Drive
  readonly #clock: SteadyClock
  readonly #mailbox = new Mailbox<Item>()
  readonly #seen = new Set<string>()
  #consumed: string[] = []
  /** Of the writer that this loop is. */
  epoch = 1
  /** Whether this loop is, or was, the writer of the run. */
  isWriter = false
  #state: RunState | undefined
  #inboxChanged = true
  #timer: Cancel | undefined
  /** When what is in flight is given up, once the loop is being drained. */
  #drainUntil: number | undefined
  #takesOver = false
  /** The take-over, until it is on record. */
  #takeOver: Command | undefined
  /** The take-over is not recorded yet: nothing has followed from it. */
  #isTakeOverPending = false

  constructor(drive: Drive) {
    this.#drive = drive
    this.#clock = steadyClock(drive.host.clock)
  }

  /** Reads the inbox again, soon. */
  wake(): void {
    this.#inboxChanged = true
    this.#mailbox.wake()
  }

  /** Begins nothing more, and stops when what is in flight has ended, or after the grace time. */
  drain(graceMs: number): void {
    this.#drainUntil ??= this.#clock.now() + graceMs
    this.#mailbox.wake()
  }

  get isDraining(): boolean {
    return this.#drainUntil !== undefined
  }

  /** Starts a run that does not exist yet, and drives it. Returns the state in which it stops. */
  async start(command: StartCommand): Promise<RunState> {
    this.isWriter = true
    this.#mailbox.post({ message: command })
    return await this.#run()
  }

  /** Makes a fork of its first events, all at once, and drives it. Returns the state in which it stops. */
  async fork(events: readonly RuntimeEvent[]): Promise<RunState> {
    const { ledger, runId } = this.#drive
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'barrier' })
    return await this.resume(false)
  }

  /**
   * Takes a run over. It is read first: a run that is done, or that this process cannot drive, is left as it is.
   * Then the epoch is raised, so that no other writer can append, and what came in between is read after it. With
   * `takeOver`, its child runs are taken over with it.
   */
  async resume(takeOver: boolean): Promise<RunState> {
    this.#takesOver = takeOver
    const { ledger, runId } = this.#drive
    const found = await this.#load()
    if (found.phase === 'done') return found
    requireDrivable(found, this.#drive)
    this.epoch = (await ledger.acquire(runId)).epoch
    this.isWriter = true
    const state = await this.#load()
    if (state.epoch > this.epoch) throw overtaken(runId, state.epoch)
    if (state.phase === 'done') return state
    this.#takeOver = takeOverOf(state, this.#drive)
    return await this.#run()
  }

  /** Reads what is in the ledger and not yet in the state. Publishes it, since another process may have appended it. */
  async #load(): Promise<RunState> {
    const { ledger, runId, live } = this.#drive
    for await (const event of ledger.read(runId, { fromSeq: (this.#state?.seq ?? 0) + 1 })) {
      this.#state = audit(this.#state, event)
      this.#clock.atLeast(event.at)
      live.next(event)
    }
    if (this.#state === undefined) throw new RunNotFoundError(runId)
    return this.#state
  }

  async #run(): Promise<RunState> {
    const { runId, ledger, host, children, context } = this.#drive
    const results = this.#state && (await recordedResults(ledger, this.#state))
    const effects = new Effects({
      ...{ children, results, context, host: { ...host, clock: this.#clock } },
      findAgent: (name) => drivingAgent(name, this.#drive),
      post: (signal) => this.#mailbox.post({ message: signal }),
    })
    const rulesOf = drivingRules(this.#drive)
    const hints = ledger.changes(runId).subscribe({
      next: () => this.wake(),
      error: (error: unknown) =>
        host.report(error, `The ledger stopped telling what comes into the inbox of run ${runId}`),
    })
    try {
      for (;;) {
        if (this.#inboxChanged && this.#state) await this.#readInbox()
        const draining = this.isDraining && this.#state !== undefined
        const batch = await this.#advance({ rulesOf, draining })
        if (batch === undefined) continue
        const { action, state } = batch
        effects.follow(state, { draining })
        const stops = await (draining ? this.#isDrained(effects.isBusy(state)) : this.#stopsAfter(action))
        if (stops) return state
      }
    } finally {
      hints.unsubscribe()
      this.#timer?.()
      effects.stopAll()
    }
  }

  /** Waits as the action says; returns whether the run has stopped instead. */
  async #stopsAfter(action: WaitingAction): Promise<boolean> {
    if (action.kind === 'finished') return true
    if (action.kind === 'suspend') return await this.#mayStop()
    await this.#awaitArrival(action.wakeAt)
    return false
  }

  /** Waits for what is in flight, as long as there is time for it. */
  async #isDrained(busy: boolean): Promise<boolean> {
    if (!busy || this.#clock.now() >= (this.#drainUntil ?? 0)) return true
    await this.#awaitArrival(this.#drainUntil)
    return false
  }

  /** Decides about everything that has arrived, appends what follows, and only then publishes it. */
  async #advance(options: Pick<AdvanceOptions, 'rulesOf' | 'draining'>): Promise<EventBatch | undefined> {
    const { runId, live, acknowledgements } = this.#drive
    const takeOver = this.#takeOver ? [{ message: this.#takeOver }] : []
    const items: readonly Item[] = [...takeOver, ...this.#mailbox.drain()]
    const messages = items.map(({ message }) => message)
    const writer = { runId, epoch: this.epoch }
    const keys = items.map(({ key }) => key)
    const batch = advance(this.#state, messages, { ...options, keys, writer, stamp: () => this.#stamp() })
    const consumed = [...this.#consumed, ...items.flatMap(({ key }) => (key === undefined ? [] : [key]))]
    // What was found in the inbox is taken out of it, whatever it says; of what comes later, only what is obeyed.
    const isUnchanged =
      isBareTakeOver(this.#state, batch) && (this.#isTakeOverPending || consumed.length === 0)
    this.#isTakeOverPending = isUnchanged
    if (batch.events.length > 0 && !isUnchanged) {
      if (!(await this.#append(batch.events, consumed))) return this.#redecide(items)
      this.#takeOver = undefined
      this.#state = batch.state
      for (const event of batch.events) live.next(event)
    } else if (consumed.length > 0) await this.#consume(consumed)
    items.forEach(({ key }, index) => {
      if (key !== undefined) acknowledgements.acknowledge(key, batch.refusals[index])
    })
    return { ...batch, state: this.#state ?? batch.state }
  }

  /** Returns `false` for the end of a run whose inbox holds unread entries. */
  async #append(events: readonly RuntimeEvent[], consumed: readonly string[]): Promise<boolean> {
    const { runId, ledger } = this.#drive
    const expected = { expectedSeq: this.#state?.seq ?? 0, epoch: this.epoch }
    try {
      await ledger.append(runId, expected, events, {
        durability: durabilityOf(events),
        consumedInboxKeys: consumed,
      })
    } catch (error) {
      if (isUnreadInbox(error)) return false
      throw error
    }
    this.#consumed = []
    return true
  }

  /** What was refused leaves the inbox at once: its sender may wait for that in another process. */
  async #consume(consumed: readonly string[]): Promise<void> {
    this.#consumed = [...consumed]
    if (this.#state) await this.#append([], consumed)
  }

  /** The batch would end the run, and a command came in meanwhile: decides again, with that command. */
  #redecide(items: readonly Item[]): undefined {
    this.#mailbox.putBack(items.filter(({ message }) => message !== this.#takeOver))
    this.#inboxChanged = true
  }

  async #readInbox(): Promise<void> {
    this.#inboxChanged = false
    const { ledger, runId, acknowledgements } = this.#drive
    const delivered = acknowledgements.deliveredKeys
    const entries = await ledger.inbox(runId)
    const there = new Set(entries.map(({ key }) => key))
    const lost = delivered.filter((key) => !there.has(key) && !this.#seen.has(key))
    if (lost.length > 0) await this.#rejectLost(lost)
    for (const { key, command, at } of entries) {
      if (this.#seen.has(key)) continue
      this.#seen.add(key)
      const fault = faultOf(outsideCommandSchema, command)
      if (fault) this.#refuseMalformed(key, fault)
      else await this.#accept({ key, command, at })
    }
  }

  /** A command about a call of a child run is for the child run to decide. */
  async #accept(entry: InboxEntry): Promise<void> {
    const { key, command } = entry
    const targetRunId = 'toolCallId' in command ? runIdOfCall(command.toolCallId) : undefined
    if (targetRunId !== undefined && targetRunId !== this.#drive.runId)
      return await this.#forward(entry, targetRunId)
    // Only what has to be asked about consumed a turn of the queue: a cancel stops the run at once.
    if (command.type === 'approve' && command.input && (await this.#refusesInput(entry))) return
    const message = command.type === 'settle' && command.child ? await this.#settlementOf(command) : command
    if (message) return this.#mailbox.post({ message, key })
    const what = 'the child run has not ended; its own ledger says what it used'
    this.#refuseMalformed(key, { path: 'child', what })
  }

  /** What a child run used is read from its own events, whatever a command says of it. */
  async #settlementOf({ toolCallId }: { readonly toolCallId: string }): Promise<OutsideCommand | undefined> {
    const { runId, children } = this.#drive
    const ending = await children.recordedEnding(childRunIdOf(runId, toolCallId as ToolCallId))
    return ending && settleCommandOf(toolCallId, ending)
  }

  /** Input that an approver gives in the place of the model's is tried by the tool: the sender may not have had it. */
  async #refusesInput({ key, command }: InboxEntry): Promise<boolean> {
    const { findAgent, context, acknowledgements } = this.#drive
    const by = { agent: this.#state && findAgent(this.#state.agent), clock: this.#clock, context }
    const fault = this.#state && (await changedInputFault(command, this.#state, by))
    if (fault) this.#consumed.push(key)
    if (fault) acknowledgements.acknowledge(key, fault)
    return fault !== undefined
  }

  async #forward(entry: InboxEntry, targetRunId: RunId): Promise<void> {
    const { runId, children, acknowledgements } = this.#drive
    this.#consumed.push(entry.key)
    if (await children.forward(entry, targetRunId, runId))
      return acknowledgements.acknowledge(entry.key, undefined)
    const message = `Run ${runId} has no open tool call of that id, nor has a child run of it; show the run to see which wait.`
    acknowledgements.acknowledge(entry.key, { code: 'unknown_call', message })
  }

  /** Only the run's writer consumed commands out of its inbox: those that are gone, another one has decided about. */
  async #rejectLost(keys: readonly string[]): Promise<void> {
    const { ledger, runId, acknowledgements } = this.#drive
    const taken = takenElsewhere(runId, keys)
    for (const key of keys) acknowledgements.fail(taken, key)
    if ((await ledger.head(runId))?.epoch !== this.epoch) throw taken
  }

  /** Any process can put anything into an inbox: what is no command is taken out, and stops no run. */
  #refuseMalformed(key: string, { path, what }: { readonly path: string; readonly what: string }): void {
    this.#consumed.push(key)
    const message = `The command ${key} for run ${this.#drive.runId} is wrong at ${path}: ${what}. No process can carry it out; send it again with the run's handle.`
    this.#drive.acknowledgements.acknowledge(key, { code: 'malformed', message })
  }

  /** Whether the run may stop: no command is on its way or waiting in the inbox. */
  async #mayStop(): Promise<boolean> {
    await this.#drive.acknowledgements.allDelivered()
    await this.#readInbox()
    const isAsked = (): boolean => !this.#mailbox.empty || this.#inboxChanged
    if (this.#state) {
      await postEndedChildren(this.#state, {
        ...{ children: this.#drive.children, takesOver: this.#takesOver },
        post: (message) => this.#mailbox.post({ message }),
        isAsked: () => isAsked() || this.isDraining,
        next: () => this.#mailbox.next(),
      })
    }
    if (isAsked()) return false
    await requireLast(this.#drive.ledger, this.#drive.runId, this.#state?.seq ?? 0)
    return true
  }

  async #awaitArrival(wakeAt: number | undefined): Promise<void> {
    this.#timer?.()
    if (wakeAt !== undefined) {
      const delayMs = Math.max(1, wakeAt - this.#clock.now())
      this.#timer = this.#clock.schedule(delayMs, () => this.#mailbox.wake())
    }
    await this.#mailbox.arrival()
  }

  #stamp(): Stamp {
    return { at: this.#clock.now(), random: this.#drive.host.random() }
  }
}

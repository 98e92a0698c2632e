import type { Subject } from 'rxjs'
import { RunNotFoundError } from '../../vocabulary/errors.ts'
import { advance, type AdvanceOptions, type Page, type RestingAction } from '../../machine/advance.ts'
import type { Stamp } from '../../machine/state/decision.ts'
import { audit } from '../../machine/laws/invariants.ts'
import type { RunState } from '../../machine/state/state.ts'
import type { Cancel, Host } from '../../ports/clock.ts'
import type { InboxEntry, Ledger } from '../../ports/ledger.ts'
import { childRunIdOf } from '../../vocabulary/values/child-run-id.ts'
import type { Command, OutsideCommand, StartCommand } from '../../vocabulary/events/command.ts'
import { eventCatalogue } from '../../vocabulary/events/event-catalogue.ts'
import type { RuntimeEvent } from '../../vocabulary/events/event.ts'
import { runIdOfCall, type RunId, type ToolCallId } from '../../vocabulary/values/ids.ts'
import { outsideCommandSchema } from '../../vocabulary/events/command-schema.ts'
import { faultOf } from '../../vocabulary/values/schema.ts'
import type { Signal } from '../../vocabulary/signals/signal.ts'
import { isUnreadInbox } from '../../memory-ledger/append-rules.ts'
import { changedInputFault } from './changed-input-check.ts'
import { settlingOf, type ChildRuns } from '../children/child-runs.ts'
import { Effects } from '../effects/effects.ts'
import { Mailbox } from './mailbox.ts'
import { hearParkedChildren } from '../children/awaited-children.ts'
import type { Receipts } from '../commands/command-acknowledgement.ts'
import { recordedResults } from '../fork/recorded-results.ts'
import { steadyClock, type SteadyClock } from './steady-clock.ts'
import {
  decidedElsewhere,
  drivingAgent,
  drivingRules,
  isMereLook,
  overtaken,
  requireDrivable,
  takeOverOf,
  type Taker,
} from './taking-over.ts'

/** What a run is driven with. */
export interface Drive extends Taker {
  readonly ledger: Ledger
  readonly host: Host
  readonly receipts: Receipts
  /** Hears every event once it is appended. */
  readonly live: Subject<RuntimeEvent>
  readonly children: ChildRuns
}

/** A message that has arrived; `key` names it in the ledger's inbox, where it came from there. */
interface Item {
  readonly message: Command | Signal
  readonly key?: string
}

/**
 * THE HUB: the only writer of a run. Takes what has arrived, lets the machine decide, appends, folds, publishes, then
 * starts what is required: always in this order. Drives until the run rests, and decides nothing itself.
 */
export class RunLoop {
  readonly #drive: Drive
  readonly #clock: SteadyClock
  readonly #mailbox = new Mailbox<Item>()
  readonly #seen = new Set<string>()
  #takes: string[] = []
  /** Of the writer that this loop is. */
  epoch = 1
  /** Whether this loop is, or was, the writer. */
  held = false
  #state: RunState | undefined
  #inboxChanged = true
  #timer: Cancel | undefined
  /** When what is in flight is given up, once the loop is being drained. */
  #drainUntil: number | undefined
  #takesOver = false
  /** The take-over, until it is on record. */
  #takeOver: Command | undefined
  /** Nothing has followed from the take-over yet. */
  #looks = false

  constructor(drive: Drive) {
    this.#drive = drive
    this.#clock = steadyClock(drive.host.clock)
  }

  /** Looks into the inbox again, soon. */
  poke(): void {
    this.#inboxChanged = true
    this.#mailbox.wake()
  }

  /** Begins nothing more, and comes to rest when what is in flight has ended, or after the grace time. */
  drain(graceMs: number): void {
    this.#drainUntil ??= this.#clock.now() + graceMs
    this.#mailbox.wake()
  }

  get draining(): boolean {
    return this.#drainUntil !== undefined
  }

  /** Starts a run that does not exist yet, and drives it. Answers the state in which it rests. */
  async start(command: StartCommand): Promise<RunState> {
    this.held = true
    this.#mailbox.post({ message: command })
    return await this.#run()
  }

  /** Makes a fork of its first events, all at once, and drives it. Answers the state in which it rests. */
  async fork(events: readonly RuntimeEvent[]): Promise<RunState> {
    const { ledger, runId } = this.#drive
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'barrier' })
    return await this.resume(false)
  }

  /**
   * Takes a run over. It is read first: a run that is done, or that nobody here can drive, is left with whoever has it.
   * Then the epoch is raised, so that nobody else can append, and what came in between is read behind it. With
   * `takeOver`, the runs that work for it are taken over with it.
   */
  async resume(takeOver: boolean): Promise<RunState> {
    this.#takesOver = takeOver
    const { ledger, runId } = this.#drive
    const found = await this.#load()
    if (found.phase === 'done') return found
    requireDrivable(found, this.#drive)
    this.epoch = (await ledger.acquire(runId)).epoch
    this.held = true
    const state = await this.#load()
    if (state.epoch > this.epoch) throw overtaken(runId, state.epoch)
    if (state.phase === 'done') return state
    this.#takeOver = takeOverOf(state, this.#drive)
    return await this.#run()
  }

  /** Reads what is in the ledger and not yet in the state. Whoever watches hears of it: another process may have appended it. */
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
      agentNamed: (name) => drivingAgent(name, this.#drive),
      post: (signal) => this.#mailbox.post({ message: signal }),
    })
    const rulesOf = drivingRules(this.#drive)
    const hints = ledger.changes(runId).subscribe({
      next: () => this.poke(),
      error: (error: unknown) =>
        host.report(error, `The ledger stopped telling what comes into the inbox of run ${runId}`),
    })
    try {
      for (;;) {
        if (this.#inboxChanged && this.#state) await this.#readInbox()
        const hold = this.draining && this.#state !== undefined
        const page = await this.#turnPage({ rulesOf, hold })
        if (page === undefined) continue
        const { action, state } = page
        effects.follow(state, { hold })
        const rests = await (hold ? this.#isDrained(effects.busyWith(state)) : this.#restsAfter(action))
        if (rests) return state
      }
    } finally {
      hints.unsubscribe()
      this.#timer?.()
      effects.stopAll()
    }
  }

  /** Waits as the action says; answers whether the run has come to rest instead. */
  async #restsAfter(action: RestingAction): Promise<boolean> {
    if (action.kind === 'finished') return true
    if (action.kind === 'suspend') return await this.#nobodyAsks()
    await this.#arrival(action.wakeAt)
    return false
  }

  /** Waits for what is in flight, as long as there is time for it. */
  async #isDrained(busy: boolean): Promise<boolean> {
    if (!busy || this.#clock.now() >= (this.#drainUntil ?? 0)) return true
    await this.#arrival(this.#drainUntil)
    return false
  }

  /** Decides about everything that has arrived, appends what follows, and only then lets anyone see it. */
  async #turnPage(options: Pick<AdvanceOptions, 'rulesOf' | 'hold'>): Promise<Page | undefined> {
    const { runId, live, receipts } = this.#drive
    const takeOver = this.#takeOver ? [{ message: this.#takeOver }] : []
    const items: readonly Item[] = [...takeOver, ...this.#mailbox.drain()]
    const messages = items.map(({ message }) => message)
    const writer = { runId, epoch: this.epoch }
    const keys = items.map(({ key }) => key)
    const page = advance(this.#state, messages, { ...options, keys, writer, stamp: () => this.#stamp() })
    const takes = [...this.#takes, ...items.flatMap(({ key }) => (key === undefined ? [] : [key]))]
    // What was found in the inbox is taken out of it, whatever it says; of what comes later, only what is obeyed.
    const saysNothing = isMereLook(this.#state, page) && (this.#looks || takes.length === 0)
    this.#looks = saysNothing
    if (page.events.length > 0 && !saysNothing) {
      if (!(await this.#append(page.events, takes))) return this.#again(items)
      this.#takeOver = undefined
      this.#state = page.state
      for (const event of page.events) live.next(event)
    } else if (takes.length > 0) await this.#takeOut(takes)
    items.forEach(({ key }, index) => {
      if (key !== undefined) receipts.settle(key, page.refusals[index])
    })
    return { ...page, state: this.#state ?? page.state }
  }

  /** Answers `false` for the end of a run whose inbox holds what nobody has read. */
  async #append(events: readonly RuntimeEvent[], takes: readonly string[]): Promise<boolean> {
    const { runId, ledger } = this.#drive
    const expected = { expectedSeq: this.#state?.seq ?? 0, epoch: this.epoch }
    try {
      await ledger.append(runId, expected, events, {
        durability: durabilityOf(events),
        consumedInboxKeys: takes,
      })
    } catch (error) {
      if (isUnreadInbox(error)) return false
      throw error
    }
    this.#takes = []
    return true
  }

  /** What was refused leaves the inbox at once: its sender may wait for that in another process. */
  async #takeOut(takes: readonly string[]): Promise<void> {
    this.#takes = [...takes]
    if (this.#state) await this.#append([], takes)
  }

  /** The page was the run's last, and somebody has asked for something meanwhile: it is decided again, with that. */
  #again(items: readonly Item[]): undefined {
    this.#mailbox.putBack(items.filter(({ message }) => message !== this.#takeOver))
    this.#inboxChanged = true
  }

  async #readInbox(): Promise<void> {
    this.#inboxChanged = false
    const { ledger, runId, receipts } = this.#drive
    const delivered = receipts.delivered
    const entries = await ledger.inbox(runId)
    const there = new Set(entries.map(({ key }) => key))
    const lost = delivered.filter((key) => !there.has(key) && !this.#seen.has(key))
    if (lost.length > 0) await this.#lose(lost)
    for (const { key, command, at } of entries) {
      if (this.#seen.has(key)) continue
      this.#seen.add(key)
      const fault = faultOf(outsideCommandSchema, command)
      if (fault) this.#refuse(key, fault)
      else await this.#take({ key, command, at })
    }
  }

  /** A command about a call of a run that works for this one is that run's to decide. */
  async #take(entry: InboxEntry): Promise<void> {
    const { key, command } = entry
    const owner = 'toolCallId' in command ? runIdOfCall(command.toolCallId) : undefined
    if (owner !== undefined && owner !== this.#drive.runId) return await this.#passOn(entry, owner)
    // Only what has to be asked about takes a turn of the queue: a cancel stops the run where it stands.
    if (command.type === 'approve' && command.input && (await this.#refusesInput(entry))) return
    const message = command.type === 'settle' && command.child ? await this.#settling(command) : command
    if (message) return this.#mailbox.post({ message, key })
    const what = 'the child run has not ended; its own ledger says what it used'
    this.#refuse(key, { path: 'child', what })
  }

  /** What a child run used is read from its own events, whatever a command says of it. */
  async #settling({ toolCallId }: { readonly toolCallId: string }): Promise<OutsideCommand | undefined> {
    const { runId, children } = this.#drive
    const ending = await children.ended(childRunIdOf(runId, toolCallId as ToolCallId))
    return ending && settlingOf(toolCallId, ending)
  }

  /** Input that an approver gives in the place of the model's is tried by the tool: the sender may not have had it. */
  async #refusesInput({ key, command }: InboxEntry): Promise<boolean> {
    const { agentNamed, context, receipts } = this.#drive
    const by = { agent: this.#state && agentNamed(this.#state.agent), clock: this.#clock, context }
    const fault = this.#state && (await changedInputFault(command, this.#state, by))
    if (fault) this.#takes.push(key)
    if (fault) receipts.settle(key, fault)
    return fault !== undefined
  }

  async #passOn(entry: InboxEntry, owner: RunId): Promise<void> {
    const { runId, children, receipts } = this.#drive
    this.#takes.push(entry.key)
    if (await children.passOn(entry, owner, runId)) return receipts.settle(entry.key, undefined)
    const message = `Run ${runId} has no open tool call of that id, nor has a run that works for it; show the run to see which wait.`
    receipts.settle(entry.key, { code: 'unknown_call', message })
  }

  /** Only the run's writer takes commands out of its inbox: those that are gone, another one has decided about. */
  async #lose(keys: readonly string[]): Promise<void> {
    const { ledger, runId, receipts } = this.#drive
    const taken = decidedElsewhere(runId, keys)
    for (const key of keys) receipts.fail(taken, key)
    if ((await ledger.head(runId))?.epoch !== this.epoch) throw taken
  }

  /** Any process can put anything into an inbox: what is no command is taken out, and stops nobody. */
  #refuse(key: string, { path, what }: { readonly path: string; readonly what: string }): void {
    this.#takes.push(key)
    const message = `The command ${key} for run ${this.#drive.runId} is wrong at ${path}: ${what}. Nobody can obey it; send it again as the run's handle does.`
    this.#drive.receipts.settle(key, { code: 'malformed', message })
  }

  /** Whether the run may rest: no command is on its way or waiting in the inbox. */
  async #nobodyAsks(): Promise<boolean> {
    await this.#drive.receipts.delivery()
    await this.#readInbox()
    const isAsked = (): boolean => !this.#mailbox.empty || this.#inboxChanged
    if (this.#state) {
      await hearParkedChildren(this.#state, {
        ...{ children: this.#drive.children, takesOver: this.#takesOver },
        post: (message) => this.#mailbox.post({ message }),
        isAsked: () => isAsked() || this.draining,
        next: () => this.#mailbox.next(),
      })
    }
    return !isAsked()
  }

  async #arrival(wakeAt: number | undefined): Promise<void> {
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

function durabilityOf(events: readonly RuntimeEvent[]): 'barrier' | 'lazy' {
  return events.some(({ type }) => eventCatalogue[type].durability === 'barrier') ? 'barrier' : 'lazy'
}

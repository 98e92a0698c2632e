import { callHooks } from '../agent/hooks.ts'
import type { OutsideCommand, ResumeCommand, StartCommand } from '../events/commands.ts'
import { eventTraits, type RuntimeEvent } from '../events/event.ts'
import { emptyHead, isUnreadInbox } from '../ledger/append-rules.ts'
import {
  advance,
  type AdvanceOptions,
  durabilityOf,
  type EventBatch,
  joinedBatches,
} from '../machine/advance.ts'
import { summaryOf } from '../machine/calls.ts'
import { audit } from '../machine/laws.ts'
import { isSuspended } from '../machine/next-action.ts'
import { requiredEffects } from '../machine/required-effects.ts'
import type { Rules, Stamp } from '../machine/rules.ts'
import type { RunState } from '../machine/state.ts'
import { LedgerConflictError, RunNotFoundError } from '../values/errors.ts'
import { type Cancel, type Clock, type SteadyClock, steadyClock } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import { postEndedChildren } from './children.ts'
import { Effects } from './effects.ts'
import { RunInbox } from './inbox.ts'
import { type LeasedDrive, requireLast, requireOwnEpoch } from './leases.ts'
import { type Mail, Mailbox, type MailKind } from './mailbox.ts'
import { recordedResults } from './recorded-results.ts'
import { type Drive, LoopSite, ownDefinition, requireDrivable, restoreContext } from './run-context.ts'
import { withContinuation } from './runtime-parts.ts'

/** A ledger that asks for more, in milliseconds, gets this. */
const MAX_DELTA_DELAY_MS = 1_000

/** How long the ending of one of many calls may wait for others, in milliseconds. */
const ENDING_DELAY_MS = 1

/** So many calls that run at once are many. */
const MANY_CALLS = 32

/**
 * What may wait for more of its kind, and until when, so that one append records both: deltas of a reply after others,
 * where the ledger asks for it, and endings of calls after others, as long as many calls run.
 */
class Pace {
  /** What may wait. */
  kind: MailKind = 'delta'
  /** Until when; a time that has passed where nothing may. */
  until: number = -Infinity
  /** How much of it is all that can come, so that nothing is left to wait for. */
  most: number = Infinity

  /** Takes what was appended: what follows it waits only where it is of the same kind. */
  appended({ events, state }: EventBatch, clock: Pick<Clock, 'now'>, deltaDelayMs = 0): void {
    this.until = -Infinity
    if (deltaDelayMs > 0 && events.every(({ type }) => eventTraits[type].retention === 'deltas'))
      return this.#wait('delta', clock.now() + Math.min(deltaDelayMs, MAX_DELTA_DELAY_MS))
    const running = events.every(({ type }) => type === 'tool_result') ? runningAlone(state) : 0
    // From when it was decided: what came while a slow store wrote it has waited for others already.
    if (running >= MANY_CALLS) this.#wait('ending', state.at + ENDING_DELAY_MS, running)
  }

  #wait(kind: MailKind, until: number, most = Infinity): void {
    this.kind = kind
    this.until = until
    this.most = most
  }
}

/** How many calls run where none of the others waits for anything: nothing follows from an ending but its record. */
function runningAlone(state: RunState): number {
  if (state.phase !== 'executing') return 0
  const { started, settled } = summaryOf(state.calls).counts
  return started + settled === state.calls.length ? started : 0
}

/** The command `resume` of the process that takes a run over, until its event is on record. */
class PendingResume {
  #command: ResumeCommand | undefined
  #isHeldBack = false

  begin(state: RunState, drive: Drive): void {
    const definition = ownDefinition(state, drive)
    this.#command = {
      type: 'resume',
      why: requiredEffects(state).length > 0 ? 'crash' : 'command',
      definition,
    }
  }

  /** What has arrived, with its command in front, as long as that has to be decided. */
  before(page: readonly Mail[]): readonly Mail[] {
    return this.#command ? [{ message: this.#command }, ...page] : page
  }

  /** The messages of a batch other than its command. */
  others(mail: readonly Mail[]): readonly Mail[] {
    return mail.filter(({ message }) => message !== this.#command)
  }

  /**
   * Whether a batch, which takes entries out of the inbox or not, is kept off the record, since it only takes over a
   * suspended run as it is: however often a process resumes a run that waits, its ledger does not grow. The take-over
   * is recorded with the first event after it. What was found in the inbox is taken out of it, whatever it says; of
   * what comes later, only what is obeyed.
   */
  holdsBack(state: RunState | undefined, batch: EventBatch, hasEntries: boolean): boolean {
    this.#isHeldBack = isBare(state, batch) && (this.#isHeldBack || !hasEntries)
    return this.#isHeldBack
  }

  /** It is on record. */
  recorded(): void {
    this.#command = undefined
  }
}

/** Whether a batch holds nothing but the take-over of a suspended run. */
function isBare(state: RunState | undefined, { events, action }: EventBatch): state is RunState {
  const [resumed] = events
  if (state === undefined || events.length !== 1 || resumed?.type !== 'run_resumed') return false
  return resumed.definition === undefined && action.kind === 'suspend' && isSuspended(state)
}

/** A run that may begin, with the context that it begins with. */
export interface ReadyStart {
  readonly command: StartCommand
  readonly context: unknown
}

type Decided = Pick<AdvanceOptions, 'rulesOf' | 'draining'>

/** How a run is taken over. */
export interface TakingOver {
  /** Its child runs that are under way, too. */
  readonly withChildren: boolean
  /** Also from a process that may live. */
  readonly takeOver: boolean
}

/**
 * THE RUN LOOP: the only writer of a run. Takes what has arrived, lets the machine decide, appends, folds, publishes, then
 * starts what is required: always in this order. Drives until the run stops, and decides nothing itself.
 */
export class RunLoop implements LeasedDrive {
  #drive: Drive
  readonly #clock: SteadyClock
  readonly #mailbox = new Mailbox()
  readonly #inbox: RunInbox
  readonly #unrecordedResume = new PendingResume()
  /** Of the writer that this loop is. */
  epoch: number = emptyHead.epoch
  /** Whether this loop is, or was, the writer of the run. */
  isWriter = false
  #state: RunState | undefined
  #timer: Cancel | undefined
  readonly #pace = new Pace()
  #effects: Effects | undefined
  /** Why this loop may append nothing more. */
  #lost: { readonly error: unknown } | undefined
  /** When what is in flight is given up; a time once the loop is being drained. */
  #drainUntil = Infinity
  /** Whether child runs that are under way are taken over, too. */
  #takesChildrenOver = false

  constructor(drive: Drive) {
    this.#drive = drive
    this.#clock = steadyClock(drive.parts.host.clock)
    this.#inbox = new RunInbox(drive, this.#clock, this.#mailbox)
  }

  /** Reads the inbox again, soon. */
  wake(): void {
    this.#inbox.markUnread()
    this.#mailbox.wake()
  }

  /** Begins nothing more, and stops when what is in flight has ended, or after the grace time. */
  drain(graceMs: number): void {
    this.#drainUntil = Math.min(this.#drainUntil, this.#clock.now() + graceMs)
    this.#mailbox.wake()
  }

  get runId(): RunId {
    return this.#drive.runId
  }

  /** Another process may drive the run from here on: stops what is in flight at once, and appends nothing more. */
  lose(error: unknown): void {
    this.#lost ??= { error }
    this.#effects?.stopAll()
    this.#mailbox.fail(error)
  }

  /** The state that is on record. */
  get state(): RunState | undefined {
    return this.#state
  }

  get isDraining(): boolean {
    return this.#drainUntil < Infinity
  }

  /**
   * Starts a run that does not exist yet, and drives it; what is asked with its start is decided with it. Returns the
   * state in which it stops.
   */
  start({ command, context }: ReadyStart, asked?: OutsideCommand): Promise<RunState> {
    this.#drive = { ...this.#drive, context }
    this.isWriter = true
    this.#inbox.startsEmpty()
    this.#mailbox.post({ message: command })
    if (asked) this.#mailbox.post({ message: asked })
    return this.#run()
  }

  /** Makes a fork of its first events, all at once, and drives it. Returns the state in which it stops. */
  async fork(events: readonly RuntimeEvent[]): Promise<RunState> {
    const { parts, runId } = this.#drive
    const lease = parts.leases.claimOf(this)
    await parts.ledger.append(runId, { expectedSeq: 0, epoch: this.epoch }, events, {
      durability: 'barrier',
      lease,
    })
    return await this.resume({ withChildren: false, takeOver: false })
  }

  /**
   * Takes a run over. It is read first: a run that is done, or that this process cannot drive, is left as it is.
   * Then its lease is taken and the epoch raised, so that no other writer can append, and what came in between is read after
   * it. Rejects with a `LedgerConflictError` of kind `lease` while another process drives it, unless with `takeOver`. With
   * `withChildren`, its child runs are taken over with it.
   */
  async resume({ withChildren, takeOver }: TakingOver): Promise<RunState> {
    this.#takesChildrenOver = withChildren
    const { parts, runId } = this.#drive
    const found = await this.#load()
    if (found.phase === 'done') return found
    this.#drive = await restoreContext(found, this.#drive)
    requireDrivable(found, this.#drive)
    const askedAt = parts.leases.now()
    this.epoch = (await parts.leases.acquire(runId, takeOver)).epoch
    this.isWriter = true
    parts.leases.granted(this, askedAt)
    try {
      const state = await this.#load()
      requireOwnEpoch(state, this.epoch)
      if (state.phase === 'done') return state
      this.#unrecordedResume.begin(state, this.#drive)
      return await this.#run()
    } finally {
      // Else the lease would be renewed as long as this process lives.
      parts.leases.ended(this)
    }
  }

  /** Reads what is in the ledger and not yet in the state. Publishes it, since another process may have appended it. */
  async #load(): Promise<RunState> {
    const { parts, runId, live } = this.#drive
    for await (const event of parts.ledger.read(runId, { fromSeq: (this.#state?.seq ?? 0) + 1 })) {
      this.#state = audit(this.#state, event)
      this.#clock.atLeast(event.at)
      live.next(event)
    }
    if (this.#state === undefined) throw new RunNotFoundError(runId)
    return this.#state
  }

  async #run(): Promise<RunState> {
    const results = this.#state && (await recordedResults(this.#drive.parts.ledger, this.#state))
    const site = new LoopSite(this.#drive, {
      clock: this.#clock,
      mailbox: this.#mailbox,
      results,
      loop: this,
    })
    const effects = new Effects(site)
    this.#effects = effects
    const rulesOf = (name: string): Rules => site.rulesOf(name)
    this.#inbox.watch()
    try {
      for (;;) {
        if (this.#inbox.isUnread && this.#state) await this.#readInbox(this.#state)
        const draining = this.isDraining && this.#state !== undefined
        const batch = await this.#advance(effects, { rulesOf, draining })
        if (batch === undefined) continue
        const { state } = batch
        effects.follow(state, { draining })
        if (await this.#stopsAfter(batch, effects, draining)) return state
      }
    } catch (error) {
      // Another writer has begun the run: it holds it, and this one releases nothing.
      if (this.#state === undefined && error instanceof LedgerConflictError) this.isWriter = false
      throw withContinuation(error, { runId: this.#drive.runId, isOnRecord: this.#state !== undefined })
    } finally {
      this.#inbox.unwatch()
      this.#timer?.()
      this.#drive.parts.leases.ended(this)
      effects.stopAll()
      site.stop()
    }
  }

  /** Waits as the action says, or while the run is drained; returns whether it has stopped instead. */
  #stopsAfter(
    { action, state }: EventBatch,
    effects: Effects,
    draining: boolean,
  ): boolean | Promise<boolean> {
    if (draining) {
      const isOver = !effects.isBusy(state) || this.#clock.now() >= this.#drainUntil
      return isOver || this.#arrives(this.#drainUntil)
    }
    if (action.kind === 'finished') return true
    return action.kind === 'suspend' ? this.#mayStop(state) : this.#arrives(action.wakeAt)
  }

  /** Decides about everything that has arrived, appends what follows, and only then publishes it. */
  async #advance(effects: Effects, options: Decided): Promise<EventBatch | undefined> {
    let mail = this.#unrecordedResume.before(this.#mailbox.takeBatch())
    let batch = this.#decide(this.#state, mail, options)
    if (bringsCalls(batch) && effects.startPureCheck(batch.state) && !this.#mailbox.empty) {
      const more = this.#mailbox.takeBatch()
      batch = joinedBatches(batch, this.#decide(batch.state, more, options))
      mail = [...mail, ...more]
    }
    const consumed = this.#inbox.keysWith(mail)
    const isUnchanged = this.#unrecordedResume.holdsBack(this.#state, batch, consumed.length > 0)
    if (batch.events.length > 0 && !isUnchanged) {
      if (!(await this.#append(batch, consumed))) return this.#redecide(mail)
      this.#unrecordedResume.recorded()
      const before = this.#state
      this.#state = batch.state
      this.#pace.appended(batch, this.#clock, this.#drive.parts.ledger.deltaDelayMs)
      this.#publish(batch.events)
      if (this.#isAwaited(before)) await this.#published(batch, before)
      // What was refused leaves the inbox at once: its sender may wait for that in another process.
    } else if (consumed.length > 0) await this.#append({ ...batch, events: [] }, consumed)
    this.#acknowledge(mail, batch)
    return { ...batch, state: this.#state ?? batch.state }
  }

  /** A loop over thousands of events is compiled sooner outside an asynchronous function. */
  #publish(events: readonly RuntimeEvent[]): void {
    const { live } = this.#drive
    for (const event of events) live.next(event)
  }

  /** Whether something has to be waited for before the run continues: most often nothing has. */
  #isAwaited(before: RunState | undefined): boolean {
    const { hooks, sent } = this.#drive
    return hooks.length > 0 || (before === undefined && sent.hasPending)
  }

  async #published({ events, state }: EventBatch, before: RunState | undefined): Promise<void> {
    const { hooks, context, sent, parts } = this.#drive
    if (hooks.length > 0)
      await callHooks(events, before?.agent ?? state.agent, { hooks, host: parts.host, context })
    // What was asked of the run before it was there comes into its inbox now: a slow ledger would let the run end first.
    if (before === undefined && sent.hasPending) await sent.allDelivered()
  }

  #acknowledge(mail: readonly Mail[], { refusals }: EventBatch): void {
    if (!haveKeys(mail)) return
    mail.forEach(({ key }, index) => {
      if (key !== undefined) this.#drive.sent.acknowledge(key, refusals[index])
    })
  }

  #decide(before: RunState | undefined, mail: readonly Mail[], options: Decided): EventBatch {
    const writer = { runId: this.#drive.runId, epoch: this.epoch }
    const messages = mail.map(({ message }) => message)
    const keys = haveKeys(mail) ? mail.map(({ key }) => key) : []
    return advance(before, messages, { ...options, keys, writer, stamp: () => this.#stamp() })
  }

  /** Returns `false` for the end of a run whose inbox holds unread entries. */
  async #append(
    { events, action, state: after }: Pick<EventBatch, 'events' | 'action' | 'state'>,
    consumed: readonly string[],
  ): Promise<boolean> {
    if (this.#lost) throw this.#lost.error
    const { runId, parts } = this.#drive
    const expected = { expectedSeq: this.#state?.seq ?? 0, epoch: this.epoch }
    const lease = events.length > 0 ? parts.leases.claimOf(this) : undefined
    const askedAt = lease && parts.leases.now()
    // What a run says when it stops to wait is not to be lost, though nothing follows from it yet.
    const stops = action.kind === 'suspend' && events.length > 0
    try {
      await parts.ledger.append(runId, expected, events, {
        durability: stops ? 'barrier' : durabilityOf(events, { before: this.#state, after }),
        consumedInboxKeys: consumed,
        lease,
      })
    } catch (error) {
      if (isUnreadInbox(error)) return false
      throw error
    }
    if (askedAt !== undefined) parts.leases.granted(this, askedAt)
    this.#inbox.taken()
    return true
  }

  /** The batch would end the run, and a command came in meanwhile: decides again, with that command. */
  #redecide(mail: readonly Mail[]): undefined {
    this.#mailbox.putBack(this.#unrecordedResume.others(mail))
    this.#inbox.markUnread()
  }

  #readInbox(state: RunState): Promise<void> {
    return this.#inbox.read({ epoch: this.epoch, state })
  }

  /** Whether the run may stop: no command is on its way or waiting in the inbox. */
  async #mayStop(state: RunState): Promise<boolean> {
    await this.#drive.sent.allDelivered()
    await this.#readInbox(state)
    const isAsked = (): boolean => !this.#mailbox.empty || this.#inbox.isUnread
    await postEndedChildren(state, {
      children: this.#drive.children,
      withChildren: this.#takesChildrenOver,
      context: this.#drive.context,
      post: (message) => this.#mailbox.post({ message }),
      isAsked,
      next: () => this.#mailbox.next(),
    })
    if (isAsked()) return false
    await requireLast(this.#drive.parts.ledger, this.#drive.runId, state.seq)
    return true
  }

  /** Waits until something has arrived; returns that the run has not stopped. */
  async #arrives(wakeAt: number | undefined): Promise<false> {
    // A hint at the inbox came while it was read.
    if (this.#inbox.isUnread) return false
    if (wakeAt !== undefined) this.#wakeAt(wakeAt)
    else this.#timer?.()
    await this.#mailbox.arrival()
    const until = Math.min(this.#pace.until, wakeAt ?? Infinity)
    if (!this.#mayWaitForMore(until)) return false
    const alarm = this.#wakeAt(until)
    do await this.#mailbox.arrival()
    while (!alarm.hasRung && this.#mayWaitForMore(until))
    return false
  }

  /** Whether what may wait, and nothing else, has arrived before a time. */
  #mayWaitForMore(until: number): boolean {
    const { kind, most } = this.#pace
    const isUndisturbed = !this.#inbox.isUnread && !this.isDraining && this.#mailbox.holdsOnly(kind, most)
    return isUndisturbed && this.#clock.now() < until
  }

  /** Sets the timer. The answer tells whether it has rung: it rings once, and may before the clock shows its time. */
  #wakeAt(time: number): { readonly hasRung: boolean } {
    const alarm = { hasRung: false }
    this.#timer?.()
    this.#timer = this.#clock.schedule(time - this.#clock.now(), () => {
      alarm.hasRung = true
      this.#mailbox.wake()
    })
    return alarm
  }

  #stamp(): Stamp {
    return { at: this.#clock.now(), random: this.#drive.parts.host.random() }
  }
}

/** Whether a message came from the inbox. */
function haveKeys(mail: readonly Mail[]): boolean {
  for (const { key } of mail) if (key !== undefined) return true
  return false
}

/** Whether a batch has brought calls that are to be checked. That of a loop that is being drained begins nothing. */
function bringsCalls({ action, state, events }: EventBatch): boolean {
  if (action.kind !== 'wait' || state.phase !== 'collecting') return false
  return events.findLast(({ type }) => type === 'assistant_message_finished') !== undefined
}

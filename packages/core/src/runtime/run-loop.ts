import { callHooks } from '../agent/hooks.ts'
import type { ResumeCommand } from '../events/commands.ts'
import { eventTraits, type RuntimeEvent } from '../events/event.ts'
import { emptyHead, isUnreadInbox } from '../ledger/append-rules.ts'
import { advance, chooseDurability, type EventBatch, joinBatches } from '../machine/advance.ts'
import { audit } from '../machine/laws.ts'
import { findWakeTime, isSuspended } from '../machine/next-action.ts'
import { requiredEffects, requiresEffects } from '../machine/required-effects.ts'
import type { RunState } from '../machine/state.ts'
import { ConfigurationError, LedgerConflictError, RunNotFoundError } from '../values/errors.ts'
import type { Cancel } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { hasEnded, postEndedChildren } from './children.ts'
import type { Stretch } from './drive.ts'
import { Effects } from './effects.ts'
import { RunInbox } from './inbox.ts'
import { requireLast, requireLastEpoch, requireOwnEpoch } from './leases.ts'
import type { Mail } from './mailbox.ts'
import { readRecordedResults } from './fork.ts'
import { RunContext } from './run-context.ts'
import { foldFollowed } from './run-result.ts'
import { startScheduledRun } from './schedules.ts'
import type { RunDriver } from './run-driver.ts'
import type { BegunRun, ReadyStart } from './runtime-parts.ts'

/** A ledger that asks for more, in milliseconds, gets this. */
const MAX_DELTA_DELAY_MS = 1_000

/** A schedule looks at the clock on the wall at least this often, in milliseconds, since that may have been set. */
const MAX_SLEEP_MS = 60_000

/** True for a batch that only takes over a suspended run. */
function isBareResume(state: RunState | undefined, { events, action }: EventBatch): boolean {
  const [resumed] = events
  if (state === undefined || events.length !== 1 || resumed?.type !== 'run_resumed') return false
  return resumed.definition === undefined && action.kind === 'suspend' && isSuspended(state)
}

/**
 * THE RUN LOOP: the only writer of a run. Takes what has arrived, lets the machine decide, appends, folds, publishes, then
 * starts what is required: always in this order. Drives until the run stops, and decides nothing itself.
 */
export class RunLoop {
  readonly #run: RunContext
  readonly #inbox: RunInbox
  readonly #effects: Effects
  /** Until when deltas wait for further ones, so that one append records them. The first delta of a reply waits for none. */
  #deltasUntil = -Infinity
  /** Of the writer that this loop is. */
  epoch: number = emptyHead.epoch
  /** This loop is, or was, the writer of the run. */
  isWriter = false
  #timer: Cancel | undefined
  /** Why this loop may append nothing more. */
  #lost: { readonly error: unknown } | undefined
  /** When what is in flight is given up; a time once the loop is being drained. */
  #drainUntil = Infinity
  /** Child runs that are under way are taken over, too. */
  #takesChildrenOver = false
  /** The command `resume` of a run that is taken over, until its event is on record. */
  #pendingResume: ResumeCommand | undefined
  #isResumeRedundant = false
  /** The start of the run is recorded, and nothing of it is begun here. */
  #isQueued = false
  readonly #stretch: Stretch | undefined

  constructor(run: RunDriver, stretch?: Stretch) {
    this.#run = new RunContext(run)
    this.#stretch = stretch
    this.#inbox = new RunInbox(this.#run)
    this.#effects = new Effects(this.#run)
  }

  get runId(): RunId {
    return this.#run.runId
  }

  get isDraining(): boolean {
    return this.#drainUntil < Infinity
  }

  /** The end of the run is on record. */
  get isDone(): boolean {
    return this.#run.state?.phase === 'done'
  }

  /** Reads the inbox again, soon. */
  wake(): void {
    this.#inbox.markUnread()
    this.#run.mailbox.wake()
  }

  /** Begins nothing more, and stops when what is in flight has ended, or after the grace time. */
  drain(graceMs: number): void {
    this.#drainUntil = Math.min(this.#drainUntil, this.#run.clock.now() + graceMs)
    this.#run.mailbox.wake()
  }

  /** Another process may drive the run from here on: stops what is in flight at once, and appends nothing more. */
  lose(error: unknown): void {
    this.#lost ??= { error }
    this.#effects.stopAll()
    this.#run.mailbox.fail(error)
  }

  /**
   * Starts a run that does not exist yet, and drives it; what is asked with its start is decided with it. Returns the
   * state in which it stops.
   */
  start(
    { command, context }: ReadyStart,
    { asked, isQueued = false }: Omit<BegunRun, 'prepare'> = {},
  ): Promise<RunState> {
    this.#run.context = context
    this.isWriter = true
    this.#inbox.startsEmpty()
    this.#run.mailbox.post({ message: command })
    const cancel = asked?.()
    if (cancel) this.#run.mailbox.post({ message: cancel })
    this.#isQueued = isQueued
    if (isQueued) this.drain(0)
    return this.#drive()
  }

  /** Makes a fork of its first events, all at once, and drives it. Returns the state in which it stops. */
  async fork(events: readonly RuntimeEvent[]): Promise<RunState> {
    const { parts, runId } = this.#run
    const lease = parts.leases.makeClaim(this)
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
  async resume({
    withChildren,
    takeOver,
  }: {
    readonly withChildren: boolean
    /** Also from a process that may live. */
    readonly takeOver: boolean
  }): Promise<RunState> {
    this.#takesChildrenOver = withChildren
    const { parts, runId } = this.#run
    const found = await this.#load()
    // The process that fired the schedule may have died before it woke the run which that had started.
    const { runId: fired } = found.schedule?.lastRun ?? {}
    if (fired && (await parts.ledger.head(fired)) && !(await hasEnded(parts.ledger, fired)))
      this.#stretch?.started.add(fired)
    if (found.phase === 'done') return found
    await this.#run.restoreContext(found)
    this.#run.requireDrivable(found)
    const askedAt = parts.leases.now()
    this.epoch = (await parts.leases.acquire(runId, takeOver)).epoch
    this.isWriter = true
    parts.leases.granted(this, askedAt)
    try {
      const state = await this.#load()
      requireOwnEpoch(state, this.epoch)
      if (state.phase === 'done') return state
      this.#pendingResume = {
        type: 'resume',
        why: requiredEffects(state).length > 0 ? 'crash' : 'command',
        definition: this.#run.currentDefinition(state),
        ...omitUndefined({ lacks: this.#run.findLackingRules(state) }),
      }
      return await this.#drive()
    } finally {
      // Else the lease would be renewed as long as this process lives.
      parts.leases.ended(this)
    }
  }

  /** Reads what is in the ledger and not yet in the state. Publishes it, since another process may have appended it. */
  async #load(): Promise<RunState> {
    const run = this.#run
    const { ledger } = run.parts
    const known = run.state
    for await (const event of ledger.read(run.runId, { fromSeq: (known?.seq ?? 0) + 1 })) {
      run.state = known && run.state ? await foldFollowed(ledger, run.state, event) : audit(run.state, event)
      run.clock.atLeast(event.at)
      run.live.next(event)
    }
    if (run.state === undefined) throw new RunNotFoundError(run.runId)
    return run.state
  }

  async #drive(): Promise<RunState> {
    const run = this.#run
    const { parent } = run.state ?? {}
    if (parent?.relation === 'fork') run.results = await readRecordedResults(run.parts.ledger, parent)
    this.#inbox.watch()
    const leaveStretch = this.#stretch?.began(this)
    try {
      for (;;) {
        if (this.#inbox.isUnread && run.state) await this.#inbox.read({ epoch: this.epoch, state: run.state })
        const draining = this.isDraining && (run.state !== undefined || this.#isQueued)
        const batch = await this.#advance(draining)
        if (batch === undefined) continue
        this.#effects.follow(batch.state, { draining })
        if (await this.#stopsAfter(batch, draining)) return batch.state
      }
    } catch (error) {
      // Another writer has begun the run: it holds it, and this one releases nothing.
      if (run.state === undefined && error instanceof LedgerConflictError) this.isWriter = false
      throw withContinuation(error, run)
    } finally {
      this.#inbox.unwatch()
      leaveStretch?.()
      this.#timer?.()
      run.parts.leases.ended(this)
      this.#effects.stopAll()
      run.stop()
    }
  }

  /** Waits as the action says, or while the run is drained; returns whether it has stopped instead. */
  #stopsAfter({ action, state }: EventBatch, draining: boolean): boolean | Promise<boolean> {
    if (draining) {
      const isOver = !this.#effects.isBusy(state) || this.#run.clock.now() >= this.#drainUntil
      return isOver || this.#arrives(this.#drainUntil)
    }
    if (action.kind === 'finished') return true
    if (action.kind === 'suspend') return this.#mayStop(state)
    return this.#parks(state) ? this.#mayStop(state) : this.#arrives(action.wakeAt)
  }

  /** True if the run waits only for a time, and longer than its stretch lets it. One that waits for code of its agent does not. */
  #parks(state: RunState): boolean {
    if (this.#stretch === undefined || requiresEffects(state) || !this.#run.mailbox.empty) return false
    return (findWakeTime(state) ?? 0) - this.#run.clock.now() > this.#stretch.parkMs
  }

  /** Decides about everything that has arrived, appends what follows, and only then publishes it. */
  async #advance(draining: boolean): Promise<EventBatch | undefined> {
    const run = this.#run
    let mail = run.mailbox.takeBatch()
    if (this.#pendingResume) mail = [{ message: this.#pendingResume }, ...mail]
    let batch = this.#decide(run.state, mail, draining)
    if (bringsCalls(batch) && this.#effects.startPureCheck(batch.state) && !run.mailbox.empty) {
      const more = run.mailbox.takeBatch()
      batch = joinBatches(batch, this.#decide(batch.state, more, draining))
      mail = [...mail, ...more]
    }
    const consumed = this.#inbox.keysWith(mail)
    // However often a process resumes a run that waits, its ledger does not grow: a take-over that changes nothing is recorded
    // with the first event after it. What was found in the inbox is taken out of it; of what comes later, what is obeyed.
    this.#isResumeRedundant =
      isBareResume(run.state, batch) && (this.#isResumeRedundant || consumed.length === 0)
    if (batch.events.length > 0 && !this.#isResumeRedundant) {
      if (batch.state.schedule) await this.#startDue(batch)
      if (!(await this.#append(batch, consumed))) {
        // The batch would end the run, but a command has arrived: decides again, with that command.
        run.mailbox.putBack(mail.filter(({ message }) => message !== this.#pendingResume))
        this.#inbox.markUnread()
        return undefined
      }
      this.#pendingResume = undefined
      const before = run.state
      run.state = batch.state
      const last = batch.events.at(-1)
      const isDelta = last && eventTraits[last.type].retention === 'deltas'
      const delayMs = isDelta ? (run.parts.ledger.deltaDelayMs ?? 0) : 0
      this.#deltasUntil = delayMs > 0 ? run.clock.now() + Math.min(delayMs, MAX_DELTA_DELAY_MS) : -Infinity
      for (const event of batch.events) run.live.next(event)
      const { hooks, context, parts, sent } = run
      if (hooks.length > 0)
        await callHooks(batch.events, before?.agent ?? batch.state.agent, {
          hooks,
          context,
          host: parts.host,
        })
      // Commands sent before the run existed enter its inbox now: with a slow ledger, the run would end first.
      if (before === undefined && sent.hasPending) await sent.allDelivered()
      // Refused commands leave the inbox at once: their sender may wait for that in another process.
    } else if (consumed.length > 0) await this.#append({ ...batch, events: [] }, consumed)
    this.#acknowledge(mail, batch)
    return { ...batch, state: run.state ?? batch.state }
  }

  #acknowledge(mail: readonly Mail[], { refusals }: EventBatch): void {
    mail.forEach(({ key }, index) => {
      if (key !== undefined) this.#run.sent.acknowledge(key, refusals[index])
    })
  }

  #decide(before: RunState | undefined, mail: readonly Mail[], draining: boolean): EventBatch {
    const { runId, host, findRules } = this.#run
    return advance(
      before,
      mail.map(({ message }) => message),
      {
        rulesOf: findRules,
        draining,
        keys: mail.map(({ key }) => key),
        writer: { runId, epoch: this.epoch },
        stamp: () => ({ at: this.#now(before), random: host.random() }),
      },
    )
  }

  /** A schedule goes by the clock on the wall, which may leap; other runs only by the time that passes. */
  #now(state: RunState | undefined): number {
    const { clock, parts } = this.#run
    return state?.schedule ? Math.max(state.at, parts.host.clock.now()) : clock.now()
  }

  /** Starts the runs of a schedule that is due, before that is on record: again, and nothing is started twice, if it never is. */
  async #startDue({ events, state }: EventBatch): Promise<void> {
    for (const event of events) {
      if (event.type !== 'schedule_fired' || event.startedRun === undefined) continue
      if (this.#lost) throw this.#lost.error
      const { parts, context } = this.#run
      await startScheduledRun(state, event.scheduledAt, { parts, context, stretch: this.#stretch })
    }
  }

  /** Returns `false` for the end of a run whose inbox holds unread entries. */
  async #append(
    { events, action, state: after }: Pick<EventBatch, 'events' | 'action' | 'state'>,
    consumed: readonly string[],
  ): Promise<boolean> {
    if (this.#lost) throw this.#lost.error
    const { runId, parts } = this.#run
    const expected = { expectedSeq: this.#run.state?.seq ?? 0, epoch: this.epoch }
    const lease = events.length > 0 ? parts.leases.makeClaim(this) : undefined
    const askedAt = lease && parts.leases.now()
    // Events before a suspension must survive a power loss, although nothing follows from them yet.
    const stops = action.kind === 'suspend' && events.length > 0
    const { parent } = after
    const ends = after.phase === 'done' && parent?.relation === 'child'
    try {
      await parts.ledger.append(runId, expected, events, {
        durability: stops ? 'barrier' : chooseDurability(events, { before: this.#run.state, after }),
        consumedInboxKeys: consumed,
        lease,
        wakes: ends ? parent.runId : undefined,
      })
    } catch (error) {
      if (isUnreadInbox(error)) return false
      throw error
    }
    if (askedAt !== undefined) parts.leases.granted(this, askedAt)
    // A process that stood still as it recorded a start must not begin what another one has begun since.
    if (parts.leases.isOverdue(this)) await requireLastEpoch(parts.ledger, runId, this.epoch)
    this.#inbox.taken()
    return true
  }

  /** True if no command is on its way or waits in the inbox. */
  async #mayStop(state: RunState): Promise<boolean> {
    await this.#run.sent.allDelivered()
    await this.#inbox.read({ epoch: this.epoch, state })
    const isAsked = (): boolean =>
      !this.#run.mailbox.empty || this.#inbox.isUnread || this.#inbox.hasSpent || this.#lost !== undefined
    await postEndedChildren(state, {
      run: this.#run,
      withChildren: this.#takesChildrenOver,
      isAsked,
    })
    if (isAsked()) return false
    await requireLast(this.#run.parts.ledger, this.#run.runId, state.seq)
    return true
  }

  /** Waits until something has arrived; returns that the run has not stopped. */
  async #arrives(wakeAt: number | undefined): Promise<false> {
    // A hint at the inbox came while it was read.
    if (this.#inbox.isUnread) return false
    if (wakeAt !== undefined) this.#wakeAt(wakeAt)
    else this.#timer?.()
    await this.#run.mailbox.arrival()
    const until = Math.min(this.#deltasUntil, wakeAt ?? Infinity)
    if (!this.#mayWaitForMore(until)) return false
    const alarm = this.#wakeAt(until)
    do await this.#run.mailbox.arrival()
    while (!alarm.hasRung && this.#mayWaitForMore(until))
    return false
  }

  /** True if it is earlier than `until`, and only deltas have arrived. */
  #mayWaitForMore(until: number): boolean {
    const isUndisturbed = !this.#inbox.isUnread && !this.isDraining && this.#run.mailbox.holdsOnlyDeltas
    return isUndisturbed && this.#run.clock.now() < until
  }

  /** Sets the timer. The answer tells whether it has rung: it rings once, and may before the clock shows its time. */
  #wakeAt(time: number): { readonly hasRung: boolean } {
    const alarm = { hasRung: false }
    this.#timer?.()
    const { clock, state, parts } = this.#run
    const delayMs = state?.schedule
      ? Math.min(time - parts.host.clock.now(), MAX_SLEEP_MS)
      : time - clock.now()
    this.#timer = clock.schedule(delayMs, () => {
      alarm.hasRung = true
      this.#run.mailbox.wake()
    })
    return alarm
  }
}

/** True for a batch with calls that are to be checked. That of a loop that is being drained begins nothing. */
function bringsCalls({ action, state, events }: EventBatch): boolean {
  if (action.kind !== 'wait' || state.phase !== 'collecting') return false
  return events.findLast(({ type }) => type === 'assistant_message_finished') !== undefined
}

/**
 * Adds to a `ConfigurationError` what is on record of the run, and whether to resume it or to start it again. Returns any other
 * error as it is.
 */
function withContinuation(error: unknown, { runId, state }: RunContext): unknown {
  if (!(error instanceof ConfigurationError)) return error
  const howToContinue = state
    ? `Run ${runId} is on record up to here, and nothing is lost: continue it with resume once this is corrected.`
    : `Nothing of run ${runId} is on record: start it again once this is corrected.`
  return new ConfigurationError(`${error.message} ${howToContinue}`, { cause: error.cause ?? error })
}

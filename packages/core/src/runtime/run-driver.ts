import { firstValueFrom, Subject } from 'rxjs'
import type { RunHooks } from '../agent/hooks.ts'
import { ContextOfRecord } from '../agent/prepare-turn.ts'
import type { RuntimeRules } from '../agent/registry.ts'
import type { OutsideCommand } from '../events/commands.ts'
import type { RuntimeEvent } from '../events/event.ts'
import { ignoreEnded } from '../ledger/append-rules.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { listCallsAwaitingChild } from '../machine/calls.ts'
import { isSuspended } from '../machine/next-action.ts'
import type { RunState } from '../machine/state.ts'
import type { Model } from '../models/model.ts'
import { LedgerConflictError, LedgerUnavailableError } from '../values/errors.ts'
import type { Host } from '../values/host.ts'
import { type RunId, extractRunId } from '../values/ids.ts'
import { deepFreeze } from '../values/json.ts'
import type { ErrorListener } from '../values/observables.ts'
import {
  createAnswer,
  type CommandAcknowledgement,
  refuseAtEnd,
  refuseByDrain,
  SentCommands,
  PendingWork,
  createDuplicateSendError,
  refuseUnknownCall,
  describeUnreadAnswer,
} from './commands.ts'
import { isDescendantOf } from './children.ts'
import type { Stretch } from './drive.ts'
import { DriveSession } from './drive-session.ts'
import { removeEndedContent } from './ended-content.ts'
import { StoppedElsewhere, waitUntilStopped } from './follow-run.ts'
import { findChangedInputRefusal } from './inbox.ts'
import { type RunResult, loadState, readResult } from './run-result.ts'
import { LiveEvents, type LiveText } from './run-streams.ts'
import type { BegunRun, RuntimeParts } from './runtime-parts.ts'
import { awaitBegun } from './session.ts'
import { type KeyedOrder, requireSameOrder, requireSameRun } from './start-run.ts'

/** True if a child run may have asked something else since the run stopped: it records that in its own events. */
function awaitsChild(state: RunState): boolean {
  return listCallsAwaitingChild(state).length > 0
}

/** Resolves when what followed from a command to a child run has come up to its parent. */
async function waitUntilFollowed(
  acknowledgement: Promise<CommandAcknowledgement>,
  child: RunDriver,
): Promise<void> {
  if (!(await acknowledgement).accepted) return
  await child.result
  await child.reported
}

/**
 * Reports the failure of a run's writer exactly once: to the callers that wait for the run or are subscribed to it,
 * or else to the host. An unreported failure would look like a run that does nothing.
 */
class FailureNotice {
  readonly #runId: RunId
  readonly #report: Host['report']
  #failure: { readonly error: unknown } | undefined
  /** The errors of subscribers whose ledger the application closed. */
  #cutOff: WeakSet<object> | undefined
  #observed = false
  #watchers = 0

  constructor(runId: RunId, report: Host['report']) {
    this.#runId = runId
    this.#report = report
  }

  get isObserved(): boolean {
    return this.#observed
  }

  get isWatched(): boolean {
    return this.#watchers > 0
  }

  /** A drive session begins: the failure of the last one was awaited or reported. */
  begin(): void {
    this.#observed = false
  }

  /** A caller waits for the run or for a command to it, and gets a failure. */
  markObserved(): void {
    this.#observed = true
  }

  /** Counts one subscriber more. */
  watch(): void {
    this.#watchers++
  }

  /** Counts one subscriber less. */
  unwatch(): void {
    this.#watchers--
  }

  /** The writer has failed: subscribers are notified first. */
  onFailure(error: unknown, notifySubscribers: () => void): void {
    this.#failure = { error }
    notifySubscribers()
    this.#reportUnlessObserved()
  }

  /** A subscriber is about to get the error of a ledger that the application closed, which knows that it did. */
  onCutOff(error: unknown): void {
    this.#cutOff = (this.#cutOff ?? new WeakSet()).add(Object(error))
  }

  /** An error came to a subscriber without an error handler. */
  onUnhandledError(error: unknown): void {
    if (this.#cutOff?.has(Object(error))) return
    if (this.#failure?.error === error) this.#reportUnlessObserved()
    else this.#report(error, `The events of run ${this.#runId} could not be read`)
  }

  /** If no subscriber has an error handler, the host gets the failure when the last subscriber is gone. */
  #reportUnlessObserved(): void {
    void Promise.resolve().then(() => {
      if (this.#observed || this.isWatched) return
      this.#observed = true
      this.#report(this.#failure?.error, `Run ${this.#runId} failed and is driven here no more`)
    })
  }
}

/** How long a drain waits for the ledger after the grace time, in milliseconds. */
const answerTimeoutMs = 5_000

const nothing: Promise<void> = Promise.resolve()

/** How a run is driven that is on record. */
interface HowResumed {
  /** Child runs that were under way are taken over, too. */
  readonly withChildren: boolean
  /** It is driven for a stretch; otherwise until it stops. */
  readonly stretch?: Stretch | undefined
  /** A caller that came before waits for how it ends. */
  readonly isAwaited?: boolean
}

interface Given {
  readonly context: unknown
  readonly model: Model | undefined
  readonly hooks: readonly RunHooks[]
  readonly rules: RuntimeRules
}

/**
 * Joins what this process does with one run, for all its handles: at most one drive session at a time, one delivery of
 * commands, one event stream, and the result of the run wherever it stops.
 */
export class RunDriver implements ErrorListener {
  readonly runId: RunId
  readonly parts: RuntimeParts
  readonly live: LiveEvents = new LiveEvents()
  readonly liveText: Subject<LiveText> | undefined
  readonly sent: SentCommands
  readonly notice: FailureNotice
  /** How the run continues in other processes after it stopped here. */
  readonly elsewhere: StoppedElsewhere
  /** Given by the application, from the next drive on: a loop under way keeps what it began with. */
  given: Given = { context: undefined, model: undefined, hooks: [], rules: {} }
  /** The next drive takes the run over also from a process that may be alive. */
  takesOver = false
  /** A call of this process waits for the run, so that its parent needs no other report of its end. */
  isAwaited = false
  /** Commands on their way: about calls of child runs, until what became of them has come up, or being checked. */
  readonly #onTheirWay = new PendingWork()
  /** It begins here, and is there once its first event has come. */
  #beginsHere = false
  /** With what this process began it under an idempotency key. */
  #order: KeyedOrder | undefined
  /** Resolves when the run exists; it may exist already. */
  #found: Promise<unknown> | undefined
  #session: DriveSession | undefined
  #stopped: Promise<RunResult> | undefined
  #reported: Promise<void> = nothing
  #isDone = false
  #failure: { readonly error: unknown } | undefined

  constructor(runId: RunId, parts: RuntimeParts) {
    const { ledger, host } = parts
    this.runId = runId
    this.parts = parts
    this.liveText = parts.passesLiveText ? new Subject() : undefined
    this.sent = new SentCommands(runId, ledger, host.clock)
    this.notice = new FailureNotice(runId, host.report)
    this.elsewhere = new StoppedElsewhere(runId, parts, this.live, this.notice)
  }

  /** Takes what the application gives the run from here on; a loop under way keeps what it has. */
  give({ context, model, hooks, rules }: Given): void {
    const { given } = this
    this.given = {
      context: context === undefined ? given.context : context,
      model: model ?? given.model,
      hooks: hooks.length > 0 ? hooks : given.hooks,
      rules: { ...given.rules, ...rules },
    }
  }

  /** Takes the context of a parent or child run, unless the application said how to make this run's own. */
  inheritContext(context: unknown): void {
    if (!(this.given.context instanceof ContextOfRecord)) this.give({ ...this.given, context })
  }

  get ledger(): Ledger {
    return this.parts.ledger
  }

  /** Keeps the driver for one subscriber more. */
  retain(): void {
    this.notice.watch()
    this.elsewhere.watch()
    this.parts.runs.retain(this)
  }

  /** One subscriber less. */
  release(): void {
    this.notice.unwatch()
    this.elsewhere.unwatch()
    if (!this.notice.isWatched) this.parts.runs.release(this)
  }

  onThrow(error: unknown): void {
    this.parts.host.report(error, `A subscriber of run ${this.runId} threw`)
  }

  onObserved(): void {
    this.notice.markObserved()
  }

  onUnhandledError(error: unknown): void {
    this.notice.onUnhandledError(error)
  }

  /** Resolves when the run is there. */
  get created(): Promise<unknown> {
    if (this.#found) return this.#found
    return this.#beginsHere && !this.live.hasBegun ? firstValueFrom(this.live) : nothing
  }

  get isDrivenHere(): boolean {
    return this.#session !== undefined
  }

  /** The stretch that it is driven for now; its child runs are driven for it, too. */
  get stretch(): Stretch | undefined {
    return this.#session?.stretch
  }

  /** Resolves when the end of the run was reported to its own parent. */
  get reported(): Promise<void> {
    return this.#reported
  }

  /** The result of the run when it stops, for a caller that handles a failure. */
  get result(): Promise<RunResult> {
    this.notice.markObserved()
    const stopped = this.whenStopped
    stopped.catch(() => {})
    return stopped
  }

  /** The result of the drive session under way, or of the last one. */
  get whenStopped(): Promise<RunResult> {
    if (!this.#onTheirWay.isEmpty) return this.#afterDelivery()
    const refreshed = this.#session ? undefined : this.elsewhere.refresh()
    if (refreshed && this.#stopped) return this.#stoppedElsewhere(refreshed, this.#stopped)
    return (this.#stopped ??= this.#ensureDriven({ withChildren: false }))
  }

  /** Commands to child runs may have continued this run. */
  async #afterDelivery(): Promise<RunResult> {
    await this.#onTheirWay.ended()
    if (this.#session && this.#stopped) return await this.#stopped
    // Another process may drive the run by now: it has stopped when it stops there.
    const state = (await this.elsewhere.refresh()) ?? (await loadState(this.parts.ledger, this.runId))
    if (state === undefined) return await this.resume({ withChildren: false })
    if (this.#session && this.#stopped) return await this.#stopped
    const known = await this.#stopped?.catch(() => undefined)
    // The state that stopped here still has its content; the ledger may have removed it since.
    return known && known.seq >= state.seq && !awaitsChild(state) ? known : await this.#readResult(state)
  }

  /** Another process may have continued the run since it stopped here: then the result is that of its last event. */
  async #stoppedElsewhere(refreshed: Promise<RunState>, stopped: Promise<RunResult>): Promise<RunResult> {
    const state = await refreshed
    const result = await (this.#stopped ?? stopped)
    if (this.#session || (state.seq <= result.seq && !awaitsChild(state))) return result
    this.#isDone = state.phase === 'done'
    return await this.#readResult(state)
  }

  #readResult(state: RunState): Promise<RunResult> {
    const { ledger, agents } = this.parts
    return readResult(state, ledger, agents.find(state.agent))
  }

  start(run: BegunRun): void {
    this.#beginsHere = true
    const session = this.#newSession(run.stretch)
    void this.#drive(session, session.start(run))
  }

  /**
   * Returns, for a run that this process holds already, a promise that rejects unless the run was begun with this order.
   * Throws a `ConfigurationError` if this process began it with another; `undefined` if it is not held.
   */
  joined(order: KeyedOrder): Promise<void> | undefined {
    if (this.#order) requireSameOrder(this.runId, this.#order, order)
    if (!this.#session && !this.#stopped) return undefined
    return this.#order ? nothing : requireSameRun(this.parts.ledger, this.runId, order)
  }

  /**
   * Starts the run, unless it was begun already in another process: then joins it, and takes it up if no process drives it
   * any more. The result rejects if it was begun with another order.
   */
  startOnce(run: BegunRun, order: KeyedOrder): void {
    this.#order = order
    const found = Promise.withResolvers<void>()
    this.#found = Promise.race([firstValueFrom(this.live), found.promise])
    this.#found.catch(() => {})
    const result = this.#startedOnce(run, order, found.resolve)
    result.catch((error: unknown) => {
      if (this.#failure === undefined) void this.#onFailure(error)
    })
    this.#stopped = result
  }

  async #startedOnce(run: BegunRun, order: KeyedOrder, onFound: () => void): Promise<RunResult> {
    const { ledger } = this.parts
    let there = await loadState(ledger, this.runId)
    if (there === undefined) {
      let found: RunState | undefined
      const session = this.#newSession(run.stretch, { isAwaited: this.notice.isObserved })
      const begun = session.start(run).catch(async (error: unknown) => {
        found = error instanceof LedgerConflictError ? await loadState(ledger, this.runId) : undefined
        if (found === undefined) throw error
        return found
      })
      const result = await this.#drive(session, begun)
      if (found === undefined) return result
      there = found
    }
    await requireSameRun(ledger, this.runId, order)
    onFound()
    this.#isDone = there.phase === 'done'
    if (this.#isDone || isSuspended(there) || run.isQueued) {
      this.elsewhere.stoppedAt(there)
      return await this.#readResult(there)
    }
    const isAwaited = this.notice.isObserved
    return await this.#ensureDriven({ withChildren: true, stretch: run.stretch, isAwaited })
  }

  /** Makes the run of the first events of another, and drives it from there. */
  fork(prepare: () => Promise<readonly RuntimeEvent[]>): void {
    this.#beginsHere = true
    const session = this.#newSession()
    void this.#drive(session, session.fork(prepare))
  }

  /** Resolves to `false` if another run of its session is under way, so that it has to be joined. */
  async hasBegun(): Promise<boolean> {
    this.notice.markObserved()
    return await awaitBegun(this.created)
  }

  /** Drives the run until it stops; joins the drive session under way. */
  resume(how: HowResumed): Promise<RunResult> {
    const result = this.#ensureDriven(how)
    this.notice.markObserved()
    return result
  }

  /** The same for a caller that does not wait. */
  drive(how: HowResumed): void {
    void this.#ensureDriven(how)
  }

  #ensureDriven({ withChildren, stretch, isAwaited }: HowResumed): Promise<RunResult> {
    if (this.#session && this.#stopped) return this.#stopped
    const session = this.#newSession(stretch, { isAwaited })
    return this.#drive(session, session.resume(withChildren))
  }

  /** Waits until the run stops in another process, which drives it. Joins a drive session of this process. */
  follow(from: RunState): void {
    if (this.#session) return
    const stopped = waitUntilStopped(from, this.parts, (event) => this.live.next(event))
    const result = stopped.then((state) => {
      this.elsewhere.stoppedAt(state)
      return this.#readResult(state)
    })
    this.#stopped = result
    // Whoever reads the result gets the failure from there; where nobody does, the notice reports it.
    result.catch((error: unknown) => this.#onFailure(error))
  }

  /**
   * Sends a command by way of the ledger's inbox, under a new key unless given, and sees to it that a process decides it. A
   * command about a call of a child run goes to that run; what becomes of it comes up to this one.
   */
  send(given: OutsideCommand, key: string = this.parts.newId()): Promise<CommandAcknowledgement> {
    const command = deepFreeze(given)
    const { runId, parts, sent } = this
    if (this.#isDone) return Promise.resolve(sent.refused(command, refuseAtEnd(runId)))
    if (parts.runs.isDrained) return Promise.resolve({ accepted: false, ...refuseByDrain(runId) })
    const targetRunId = 'toolCallId' in command ? extractRunId(command.toolCallId) : undefined
    if (targetRunId !== undefined && targetRunId !== runId) {
      const child = parts.runs.ensureDriver(targetRunId)
      const acknowledgement = this.#sendDown(command, child, key)
      this.#onTheirWay.add(waitUntilFollowed(acknowledgement, child))
      return acknowledgement
    }
    if (command.type !== 'approve' || !command.input) return this.#deliver(command, key)
    const acknowledgement = this.#deliverChecked(command, key)
    this.#onTheirWay.add(acknowledgement)
    return acknowledgement
  }

  async #sendDown(command: OutsideCommand, child: RunDriver, key: string): Promise<CommandAcknowledgement> {
    await this.created
    if (!(await isDescendantOf(this.ledger, child.runId, this.runId))) {
      return { accepted: false, ...refuseUnknownCall(this.runId) }
    }
    child.inheritContext(this.given.context)
    return await child.send(command, key)
  }

  /** Approves a call with another input, once that is known to run: else its sender is refused with the reason, and the model reads nothing of it. */
  async #deliverChecked(command: OutsideCommand, key: string): Promise<CommandAcknowledgement> {
    await this.created
    const { runId, parts, given } = this
    const { ledger, host } = parts
    const agents = parts.agents.inRun(given.rules)
    const about = { runId, ledger, agents, clock: host.clock, context: given.context }
    const fault = await findChangedInputRefusal(command, about)
    return fault ? { accepted: false, ...fault } : await this.#deliver(command, key)
  }

  #deliver(command: OutsideCommand, key: string): Promise<CommandAcknowledgement> {
    // A driver whose writer failed takes no run over again: resume makes a new handle for that.
    if (this.#failure) return Promise.reject(this.#failure.error)
    const isDriven = this.#session !== undefined
    const acknowledgement = this.sent.send(command, key, () => this.#put(command, key))
    if (!isDriven) {
      const session = this.#newSession()
      void this.#drive(session, session.awaitDecisions())
    }
    return acknowledgement
  }

  async #put(command: OutsideCommand, key: string): Promise<void> {
    const { runId, ledger, parts, sent } = this
    await this.created
    if (!this.#session?.loop.isWriter) await sent.leave(key)
    const at = parts.host.clock.now()
    const isFresh = await ignoreEnded(ledger.put(runId, { key, command, at }))
    if (isFresh === undefined) return sent.acknowledge(key, refuseAtEnd(runId))
    if (!isFresh) throw createDuplicateSendError(runId, key)
    this.#session?.loop.wake()
  }

  /** The answer to a caller, who may not wait for it. */
  answer<T>(verb: string, ask: () => Promise<T>): Promise<T> {
    const { report } = this.parts.host
    return createAnswer(ask(), (error) => report(error, describeUnreadAnswer(verb, this.runId)))
  }

  /** Puts a command into the inbox of the run, and does not wait for its acknowledgement. */
  async enqueue(command: OutsideCommand, key: string): Promise<void> {
    const { ledger, host } = this.parts
    await ledger.put(this.runId, { key, command, at: host.clock.now() })
  }

  /** Lets what is in flight end, begins nothing, and returns the result of the run as it stopped. */
  async drain(graceMs: number): Promise<RunResult> {
    this.#session?.loop.drain(graceMs)
    const silent = new LedgerUnavailableError(
      `The ledger has not answered for ${answerTimeoutMs} ms after the grace time of a drain, so run ${this.runId} was left where it ` +
        'is. Its last append may or may not have been carried out; acknowledged events are not lost. Resume it when the ledger answers.',
    )
    const { clock } = this.parts.host
    const stopTimer = clock.schedule(graceMs + answerTimeoutMs, () => this.#session?.abort(silent))
    return await this.whenStopped.finally(stopTimer)
  }

  /** With `isAwaited`, a caller that came before waits for how it ends. */
  #newSession(
    stretch?: Stretch,
    { isAwaited = false }: { readonly isAwaited?: boolean | undefined } = {},
  ): DriveSession {
    const session = new DriveSession(this, stretch)
    this.#session = session
    this.elsewhere.began()
    if (!isAwaited) this.notice.begin()
    this.parts.runs.began(this)
    return session
  }

  /** Drives the run in a session that has begun, and returns its result when it has stopped. */
  #drive(session: DriveSession, begun: Promise<RunState>): Promise<RunResult> {
    const result = this.#untilStopped(session, begun)
    // A failure that no caller awaits is reported by the notice.
    result.catch(() => {})
    this.#stopped = result
    return result
  }

  async #untilStopped(session: DriveSession, begun: Promise<RunState>): Promise<RunResult> {
    let state: RunState
    try {
      state = await session.drive(begun, (stopped) => this.#onStopped(session, stopped))
    } catch (error) {
      await this.#onFailure(error)
      throw error
    }
    await session.release()
    const result = await this.#readResult(state)
    await removeEndedContent(state, this.parts)
    return result
  }

  /** Releases the run that has stopped, and refuses the commands that come too late for it. */
  #onStopped(session: DriveSession, state: RunState): void {
    const { sent } = this
    this.#isDone = state.phase === 'done'
    this.takesOver = false
    this.elsewhere.stoppedAt(session.loop.isDraining && !this.#isDone ? undefined : state)
    if (this.#isDone) sent.refuseAll(refuseAtEnd(this.runId))
    else if (session.loop.isDraining) sent.refuseAll(refuseByDrain(this.runId))
    void this.#endSession(session, state)
    if (this.#isDone) this.#reportEnd(state)
  }

  #reportEnd(state: RunState): void {
    const { parts, given } = this
    this.#reported = parts.runs.reportEnd(state, given.context)
    const what = `The parent of run ${this.runId} did not learn of its end`
    this.#reported.catch((error: unknown) => parts.host.report(error, what))
  }

  /** Drives no more, and rejects all who wait for it. */
  async #onFailure(error: unknown): Promise<void> {
    const { sent, parts } = this
    this.#failure = { error }
    const released = this.#session && this.#endSession(this.#session)
    parts.runs.failed(this)
    if (sent.hasPending) this.notice.markObserved()
    sent.fail(error)
    this.notice.onFailure(error, () => this.live.error(error))
    await released
  }

  #endSession(session: DriveSession, state?: RunState): Promise<void> {
    this.#session = undefined
    this.parts.runs.stopped(this)
    return session.release(state)
  }
}

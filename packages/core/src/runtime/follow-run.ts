import type { Unsubscribable } from 'rxjs'
import type { RuntimeEvent } from '../events/event.ts'
import { caughtUp, followChanges } from '../ledger/changes.ts'
import type { Head, Ledger } from '../ledger/ledger.ts'
import { listCallsAwaitingChild, openTurnCalls } from '../machine/calls.ts'
import { isSuspended } from '../machine/next-action.ts'
import type { RunState } from '../machine/state.ts'
import { type BusyRun, LedgerConflictError, LedgerUnavailableError } from '../values/errors.ts'
import { deriveChildRunId, type RunId } from '../values/ids.ts'
import { foldFollowed, type RunResult, loadState, readResultWithChildren } from './run-result.ts'
import type { LiveEvents } from './run-streams.ts'
import type { RuntimeParts } from './runtime-parts.ts'

/** How often the ledger is asked whether a process drives the run. */
const pollIntervalMs = 1_000

/**
 * Follows a run that another process drives, and returns the state in which it has ended. Rejects with a
 * `LedgerConflictError` of kind `session` where that cannot be: no process drives it, or this runtime is drained.
 */
export function waitUntilEnded(from: RunState, parts: RuntimeParts): Promise<RunState> {
  return followRun(from, parts, ({ phase }) => phase === 'done')
}

/** The same for the state in which the run has stopped: ended, or suspended. */
export function waitUntilStopped(
  from: RunState,
  parts: RuntimeParts,
  onEvent: (event: RuntimeEvent) => void,
): Promise<RunState> {
  return followRun(from, parts, (state) => state.phase === 'done' || isSuspended(state), onEvent)
}

/**
 * The same for the state in which the run has shown its model the input of an id, or is suspended with it on record;
 * `undefined` if the run did not take it, or ended without showing it. `shown` says which.
 */
export async function waitForInput(
  from: RunState,
  parts: RuntimeParts,
  inputId: string,
): Promise<{ readonly state: RunState; readonly shown: boolean } | undefined> {
  let taken = from.pendingInputs.some((input) => input.inputId === inputId)
  let shown: boolean | undefined
  const onEvent = (event: RuntimeEvent): void => {
    if (event.type === 'input_received' && event.receipt === inputId) taken = true
    if (event.type === 'input_settled' && event.receipt === inputId) shown = event.delivered
  }
  const isOver = (state: RunState): boolean =>
    shown !== undefined || state.phase === 'done' || (taken && isSuspended(state))
  const state = await followRun(from, parts, isOver, onEvent)
  if (shown === true) return { state, shown }
  return shown === undefined && state.phase !== 'done' ? { state, shown: false } : undefined
}

/** Follows a run from a state on, until it has come to one in which that is over. */
async function followRun(
  from: RunState,
  { ledger, host, runs }: RuntimeParts,
  isOver: (state: RunState) => boolean,
  onEvent: (event: RuntimeEvent) => void = () => {},
): Promise<RunState> {
  let state = from
  /** The event after which no process drove the run, and it had not stopped: what came since is to be read first. */
  let undrivenAt: number | undefined
  const poll = { clock: host.clock, delayMs: () => pollIntervalMs }
  const changes = followChanges(ledger, from.runId, { after: from.seq, poll })
  for await (const event of changes) {
    if (event !== caughtUp) {
      state = await foldFollowed(ledger, state, event)
      onEvent(event)
      continue
    }
    if (isOver(state)) return state
    if (changes.isWoken) continue
    if (runs.isDrained) throw createDrainedError(state)
    if (isSuspended(state) || (await runs.isDriven(state.runId))) undrivenAt = undefined
    // Its driver may have come to the end between the look at the run and the look at the driver.
    else if (undrivenAt === state.seq) throw createInterruptedError(state)
    else {
      undrivenAt = state.seq
      changes.wake()
    }
  }
  return state
}

/**
 * Follows how a run continues in other processes while this one does not drive it, and publishes what they record. It listens
 * to the ledger only then, and only for readers: a driver of this process publishes what it records itself.
 */
export class StoppedElsewhere {
  readonly #runId: RunId
  readonly #parts: RuntimeParts
  readonly #live: LiveEvents
  readonly #listener: { onCutOff(error: unknown): void }
  #from: RunState | undefined
  #isDrivenHere = false
  #isDone = false
  #refreshing: Promise<RunState> | undefined
  #readers = 0
  #hints: Unsubscribable | undefined

  constructor(
    runId: RunId,
    parts: RuntimeParts,
    live: LiveEvents,
    listener: { onCutOff(error: unknown): void },
  ) {
    this.#runId = runId
    this.#parts = parts
    this.#live = live
    this.#listener = listener
  }

  /** This process begins to drive the run. */
  began(): void {
    this.#isDrivenHere = true
    this.#from = undefined
    this.#listen()
  }

  /** Sets the state in which the run stopped here; `undefined` if it is not followed from there. */
  stoppedAt(state: RunState | undefined): void {
    this.#isDrivenHere = false
    this.#isDone = state?.phase === 'done'
    this.#from = this.#isDone ? undefined : state
    // Events that others recorded between the stop and this subscription sent no hint.
    if (this.#listen()) this.#refreshUnobserved()
  }

  /** Returns the state in which the run has stopped now; `undefined` if it has not stopped here. */
  refresh(): Promise<RunState> | undefined {
    const from = this.#from
    if (from === undefined) return undefined
    this.#refreshing ??= this.#follow(from).finally(() => (this.#refreshing = undefined))
    return this.#refreshing
  }

  /**
   * Reads what other processes record for one reader more. Where the ledger was closed, so that nothing can be read any more,
   * all readers of the live events are cut off.
   */
  watch(): void {
    this.#readers++
    this.#listen()
  }

  /** One reader less, of those that it reads for. */
  unwatch(): void {
    this.#readers--
    if (this.#readers === 0) this.#leave()
  }

  /** Listens to the ledger where that is needed; returns whether it begins to. */
  #listen(): boolean {
    const isNeeded = this.#readers > 0 && !this.#isDrivenHere && !this.#isDone
    if (!isNeeded) this.#leave()
    if (!isNeeded || this.#hints) return false
    // Without hints, what this process records still comes; a ledger that was closed refuses to be read.
    const onEnd = (): void => {
      this.#hints = undefined
      this.#parts.ledger.head(this.#runId).catch((error: unknown) => {
        // A driver that fails since the ledger was closed says so itself: readers get the error from here once it has stopped.
        if (this.#isDrivenHere) return
        this.#listener.onCutOff(error)
        this.#live.cutOff$.next(error)
      })
    }
    // Subscribers read the ledger too, and get its failures there.
    try {
      const hints = this.#parts.ledger.changes(this.#runId).subscribe({
        next: () => this.#refreshUnobserved(),
        error: onEnd,
        complete: onEnd,
      })
      if (!hints.closed) this.#hints = hints
    } catch {
      // Nothing is hinted at.
    }
    return true
  }

  #leave(): void {
    this.#hints?.unsubscribe()
    this.#hints = undefined
  }

  #refreshUnobserved(): void {
    void this.refresh()?.catch(() => {})
  }

  async #follow(from: RunState): Promise<RunState> {
    try {
      const state = await waitUntilStopped(from, this.#parts, (event) => this.#live.next(event))
      if (this.#from === from) this.stoppedAt(state)
      return state
    } catch (error) {
      // While the ledger cannot be read, the last known state holds.
      if (error instanceof LedgerUnavailableError) return from
      throw error
    }
  }
}

/** The runs that only a command can continue. */
export async function* readSuspendedRuns(ledger: Ledger): AsyncGenerator<RunResult, void, undefined> {
  for await (const state of readUnfinishedRuns(ledger)) {
    if (isSuspended(state)) yield await readResultWithChildren(state, ledger)
  }
}

/** The runs that have not ended, wait for nothing, and are driven by no process. */
export async function* readInterruptedRuns(parts: RuntimeParts): AsyncGenerator<RunResult, void, undefined> {
  const { ledger } = parts
  for await (const state of readUnfinishedRuns(ledger)) {
    if (await isInterrupted(state, parts)) yield await readResultWithChildren(state, ledger)
  }
}

/** Leaves out child runs: a caller continues the root run. */
async function* readUnfinishedRuns(ledger: Ledger): AsyncGenerator<RunState> {
  for await (const { runId } of ledger.runs()) {
    const state = await loadState(ledger, runId)
    if (state && state.phase !== 'done' && state.parent?.relation !== 'child') yield state
  }
}

/**
 * A run that waits for an interrupted run is interrupted, too, and so is one whose child run has ended without a report
 * of it: the process that drove the child run is gone.
 */
async function isInterrupted(state: RunState, parts: RuntimeParts): Promise<boolean> {
  const { ledger, runs } = parts
  if (state.phase === 'done') return false
  if (!isSuspended(state)) return !(await runs.isDriven(state.runId))
  for (const { toolCallId } of listCallsAwaitingChild(state)) {
    const child = await loadState(ledger, deriveChildRunId(state.runId, toolCallId))
    if (child === undefined) continue
    if (child.phase === 'done' ? !(await runs.isDriven(child.runId)) : await isInterrupted(child, parts))
      return true
  }
  return false
}

/** Returns the status of a run that has not ended, and that a process drives or not. */
function getStatus(state: RunState, isDriven: boolean): BusyRun['status'] {
  if (isSuspended(state)) return 'suspended'
  return isDriven ? 'under_way' : 'interrupted'
}

/** The refusal of a run whose session has one that has not ended. */
export function createBusySessionError(state: RunState, isDriven: boolean): LedgerConflictError {
  const status = getStatus(state, isDriven)
  const wait = "start this run with whenBusy: 'wait'; session(…).run gives it the input with whenBusy: 'join'"
  const ways: Readonly<Record<BusyRun['status'], string>> = {
    suspended: `Decide what it waits for (runtime.suspended() lists it), cancel it, or ${wait}.`,
    under_way: `Wait for its end, cancel it, or ${wait}.`,
    interrupted: `No process drives it: runtime.resume('${state.runId}') continues it; or cancel it. Then start this run again.`,
  }
  return createConflict(
    state,
    status,
    `${describeRunStatus(state, status)}, and a second run beside it would be a second history. ${ways[status]}`,
  )
}

/**
 * Returns where a run ends now, if that is not where this state ends: the driver of the run may have come to its end between
 * the look at the run and the look at its driver.
 */
export async function readNewerHead(ledger: Ledger, { runId, seq }: RunState): Promise<Head | undefined> {
  const head = await ledger.head(runId)
  return head?.seq === seq ? undefined : head
}

/** The end of waiting for a run that no process drives. */
export function createInterruptedError(state: RunState): LedgerConflictError {
  const what = `${describeRunStatus(state, 'interrupted')}, so waiting for it would never end`
  return createConflict(
    state,
    'interrupted',
    `${what}. To continue, runtime.resume('${state.runId}') continues it; or cancel it.`,
  )
}

/** The same refusal of input that the run's inbox keeps: it names the input, so that a retry sends it no second time. */
export function createKeptInputError(refusal: LedgerConflictError, inputId: string): LedgerConflictError {
  const { kind, message, busy } = refusal
  return new LedgerConflictError(
    kind,
    `${message} The inbox of the run keeps the input ${inputId}, and resume() reads it; a retry with that inputId sends it no second time.`,
    busy && { busy: { ...busy, inputId } },
  )
}

/** The end of waiting in a runtime that was drained. */
export function createDrainedError(state: RunState): LedgerConflictError {
  return createConflict(
    state,
    getStatus(state, true),
    `The runtime was drained while it waited for run ${state.runId}${formatSession(state)}. Start the run in another process.`,
  )
}

function createConflict(state: RunState, status: BusyRun['status'], message: string): LedgerConflictError {
  return new LedgerConflictError('session', message, { busy: { runId: state.runId, status } })
}

function describeRunStatus(state: RunState, status: BusyRun['status']): string {
  const run = `Run ${state.runId}${formatSession(state)}`
  const last = `its last event, ${state.seq}, is of ${new Date(state.at).toISOString()}`
  switch (status) {
    case 'suspended':
      return `${run} waits for ${describeWait(state)}`
    case 'under_way':
      return `${run} is under way`
    case 'interrupted':
      return `${run} was interrupted: it has not ended, and no process drives it (${last})`
  }
}

function describeWait(state: RunState): string {
  const asked = openTurnCalls(state).filter(({ status }) => status === 'awaiting_approval')
  const deferred = openTurnCalls(state).filter(({ status }) => status === 'deferred')
  const calls = [
    ...asked.map(({ name, toolCallId }) => `an approval of ${name} (${toolCallId})`),
    ...deferred.map(({ name, toolCallId }) => `the end of ${name} (${toolCallId})`),
  ]
  if (calls.length > 0) return calls.join(', ')
  return state.metLimit ? `its limit ${state.metLimit.limit} to be raised` : 'something from outside'
}

function formatSession({ sessionId }: RunState): string {
  return sessionId === undefined ? '' : ` of session ${sessionId}`
}

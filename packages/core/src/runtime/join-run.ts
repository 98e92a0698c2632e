import type { UserMessage } from '../events/content.ts'
import { isEndedBefore } from '../ledger/append-rules.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { isSuspended } from '../machine/next-action.ts'
import type { RunState } from '../machine/state.ts'
import { LedgerConflictError } from '../values/errors.ts'
import type { RunId } from '../values/ids.ts'
import { isOvertaken } from './commands.ts'
import { createBusySessionError, createKeptInputError, readNewerHead, waitForInput } from './follow-run.ts'
import type { RunDriver } from './run-driver.ts'
import type { RunRegistry } from './run-registry.ts'
import { loadState } from './run-result.ts'
import { readLastRun, type PastOptions } from './session.ts'

async function isInInbox(ledger: Ledger, runId: RunId, inputId: string): Promise<boolean> {
  return (await ledger.inbox(runId)).some(({ key }) => key === inputId)
}

/**
 * The run of a session that has taken the input of an id last, and whether it has shown it to its model: a run shows what
 * it began with. `undefined` if none is on record.
 */
async function findRecordedInput(
  ledger: Ledger,
  sessionId: string,
  inputId: string,
): Promise<{ readonly state: RunState; readonly shown: boolean } | undefined> {
  let found: { readonly runId: RunId; readonly shown: boolean } | undefined
  for await (const event of ledger.find({ sessionId, types: ['input_received', 'input_settled'] })) {
    if (event.type === 'input_received' && event.receipt === inputId) {
      found = { runId: event.runId, shown: event.delivery === 'start' }
    }
    if (event.type === 'input_settled' && event.receipt === inputId) {
      found = { runId: event.runId, shown: event.delivered }
    }
  }
  const state = found && (await loadState(ledger, found.runId))
  return found && state && { state, shown: found.shown }
}

/** Input for the last run of a session. */
export interface JoiningInput {
  readonly message: UserMessage
  /** Names the input in a retry of the sender. */
  readonly inputId?: string | undefined
  /** Refuses a run of the session that the sender may not join. */
  readonly mayFollow?: PastOptions['mayFollow']
  /** Begins the next run of the session with the input: the run that was joined has ended without showing it. */
  readonly beginNext: () => void
}

/** Input on its way into a run of a session. */
interface Joining extends JoiningInput {
  readonly runs: RunRegistry
  /** The key of the input in the inbox, and its receipt on record. */
  readonly inputId: string
}

/**
 * Gives input to the run of a session that is under way, and answers it once that run has shown the input or is suspended
 * with it; `undefined` if none is under way, or if it ended without showing it: then the input is the next run's. Input of
 * an id that is on record is not sent again. Rejects with a `LedgerConflictError` if the run was interrupted.
 */
export async function joinRun(
  runs: RunRegistry,
  sessionId: string,
  input: JoiningInput,
): Promise<RunDriver | undefined> {
  const { ledger } = runs.parts
  const { inputId, mayFollow } = input
  const before = inputId === undefined ? undefined : await findRecordedInput(ledger, sessionId, inputId)
  if (before) await mayFollow?.(before.state.runId)
  if (before?.shown) return followRun(runs, before.state)
  const last = await readLastRun(ledger, sessionId)
  if (last) await mayFollow?.(last.runId)
  const state = last && (await loadState(ledger, last.runId))
  if (state === undefined || state.phase === 'done') return undefined
  const own = inputId ?? runs.parts.newId()
  const joining = { ...input, runs, inputId: own }
  try {
    if (!(await isSent(joining, state))) return undefined
    const taken = await waitForInput(state, runs.parts, own)
    if (taken === undefined) return undefined
    const driver = followRun(runs, taken.state)
    if (!taken.shown) beginWhenUnshown(driver, joining)
    return driver
  } catch (error) {
    const isConflict = error instanceof LedgerConflictError && error.kind === 'session'
    // The run's inbox may keep the input, which the error then names.
    throw isConflict && (await isInInbox(ledger, state.runId, own)) ? createKeptInputError(error, own) : error
  }
}

/** Leaves the input in the run's inbox, once; answers `false` if the run has ended, or has to be looked at again. */
async function isSent({ runs, message, inputId }: Joining, state: RunState): Promise<boolean> {
  const { runId } = state
  const { ledger } = runs.parts
  const driver = runs.ensureDriver(runId)
  const command = { type: 'steer', message, receipt: inputId } as const
  if (state.pendingInputs.some((input) => input.inputId === inputId)) return true
  if (!(await isInInbox(ledger, runId, inputId)) && (driver.isDrivenHere || isSuspended(state))) {
    try {
      // A run that is being cancelled takes no input: the next one begins when it has ended.
      await driver.send(command, inputId)
    } catch (error) {
      if (!isOvertaken(error)) throw error
    }
    return true
  }
  const isDriven = await runs.isDriven(runId)
  if (!isDriven && !isSuspended(state)) {
    if (await readNewerHead(ledger, state)) return false
    throw createBusySessionError(state, isDriven)
  }
  try {
    await driver.enqueue(command, inputId)
    return true
  } catch (error) {
    if (isEndedBefore(error)) return false
    throw error
  }
}

function followRun(runs: RunRegistry, state: RunState): RunDriver {
  const driver = runs.ensureDriver(state.runId)
  driver.follow(state)
  return driver
}

/** Begins the next run of the session when a suspended run that has taken the input ends without having shown it. */
function beginWhenUnshown({ live, elsewhere }: RunDriver, { inputId, beginNext }: Joining): void {
  const subscription = live.subscribe({
    next: (event) => {
      if (event.type !== 'input_settled' || event.receipt !== inputId) return
      subscription.unsubscribe()
      if (!event.delivered) beginNext()
    },
    error: () => {},
  })
  elsewhere.watch()
  subscription.add(() => elsewhere.unwatch())
}

import { LedgerConflictError, type BusyRun } from '../../values/errors.ts'
import { isSuspended } from '../../machine/next-action.ts'
import type { RunState } from '../../machine/state.ts'
import type { Head, Ledger } from '../../ledger/ledger.ts'
import { openTurnCalls } from '../../machine/calls.ts'

/** Returns the status of a run that has not ended, and that a process drives or not. */
function statusOf(state: RunState, isDriven: boolean): BusyRun['status'] {
  if (isSuspended(state)) return 'suspended'
  return isDriven ? 'under_way' : 'interrupted'
}

/** The refusal of a run whose session has one that has not ended. */
export function busySession(state: RunState, isDriven: boolean): LedgerConflictError {
  const status = statusOf(state, isDriven)
  const wait = "start this run with whenBusy: 'wait'; session(…).run gives it the input with whenBusy: 'join'"
  const ways: Readonly<Record<BusyRun['status'], string>> = {
    suspended: `Decide what it waits for (runtime.suspended() lists it), cancel it, or ${wait}.`,
    under_way: `Wait for its end, cancel it, or ${wait}.`,
    interrupted: `No process drives it: ${resumeText(state)}; or cancel it. Then start this run again.`,
  }
  return conflict(
    state,
    status,
    `${statusText(state, status)}, and a second run beside it would be a second history. ${ways[status]}`,
  )
}

/**
 * Returns where a run ends now, if that is not where this state ends: the driver of the run may have come to its end between
 * the look at the run and the look at its driver.
 */
export async function newHead(ledger: Ledger, { runId, seq }: RunState): Promise<Head | undefined> {
  const head = await ledger.head(runId)
  return head?.seq === seq ? undefined : head
}

/** The end of waiting for a run that no process drives. */
export function interruptedMeanwhile(state: RunState): LedgerConflictError {
  const what = `${statusText(state, 'interrupted')}, so waiting for it would never end`
  return conflict(state, 'interrupted', `${what}. To continue, ${resumeText(state)}; or cancel it.`)
}

/** The same refusal of input that the run's inbox keeps: it names the input, so that a retry sends it no second time. */
export function keptInput(refusal: LedgerConflictError, inputId: string): LedgerConflictError {
  const { kind, message, busy } = refusal
  return new LedgerConflictError(
    kind,
    `${message} The inbox of the run keeps the input ${inputId}, and resume() reads it; a retry with that inputId sends it no second time.`,
    busy && { busy: { ...busy, inputId } },
  )
}

/** The end of waiting in a runtime that was drained. */
export function drainedMeanwhile(state: RunState): LedgerConflictError {
  return conflict(
    state,
    statusOf(state, true),
    `The runtime was drained while it waited for run ${state.runId}${sessionText(state)}. Start the run in another process.`,
  )
}

function conflict(state: RunState, status: BusyRun['status'], message: string): LedgerConflictError {
  return new LedgerConflictError('session', message, { busy: { runId: state.runId, status } })
}

function statusText(state: RunState, status: BusyRun['status']): string {
  const run = `Run ${state.runId}${sessionText(state)}`
  const last = `its last event, ${state.seq}, is of ${new Date(state.at).toISOString()}`
  switch (status) {
    case 'suspended':
      return `${run} waits for ${waitReasonText(state)}`
    case 'under_way':
      return `${run} is under way`
    case 'interrupted':
      return `${run} was interrupted: it has not ended, and no process drives it (${last})`
  }
}

function waitReasonText(state: RunState): string {
  const asked = openTurnCalls(state).filter(({ status }) => status === 'awaiting_approval')
  const deferred = openTurnCalls(state).filter(({ status }) => status === 'deferred')
  const calls = [
    ...asked.map(({ name, toolCallId }) => `an approval of ${name} (${toolCallId})`),
    ...deferred.map(({ name, toolCallId }) => `the end of ${name} (${toolCallId})`),
  ]
  if (calls.length > 0) return calls.join(', ')
  return state.metLimit ? `its limit ${state.metLimit.limit} to be raised` : 'something from outside'
}

function sessionText({ sessionId }: RunState): string {
  return sessionId === undefined ? '' : ` of session ${sessionId}`
}

function resumeText({ runId }: RunState): string {
  return `runtime.resume('${runId}') continues it`
}

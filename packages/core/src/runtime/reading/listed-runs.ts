import { childRunIdOf } from '../../values/ids.ts'
import { isSuspended } from '../../machine/next-action.ts'
import type { RunState } from '../../machine/state.ts'
import { callsAwaitingChild } from '../../machine/calls.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Waiting } from './follow-run.ts'
import { stateOf } from './load-state.ts'
import { withChildren, type RunResult } from './run-result.ts'

/** The runs that only a command can continue. */
export async function* suspendedRuns(ledger: Ledger): AsyncGenerator<RunResult, void, undefined> {
  for await (const state of unfinishedRuns(ledger)) {
    if (isSuspended(state)) yield await withChildren(state, ledger)
  }
}

/** The runs that have not ended, wait for nothing, and are driven by no process. */
export async function* interruptedRuns(waiting: Waiting): AsyncGenerator<RunResult, void, undefined> {
  const { ledger } = waiting
  for await (const state of unfinishedRuns(ledger)) {
    if (await isInterrupted(state, waiting)) yield await withChildren(state, ledger)
  }
}

/** Leaves out child runs: a caller continues the root run. */
async function* unfinishedRuns(ledger: Ledger): AsyncGenerator<RunState> {
  for await (const { runId } of ledger.runs()) {
    const state = await stateOf(ledger, runId)
    if (state && state.phase !== 'done' && state.parent?.relation !== 'child') yield state
  }
}

/**
 * A run that waits for an interrupted run is interrupted, too, and so is one whose child run has ended without a report
 * of it: the process that drove the child run is gone.
 */
async function isInterrupted(state: RunState, waiting: Waiting): Promise<boolean> {
  const { ledger, runs } = waiting
  if (state.phase === 'done') return false
  if (!isSuspended(state)) return !(await runs.isDriven(state.runId))
  for (const { toolCallId } of callsAwaitingChild(state)) {
    const child = await stateOf(ledger, childRunIdOf(state.runId, toolCallId))
    if (child === undefined) continue
    if (child.phase === 'done' ? !(await runs.isDriven(child.runId)) : await isInterrupted(child, waiting))
      return true
  }
  return false
}

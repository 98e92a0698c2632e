import { childRunIdOf } from '../../vocabulary/values/child-run-id.ts'
import { isSuspended } from '../../machine/next/next-action.ts'
import type { RunState } from '../../machine/state/state.ts'
import { callsAwaitingChild } from '../../machine/state/state-views.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { Waiting } from './follow-run.ts'
import { stateOf } from './load-state.ts'
import { withChildren, type RunResult } from './run-result.ts'

/** Decides which runs count as interrupted. */
export interface InterruptedOptions {
  /**
   * If the ledger cannot know whether a process drives a run, the run counts as interrupted when it has recorded
   * nothing for this many milliseconds. Without it, such runs are left out. A live run whose tool takes longer counts
   * as interrupted too: choose more than your longest tool call.
   */
  readonly quietMs?: number | undefined
}

/** The runs that only a command can continue. */
export async function* suspendedRuns(ledger: Ledger): AsyncGenerator<RunResult, void, undefined> {
  for await (const state of unfinishedRuns(ledger)) {
    if (isSuspended(state)) yield await withChildren(state, ledger)
  }
}

/** The runs that have not ended, wait for nothing, and are driven by no process. */
export async function* interruptedRuns(
  waiting: Waiting,
  options: InterruptedOptions,
): AsyncGenerator<RunResult, void, undefined> {
  const { ledger } = waiting
  for await (const state of unfinishedRuns(ledger)) {
    if (await isInterrupted(state, waiting, options)) yield await withChildren(state, ledger)
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
async function isInterrupted(
  state: RunState,
  waiting: Waiting,
  options: InterruptedOptions,
): Promise<boolean> {
  if (state.phase === 'done') return false
  if (!isSuspended(state)) return await isLeft(state, waiting, options)
  for (const { toolCallId } of callsAwaitingChild(state)) {
    const child = await stateOf(waiting.ledger, childRunIdOf(state.runId, toolCallId))
    if (child === undefined) continue
    const judge = child.phase === 'done' ? isLeft : isInterrupted
    if (await judge(child, waiting, options)) return true
  }
  return false
}

/** Whether no process works on a run any more. */
async function isLeft(
  { runId, at }: RunState,
  { clock, runs }: Waiting,
  { quietMs }: InterruptedOptions,
): Promise<boolean> {
  const isDriven = await runs.isDriven(runId)
  if (isDriven !== undefined) return !isDriven
  return quietMs !== undefined && clock.now() - at >= quietMs
}

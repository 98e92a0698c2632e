import type { Ledger, RunId, RunResult, RunState } from '@tallystick/core'
import { isRunDriven, omitUndefined, readResultWithChildren, toResult } from '@tallystick/core/internal'
import { isSuspended } from '@tallystick/core/machine'
import { foldTo } from '@tallystick/ledger'
import { createRunNotFoundError } from '../http/problem.ts'

/**
 * The status of a run. `under_way`: a process drives it. `suspended`: it waits for a command. `interrupted`: no
 * process drives it, and `resume` continues it.
 */
export const runStatuses = ['under_way', 'suspended', 'interrupted', 'done'] as const
export type RunStatus = (typeof runStatuses)[number]

/**
 * Returns the state of a run as a caller sees it: its status, its answer, its totals, and what it waits for. Its size does not
 * grow with the conversation, which is the transcript.
 */
export async function readRunView(ledger: Ledger, state: RunState): Promise<object> {
  return toView(state, await readResultWithChildren(state, ledger), await readStatus(ledger, state))
}

/**
 * Returns the state of a run at an event that others follow, as it was then: it waited for a command, or a process drove it.
 * The waits of child runs are left out: only their present waits are known.
 */
export function toPastRunView(state: RunState): object {
  const isWaiting = state.phase !== 'idle' && isSuspended(state)
  return toView(state, toResult(state), isWaiting ? 'suspended' : 'under_way')
}

function toView(state: RunState, whole: RunResult, status: RunStatus): object {
  const { messages: _, ...result } = whole
  const { sessionId, sessionPlace, subject, parent, phase, turn, limits, at } = state
  return {
    ...result,
    status,
    phase,
    turn,
    ...omitUndefined({ sessionId, sessionPlace, subject, parent }),
    limits,
    lastAt: at,
  }
}

export async function readStatus(ledger: Ledger, state: RunState): Promise<RunStatus> {
  if (state.phase === 'done') return 'done'
  if (isSuspended(state)) return 'suspended'
  return (await isRunDriven(ledger, state.runId)) ? 'under_way' : 'interrupted'
}

/** Folds a run up to an event, or to its end. Throws a `RunNotFoundError` if there is no such run or event. */
export async function readState(ledger: Ledger, runId: RunId, seq?: number): Promise<RunState> {
  const head = await ledger.head(runId)
  if (head === undefined || (seq !== undefined && (seq < 1 || seq > head.seq)))
    throw createRunNotFoundError(runId)
  return await foldTo(ledger, runId, seq)
}

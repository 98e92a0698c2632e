import { childRunIdOf } from '../../vocabulary/values/child-run-id.ts'
import { isSuspended } from '../../machine/next/next-action.ts'
import { evolve } from '../../machine/fold/evolve.ts'
import { settledUsage } from '../../machine/limits/settled-usage.ts'
import type { RunState } from '../../machine/state/state.ts'
import { callsAwaitingChild } from '../../machine/state/state-views.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { ChildTotals, FactOf, RuntimeEvent } from '../../vocabulary/events/event.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { stateOf } from '../reading/load-state.ts'
import { resultOf } from '../reading/run-result.ts'
import { childStopOf, totalsOf, type ChildEnding, type ChildStop } from './child-ending.ts'

/** What a run has used, with what its model call under way is taken to have used. */
export async function totalsSoFar(ledger: Ledger, childId: RunId): Promise<ChildTotals | undefined> {
  const state = await stateOf(ledger, childId)
  if (state === undefined) return undefined
  const [settled] =
    state.phase === 'streaming' && !state.attempt.failed ? settledUsage(state, 'cancelled') : []
  return totalsOf(resultOf(settled ? evolve(state, eventAfter(state, settled)) : state))
}

function eventAfter({ runId, seq, epoch, at }: RunState, fact: FactOf<'usage_updated'>): RuntimeEvent {
  return { ...fact, runId, seq: seq + 1, epoch, at, v: 1 }
}

/**
 * Whether a run that waits for an answer, its own or one of its child runs, has got one. With `takeOver`, also
 * whether one of them is under way.
 */
export async function canContinue(ledger: Ledger, runId: RunId, takeOver: boolean): Promise<boolean> {
  const state = await stateOf(ledger, runId)
  if (state === undefined || state.phase === 'done') return false
  if (!isSuspended(state)) return takeOver
  if ((await ledger.inbox(runId)).length > 0) return true
  for (const { toolCallId } of callsAwaitingChild(state)) {
    if (await canContinue(ledger, childRunIdOf(runId, toolCallId), takeOver)) return true
  }
  return false
}

/** Returns how a child run ended, as its ledger says; `undefined` where it has not. */
export async function endingOf(ledger: Ledger, childId: RunId): Promise<ChildEnding | undefined> {
  const head = await ledger.head(childId)
  if (head === undefined) return undefined
  // Only a run that has ended is read whole.
  for await (const { type } of ledger.read(childId, { fromSeq: head.seq })) {
    if (type !== 'run_finished') return undefined
  }
  const state = await stateOf(ledger, childId)
  const stop: ChildStop | undefined = state && childStopOf(resultOf(state))
  return stop?.kind === 'ended' ? stop : undefined
}

/** Whether a run is a child run of another, at any depth. */
export async function isDescendantOf(ledger: Ledger, runId: RunId, root: RunId): Promise<boolean> {
  let at: RunId | undefined = runId
  while (at !== undefined && at !== root) at = await parentOf(ledger, at)
  return at === root
}

async function parentOf(ledger: Ledger, runId: RunId): Promise<RunId | undefined> {
  for await (const event of ledger.read(runId, { toSeq: 1 })) {
    if (event.type === 'run_started' && event.parent?.relation === 'child') return event.parent.runId
  }
  return undefined
}

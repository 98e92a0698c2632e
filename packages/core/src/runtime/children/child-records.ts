import { eventOf } from '../../machine/advance.ts'
import { childRunIdOf } from '../../vocabulary/values/child-run-id.ts'
import { isSuspended } from '../../machine/next/next-action.ts'
import { evolve } from '../../machine/fold/evolve.ts'
import { settledUsage } from '../../machine/limits/settled-usage.ts'
import type { RunState } from '../../machine/state/state.ts'
import { callsAwaitingChild } from '../../machine/state/state-views.ts'
import type { Ledger } from '../../ports/ledger.ts'
import type { ChildTotals, EventOf } from '../../vocabulary/events/event.ts'
import type { RunId } from '../../vocabulary/values/ids.ts'
import { startOf, stateOf } from '../reading/load-state.ts'
import { resultOf } from '../reading/run-result.ts'
import { childStopOf, totalsOf, type ChildEnding, type ChildStop } from './child-ending.ts'

/** What a run has used; where it has not ended, `isFinal` is false, and a model call under way counts as estimated. */
export async function totalsSoFar(
  ledger: Ledger,
  childId: RunId,
): Promise<{ readonly totals: ChildTotals; readonly isFinal: boolean } | undefined> {
  const state = await stateOf(ledger, childId)
  return state && { totals: totalsIn(state), isFinal: state.phase === 'done' }
}

function totalsIn(state: RunState): ChildTotals {
  const [settled] =
    state.phase === 'streaming' && !state.attempt.failed ? settledUsage(state, 'cancelled') : []
  if (settled === undefined) return totalsOf(resultOf(state))
  const { seq, epoch, at } = state
  const event = eventOf(settled, { runId: state.runId, seq: seq + 1, epoch, at, cause: 'controller' })
  return totalsOf(resultOf(evolve(state, event)))
}

/**
 * Whether a run that waits for an answer, its own or one of its child runs, has got one, or waits for a child run that
 * has ended. With `withChildren`, also whether one of them is under way.
 */
export async function canContinue(ledger: Ledger, runId: RunId, withChildren: boolean): Promise<boolean> {
  const state = await stateOf(ledger, runId)
  return state !== undefined && state.phase !== 'done' && (await isWaitOver(ledger, state, withChildren))
}

async function isWaitOver(ledger: Ledger, state: RunState, withChildren: boolean): Promise<boolean> {
  if (!isSuspended(state)) return withChildren
  if ((await ledger.inbox(state.runId)).length > 0) return true
  for (const { toolCallId } of callsAwaitingChild(state)) {
    const child = await stateOf(ledger, childRunIdOf(state.runId, toolCallId))
    if (child === undefined) continue
    // The report of its end may be lost: its process may have died before it.
    if (child.phase === 'done' || (await isWaitOver(ledger, child, withChildren))) return true
  }
  return false
}

/** Returns how a child run ended, as its ledger says; `undefined` where it has not. */
export async function endingOf(ledger: Ledger, childId: RunId): Promise<ChildEnding | undefined> {
  if (!(await hasEnded(ledger, childId))) return undefined
  const state = await stateOf(ledger, childId)
  const stop: ChildStop | undefined = state && childStopOf(resultOf(state))
  return stop?.kind === 'ended' ? stop : undefined
}

/** Only a run that has ended is folded whole. */
async function hasEnded(ledger: Ledger, runId: RunId): Promise<boolean> {
  const { seq = 0 } = (await ledger.head(runId)) ?? {}
  for await (const { type } of ledger.read(runId, { fromSeq: seq })) return type === 'run_finished'
  return false
}

/** Whether a run is a child run of another, at any depth. */
export async function isDescendantOf(ledger: Ledger, runId: RunId, root: RunId): Promise<boolean> {
  let at: RunId | undefined = runId
  while (at !== undefined && at !== root) {
    const start: EventOf<'run_started'> | undefined = await startOf(ledger, at)
    at = start?.parent?.relation === 'child' ? start.parent.runId : undefined
  }
  return at === root
}

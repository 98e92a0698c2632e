import { eventOf } from '../../machine/advance.ts'
import { childRunIdOf, type RunId } from '../../values/ids.ts'
import { isSuspended } from '../../machine/next-action.ts'
import { evolve } from '../../machine/evolve.ts'
import { leftChildTotals } from '../../machine/limit-checks.ts'
import { settledUsage } from '../../machine/budget.ts'
import { type Call, type RunState, withChildTotals } from '../../machine/state.ts'
import { callsAwaitingChild, openTurnCalls } from '../../machine/calls.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { ChildTotals, EventOf } from '../../events/event.ts'
import { startOf, stateOf } from '../reading/load-state.ts'
import { resultOf } from '../reading/run-result.ts'
import { childStopOf, totalsOf, type ChildEnding, type ChildStop } from './child-ending.ts'

/**
 * What a run has used; where it has not ended, `isFinal` is false, a model call under way counts as estimated, and so does
 * what its own child runs use meanwhile, at any depth: no result has told the run of it yet.
 */
export async function totalsSoFar(
  ledger: Ledger,
  runId: RunId,
): Promise<{ readonly totals: ChildTotals; readonly isFinal: boolean } | undefined> {
  let state = await stateOf(ledger, runId)
  if (state === undefined) return undefined
  const isFinal = state.phase === 'done'
  state = withCallUnderWay(state)
  for (const call of openTurnCalls(state).filter(hasChildUnderWay)) {
    const totals = withChildTotals(state.totals, await leftTotals(ledger, state, call))
    state = { ...state, totals }
  }
  return { totals: totalsOf(resultOf(state)), isFinal }
}

/** What a parent counts of a started child run: what it used, where it has ended, otherwise no less than its grant. */
export async function leftTotals(
  ledger: Ledger,
  parent: Pick<RunState, 'runId'>,
  call: Call,
): Promise<ChildTotals> {
  // One that cannot be read counts like one that is not there yet.
  const found = await totalsSoFar(ledger, childRunIdOf(parent.runId, call.toolCallId)).catch(() => undefined)
  return found?.isFinal === true ? found.totals : leftChildTotals(parent, call, found?.totals)
}

/** Whether a call was started whose child run counts nowhere yet. */
function hasChildUnderWay({ child, attempts, status }: Call): boolean {
  return child !== undefined && attempts > 0 && status !== 'settled'
}

function withCallUnderWay(state: RunState): RunState {
  const [settled] =
    state.phase === 'streaming' && !state.attempt.failed ? settledUsage(state, 'cancelled') : []
  if (settled === undefined) return state
  const { seq, epoch, at } = state
  return evolve(state, eventOf(settled, { runId: state.runId, seq: seq + 1, epoch, at, cause: 'controller' }))
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

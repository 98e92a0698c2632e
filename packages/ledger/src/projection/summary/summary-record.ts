import { type RunId, type RunState } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import {
  callsAwaitingChild,
  deferredCalls,
  isSuspended,
  openTurnCalls,
  pendingApprovals,
  type Call,
  runTimes,
} from '@tallystick/core/machine'
import { childRunIdOf, type FinishReason, type LimitName } from '@tallystick/core/vocabulary'
import { amountsOf, type Amounts } from '../tables/amounts.ts'
import { spendingOf, type AccumulatedRun, type SpendingLine } from './run-accumulator.ts'
import type { ListedRun, NamedCall, RunSummary, RunWaits, RunStatus } from './run-summary.ts'

/** What a run adds to the totals of its session: itself, and what it took with the its child runs. */
export interface SessionShare {
  readonly sessionId: string
  readonly turns: number
  readonly toolCalls: number
  readonly amounts: Amounts
}

/** What a run adds to totals. */
export interface Shares {
  readonly spending: readonly SpendingLine[]
  readonly session?: SessionShare
}

/** What a projection holds of one run, after one of its events. */
export interface SummaryRecord {
  readonly summary: ListedRun
  readonly shares: Shares
  /** What the projection needs to continue from here; absent for a run that cannot be read. */
  readonly accumulated?: AccumulatedRun
}

/** Reasons of a run that came to what was wanted. */
const wanted: ReadonlySet<FinishReason> = new Set(['answered', 'handed_back', 'stopped', 'cancelled'])

/** The record of a run, from its state and what was accumulated of the same events. */
export function recordOf(state: RunState, accumulated: AccumulatedRun): SummaryRecord {
  return { summary: summaryOf(state, accumulated), shares: sharesOf(state, accumulated), accumulated }
}

/** The record of a run that cannot be read. It adds nothing to any total. */
export function unreadableRecord(
  runId: RunId,
  seq: number,
  error: { readonly code: string; readonly message: string },
): SummaryRecord {
  const { code, message } = error
  return {
    summary: { runId, status: 'unreadable', seq, code, message },
    shares: { spending: [] },
  }
}

function summaryOf(
  state: RunState,
  { agents, childRunIds, calls, failedAttempts }: AccumulatedRun,
): RunSummary {
  const { runId, seq, turn, agent, sessionId, sessionPlace, parent, totals } = state
  const { turns, toolCalls, children, usage, costUsd } = totals
  return {
    runId,
    status: statusOf(state),
    seq,
    turn,
    ...runTimes(state),
    agent,
    agents,
    ...omitUndefined({ sessionId, sessionPlace, parent }),
    ...(state.phase === 'done' && { reason: state.reason }),
    ...(state.phase === 'done' && state.detail !== undefined && { hasDetail: true as const }),
    isStreaming: state.phase === 'streaming',
    started: openTurnCalls(state)
      .filter(({ status }) => status === 'started' || status === 'in_doubt')
      .map(named),
    waits: waitsOf(state),
    calls,
    failedAttempts,
    childRunIds,
    turns,
    toolCalls,
    children,
    usage,
    ...omitUndefined({ costUsd }),
  }
}

/** The status of a run that has ended. */
export function endedStatus(reason: FinishReason): 'done' | 'failed' {
  return wanted.has(reason) ? 'done' : 'failed'
}

function statusOf(state: RunState): Exclude<RunStatus, 'unreadable'> {
  if (state.phase === 'done') return endedStatus(state.reason)
  return isSuspended(state) ? 'suspended' : 'unfinished'
}

function waitsOf(state: RunState): RunWaits {
  const working = callsAwaitingChild(state)
  const byRuns = new Set(working.map(({ toolCallId }) => toolCallId))
  return {
    approvals: pendingApprovals(state).map(named),
    deferred: deferredCalls(state)
      .filter(({ toolCallId }) => !byRuns.has(toolCallId))
      .map((call) => ({ ...named(call), externalId: call.externalId })),
    children: working.map((call) => ({ ...named(call), runId: childRunIdOf(state.runId, call.toolCallId) })),
    ...(state.metLimit && { limit: limitOf(state, state.metLimit.limit) }),
  }
}

function limitOf({ limits }: RunState, limit: LimitName): NonNullable<RunWaits['limit']> {
  return { limit, ...omitUndefined({ max: limits[limit] }) }
}

function named({ toolCallId, name }: Pick<Call, 'toolCallId' | 'name'>): NamedCall {
  return { toolCallId, name }
}

function sharesOf(state: RunState, accumulated: AccumulatedRun): Shares {
  const { sessionId, totals } = state
  const { turns, toolCalls, children, usage, costUsd } = totals
  return {
    spending: spendingOf(accumulated),
    ...(sessionId !== undefined && {
      session: {
        sessionId,
        turns: turns + children.turns,
        toolCalls: toolCalls + children.toolCalls,
        amounts: amountsOf(usage, costUsd),
      },
    }),
  }
}

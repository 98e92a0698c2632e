import type { RunId, RunState, Usage } from '@tallystick/core'
import {
  listCallsAwaitingChild,
  omitUndefined,
  option,
  requireOptions,
  toRunTimes,
  type Totals,
} from '@tallystick/core/internal'
import {
  type Call,
  listDeferredCalls,
  isSuspended,
  openTurnCalls,
  listPendingApprovals,
} from '@tallystick/core/machine'
import {
  deriveChildRunId,
  type FinishReason,
  type LimitName,
  type Outcome,
  type ParentRef,
  type ToolCallId,
} from '@tallystick/core/vocabulary'
import type { AccumulatedRun, CallCount, FeedbackSummary } from './run-accumulator.ts'

/**
 * The status of a run by its own events.
 * - `done`: it came to what was wanted, or was cancelled
 * - `failed`: it ended otherwise
 * - `suspended`: only a command continues it
 * - `unfinished`: something of it is in flight, or was when its process ended
 * - `unreadable`: it is damaged, or a newer release wrote it
 */
export const runStatuses = ['done', 'failed', 'suspended', 'unfinished', 'unreadable'] as const
export type RunStatus = (typeof runStatuses)[number]

/** A tool call, for people. */
export interface NamedCall {
  readonly toolCallId: ToolCallId
  readonly name: string
}

/** Everything that a run waits for, without its child runs. */
export interface RunWaits {
  /** Calls that a person has to decide about. */
  readonly approvals: readonly NamedCall[]
  /** Calls that an outside system carries out. */
  readonly deferred: readonly (NamedCall & { readonly externalId: string })[]
  /** Calls whose work a child run does, `runId`. */
  readonly children: readonly (NamedCall & { readonly runId: RunId })[]
  /** The limit that the run met, and its maximum. */
  readonly limit?: { readonly limit: LimitName; readonly max?: number }
}

/** A run in a list. Facts only: no content. */
export interface RunSummary {
  readonly runId: RunId
  readonly status: Exclude<RunStatus, 'unreadable'>
  /** Of its last event. */
  readonly seq: number
  readonly turn: number
  /** Milliseconds since 1970 UTC, of its first and of its last event; of a fork, from when it was forked. */
  readonly startedAt: number
  readonly lastAt: number
  /** The active agent, and all agents of the run, in order. */
  readonly agent: string
  readonly agents: readonly string[]
  readonly sessionId?: string
  readonly sessionPlace?: number
  readonly parent?: ParentRef
  readonly subject?: string
  /** Why it ended. Details are in its last event. */
  readonly reason?: FinishReason
  /** Set if its last event says more about the end. */
  readonly hasDetail?: true
  /** A model call is under way, or its next attempt is due. */
  readonly isStreaming: boolean
  /** Calls that were started and have no result. */
  readonly started: readonly NamedCall[]
  readonly waits: RunWaits
  /** How its tool calls ended, by tool and outcome. */
  readonly calls: readonly CallCount[]
  /** The last forty calls that have ended, in the order of their ends: each as its place in `calls`. */
  readonly lastCalls: readonly number[]
  /** Attempts of model calls that failed. */
  readonly failedAttempts: number
  /** The child runs, in order; in a fork also those of the source. */
  readonly childRunIds: readonly RunId[]
  readonly turns: number
  readonly toolCalls: number
  /** The totals of its child runs that have ended. Usage and cost of the run include them. */
  readonly children: Totals['children']
  readonly usage: Usage
  /** US dollars. */
  readonly costUsd?: number
  readonly feedback?: FeedbackSummary
}

/** A run that cannot be read, with the code and the message of the error. */
export interface UnreadableRun {
  readonly runId: RunId
  readonly status: 'unreadable'
  /** The last `seq`, as the store has it. */
  readonly seq: number
  readonly code: string
  readonly message: string
}

/** A run of a list, whether it can be read or not. */
export type ListedRun = RunSummary | UnreadableRun

/** Selects runs. All filters must match. */
export interface RunQuery {
  readonly statuses?: readonly RunStatus[] | undefined
  /** Runs in which this agent is or was active. */
  readonly agent?: string | undefined
  /** Runs with an ended call of this tool. */
  readonly tool?: string | undefined
  /** Runs with a call that ended so; of `tool`, if that is given. */
  readonly outcome?: Outcome | undefined
  /** Runs that ended so. */
  readonly reason?: FinishReason | undefined
  /** Runs with an event then or later. */
  readonly since?: number | undefined
  /** Runs that began then or later. */
  readonly startedSince?: number | undefined
  /** Runs that began before. */
  readonly startedUntil?: number | undefined
  /** Without child runs. */
  readonly roots?: boolean | undefined
  readonly sessionIds?: ReadonlySet<string> | undefined
  /** Runs about one of these subjects. */
  readonly subjects?: readonly string[] | undefined
  readonly feedback?: FeedbackFilter | undefined
  /** Runs that were started with this tag. No summary has the tags: see `hasTag`. */
  readonly tag?: string | undefined
}

/** Selects runs with feedback that someone gave, and whose score is within these bounds, both included. */
export interface FeedbackFilter {
  readonly by?: string | undefined
  readonly minScore?: number | undefined
  readonly maxScore?: number | undefined
}

/** Returns whether a run may have such feedback: its events say whose score is which. */
function mayHaveFeedback({ feedback }: RunSummary, { minScore, maxScore }: FeedbackFilter): boolean {
  if (feedback === undefined) return false
  const { lowest = NaN, highest = NaN } = feedback
  return (minScore === undefined || highest >= minScore) && (maxScore === undefined || lowest <= maxScore)
}

/** Returns whether a run is among those that a query selects. */
export function fits(run: ListedRun, query: RunQuery): boolean {
  const { statuses, agent, tool, outcome, reason, since, sessionIds, subjects, tag, feedback } = query
  const { startedSince, startedUntil, roots } = query
  if (statuses && !statuses.includes(run.status)) return false
  if (run.status === 'unreadable') {
    const ofRow = since ?? startedSince ?? startedUntil ?? (roots || undefined)
    return (
      (agent ?? tool ?? outcome ?? reason ?? ofRow ?? sessionIds ?? subjects ?? tag ?? feedback) === undefined
    )
  }
  return (
    (agent === undefined || run.agents.includes(agent)) &&
    ((tool ?? outcome) === undefined ||
      run.calls.some(
        (call) => call.name === (tool ?? call.name) && call.outcome === (outcome ?? call.outcome),
      )) &&
    (reason === undefined || run.reason === reason) &&
    (since === undefined || run.lastAt >= since) &&
    (feedback === undefined || mayHaveFeedback(run, feedback)) &&
    (startedSince === undefined || run.startedAt >= startedSince) &&
    (startedUntil === undefined || run.startedAt < startedUntil) &&
    (roots !== true || run.parent?.relation !== 'child') &&
    (sessionIds === undefined || (run.sessionId !== undefined && sessionIds.has(run.sessionId))) &&
    (subjects === undefined || (run.subject !== undefined && subjects.includes(run.subject)))
  )
}

/** The projection of a run after one of its events. */
export interface SummaryRecord {
  readonly summary: ListedRun
  /** The projection continues from this; absent for a run that cannot be read. */
  readonly accumulated?: AccumulatedRun
  /** The tags that it was started with. They are content, so no summary has them. */
  readonly tags?: readonly string[]
}

/** Reasons of a run that came to what was wanted. */
const wanted: ReadonlySet<FinishReason> = new Set(['answered', 'handed_back', 'stopped', 'cancelled'])

/** The record of a run, from its state and what was accumulated of the same events. */
export function toSummaryRecord(state: RunState, accumulated: AccumulatedRun): SummaryRecord {
  const tags = state.labels?.tags
  return { summary: toSummary(state, accumulated), accumulated, ...omitUndefined({ tags }) }
}

/** The record of a run that cannot be read. */
export function toUnreadableRecord(
  runId: RunId,
  seq: number,
  error: { readonly code: string; readonly message: string },
): SummaryRecord {
  const { code, message } = error
  return { summary: { runId, status: 'unreadable', seq, code, message } }
}

function toSummary(
  state: RunState,
  { agents, childRunIds, calls, lastCalls, failedAttempts, feedback }: AccumulatedRun,
): RunSummary {
  const { runId, seq, turn, agent, sessionId, sessionPlace, parent, subject, totals } = state
  const { turns, toolCalls, children, usage, costUsd } = totals
  return {
    runId,
    status: toStatus(state),
    seq,
    turn,
    ...toRunTimes(state),
    agent,
    agents,
    ...omitUndefined({ sessionId, sessionPlace, parent, subject }),
    ...(state.phase === 'done' && { reason: state.reason }),
    ...(state.phase === 'done' && state.detail !== undefined && { hasDetail: true as const }),
    isStreaming: state.phase === 'streaming',
    started: openTurnCalls(state)
      .filter(({ status }) => status === 'started' || status === 'in_doubt')
      .map(toNamedCall),
    waits: toWaits(state),
    calls,
    lastCalls,
    failedAttempts,
    childRunIds,
    turns,
    toolCalls,
    children,
    usage,
    ...omitUndefined({ costUsd, feedback }),
  }
}

/** Endings of a call other than success, the worst first. */
const byWeight: readonly Outcome[] = [
  ...(['interrupted', 'timed_out', 'failed', 'unknown_tool', 'invalid_input', 'denied'] as const),
  ...(['limit_reached', 'cancelled', 'skipped', 'repeated'] as const),
]

const someSummary = option.valueThat(
  'the summary of a run, such as readRunSummary returns',
  (value) => Array.isArray(Object(value).calls) && Object(value).calls.every(isObject),
)

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/**
 * Finds the worst that happened in a run: the calls that ended worst, the most frequent of them, or `model_attempt_failed` for
 * attempts of model calls. `undefined` if all went well.
 */
export function findWorst(run: Pick<RunSummary, 'calls' | 'failedAttempts'>): WorstEnding | undefined {
  requireOptions('findWorst', someSummary, run, 'the summary')
  const { calls, failedAttempts } = run
  for (const outcome of byWeight) {
    const [worst] = calls.filter((call) => call.outcome === outcome).toSorted((a, b) => b.count - a.count)
    if (worst) return worst
  }
  return failedAttempts === 0 ? undefined : { outcome: 'model_attempt_failed', count: failedAttempts }
}

/** What `findWorst` finds. */
export interface WorstEnding {
  readonly outcome: Outcome | 'model_attempt_failed'
  /** The tool; absent for model calls. */
  readonly name?: string
  readonly count: number
}

export function toEndedStatus(reason: FinishReason): 'done' | 'failed' {
  return wanted.has(reason) ? 'done' : 'failed'
}

function toStatus(state: RunState): Exclude<RunStatus, 'unreadable'> {
  if (state.phase === 'done') return toEndedStatus(state.reason)
  return isSuspended(state) ? 'suspended' : 'unfinished'
}

function toWaits(state: RunState): RunWaits {
  const working = listCallsAwaitingChild(state)
  const byRuns = new Set(working.map(({ toolCallId }) => toolCallId))
  return {
    approvals: listPendingApprovals(state).map(toNamedCall),
    deferred: listDeferredCalls(state)
      .filter(({ toolCallId }) => !byRuns.has(toolCallId))
      .map((call) => ({ ...toNamedCall(call), externalId: call.externalId })),
    children: working.map((call) => ({
      ...toNamedCall(call),
      runId: deriveChildRunId(state.runId, call.toolCallId),
    })),
    ...(state.metLimit && { limit: toMetLimit(state, state.metLimit.limit) }),
  }
}

function toMetLimit({ limits }: RunState, limit: LimitName): NonNullable<RunWaits['limit']> {
  return { limit, ...omitUndefined({ max: limits[limit] }) }
}

function toNamedCall({ toolCallId, name }: Pick<Call, 'toolCallId' | 'name'>): NamedCall {
  return { toolCallId, name }
}

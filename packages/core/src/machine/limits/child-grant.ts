import { grantFields, limitOfField, type Grant, type GrantField } from '../../vocabulary/limits/grant.ts'
import type { ChildTotals } from '../../vocabulary/events/event.ts'
import { defaultLimits, type LimitName, type Limits } from '../../vocabulary/limits/limits.ts'
import { leftOf } from './budget.ts'
import { childRunIdOf } from '../../vocabulary/values/child-run-id.ts'
import { workDeadline } from './deadlines.ts'
import { finalizingNeeds } from './model-call-limit-check.ts'
import type { Call, ExecutingState } from '../state/state.ts'

/** A child is given up before its parent gives its call up. */
const GRACE_SHARE = 0.75

/** What a child run has to be granted at least, to be worth a start. */
const leastUseful: { readonly [F in GrantField]: number } = {
  turns: 1,
  toolCalls: 0,
  tokens: 32,
  inputTokens: 16,
  outputTokens: 16,
  costUsd: Number.MIN_VALUE,
}

/**
 * What the child run of a call is granted: an even share of what the run has left, beside what its own calls of this
 * turn and its next model call need. Children of this turn that have no grant yet get shares of the same size; what one
 * does not use is left for those that start after it. Or the limit that leaves too little.
 */
export function childGrant(state: ExecutingState, now: number): Grant | { readonly limit: LimitName } {
  const left = leftOf(state)
  const kept = keptByParent(state)
  const shares = Math.max(1, state.calls.filter(needsGrant).length)
  const granted: { [F in GrantField]?: number } = {}
  for (const field of grantFields) {
    if (left[field] === Infinity) continue
    const share = Math.max(0, left[field] - (kept[field] ?? 0)) / shares
    granted[field] = field === 'costUsd' ? share : Math.floor(share)
    if (granted[field] < leastUseful[field]) return { limit: limitOfField[field] }
  }
  const deadline = workDeadline(state)
  if (deadline === undefined) return granted
  return deadline > now ? { ...granted, durationMs: deadline - now } : { limit: 'maxDurationMs' }
}

/** What the parent needs itself: a turn that reads the results, a start for each waiting call, and its finalizing call. */
function keptByParent(state: ExecutingState): { readonly [F in GrantField]?: number } {
  const waiting = state.calls.filter(({ attempts, status }) => attempts === 0 && isWaiting(status))
  return { ...finalizingNeeds(state), turns: 1, toolCalls: waiting.length }
}

/** Whether a child run has still to be granted something in this turn. */
function needsGrant({ child, grant, status }: Call): boolean {
  return child !== undefined && grant === undefined && isWaiting(status)
}

function isWaiting(status: Call['status']): boolean {
  return status === 'ready' || status === 'to_ask' || status === 'awaiting_approval'
}

/** The limits of a child run: its agent's own, and never more than what it is granted. */
export function childLimits(grant: Grant, own: Limits, parent: Limits): Limits {
  const within: { [L in LimitName]?: number } = {}
  for (const field of grantFields) {
    const granted = grant[field]
    const limit = limitOfField[field]
    if (granted !== undefined) within[limit] = Math.min(own[limit] ?? Infinity, granted)
  }
  if (grant.durationMs !== undefined) {
    within.maxDurationMs = Math.min(own.maxDurationMs ?? Infinity, grant.durationMs)
  }
  const graceMs = Math.floor((parent.graceMs ?? defaultLimits.graceMs) * GRACE_SHARE)
  return { ...own, ...within, graceMs: Math.min(own.graceMs ?? Infinity, graceMs) }
}

/**
 * What a child run is taken to have used that has not ended when its parent counts: all that it was granted, since it may
 * use that yet, and no less than it is known to have used.
 */
export function leftChildTotals(
  state: Pick<ExecutingState, 'runId'>,
  call: Pick<Call, 'toolCallId' | 'grant'>,
  known: ChildTotals | undefined,
): ChildTotals {
  const { tokens = 0, inputTokens } = call.grant ?? {}
  const whole = wholeGrant(state, call)
  if (known === undefined) return whole
  const { usage: granted } = whole
  const outputTokens = Math.max(granted.outputTokens ?? 0, known.usage.outputTokens ?? 0)
  const grantedInput = inputTokens ?? Math.max(0, tokens - outputTokens)
  const costUsd = Math.max(whole.costUsd ?? 0, known.costUsd ?? 0)
  return {
    ...known,
    turns: Math.max(whole.turns, known.turns),
    toolCalls: Math.max(whole.toolCalls, known.toolCalls),
    usage: {
      ...known.usage,
      inputTokens: Math.max(grantedInput, known.usage.inputTokens ?? 0),
      outputTokens,
    },
    ...((whole.costUsd ?? known.costUsd) !== undefined && { costUsd }),
    estimated: true,
  }
}

/** What a child run is taken to have used whose own totals could not be had in time: all that it was granted. */
export function wholeGrant(
  { runId }: Pick<ExecutingState, 'runId'>,
  { toolCallId, grant = {} }: Pick<Call, 'toolCallId' | 'grant'>,
): ChildTotals {
  const { turns = 0, toolCalls = 0, costUsd } = grant
  const { tokens = 0 } = grant
  const { inputTokens = Math.max(0, tokens - (grant.outputTokens ?? 0)) } = grant
  const { outputTokens = Math.max(0, tokens - inputTokens) } = grant
  return {
    runId: childRunIdOf(runId, toolCallId),
    turns,
    toolCalls,
    usage: { inputTokens, outputTokens },
    ...(costUsd !== undefined && { costUsd }),
    estimated: true,
  }
}

import type { FinishReason } from '../../vocabulary/events/event.ts'
import type { Grant } from '../../vocabulary/limits/grant.ts'
import { defaultLimits, type LimitName } from '../../vocabulary/limits/limits.ts'
import { getOwn } from '../../vocabulary/values/get-own.ts'
import type { Action } from '../state/action.ts'
import { activeMs, closingMs, deadlineOf, onLimitOf, workDeadline } from './deadlines.ts'
import { grantModelCall, type LimitFinding, type PlannedCall } from './model-grant.ts'
import type { Call, RunState } from '../state/state.ts'

/** The finish reason that names a limit. */
export const limitReasons: { readonly [L in LimitName]: FinishReason } = {
  maxTurns: 'turn_limit',
  maxToolCalls: 'tool_call_limit',
  maxToolCallsPerTurn: 'tool_call_limit',
  maxTotalTokens: 'token_limit',
  maxTotalInputTokens: 'token_limit',
  maxTotalOutputTokens: 'token_limit',
  maxCostUsd: 'cost_limit',
  maxDurationMs: 'time_limit',
  maxRepeats: 'repeat_limit',
}

/** Why no model call is granted, where that is so: the run's time is up, or too little is left for the call. */
export function grantCall(state: RunState, now: number, call: PlannedCall): Grant | LimitFinding {
  return timeFinding(state, now, call.closes) ?? grantModelCall(state, call)
}

function timeFinding(state: RunState, now: number, closes: boolean): LimitFinding | undefined {
  const deadline = closes ? deadlineOf(state) : workDeadline(state)
  if (deadline === undefined || now < deadline) return undefined
  return timeLimit(state, now)
}

/** The limit on time, as it is met. */
export function timeLimit(state: RunState, now: number): LimitFinding {
  const held = closingMs(state.limits)
  const max = state.limits.maxDurationMs ?? 0
  return { limit: 'maxDurationMs', max, used: activeMs(state, now), ...(held > 0 && { held }) }
}

/** The limit on repeats, where this call has met it. */
export function repeatLimit(state: RunState, call: Call): LimitFinding | undefined {
  const max = state.limits.maxRepeats ?? defaultLimits.maxRepeats
  const { repeated } = state.totals
  if (repeated >= max) return { limit: 'maxRepeats', max, used: repeated }
  const errors = getOwn(state.errorStreaks, call.name)?.count ?? 0
  return errors >= 2 * max ? { limit: 'maxRepeats', max, used: errors } : undefined
}

/** Puts on record that a limit was met. */
export function meetLimit(state: RunState, finding: LimitFinding): Action {
  const policy = onLimitOf(state.limits)
  return { kind: 'meet_limit', facts: [{ type: 'limit_reached', turn: state.turn, ...finding, policy }] }
}

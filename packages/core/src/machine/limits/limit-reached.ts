import type { FinishReason } from '../../vocabulary/events/event.ts'
import type { LimitName } from '../../vocabulary/limits/limits.ts'
import type { Action } from '../state/action.ts'
import { onLimitOf } from './deadlines.ts'
import type { LimitFinding } from './limit-finding.ts'
import type { RunState } from '../state/state.ts'

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

/** Puts on record that a limit was met. */
export function meetLimit(state: RunState, finding: LimitFinding): Action {
  const policy = onLimitOf(state.limits)
  return { kind: 'meet_limit', facts: [{ type: 'limit_reached', turn: state.turn, ...finding, policy }] }
}

import type { FinishReason } from '../vocabulary/event.ts'
import type { LimitName } from '../vocabulary/limits.ts'
import type { Action } from './action.ts'
import type { ExecutingState, RunState } from './state.ts'

/** A limit that stands in the way, and how much of it is used. */
export interface LimitFinding {
  readonly limit: LimitName
  readonly max: number
  readonly used: number
}

/** The limit that forbids another turn, if one does. */
export function limitsAfterTurn(state: RunState): LimitFinding | undefined {
  const { turnsMax } = state.limits
  const { turns } = state.totals
  if (turnsMax !== undefined && turns >= turnsMax) return { limit: 'turnsMax', max: turnsMax, used: turns }
  return undefined
}

/** How many more calls the run may start, however many turns it takes. */
export function callsLeft(state: ExecutingState): number {
  return (state.limits.toolCallsMax ?? Infinity) - state.totals.toolCalls
}

/** The finish reason that names a limit. */
export const limitReasons: { readonly [L in LimitName]: FinishReason } = {
  turnsMax: 'turn_limit',
  toolCallsMax: 'tool_call_limit',
  toolCallsPerTurnMax: 'tool_call_limit',
  tokensMax: 'token_limit',
  costMaxUsd: 'cost_limit',
  durationMaxMs: 'time_limit',
  repeatsMax: 'repeat_limit',
}

/** Puts on record that a limit was met. */
export function meetLimit(state: RunState, { limit, max, used }: LimitFinding): Action {
  const policy = state.limits.onLimit ?? 'finalize'
  return {
    kind: 'meet_limit',
    facts: [{ type: 'limit_reached', turn: state.turn, limit, max, used, policy }],
  }
}

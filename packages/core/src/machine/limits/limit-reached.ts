import type { Action } from '../state/action.ts'
import { onLimitOf } from './deadlines.ts'
import type { LimitFinding } from './limit-finding.ts'
import type { RunState } from '../state/state.ts'

/** Puts on record that a limit was met. */
export function meetLimit(state: RunState, finding: LimitFinding): Action {
  const policy = onLimitOf(state.limits)
  return { kind: 'meet_limit', facts: [{ type: 'limit_reached', turn: state.turn, ...finding, policy }] }
}

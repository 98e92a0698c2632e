import type { Action } from '../state/action.ts'
import { isBoundByDeadline, onLimitOf } from './deadlines.ts'
import type { LimitFinding } from './limit-finding.ts'
import type { RunState } from '../state/state.ts'

/** Puts on record that a limit was met. */
export function meetLimit(state: RunState, finding: LimitFinding): Action {
  const given = onLimitOf(state.limits)
  // No raised limit brings a moment back.
  const isPast = finding.limit === 'maxDurationMs' && isBoundByDeadline(state)
  const policy = isPast && given === 'ask' ? 'stop' : given
  return { kind: 'meet_limit', facts: [{ type: 'limit_reached', turn: state.turn, ...finding, policy }] }
}

import { defaultLimits, type LimitName } from '../../vocabulary/limits/limits.ts'
import { getOwn } from '../../vocabulary/values/get-own.ts'
import { repeatedAnswers } from './repeats.ts'
import type { Action } from '../state/action.ts'
import type { Call, RunState } from '../state/state.ts'
import { activeMs, finalizingMs, durationOf, isBoundByDeadline, onLimitOf } from './deadlines.ts'

/** A limit that prevents a call, and how much of it is used. */
export interface LimitFinding {
  readonly limit: LimitName
  readonly max: number
  readonly used: number
  /** Held back for the call that writes the answer at a limit. */
  readonly held?: number
}

/** The limit on time, as it is met. */
export function timeLimit(state: RunState, now: number): LimitFinding {
  const held = finalizingMs(state)
  const max = durationOf(state) ?? 0
  const used = isBoundByDeadline(state) ? now - state.startedAt : activeMs(state, now)
  return { limit: 'maxDurationMs', max, used, ...(held > 0 && { held }) }
}

/** Whether a call may have met the limit on repeats: one that may not need not be looked for. */
export function mayRepeat({ limits, standstill, errorStreaks }: RunState): boolean {
  const max = limits.maxRepeats ?? defaultLimits.maxRepeats
  return standstill.served >= max || Object.values(errorStreaks).some(({ count }) => count >= mostErrors(max))
}

/** How many equal errors of one tool in a row are a sign of a stuck model: the first one repeats nothing. */
function mostErrors(maxRepeats: number): number {
  return Math.max(2, maxRepeats)
}

/** The limit on repeats, where this call has met it. */
export function repeatLimit(state: RunState, call: Call): LimitFinding | undefined {
  const max = state.limits.maxRepeats ?? defaultLimits.maxRepeats
  const { served } = state.standstill
  if (served >= max && repeatedAnswers(state, call).length >= max)
    return { limit: 'maxRepeats', max, used: served }
  const errors = call.repeats === 'allowed' ? 0 : (getOwn(state.errorStreaks, call.name)?.count ?? 0)
  return errors >= mostErrors(max) ? { limit: 'maxRepeats', max, used: errors } : undefined
}

/** Puts on record that a limit was met. */
export function meetLimit(state: RunState, finding: LimitFinding): Action {
  const given = onLimitOf(state.limits)
  // No raised limit brings a moment back.
  const isPast = finding.limit === 'maxDurationMs' && isBoundByDeadline(state)
  const policy = isPast && given === 'ask' ? 'stop' : given
  return { kind: 'meet_limit', facts: [{ type: 'limit_reached', turn: state.turn, ...finding, policy }] }
}

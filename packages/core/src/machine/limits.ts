import { addMs, type PreparedCall } from '../events/event-parts.ts'
import { defaultLimits, type LimitName, type Limits, type OnLimit } from '../events/limits.ts'
import { type Action } from './rules.ts'
import { type RunState } from './state.ts'

/** A limit that prevents a call, and how much of it is used. */
export interface LimitFinding {
  readonly limit: LimitName
  readonly max: number
  readonly used: number
  /** Held back for the call that writes the answer at a limit. */
  readonly held?: number
}

/**
 * Puts on record that a limit was met, with the call that it prevents, if the agent's code has prepared that: what a call would
 * have taken decides, and whoever replays the run may not have what that code answered by.
 */
export function meetLimit(state: RunState, finding: LimitFinding, prevented?: PreparedCall): Action {
  const given = getOnLimit(state.limits)
  // No raised limit brings a moment back.
  const isPast = finding.limit === 'maxDurationMs' && isBoundByDeadline(state)
  const policy = isPast && given === 'ask' ? 'stop' : given
  const { model, toolChoice, change = {} } = prevented ?? {}
  const isOwn = model === undefined && toolChoice === undefined && Object.keys(change).length === 0
  const fact = { type: 'limit_reached' as const, turn: state.turn, ...finding, policy }
  return { kind: 'meet_limit', facts: [{ ...fact, ...(prevented && !isOwn && { prepared: prevented }) }] }
}

export function getOnLimit({ onLimit }: Limits): OnLimit {
  return onLimit ?? 'finalize'
}

/** The most time that is held back for the call that writes the answer when a run's time is up. */
const MAX_CLOSING_MS = 30_000
/** The part of a run's time that is held back for it, at most. */
const CLOSING_SHARE = 1 / 4

/** How long a run has been at work, in milliseconds: waiting for a person or for a process does not count. */
export function measureActiveMs(state: RunState, now: number): number {
  return now - state.startedAt - state.waitedMs
}

/** When the run's time is up, in milliseconds since 1970 UTC, if it works on without a pause; `Infinity` without a limit. */
export function getDeadline(state: RunState): number {
  return Math.min(state.deadlineAt ?? Infinity, getWorkEnd(state))
}

function getWorkEnd({ limits, startedAt, waitedMs }: RunState): number {
  return startedAt + waitedMs + (limits.maxDurationMs ?? Infinity)
}

/** Returns whether it is the moment that the run was given which ends its time, and not the limit on its work. */
function isBoundByDeadline(state: RunState): boolean {
  return state.deadlineAt !== undefined && state.deadlineAt <= getWorkEnd(state)
}

/** The time that a run has in all, in milliseconds. */
function getDuration(state: RunState): number | undefined {
  if (!isBoundByDeadline(state)) return state.limits.maxDurationMs
  return Math.max(0, (state.deadlineAt ?? 0) - state.startedAt)
}

export function findTimeLimit(state: RunState, now: number): LimitFinding {
  const held = getFinalizingMs(state)
  const max = getDuration(state) ?? 0
  const used = isBoundByDeadline(state) ? now - state.startedAt : measureActiveMs(state, now)
  return { limit: 'maxDurationMs', max, used, ...(held > 0 && { held }) }
}

/** When the run has to stop its work, so that time is left to write the answer. */
export function getWorkDeadline(state: RunState): number {
  return getDeadline(state) - getFinalizingMs(state)
}

/** The time that is held back for the finalizing call, in milliseconds. */
export function getFinalizingMs(state: RunState): number {
  const durationMs = getDuration(state)
  if (durationMs === undefined || getOnLimit(state.limits) !== 'finalize') return 0
  return Math.min(MAX_CLOSING_MS, Math.floor(durationMs * CLOSING_SHARE))
}

/**
 * Returns when the runtime gives up tools that were asked to stop: after the grace time, and never past the run's
 * deadline. Every tool gets the request to stop first, however short the time: a child run without it would continue.
 */
export function getGraceEnd(state: RunState, askedAt: number): number {
  const decidedAt = askedAt + 1
  const graceEnd = Math.max(decidedAt, askedAt + (state.limits.graceMs ?? defaultLimits.graceMs))
  if (state.cancel) return graceEnd
  return Math.min(graceEnd, Math.max(decidedAt, getDeadline(state)))
}

/** When an approval that is asked for now counts as denied. */
export function getApprovalExpiry({ maxApprovalMs }: Limits, now: number): number | undefined {
  return maxApprovalMs === undefined ? undefined : addMs(now, maxApprovalMs)
}

import { defaultLimits, type Limits, type OnLimit } from '../../vocabulary/limits/limits.ts'
import type { RunState } from '../state/state.ts'

/** The most time that is held back for the call that writes the answer when a run's time is up. */
const MAX_CLOSING_MS = 30_000
/** The part of a run's time that is held back for it, at most. */
const CLOSING_SHARE = 1 / 4

/** What happens at a limit. */
export function onLimitOf({ onLimit }: Limits): OnLimit {
  return onLimit ?? 'finalize'
}

/** How long a run has been at work, in milliseconds: waiting for a person or for a process does not count. */
export function activeMs(state: RunState, now: number): number {
  return now - state.startedAt - state.waitedMs
}

/** When the run's time is up, in milliseconds since 1970 UTC, if it works on without a pause. */
export function deadlineOf(state: RunState): number | undefined {
  const { deadlineAt } = state
  const end = workEnd(state)
  return deadlineAt === undefined || end === undefined ? (deadlineAt ?? end) : Math.min(deadlineAt, end)
}

function workEnd({ limits, startedAt, waitedMs }: RunState): number | undefined {
  return limits.maxDurationMs === undefined ? undefined : startedAt + waitedMs + limits.maxDurationMs
}

/** Whether it is the moment that the run was given which ends its time, and not the limit on its work. */
export function isBoundByDeadline(state: RunState): boolean {
  return state.deadlineAt !== undefined && state.deadlineAt <= (workEnd(state) ?? Infinity)
}

/** The time that a run has in all, in milliseconds. */
export function durationOf(state: RunState): number | undefined {
  if (!isBoundByDeadline(state)) return state.limits.maxDurationMs
  return Math.max(0, (state.deadlineAt ?? 0) - state.startedAt)
}

/** When the run has to stop its work, so that time is left to write the answer. */
export function workDeadline(state: RunState): number | undefined {
  const deadline = deadlineOf(state)
  return deadline === undefined ? undefined : deadline - finalizingMs(state)
}

/** The time that is held back for the finalizing call, in milliseconds. */
export function finalizingMs(state: RunState): number {
  const durationMs = durationOf(state)
  if (durationMs === undefined || onLimitOf(state.limits) !== 'finalize') return 0
  return Math.min(MAX_CLOSING_MS, Math.floor(durationMs * CLOSING_SHARE))
}

/**
 * Returns when the runtime gives up tools that were asked to stop: after the grace time, and never past the run's
 * deadline. Every tool gets the request to stop first, however short the time: a child run without it would continue.
 */
export function graceEndOf(state: RunState, askedAt: number): number {
  const decidedAt = askedAt + 1
  const graceEnd = Math.max(decidedAt, askedAt + (state.limits.graceMs ?? defaultLimits.graceMs))
  if (state.cancel) return graceEnd
  return Math.min(graceEnd, Math.max(decidedAt, deadlineOf(state) ?? Infinity))
}

import { timeOfRunId } from '../vocabulary/values/ids.ts'
import type { RunState } from './state/state.ts'

/**
 * When a run began, and when its last event was recorded. A fork begins when its id is made: its first events are those of
 * the run that it shares them with, and have their times.
 */
export function runTimes({
  runId,
  parent,
  startedAt,
  at,
}: Pick<RunState, 'runId' | 'parent' | 'startedAt' | 'at'>): {
  readonly startedAt: number
  readonly lastAt: number
} {
  const forkedAt = parent?.relation === 'fork' ? timeOfRunId(runId) : undefined
  const began = Math.max(startedAt, forkedAt ?? 0)
  return { startedAt: began, lastAt: Math.max(began, at) }
}

import type { ModelFailure } from '../vocabulary/failure.ts'
import type { Stamp } from './decision.ts'
import type { StreamingState } from './state.ts'

/**
 * When a failed model call is tried again, in milliseconds since 1970 UTC; `undefined`: not any more. As long as the
 * provider asks, if that is within bounds; else `base * 2^n` up to the cap, shortened by up to a half at random, so
 * that many runs that failed together do not come back together.
 */
export function retryAt(state: StreamingState, failure: ModelFailure, stamp: Stamp): number | undefined {
  const { attemptsMax, baseMs, capMs, retryAfterMaxMs } = state.retry
  if (!failure.retryable || state.failures + 1 >= attemptsMax) return undefined
  if (failure.retryAfterMs !== undefined) {
    return failure.retryAfterMs <= retryAfterMaxMs ? stamp.at + Math.ceil(failure.retryAfterMs) : undefined
  }
  const delay = Math.min(capMs, baseMs * 2 ** state.failures)
  return stamp.at + Math.round(delay * (1 - stamp.random / 2))
}

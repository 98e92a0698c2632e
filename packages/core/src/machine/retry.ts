import type { ModelFailure } from '../vocabulary/failure.ts'
import type { Stamp } from './decision.ts'
import type { StreamingState } from './state.ts'

/** More take-overs than this without a finished reply or result between them are no accident of a process. */
export const TAKE_OVERS_MAX = 5

/**
 * When a failed model call is tried again, in milliseconds since 1970 UTC; `undefined`: not any more. As long as the
 * provider asks, if that is within bounds; else `base * 2^n` up to the cap, shortened by up to a half at random, so
 * that many runs that failed together do not come back together.
 */
export function retryAt(state: StreamingState, failure: ModelFailure, stamp: Stamp): number | undefined {
  const { attemptsMax, retryAfterMaxMs, totalMaxMs = Infinity } = state.retry
  if (!failure.retryable || state.failures + 1 >= attemptsMax) return undefined
  const { retryAfterMs = -1 } = failure
  if (retryAfterMs > retryAfterMaxMs) return undefined
  // A wait that is no time is as good as none that was asked for.
  const at = stamp.at + (retryAfterMs >= 0 ? Math.ceil(retryAfterMs) : backOff(state, stamp))
  return at - state.turnStartedAt <= totalMaxMs ? at : undefined
}

function backOff({ retry: { baseMs, capMs }, failures }: StreamingState, { random }: Stamp): number {
  return Math.round(Math.min(capMs, baseMs * 2 ** failures) * (1 - random / 2))
}

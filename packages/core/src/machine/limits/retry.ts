import type { EventOf } from '../../vocabulary/events/event.ts'
import type { ModelFailure } from '../../vocabulary/model/failure.ts'
import type { Stamp } from '../state/decision.ts'
import type { StreamingState } from '../state/state.ts'

/** More take-overs than this without a finished reply or result between them are no accident of a process. */
export const MAX_TAKE_OVERS = 5

/**
 * When a failed model call is tried again, in milliseconds since 1970 UTC; `undefined`: not any more. As long as the
 * provider asks, if that is within bounds; else `base * 2^n` up to the cap, shortened by up to a half at random, so
 * that many runs that failed together do not come back together.
 */
export function retryAt(state: StreamingState, failure: ModelFailure, stamp: Stamp): number | undefined {
  const { maxAttempts, maxRetryAfterMs, maxTotalMs = Infinity } = state.retry
  if (!failure.retryable || state.failures + 1 >= maxAttempts) return undefined
  const { retryAfterMs = -1 } = failure
  if (retryAfterMs > maxRetryAfterMs) return undefined
  // A wait that is no time is as good as none that was asked for.
  const at = stamp.at + (retryAfterMs >= 0 ? Math.ceil(retryAfterMs) : backOff(state, stamp))
  return at - state.turnStartedAt <= maxTotalMs ? at : undefined
}

/** The chance that a wait on record came of: with it `retryAt` gives the same time again. */
export function chanceOf(
  state: StreamingState,
  { at, failure, retryAt: recorded }: Pick<EventOf<'model_stream_failed'>, 'at' | 'failure' | 'retryAt'>,
): number {
  const longest = longestWait(state)
  // No chance gives a longer wait than 0: where that is too long, as where it was asked for, any would say the same.
  if (recorded === undefined || (failure.retryAfterMs ?? -1) >= 0 || longest <= 0) return 0
  return 2 * (1 - (recorded - at) / longest)
}

function longestWait({ retry: { baseMs, capMs }, failures }: StreamingState): number {
  return Math.min(capMs, baseMs * 2 ** failures)
}

function backOff(state: StreamingState, { random }: Stamp): number {
  return Math.round(longestWait(state) * (1 - random / 2))
}

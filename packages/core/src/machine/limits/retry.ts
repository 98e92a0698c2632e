import type { EventOf } from '../../vocabulary/events/event.ts'
import { momentAfter } from '../../vocabulary/events/moment.ts'
import type { Outcome } from '../../vocabulary/model/content.ts'
import type { RetryPolicy } from '../../vocabulary/limits/limits.ts'
import type { ModelFailure } from '../../vocabulary/model/failure.ts'
import type { Retryable } from '../../vocabulary/signals/signal.ts'
import type { Stamp } from '../state/decision.ts'
import type { Call, RunState, StreamingState } from '../state/state.ts'
import { findCall } from '../state/state-views.ts'

/** More take-overs than this without a finished reply or result between them are no accident of a process. */
export const MAX_TAKE_OVERS = 5

/** What a wait follows from: the policy, how often the call has failed before, and when its first attempt started. */
interface FailedTries {
  readonly policy: RetryPolicy
  readonly failures: number
  readonly since: number
  /** How long the outside asks to wait. */
  readonly retryAfterMs?: number | undefined
}

/** When a failed model call is tried again, in milliseconds since 1970 UTC; `undefined`: not any more. */
export function retryAt(state: StreamingState, failure: ModelFailure, stamp: Stamp): number | undefined {
  const { retry: policy, failures, turnStartedAt: since } = state
  const { retryable, retryAfterMs } = failure
  return retryable ? nextTryAt({ policy, failures, since, retryAfterMs }, stamp) : undefined
}

/** The same for a tool call whose attempt failed as retryable. */
export function toolRetryAt(
  { retry: policy, tries }: Pick<Call, 'retry' | 'tries'>,
  { retryable, retryAfterMs }: Retryable,
  stamp: Stamp,
): number | undefined {
  if (!retryable || policy === undefined || tries === undefined) return undefined
  return nextTryAt({ policy, ...tries, retryAfterMs }, stamp)
}

/**
 * As long as the outside asks, if that is within bounds; else `base * 2^n` up to the cap, shortened by up to a half at
 * random, so that many runs that failed together do not come back together.
 */
function nextTryAt(
  { policy, failures, since, retryAfterMs = -1 }: FailedTries,
  stamp: Stamp,
): number | undefined {
  const { maxAttempts, maxRetryAfterMs, maxTotalMs = Infinity } = policy
  if (failures + 1 >= maxAttempts || retryAfterMs > maxRetryAfterMs) return undefined
  // A wait that is no time is as good as none that was asked for.
  const wait = retryAfterMs >= 0 ? Math.ceil(retryAfterMs) : backOff(longestWait(policy, failures), stamp)
  return stamp.at + wait - since <= maxTotalMs ? momentAfter(stamp.at, wait) : undefined
}

/**
 * Whether a call may be tried again whose attempt ended so: it failed, or its tool is safe to start again where it is not
 * known what the attempt has done.
 */
export function mayRetry({ effect, recovery }: Pick<Call, 'effect' | 'recovery'>, outcome: Outcome): boolean {
  if (outcome === 'failed') return true
  const isUnknown = outcome === 'timed_out' || outcome === 'interrupted'
  return isUnknown && (effect === 'read' || recovery === 'rerun')
}

/** Whether a cancel or a limit keeps calls that were started once from being tried again. */
export function nothingMoreStarts({ cancel, metLimit }: RunState): boolean {
  if (cancel) return true
  // A call that is tried again was counted; one that a person may raise the limit for waits.
  return metLimit !== undefined && metLimit.policy !== 'ask' && metLimit.limit !== 'maxToolCalls'
}

/** The failure of an attempt, as far as the wait after it follows from it. */
type FailedAttempt =
  | Pick<EventOf<'model_stream_failed'>, 'type' | 'at' | 'failure' | 'retryAt'>
  | Pick<EventOf<'tool_attempt_failed'>, 'type' | 'at' | 'toolCallId' | 'retryAfterMs' | 'retryAt'>

/** The chance that a wait on record came of: with it the same wait is chosen again. */
export function chanceOf(state: RunState, event: FailedAttempt): number {
  const { at, retryAt: recorded } = event
  const isModel = event.type === 'model_stream_failed'
  const { retryAfterMs = -1 } = isModel ? event.failure : event
  const longest = isModel ? longestModelWait(state) : longestToolWait(state, event.toolCallId)
  // No chance gives a longer wait than 0: where that is too long, as where it was asked for, any would say the same.
  if (recorded === undefined || retryAfterMs >= 0 || longest <= 0) return 0
  return 2 * (1 - (recorded - at) / longest)
}

function longestModelWait(state: RunState): number {
  return state.phase === 'streaming' ? longestWait(state.retry, state.failures) : 0
}

function longestToolWait(state: RunState, toolCallId: string): number {
  const { retry, tries } = findCall(state, toolCallId) ?? {}
  return retry && tries ? longestWait(retry, tries.failures) : 0
}

function longestWait({ baseMs, capMs }: RetryPolicy, failures: number): number {
  return Math.min(capMs, baseMs * 2 ** failures)
}

function backOff(longest: number, { random }: Stamp): number {
  return Math.round(longest * (1 - random / 2))
}

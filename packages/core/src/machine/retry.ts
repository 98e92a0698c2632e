import type { CallRefusal, EventOf, ParentRef } from '../events/event.ts'
import { addMs } from '../events/event-parts.ts'
import type { Outcome, ToolResult } from '../events/content.ts'
import type { RetryPolicy } from '../events/limits.ts'
import type { ModelFailure } from '../values/errors.ts'
import type { Retryable } from '../events/signals.ts'
import type { Stamp } from './rules.ts'
import type { Call, ExecutingState, RunState, StreamingState } from './state.ts'
import { findCall } from './calls.ts'

/** More take-overs than this without a finished reply or result between them are not an accident of a process. */
export const MAX_TAKE_OVERS = 5

/** When a failed model call is tried again, in milliseconds since 1970 UTC; `undefined`: not any more. */
export function computeRetryAt(
  state: StreamingState,
  failure: ModelFailure,
  stamp: Stamp,
): number | undefined {
  const { retry, failures, turnStartedAt: since } = state
  const { retryable, retryAfterMs } = failure
  return retryable ? computeNextTry(retry, { failures, since }, stamp, retryAfterMs) : undefined
}

/** The same for a tool call whose attempt failed as retryable. */
export function computeToolRetryAt(
  { retry, tries }: Pick<Call, 'retry' | 'tries'>,
  { retryable, retryAfterMs }: Retryable,
  stamp: Stamp,
): number | undefined {
  if (!retryable || retry === undefined || tries === undefined) return undefined
  return computeNextTry(retry, tries, stamp, retryAfterMs)
}

/**
 * As long as the outside asks, if that is within bounds; else `base * 2^n` up to the cap, shortened by up to a half at
 * random, so that many runs that failed together do not come back together.
 */
function computeNextTry(
  policy: RetryPolicy,
  { failures, since }: { readonly failures: number; readonly since: number },
  { at, random }: Stamp,
  retryAfterMs: number = -1,
): number | undefined {
  const { maxAttempts, maxRetryAfterMs, maxTotalMs = Infinity } = policy
  if (failures + 1 >= maxAttempts || retryAfterMs > maxRetryAfterMs) return undefined
  // A wait that is not a time is as good as none that was asked for.
  const wait =
    retryAfterMs >= 0
      ? Math.ceil(retryAfterMs)
      : Math.round(getLongestWait(policy, failures) * (1 - random / 2))
  return at + wait - since <= maxTotalMs ? addMs(at, wait) : undefined
}

/**
 * Returns whether a call may be tried again whose attempt ended so: it failed, or its tool is safe to start again where it is not
 * known what the attempt has done.
 */
export function mayRetry({ effect, recovery }: Pick<Call, 'effect' | 'recovery'>, outcome: Outcome): boolean {
  if (outcome === 'failed') return true
  const isUnknown = outcome === 'timed_out' || outcome === 'interrupted'
  return isUnknown && (effect === 'read' || recovery === 'rerun')
}

/** Returns whether a cancel or a limit keeps calls that were started once from being tried again. */
export function isStopping({ cancel, metLimit }: RunState): boolean {
  if (cancel) return true
  // A call that is tried again was counted; one that a person may raise the limit for waits.
  return metLimit !== undefined && metLimit.policy !== 'ask' && metLimit.limit !== 'maxToolCalls'
}

/** The chance that the wait after a failed attempt came of: with it the same wait is chosen again. */
export function recoverRandom(
  state: RunState,
  event:
    | Pick<EventOf<'model_stream_failed'>, 'type' | 'at' | 'failure' | 'retryAt'>
    | Pick<EventOf<'tool_attempt_failed'>, 'type' | 'at' | 'toolCallId' | 'retryAfterMs' | 'retryAt'>,
): number {
  const { at, retryAt: recorded } = event
  const isModel = event.type === 'model_stream_failed'
  const { retryAfterMs = -1 } = isModel ? event.failure : event
  const attempts = state.phase === 'streaming' ? state : undefined
  const call = isModel ? undefined : findCall(state, event.toolCallId)
  const policy = isModel ? attempts?.retry : call?.retry
  const failures = isModel ? attempts?.failures : call?.tries?.failures
  const longest = policy && failures !== undefined ? getLongestWait(policy, failures) : 0
  // A random part of 0 gives the longest wait: if that is too long, or was requested, chance makes no difference.
  if (recorded === undefined || retryAfterMs >= 0 || longest <= 0) return 0
  return 2 * (1 - (recorded - at) / longest)
}

function getLongestWait({ baseMs, capMs }: RetryPolicy, failures: number): number {
  return Math.min(capMs, baseMs * 2 ** failures)
}

/** The parts of a call that decide whether it may start. */
type Startable = Pick<Call, 'effect' | 'recorded' | 'approvedSeq'>

/**
 * Returns whether a call may not start: no recorded result answers it, and it is a write of a fork, or of a child run of one, that
 * no person has approved there, or a call that was approved before the fork began. The source run has performed its writes
 * already, and an approval is for one execution in its own run.
 */
export function isHeldWrite({ parent }: Pick<RunState, 'parent'>, call: Startable): boolean {
  if (call.recorded !== undefined) return false
  if (isApprovedElsewhere(parent, call)) return true
  const writes = parent?.writes ?? 'run'
  if (writes === 'run' || call.effect === 'read') return false
  return writes === 'stub' || call.approvedSeq === undefined
}

/** Law 13: whether the last approval of a call was given in the run that a fork shares its first events with. */
export function isApprovedElsewhere(
  parent: ParentRef | undefined,
  { approvedSeq }: Pick<Call, 'approvedSeq'>,
): boolean {
  return approvedSeq !== undefined && parent?.relation === 'fork' && approvedSeq <= parent.seq
}

/** The treatment of such a call: a person is asked, or it is not performed. */
export function planHeldWrite({ parent }: Pick<RunState, 'parent'>, { effect }: Startable): 'ask' | 'stub' {
  return parent?.writes === 'stub' && effect !== 'read' ? 'stub' : 'ask'
}

/** Returns whether a call in doubt is started again without a question. */
export function isRerun({
  status,
  recovery,
  inputRemoved,
}: Pick<Call, 'status' | 'recovery' | 'inputRemoved'>): boolean {
  return status === 'in_doubt' && recovery === 'rerun' && inputRemoved === undefined
}

/** The calls that would be started now, were they not held back. */
export function listHeldWrites(state: ExecutingState, plan: 'ask' | 'stub'): readonly Call[] {
  if (state.parent === undefined) return []
  return state.calls.filter(
    (call) =>
      (call.status === 'ready' || call.status === 'to_retry' || isRerun(call)) &&
      isHeldWrite(state, call) &&
      planHeldWrite(state, call) === plan,
  )
}

const heldBackReason =
  'This run is a fork, and no recorded result answers the call: approved, it is performed for real, under a new idempotency key.'

/** The reason that a person reads when asked about a call of a fork, after what else there is to say of it. */
export function describeForkReason(reason: string | undefined): string {
  if (reason === undefined) return heldBackReason
  return reason.includes(heldBackReason) ? reason : `${reason}. ${heldBackReason}`
}

/** The text that the model reads instead of the result of a write. */
export const stubbed: CallRefusal = {
  outcome: 'skipped',
  text: 'This run is a fork, in which writes are not performed: nothing was changed. Go on as if it were done, and say that it was not.',
}

/** Returns whether a result says that a write of a fork was not performed. */
export function isStubbed({ outcome, content }: Pick<ToolResult, 'outcome' | 'content'>): boolean {
  const [part] = content
  const isText = part?.type === 'text' && part.text === stubbed.text
  return isText && (outcome === 'skipped' || outcome === 'interrupted')
}

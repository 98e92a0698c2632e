import type { ModelRef, StopReason } from '../../vocabulary/model/content.ts'
import type { FinishReason } from '../../vocabulary/events/event.ts'
import { limitReasons } from '../../vocabulary/limits/limits.ts'
import type { Action } from '../state/action.ts'
import {
  modelAfterGivingUp,
  nextModelCall,
  plannedChoice,
  plannedOutput,
  repeatedPlan,
  repeatModelCall,
} from './next-model-call.ts'
import { nextTurn } from './next-turn.ts'
import { finishReasonOf, failureReason, finish, endIfStopped } from './finish-run.ts'
import { nextForCalls, settleCalls } from './next-calls.ts'
import { waitBeforeCompaction, compactionAfterOverflow, nextWhileCompacting } from './next-context.ts'
import { nextHandoff } from './next-handoff.ts'
import { withoutRefused } from './next-after-refusal.ts'
import { deliverInput } from './next-inputs.ts'
import { requiresEffects } from '../state/required-effects.ts'
import { dueAnswerCheck } from '../state/due-checks.ts'
import { deadlineOf, workDeadline } from '../limits/deadlines.ts'
import { type LimitFinding, meetLimit, timeLimit } from '../limits/limit-finding.ts'
import { settledUsage } from '../limits/settled-usage.ts'
import { withheldAnswer } from './withheld.ts'
import { MAX_TAKE_OVERS } from '../limits/retry.ts'
import { preparedCall } from '../prompt/prepared-call.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { draftedReply } from '../messages/reply-parts.ts'
import { summaryOf } from '../state/turn-calls.ts'
import type { Rules } from '../state/rules.ts'
import type {
  CollectingState,
  FailedAttempt,
  InjectingState,
  Reply,
  RunState,
  StreamingState,
} from '../state/state.ts'

/**
 * THE LOOP CONTROLLER: the one place that decides whether a run continues, waits or stops. Pure: state and time in, what
 * the next action out. It starts nothing; what must be in flight follows from the state (`requiredEffects`).
 */
export function nextAction(state: RunState, now: number, rules: Rules = {}): Action {
  // No time has passed that a suspended run could have used.
  if (now <= state.at || !isSuspended(state)) return pendingAction(state, now, rules)
  // A suspended run does not use up its time.
  return pendingAction({ ...state, waitedMs: state.waitedMs + now - state.at }, now, rules)
}

/**
 * Whether nothing is in flight, nothing is pending, and only a command can continue the run: the controller's own
 * answer at the time of the last event. Results, lists and a resume ask nothing else.
 */
export function isSuspended(state: RunState): boolean {
  return mayBeSuspended(state) && pendingAction(state, state.at, {}).kind === 'suspend'
}

/** Spares most states the controller's answer, and those in which it asks an agent's rules, which a reader lacks. */
function mayBeSuspended(state: RunState): boolean {
  const isHeld =
    state.phase === 'executing'
      ? // What has all its results enters the history, or is checked first.
        summaryOf(state.calls).counts.settled < state.calls.length
      : state.metLimit?.policy === 'ask' || state.history.length === 0
  const hasPendingHandoff = state.phase === 'injecting' && state.handoff !== undefined
  return isHeld && !hasPendingHandoff && !requiresEffects(state)
}

/** While something is in flight, nothing is suspended: its report has to be handled. */
function pendingAction(state: RunState, now: number, rules: Rules): Action {
  const action = nextInPhase(state, now, rules)
  return action.kind === 'suspend' && requiresEffects(state) ? { kind: 'wait' } : action
}

function nextInPhase(state: RunState, now: number, rules: Rules): Action {
  switch (state.phase) {
    case 'idle':
      return endIfStopped(state) ?? nextFromIdle(state, now, rules)
    case 'streaming':
      return state.attempt.failed
        ? nextAfterFailure(state, state.attempt.failed, now, rules)
        : nextWhileStreaming(state, now)
    case 'collecting':
      return state.calls.length === 0 ? nextAfterReply(state, now, rules) : nextWhileCollecting(state, now)
    case 'executing':
      return nextForCalls(state, now)
    case 'injecting':
      return nextAfterReply(state, now, rules)
    case 'done':
      return { kind: 'finished' }
  }
}

function nextFromIdle(state: RunState, now: number, rules: Rules): Action {
  return state.history.length === 0 ? { kind: 'suspend' } : nextTurn(state, undefined, now, rules)
}

function nextWhileStreaming(state: StreamingState, now: number): Action {
  if (state.cancel || state.blocked) return keepPartial(state, 'cancelled')
  const deadline = state.attempt.finalizing ? deadlineOf(state) : workDeadline(state)
  if (deadline === undefined) return { kind: 'wait' }
  if (now < deadline) return { kind: 'wait', wakeAt: deadline }
  return state.metLimit ? keepPartial(state, 'cancelled') : meetLimit(state, timeLimit(state, now))
}

/** When the same call is made again, if it is. */
function retryTime(state: StreamingState, { shortened, retryAt }: FailedAttempt): number | undefined {
  if (state.takeOvers > MAX_TAKE_OVERS) return undefined
  return shortened ? state.at : retryAt
}

/** A failed attempt: the next one when its time has come, or another model, or what came of the reply is kept. */
function nextAfterFailure(state: StreamingState, failed: FailedAttempt, now: number, rules: Rules): Action {
  const { finalizing } = state.attempt
  if (state.cancel || state.blocked || (state.metLimit && !finalizing)) return keepPartial(state, 'cancelled')
  return nextWhileCompacting(state, now) ?? nextAttempt(state, failed, now, rules)
}

function nextAttempt(state: StreamingState, failed: FailedAttempt, now: number, rules: Rules): Action {
  const { calls } = state.attempt
  const retryAt = retryTime(state, failed)
  const deadline = (isFinalizing(state) ? deadlineOf(state) : workDeadline(state)) ?? Infinity
  if (retryAt !== undefined && now < Math.min(retryAt, deadline)) {
    return { kind: 'wait', wakeAt: Math.min(retryAt, deadline) }
  }
  const shorter = compactionAfterOverflow(state, now, failed, rules)
  if (shorter) {
    const facts = [...settleCalls(state, calls, 'skipped'), shorter]
    return waitBeforeCompaction(state) ?? { kind: 'compact', facts }
  }
  const model = retryAt === undefined ? modelAfterGivingUp(state) : state.attempt.model
  if (model === undefined) return keepPartial(state, 'failed')
  const next = failed.shortened ? shorterCall(state, now, model, rules) : repeatModelCall(state, now, model)
  if (next === 'pending') return waitForShorter(state, now, deadline)
  if ('limit' in next) return meetInAttempt(state, next)
  // Two attempts are never spliced: what the failed one asked for is closed before the next one starts.
  return { kind: 'call_model', facts: [...settleCalls(state, calls, 'skipped'), next] }
}

/** While the agent's code prepares the shorter call. */
function waitForShorter(state: StreamingState, now: number, deadline: number): Action {
  if (now >= deadline) return meetInAttempt(state, timeLimit(state, now))
  return deadline === Infinity ? { kind: 'wait' } : { kind: 'wait', wakeAt: deadline }
}

/** Whether the attempt is the call that writes the answer at a limit. */
function isFinalizing({ attempt, metLimit }: StreamingState): boolean {
  return attempt.finalizing && metLimit !== undefined
}

/** A limit that no further attempt fits in: the finalizing call ends there, any other one leads to it. */
function meetInAttempt(state: StreamingState, finding: LimitFinding): Action {
  return isFinalizing(state) ? keepPartial(state, 'cancelled') : meetLimit(state, finding)
}

/** The same call with the history that was made shorter, which the agent's code gets to see as it sees each turn. */
function shorterCall(
  state: StreamingState,
  now: number,
  model: ModelRef,
  rules: Rules,
): ReturnType<typeof repeatModelCall> | 'pending' {
  const plan = repeatedPlan(state, model)
  const offered = { model, toolChoice: plannedChoice(state, plan) }
  const prepared = preparedCall(state, rules, {
    ...offered,
    ...omitUndefined({ maxOutputTokens: plannedOutput(state) }),
  })
  return prepared === 'pending' ? prepared : nextModelCall(state, now, { ...plan, ...prepared })
}

/** A reply that was cut off enters the history as far as it came, marked as partial; its calls will not run. */
function keepPartial(state: StreamingState, stopReason: StopReason & ('cancelled' | 'failed')): Action {
  const { attempt, metLimit } = state
  const nothingCame = attempt.drafts.length === 0 && attempt.calls.length === 0
  // Calls that have their results belong to an attempt that was given up for the next one.
  if (attempt.calls.some((call) => call.status === 'settled')) return endWithoutReply(state)
  if (nothingCame && !metLimit) return endWithoutReply(state)
  return {
    kind: 'keep_partial',
    facts: [
      ...(attempt.failed ? [] : settledUsage(state, 'cancelled')),
      {
        type: 'assistant_message_finished',
        turn: state.turn,
        attempt: attempt.number,
        stopReason,
        partial: true,
        ...draftedReply(attempt),
        ...(attempt.providerMessageId !== undefined && { providerMessageId: attempt.providerMessageId }),
      },
    ],
  }
}

/** Ends the run without a message of this attempt; what the attempt has left open is closed first. */
function endWithoutReply(state: StreamingState): Action {
  const { attempt, metLimit } = state
  const { failure } = attempt.failed ?? {}
  const reason = metLimit ? limitReasons[metLimit.limit] : failureReason(failure?.class)
  const end = endIfStopped(state) ?? finish(state, reason, failure?.message)
  return { kind: 'finish', facts: [...settleCalls(state, attempt.calls, 'skipped'), ...end.facts] }
}

/** Stop reasons after which a reply's calls may run. Any other says that the reply is not what the model meant. */
const runnable: ReadonlySet<StopReason> = new Set(['tool_use', 'end', 'paused', 'other'])

function nextWhileCollecting(state: CollectingState, now: number): Action {
  const { message, finalizing } = state.reply
  const { cancel, metLimit } = state
  if (cancel) return { kind: 'collect', facts: settleCalls(state, state.calls, 'cancelled') }
  if (state.blocked) return { kind: 'collect', facts: settleCalls(state, state.calls, 'denied') }
  if (finalizing) return { kind: 'collect', facts: settleCalls(state, state.calls, 'limit_reached') }
  if (message.partial || !runnable.has(message.stopReason)) {
    return { kind: 'collect', facts: settleCalls(state, state.calls, 'skipped') }
  }
  const deadline = workDeadline(state)
  if (deadline === undefined || metLimit?.policy === 'ask') return { kind: 'wait' }
  if (now < deadline) return { kind: 'wait', wakeAt: deadline }
  if (metLimit) return { kind: 'collect', facts: settleCalls(state, state.calls, 'limit_reached') }
  return meetLimit(state, timeLimit(state, now))
}

/** The turn is over: every call has its result in the history. */
function nextAfterReply(state: CollectingState | InjectingState, now: number, rules: Rules): Action {
  const next = endIfStopped(state) ?? pendingForReply(state, now, rules) ?? nextFromReply(state, now, rules)
  return withoutRefused(state, next)
}

/** Returns the action that a reply needs before its other results: its handoff, or its pending guardrail checks. */
function pendingForReply(
  state: CollectingState | InjectingState,
  now: number,
  rules: Rules,
): Action | undefined {
  if (state.phase === 'injecting') return state.handoff && nextHandoff(state, state.handoff, rules)
  // Newer input is checked in parallel with the next model call.
  const beside = state.inputCheck !== undefined && !state.inputSinceReply && !state.reply.message.partial
  return beside || dueAnswerCheck(state) ? waitForCheck(state, now) : undefined
}

/** A check has the time that the run has; an answer that no guardrail has passed by then is withheld. */
function waitForCheck(state: CollectingState, now: number): Action {
  const deadline = deadlineOf(state)
  if (deadline === undefined || state.metLimit?.policy === 'ask') return { kind: 'wait' }
  if (now < deadline) return { kind: 'wait', wakeAt: deadline }
  if (state.metLimit === undefined) return meetLimit(state, timeLimit(state, now))
  const { facts } = finish(state, limitReasons[state.metLimit.limit])
  return { kind: 'finish', facts: [...withheldAnswer(state), ...facts] }
}

function nextFromReply(state: CollectingState | InjectingState, now: number, rules: Rules): Action {
  const continueRun = (): Action => nextTurn(state, state.reply, now, rules)
  const end = endAtLimit(state)
  if (end) return end === 'continue' ? continueRun() : finish(state, end)
  const reason = finishReasonOf(state.reply, state.phase === 'injecting')
  if (reason === undefined) return deliverInput(state, 'steer', now) ?? continueRun()
  if (reason !== 'answered') return finish(state, reason, failureText(state.reply))
  const unfit = state.inputSinceReply ? undefined : invalidOutputEnd(state)
  if (unfit) return unfit
  // Input that arrived during the run gets an answer too: the run continues after its own.
  const more =
    deliverInput(state, 'steer', now) ??
    (state.inputSinceReply ? continueRun() : deliverInput(state, 'queue', now))
  return more ?? finish(state, reason)
}

/** What the runtime or the vendor says of a reply that is no answer. */
function failureText({ failure, refusal }: Reply): string | undefined {
  return failure?.message ?? refusal?.reason
}

/** The end of a run whose answer does not fit, and is not asked for again. */
function invalidOutputEnd(state: CollectingState | InjectingState): Action | undefined {
  const { fit } = state.reply
  return fit?.valid === false ? finish(state, 'output_invalid', fit.error) : undefined
}

/** What a met limit makes of a reply that was written or cut off because of it. */
function endAtLimit({
  metLimit,
  reply,
}: CollectingState | InjectingState): FinishReason | 'continue' | undefined {
  if (metLimit === undefined) return undefined
  // A closing call without a word changes nothing about why there was one.
  const endedEmpty = reply.finalizing && reply.failure?.class === 'empty_reply'
  if (reply.message.stopReason === 'failed' && !endedEmpty) return undefined
  if (reply.finalizing) return limitReasons[metLimit.limit]
  return reply.message.stopReason === 'cancelled' ? 'continue' : undefined
}

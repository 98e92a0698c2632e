import type { StopReason } from '../vocabulary/content.ts'
import type { Fact, FinishReason } from '../vocabulary/event.ts'
import type { ToolChoice } from '../vocabulary/tool-definition.ts'
import type { Action } from './action.ts'
import { nextForCalls, settleAll } from './controller-calls.ts'
import { activeMs, deadlineOf, limitReasons, meetLimit, reserveCall } from './limit-check.ts'
import { requestDigest } from './model-request.ts'
import type { CollectingState, InjectingState, Reply, RunState, StreamingState } from './state.ts'

/**
 * THE LOOP CONTROLLER: the one place that decides whether a run goes on, waits or stops. Pure: state and time in, what
 * is owed out. It starts nothing; what must be in flight follows from the state (`effectsOf`).
 */
export function nextAction(state: RunState, now: number): Action {
  switch (state.phase) {
    case 'idle':
      if (state.cancel) return finish(state, 'cancelled')
      return state.history.length === 0 ? { kind: 'suspend' } : continueOrStop(state, undefined, now)
    case 'streaming':
      return state.attempt.failed
        ? afterFailure(state, state.attempt.failed, now)
        : whileStreaming(state, now)
    case 'collecting':
      return state.calls.length === 0 ? afterReply(state, now) : collect(state)
    case 'executing':
      return nextForCalls(state, now)
    case 'injecting':
      return afterReply(state, now)
    case 'done':
      return { kind: 'finished' }
  }
}

function whileStreaming(state: StreamingState, now: number): Action {
  if (state.cancel) return keepPartial(state, 'cancelled')
  const deadline = deadlineOf(state)
  // The finalizing call may write the answer to its end: nothing comes behind it.
  if (deadline === undefined || state.attempt.finalizing) return { kind: 'wait' }
  if (now < deadline) return { kind: 'wait', wakeAt: deadline }
  if (state.metLimit) return keepPartial(state, 'cancelled')
  const max = state.limits.durationMaxMs ?? 0
  return meetLimit(state, { limit: 'durationMaxMs', max, used: activeMs(state, now) })
}

/** A failed attempt: the next one when its time has come, or what there is of the reply is kept and the run ends. */
function afterFailure(
  state: StreamingState,
  { retryAt }: { readonly retryAt?: number },
  now: number,
): Action {
  if (state.cancel) return keepPartial(state, 'cancelled')
  if (retryAt === undefined) return keepPartial(state, 'failed')
  if (now < retryAt) return { kind: 'wait', wakeAt: retryAt }
  const reserved = state.attempt.finalizing ? undefined : reserveCall(state, now)
  if (reserved && 'limit' in reserved) return keepPartial(state, 'failed')
  // Two attempts are never spliced: what the failed one asked for is closed before the next one starts.
  const dropped = settleAll(state, state.attempt.calls, 'skipped')
  const next = callModel(state, state.attempt.toolChoice, state.attempt.finalizing, reserved?.outputTokens)
  return { kind: 'call_model', facts: [...dropped, ...next.facts] }
}

/** A reply that was cut off enters the history as far as it came, marked as partial; its calls will not run. */
function keepPartial(state: StreamingState, stopReason: StopReason & ('cancelled' | 'failed')): Action {
  const { attempt } = state
  // Calls that have their results belong to an attempt that was given up for the next one.
  const settled = attempt.calls.some((call) => call.status === 'settled')
  if (settled || (attempt.drafts.length === 0 && attempt.calls.length === 0)) {
    return finish(
      state,
      stopReason === 'cancelled' ? 'cancelled' : failureReason(state.attempt.failed?.failure.class),
    )
  }
  const texts = attempt.drafts.map(({ part, kind, text }) => ({ part, content: { type: kind, text } }))
  const calls = attempt.calls.map(({ part, toolCallId, providerCallId, name, input, malformed, opaque }) => ({
    part,
    content: {
      ...{ type: 'tool_call' as const, toolCallId, providerCallId, name, input },
      ...(malformed !== undefined && { malformed }),
      ...(opaque !== undefined && { opaque }),
    },
  }))
  const parts = [...texts, ...calls].sort((a, b) => a.part - b.part).map(({ content }) => content)
  return {
    kind: 'keep_partial',
    facts: [
      {
        ...{ type: 'assistant_message_finished', turn: state.turn, attempt: attempt.number },
        ...{ stopReason, partial: true, parts },
        ...(attempt.providerMessageId !== undefined && { providerMessageId: attempt.providerMessageId }),
      },
    ],
  }
}

/** Stop reasons after which a reply's calls may run. Any other says that the reply is not what the model meant. */
const runnable: ReadonlySet<StopReason> = new Set(['tool_use', 'end', 'paused', 'other'])

function collect(state: CollectingState): Action {
  const { message, finalizing } = state.reply
  if (!state.cancel && !finalizing && !message.partial && runnable.has(message.stopReason)) {
    return { kind: 'wait' }
  }
  const outcome = state.cancel ? 'cancelled' : finalizing ? 'limit_reached' : 'skipped'
  return { kind: 'collect', facts: settleAll(state, state.calls, outcome) }
}

/** The turn is over: every call has its result in the history. */
function afterReply(state: CollectingState | InjectingState, now: number): Action {
  if (state.cancel) return finish(state, 'cancelled')
  const reason = endOf(state.reply, state.phase === 'injecting')
  const { finalizing, message } = state.reply
  if (state.metLimit && finalizing && message.stopReason !== 'failed') {
    return finish(state, limitReasons[state.metLimit.limit])
  }
  // A reply that the run's time has cut off: its limit says how the run ends.
  if (state.metLimit && message.stopReason === 'cancelled') return continueOrStop(state, state.reply, now)
  return reason
    ? finish(state, reason, state.reply.failure?.message)
    : continueOrStop(state, state.reply, now)
}

/** Why the run ends with this reply; `undefined` when it goes on. */
function endOf({ message, failure }: Reply, hadCalls: boolean): FinishReason | undefined {
  switch (message.stopReason) {
    case 'refused':
    case 'content_filtered':
      return 'refused'
    case 'max_tokens':
      return 'output_truncated'
    case 'context_exceeded':
      return 'context_overflow'
    case 'cancelled':
      return 'cancelled'
    case 'failed':
      return failureReason(failure?.class)
    case 'paused':
    case 'compacted':
      return undefined
    case 'end':
    case 'tool_use':
    case 'other':
      return hadCalls ? undefined : 'answered'
  }
}

function failureReason(failureClass: string | undefined): FinishReason {
  if (failureClass === 'context_overflow') return 'context_overflow'
  return failureClass === 'content_filtered' ? 'refused' : 'model_failed'
}

/** Law 9: the next model call, unless a limit stands in the way; then what its policy says. */
function continueOrStop(state: RunState, reply: Reply | undefined, now: number): Action {
  if (state.metLimit === undefined) {
    const reserved = reserveCall(state, now)
    if ('limit' in reserved) return meetLimit(state, reserved)
    return callModel(state, { type: 'auto' }, false, reserved.outputTokens)
  }
  switch (state.metLimit.policy) {
    case 'ask':
      return { kind: 'suspend' }
    case 'stop':
      return finish(state, limitReasons[state.metLimit.limit])
    case 'finalize':
      return reply?.finalizing
        ? finish(state, limitReasons[state.metLimit.limit])
        : callModel(state, { type: 'none' }, true)
  }
}

function callModel(
  state: RunState,
  toolChoice: ToolChoice,
  finalizing: boolean,
  outputTokens = Infinity,
): Extract<Action, { readonly facts: readonly Fact[] }> {
  const again = state.phase === 'streaming'
  const maxOutputTokens = Math.min(outputTokens, state.definition.maxOutputTokens ?? Infinity)
  const options = { toolChoice, ...(maxOutputTokens !== Infinity && { maxOutputTokens }) }
  return {
    kind: 'call_model',
    facts: [
      {
        ...{ type: 'model_call_started', turn: state.turn + (again ? 0 : 1) },
        attempt: again ? state.attempt.number + 1 : 1,
        ...{ model: state.definition.model, requestDigest: requestDigest(state, options) },
        ...{ ...options, finalizing },
      },
    ],
  }
}

function finish(state: RunState, reason: FinishReason, detail?: string): Action {
  const { turns, toolCalls, usage, costUsd } = state.totals
  return {
    kind: 'finish',
    facts: [
      {
        ...{ type: 'run_finished', turn: state.turn, reason, turns, toolCalls, usage },
        ...(costUsd !== undefined && { costUsd }),
        ...(detail !== undefined && { detail }),
      },
    ],
  }
}

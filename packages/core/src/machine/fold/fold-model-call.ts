import {
  sameModel,
  textOf,
  type AssistantMessage,
  type AssistantPart,
} from '../../vocabulary/model/content.ts'
import type { EventOf, RuntimeEvent } from '../../vocabulary/events/event.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { addUsage } from '../../vocabulary/billing/usage.ts'
import { requireClosed } from './fold-tool-calls.ts'
import { appendMessage } from '../messages/history.ts'
import { partsOfNextTurn } from '../messages/reply-parts.ts'
import { showsOtherMessages } from '../messages/shown-messages.ts'
import { illegal } from './illegal.ts'
import { baseOf } from '../state/run-base.ts'
import { offeredTools, withSource } from '../messages/sourced-tools.ts'
import type { Attempt, CollectingState, RunState, StreamingState } from '../state/state.ts'
import { messageTokens } from '../messages/token-estimate.ts'
import { causeOf } from '../../vocabulary/events/event-traits.ts'

/** A model call starts: the first attempt of a turn, or the next one of the same. */
export function applyModelCallStarted(state: RunState, event: EventOf<'model_call_started'>): StreamingState {
  requireClosed(state, event)
  const again = state.phase === 'streaming'
  if (again && state.attempt.failed === undefined) {
    throw illegal(state, event, `attempt ${state.attempt.number} of turn ${state.turn} has not ended`)
  }
  const number = again ? state.attempt.number + 1 : 1
  if (event.attempt !== number) throw illegal(state, event, `attempt ${event.attempt} where ${number} is due`)
  const { totals } = state
  const attempt: Attempt = {
    number,
    model: event.model,
    toolChoice: event.toolChoice,
    finalizing: event.finalizing,
    ...omitUndefined({ maxOutputTokens: event.maxOutputTokens, change: event.change }),
    grant: event.grant,
    requestDigest: event.requestDigest,
    drafts: [],
    streamedTokens: 0,
    callParts: [],
    calls: [],
  }
  return {
    ...withSource(baseOf(state), event.change?.sourced),
    phase: 'streaming',
    attempt,
    failures: again && sameModel(state.attempt.model, event.model) ? state.failures : 0,
    turnStartedAt: again ? state.turnStartedAt : event.at,
    // A fallback stays in use; what a turn changes is for that turn.
    ...(again && { model: event.model }),
    totals: {
      ...totals,
      turns: totals.turns + (again ? 0 : 1),
      settledUsage: totals.usage,
      latestUsage: {},
      ...omitUndefined({ settledCostUsd: totals.costUsd }),
    },
  }
}

/** Changes the attempt that is under way; an event of another attempt, or of one that has failed, is illegal. */
export function withAttempt(
  state: RunState,
  event: RuntimeEvent & { readonly attempt: number },
  change: (attempt: Attempt) => Attempt,
): RunState {
  if (state.phase !== 'streaming') throw illegal(state, event)
  if (state.attempt.failed || event.attempt !== state.attempt.number) {
    throw illegal(state, event, `it is of attempt ${event.attempt}, which is not under way`)
  }
  return { ...state, attempt: change(state.attempt) }
}

/** What the latest attempt has used, over what it reported before. */
export function applyUsageUpdated(state: RunState, event: EventOf<'usage_updated'>): RunState {
  const { totals } = state
  const { contextTokens } = event
  const usage = addUsage(totals.settledUsage, event.usage)
  const costUsd = event.costUsd === undefined ? totals.costUsd : (totals.settledCostUsd ?? 0) + event.costUsd
  const latestUsage = event.usage
  const next = { ...state, totals: { ...totals, usage, latestUsage, ...omitUndefined({ costUsd }) } }
  if (next.phase !== 'streaming' || contextTokens === undefined) return next
  return { ...next, attempt: { ...next.attempt, contextTokens } }
}

/** The reply enters the history, and its calls are to be collected. */
export function applyMessageFinished(
  state: RunState,
  event: EventOf<'assistant_message_finished'>,
): CollectingState {
  if (state.phase !== 'streaming') throw illegal(state, event)
  const { attempt } = state
  if (event.attempt !== attempt.number) throw illegal(state, event, `it is of attempt ${event.attempt}`)
  if (!namesCalls(event.parts, attempt.calls))
    throw illegal(state, event, 'its calls are not those that were requested')
  const { parts, stopReason, partial } = event
  const message: AssistantMessage = { role: 'assistant', parts, model: attempt.model, stopReason, partial }
  const { output: _before, keptState: _earlier, ...facts } = baseOf(state)
  const { providerState: keptState } = event
  const { nextTurn } = state.definition.policy?.outputStream ?? {}
  const shownLater: AssistantMessage = { ...message, parts: partsOfNextTurn(nextTurn, event) }
  // A reply without any content is no message that a model could be shown.
  const isInHistory = shownLater.parts.length > 0
  return {
    ...facts,
    phase: 'collecting',
    reply: {
      message,
      finalizing: attempt.finalizing,
      ...omitUndefined({ failure: attempt.failed?.failure, offered: offeredIn(state) }),
      ...omitUndefined({ refusal: event.refusal }),
      ...(!isInHistory && parts.length > 0 && { leftOut: true as const }),
    },
    calls: attempt.calls,
    history: isInHistory ? appendMessage(state.history, shownLater) : state.history,
    ...omitUndefined({ keptState }),
    inputSinceReply: false,
    takeOvers: 0,
    lastText: parts.length === 0 ? state.lastText : textOf(parts),
    ...contextAfter(state, shownLater),
  }
}

/** Whether the calls among the parts of a reply are these, in their order. */
function namesCalls(
  parts: readonly AssistantPart[],
  calls: readonly { readonly toolCallId: string }[],
): boolean {
  let index = 0
  for (const part of parts) {
    if (part.type !== 'tool_call') continue
    if (part.toolCallId !== calls[index]?.toolCallId) return false
    index++
  }
  return index === calls.length
}

/** The names of the tools that the attempt offered, where these are not those of the definition. */
function offeredIn(state: StreamingState): readonly string[] | undefined {
  const { tools } = state.attempt.change ?? {}
  return tools ?? (state.sourced && offeredTools(state, undefined).map(({ name }) => name))
}

/** The most that estimates are corrected by: a report that says more is of something else, or lies. */
const MAX_ESTIMATE_FACTOR = 8
/** Fewer estimated tokens than this say nothing about how good the estimate is. */
const LEARNING_TOKENS_MIN = 100

/** What the next request has, and what the provider's report says about the estimates before it. */
function contextAfter(
  state: StreamingState,
  message: AssistantMessage,
): Pick<RunState, 'contextTokens' | 'reportedTokens' | 'estimateFactor'> {
  const { estimateFactor } = state
  const { inputTokens, outputTokens } = state.totals.latestUsage
  const outputEstimate = Math.ceil(messageTokens(message) * estimateFactor)
  const contextTokens =
    state.attempt.contextTokens ?? (inputTokens ?? state.contextTokens) + (outputTokens ?? outputEstimate)
  if (inputTokens === undefined || state.attempt.contextTokens !== undefined)
    return { contextTokens, reportedTokens: state.reportedTokens, estimateFactor }
  const estimated = state.contextTokens - state.reportedTokens
  const real = inputTokens - state.reportedTokens
  const isSignificant = estimated >= LEARNING_TOKENS_MIN && !showsOtherMessages(state.attempt.change)
  const learned = isSignificant ? (estimateFactor * real) / estimated : estimateFactor
  return {
    contextTokens,
    reportedTokens: contextTokens,
    estimateFactor: Math.min(MAX_ESTIMATE_FACTOR, Math.max(1, learned)),
  }
}

/** The attempt has failed; what follows is the controller's to say. */
export function applyModelStreamFailed(state: RunState, event: EventOf<'model_stream_failed'>): RunState {
  const { failure, retryAt } = event
  // That a process stopped is no failure of its model.
  const stopped = causeOf(event) === 'resume'
  const failed = { failure, ...(retryAt !== undefined && { retryAt }) }
  const next = withAttempt(state, event, (attempt) => ({ ...attempt, failed })) as StreamingState
  return { ...next, failures: next.failures + (stopped ? 0 : 1) }
}

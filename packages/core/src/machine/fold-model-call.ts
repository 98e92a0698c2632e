import { type AssistantMessage, type AssistantPart, sameModel, textOf } from '../events/content.ts'
import { causeOf, type EventOf, type RuntimeEvent } from '../events/event.ts'
import { omitUndefined } from '../values/json.ts'
import { addUsage } from '../events/usage.ts'
import { requireClosed } from './fold-tool-calls.ts'
import { appendMessage, showsOtherMessages } from './history.ts'
import { toNextTurnParts, readWrittenText } from './reply.ts'
import { illegalTransition } from './transition-table.ts'
import {
  type Attempt,
  toBase,
  type Call,
  type CollectingState,
  type PartDraft,
  type RunState,
  type StreamingState,
} from './state.ts'
import { estimateTokens, estimateMessageTokens, filterOfferedTools, withSource } from './tokens.ts'
import { findCallPlace } from './calls.ts'

/** A model call starts: the first attempt of a turn, or the next one of the same. */
export function applyModelCallStarted(state: RunState, event: EventOf<'model_call_started'>): StreamingState {
  requireClosed(state, event)
  const again = state.phase === 'streaming'
  if (again && state.attempt.failed === undefined) {
    throw illegalTransition(
      state,
      event,
      `attempt ${state.attempt.number} of turn ${state.turn} has not ended`,
    )
  }
  const number = again ? state.attempt.number + 1 : 1
  if (event.attempt !== number)
    throw illegalTransition(state, event, `attempt ${event.attempt} where ${number} is due`)
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
    ...withSource(toBase(state), event.change?.sourced),
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

/** The attempt that is under way; an event of another attempt, or of one that has failed, is illegal. */
function requireAttempt(state: RunState, event: RuntimeEvent & { readonly attempt: number }): Attempt {
  if (state.phase !== 'streaming') throw illegalTransition(state, event)
  if (state.attempt.failed || event.attempt !== state.attempt.number) {
    throw illegalTransition(state, event, `it is of attempt ${event.attempt}, which is not under way`)
  }
  return state.attempt
}

/** Changes the attempt that is under way. */
export function withAttempt(
  state: RunState,
  event: RuntimeEvent & { readonly attempt: number },
  change: Partial<Attempt>,
): StreamingState {
  const attempt = requireAttempt(state, event)
  return { ...(state as StreamingState), attempt: { ...attempt, ...change } }
}

/** Adds the usage of the latest attempt, less its earlier reports. */
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
  if (state.phase !== 'streaming') throw illegalTransition(state, event)
  const { attempt } = state
  if (event.attempt !== attempt.number)
    throw illegalTransition(state, event, `it is of attempt ${event.attempt}`)
  if (!namesCalls(event.parts, attempt.calls))
    throw illegalTransition(state, event, 'its calls are not those that were requested')
  const { parts, stopReason, partial } = event
  const message: AssistantMessage = { role: 'assistant', parts, model: attempt.model, stopReason, partial }
  const { output: _before, keptState: _earlier, ...facts } = toBase(state)
  const { providerState: keptState } = event
  const { nextTurn } = state.definition.policy?.outputStream ?? {}
  const shownLater: AssistantMessage = { ...message, parts: toNextTurnParts(nextTurn, event) }
  // A reply without any content is not a message that a model could be shown.
  const isInHistory = shownLater.parts.length > 0
  return {
    ...facts,
    phase: 'collecting',
    reply: {
      message,
      finalizing: attempt.finalizing,
      ...omitUndefined({ failure: attempt.failed?.failure, offered: readOffered(state) }),
      ...omitUndefined({ refusal: event.refusal }),
      ...(!isInHistory && parts.length > 0 && { leftOut: true as const }),
    },
    calls: attempt.calls,
    history: isInHistory ? appendMessage(state.history, shownLater) : state.history,
    ...omitUndefined({ keptState }),
    inputSinceReply: false,
    takeOvers: 0,
    lastText: parts.length === 0 ? state.lastText : textOf(parts),
    ...computeContextTokens(state, shownLater),
  }
}

/** Returns whether the calls among the parts of a reply are these, in their order. */
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
function readOffered(state: StreamingState): readonly string[] | undefined {
  const { tools } = state.attempt.change ?? {}
  return tools ?? (state.sourced && filterOfferedTools(state, undefined).map(({ name }) => name))
}

/** The most that estimates are corrected by: a report that says more is of something else, or lies. */
const MAX_ESTIMATE_FACTOR = 8
/** Fewer estimated tokens than this say nothing about how good the estimate is. */
const LEARNING_TOKENS_MIN = 100

/** Estimates the tokens of the next request, and corrects the factor of estimates by the provider's report. */
function computeContextTokens(
  state: StreamingState,
  message: AssistantMessage,
): Pick<RunState, 'contextTokens' | 'reportedTokens' | 'estimateFactor'> {
  const { estimateFactor } = state
  const { inputTokens, outputTokens } = state.totals.latestUsage
  const outputEstimate = Math.ceil(estimateMessageTokens(message) * estimateFactor)
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
  // That a process stopped is not a failure of its model.
  const stopped = causeOf(event) === 'resume'
  const failed = { failure, ...omitUndefined({ retryAt }) }
  const next = withAttempt(state, event, { failed })
  return { ...next, failures: next.failures + (stopped ? 0 : 1) }
}

/** Applies arrived text or reasoning: appended to the same part, or replacing it. */
export function applyDelta(
  state: RunState,
  event: EventOf<'assistant_text_delta'> | EventOf<'assistant_reasoning_delta'>,
): RunState {
  const { drafts, streamedTokens } = requireAttempt(state, event)
  const kind = event.type === 'assistant_text_delta' ? 'text' : 'reasoning'
  const index = drafts.findLastIndex((draft) => draft.part === event.part && draft.kind === kind)
  const draft = drafts[index]
  return withAttempt(state, event, {
    streamedTokens: streamedTokens + estimateTokens(event.written ?? event.text),
    drafts: draft
      ? drafts.with(index, withMoreText(draft, event))
      : [...drafts, createDraft(event.part, kind, event)],
  })
}

type MoreText = Pick<EventOf<'assistant_text_delta'>, 'text' | 'written' | 'replaces'>

function createDraft(part: number, kind: PartDraft['kind'], { text, written }: MoreText): PartDraft {
  return { part, kind, text, ...omitUndefined({ written }) }
}

function withMoreText(draft: PartDraft, event: MoreText): PartDraft {
  const { part, kind } = draft
  if (event.replaces) return createDraft(part, kind, event)
  const text = draft.text + event.text
  const differs = draft.written !== undefined || event.written !== undefined
  const written = differs ? readWrittenText(draft) + (event.written ?? event.text) : undefined
  return createDraft(part, kind, { text, ...omitUndefined({ written }) })
}

/** More of a call's input came. With the first of it, the call takes its place among the calls. */
export function applyToolInput(state: RunState, event: EventOf<'tool_input_delta'>): RunState {
  const { callParts, streamedTokens } = requireAttempt(state, event)
  return withAttempt(state, event, {
    callParts: withPart(callParts, event.part),
    streamedTokens: streamedTokens + estimateTokens(event.text),
  })
}

/** A request is whole: it takes its place among the calls of the reply. Its place and its id must be new. */
export function applyToolRequest(state: RunState, event: EventOf<'tool_request_ready'>): RunState {
  const { toolCallId, part, providerCallId, name, input, malformed, opaque } = event
  const { calls: earlier, callParts } = requireAttempt(state, event)
  // By place in the reply: the order in which the message names them.
  const place = earlier.findLastIndex((known) => known.part < part) + 1
  if (findCallPlace(earlier, toolCallId) !== -1 || earlier[place]?.part === part) {
    throw illegalTransition(state, event, `call ${toolCallId} or part ${part} was requested before`)
  }
  const call: Call = {
    toolCallId,
    part,
    providerCallId,
    name,
    input,
    status: 'requested',
    attempts: 0,
    ...(event.removed && { inputRemoved: true as const }),
    ...omitUndefined({ malformed, opaque }),
  }
  const calls = earlier.toSpliced(place, 0, call)
  return withAttempt(state, event, { callParts: withPart(callParts, part), calls })
}

/** The parts that hold calls with one more, where it is new. */
function withPart(callParts: readonly number[], part: number): readonly number[] {
  return callParts.includes(part) ? callParts : [...callParts, part]
}

import type { AssistantPart, ReplyPart } from '../events/content.ts'
import type { EventOf, Fact, FactOf, RuntimeEvent } from '../events/event.ts'
import type { ModelFailure } from '../values/errors.ts'
import { type ToolCallId, toolCallIdOf } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { isTokenCount, largerUsage, tokenCounts, usageFields } from '../events/usage.ts'
import type { ModelRefusal } from '../events/model-request.ts'
import type { Signal } from '../events/signals.ts'
import { findNextFallback } from './next-model-call.ts'
import { getPrice } from './calls.ts'
import {
  type Decision,
  nothing,
  type RecordedPosition,
  type SignalOf,
  type SignalRules,
  type Stamp,
} from './rules.ts'
import { isEmptyReply, toPartPositions, findReplyFault } from './reply.ts'
import { computeRetryAt } from './retry.ts'
import type { Attempt, StreamingState } from './state.ts'
import { toCostFields, isRecorded, settleUsage } from './budget.ts'

type ModelSignalType = Signal['type'] & `model_${string}`

/** The turn and the attempt that a signal of a model call is about. */
interface Here {
  readonly turn: number
  readonly attempt: number
}

interface ModelRules<T extends ModelSignalType> {
  decide(state: StreamingState, signal: SignalOf<T>, stamp: Stamp, here: Here): Decision
  recover(here: Here, event: RuntimeEvent, place: RecordedPosition, attempt: Attempt): Signal | undefined
}

/** Rules for the model call that is under way. Signals of any other call come too late to count. */
function whileStreaming<T extends ModelSignalType>(rules: ModelRules<T>): SignalRules<T> {
  return {
    decide(state, signal, stamp) {
      if (state.phase !== 'streaming' || state.attempt.failed) return nothing
      const { turn, attempt } = signal as SignalOf<ModelSignalType>
      if (turn !== state.turn || attempt !== state.attempt.number) return nothing
      return rules.decide(state, signal, stamp, { turn, attempt })
    },
    recover(state, place) {
      const event = place.recorded[place.index]
      if (event === undefined || !('attempt' in event) || state.phase !== 'streaming') return undefined
      return rules.recover({ turn: state.turn, attempt: event.attempt }, event, place, state.attempt)
    },
  }
}

/** Every signal of a model call. */
export const modelSignals: { readonly [T in ModelSignalType]: SignalRules<T> } = {
  model_started: whileStreaming({
    decide: (_state, { providerMessageId, servedModel, warnings }, _stamp, here) =>
      recordOne({
        type: 'assistant_started',
        ...here,
        ...omitUndefined({ providerMessageId, servedModel, warnings }),
      }),
    recover(here, event) {
      if (event.type !== 'assistant_started') return undefined
      const { providerMessageId, servedModel, warnings } = event
      return {
        type: 'model_started',
        ...here,
        ...omitUndefined({ providerMessageId, servedModel, warnings }),
      }
    },
  }),
  model_text: whileStreaming({
    decide: (state, signal, _stamp, here) =>
      isRecorded(state, 'textDeltas') ? decideTextDelta('assistant_text_delta', here, signal) : nothing,
    recover: (here, event) =>
      event.type === 'assistant_text_delta'
        ? { type: 'model_text', ...here, ...recoverText(event) }
        : undefined,
  }),
  model_reasoning: whileStreaming({
    decide: (state, signal, _stamp, here) =>
      isRecorded(state, 'reasoning') ? decideTextDelta('assistant_reasoning_delta', here, signal) : nothing,
    recover: (here, event) =>
      event.type === 'assistant_reasoning_delta'
        ? { type: 'model_reasoning', ...here, ...recoverText(event) }
        : undefined,
  }),
  model_tool_input: whileStreaming({
    decide(state, { part, name, text }, _stamp, here) {
      if (text === '' || !isRecorded(state, 'toolInputDeltas')) return nothing
      return recordOne({
        type: 'tool_input_delta',
        ...here,
        toolCallId: getCallId(state, part),
        part,
        name,
        text,
      })
    },
    recover(here, event) {
      if (event.type !== 'tool_input_delta') return undefined
      return { type: 'model_tool_input', ...here, part: event.part, name: event.name, text: event.text }
    },
  }),
  model_tool_request: whileStreaming({
    decide: decideToolRequest,
    recover(here, event, place, attempt) {
      // One that breaks the adapter's contract ends the call.
      if (event.type !== 'tool_request_ready') return recoverEnd(here, event, place, attempt)
      const { part, providerCallId, name, input, malformed, opaque } = event
      const call = { type: 'tool_call' as const, providerCallId, name, input }
      return {
        type: 'model_tool_request',
        ...here,
        part,
        call: { ...call, ...omitUndefined({ malformed, opaque }) },
      }
    },
  }),
  model_usage: whileStreaming({
    decide: decideModelUsage,
    recover: (here, event) => (event.type === 'usage_updated' ? recoverUsage(here, event) : undefined),
  }),
  model_finished: whileStreaming({ decide: decideModelFinished, recover: recoverEnd }),
  model_failed: whileStreaming({
    decide: (state, { failure }, stamp) => decideModelFailed(state, failure, stamp),
    recover: recoverEnd,
  }),
}

/** A report of usage takes nothing back: of each number the largest counts, and what is not a count of tokens is refused. */
function decideModelUsage(
  state: StreamingState,
  { usage: report, contextTokens, raw }: SignalOf<'model_usage'>,
): Decision {
  const refused = usageFields.filter((field) => report[field] !== undefined && !isTokenCount(report[field]))
  const usage = largerUsage(state.totals.latestUsage, tokenCounts(report))
  const { turn, attempt } = state
  return recordOne({
    type: 'usage_updated',
    turn,
    attempt: attempt.number,
    usage,
    ...toCostFields(getPrice(state, attempt.model), usage),
    ...omitUndefined({
      contextTokens: isTokenCount(contextTokens) ? contextTokens : undefined,
      refused: refused.length > 0 ? refused : undefined,
      raw: isRecorded(state, 'rawUsage') ? raw : undefined,
    }),
  })
}

function recordOne(fact: Fact): Decision {
  return { facts: [fact] }
}

function decideToolRequest(
  state: StreamingState,
  { part, call }: SignalOf<'model_tool_request'>,
  stamp: Stamp,
): Decision {
  if (isRequested(state.attempt, part)) {
    return decideContractBreach(state, stamp, `part ${part} was reported as a whole call twice`)
  }
  const { providerCallId, name, input, malformed, opaque } = call
  return recordOne({
    type: 'tool_request_ready',
    turn: state.turn,
    attempt: state.attempt.number,
    toolCallId: getCallId(state, part),
    part,
    providerCallId,
    name,
    input,
    ...(malformed !== undefined && { malformed }),
    ...(opaque !== undefined && { opaque }),
  })
}

/** Returns whether the call at a place of the reply is whole already. Calls are in the order of their places. */
function isRequested({ calls }: Attempt, part: number): boolean {
  const last = calls.at(-1)
  return last !== undefined && last.part >= part && calls.some((known) => known.part === part)
}

function decideTextDelta(
  type: 'assistant_text_delta' | 'assistant_reasoning_delta',
  here: Here,
  { part, text: more, replaces, written }: SignalOf<'model_text' | 'model_reasoning'>,
): Decision {
  if (more === '' && !replaces && !written) return nothing
  return recordOne({
    type,
    ...here,
    part,
    text: more,
    ...(replaces && { replaces }),
    ...omitUndefined({ written }),
  })
}

/** The id of the call at a place of the reply: its ordinal is fixed when the place is first seen. */
function getCallId(state: StreamingState, part: number): ToolCallId {
  const { callParts, number } = state.attempt
  const place = callParts.lastIndexOf(part)
  return toolCallIdOf(state.runId, state.turn, number, 1 + (place === -1 ? callParts.length : place))
}

function decideModelFailed(
  state: StreamingState,
  failure: ModelFailure,
  stamp: Stamp,
  refusal?: ModelRefusal,
): Decision {
  const fact: FactOf<'model_stream_failed'> = {
    type: 'model_stream_failed',
    turn: state.turn,
    attempt: state.attempt.number,
    failure,
    ...omitUndefined({ retryAt: computeRetryAt(state, failure, stamp), refusal }),
  }
  return { facts: [...settleUsage(state, failure.class), fact] }
}

function decideContractBreach(state: StreamingState, stamp: Stamp, what: string): Decision {
  const message = `The adapter of ${state.attempt.model.provider} broke its contract: ${what}.`
  return decideModelFailed(state, { class: 'protocol', message, retryable: false }, stamp)
}

/**
 * The reply is whole. Law 12 is settled here: what the adapter says the message is must be what it streamed; a part
 * that it did not stream, or not to its end, is made up for by one more delta.
 */
function decideModelFinished(
  state: StreamingState,
  signal: SignalOf<'model_finished'>,
  stamp: Stamp,
): Decision {
  const { attempt, turn } = state
  const fault = findReplyFault(attempt, signal.parts)
  if (fault) return decideContractBreach(state, stamp, fault)
  const { modelId } = attempt.model
  if (signal.stopReason === 'refused' && isPassedOn(state, signal.refusal)) {
    const { refusal = {} } = signal
    const why = refusal.reason === undefined ? '' : ` (${refusal.reason})`
    const message = `${modelId} refused to answer${why}.`
    return decideModelFailed(state, { class: 'refused', message, retryable: false }, stamp, refusal)
  }
  if (isEmptyReply(signal)) {
    const message = `${modelId} ended its reply without a word and without a call.`
    return decideModelFailed(state, { class: 'empty_reply', message, retryable: true }, stamp)
  }
  const here = { turn, attempt: attempt.number }
  const facts: Fact[] = [...settleUsage(state)]
  const parts: AssistantPart[] = []
  const ordinals = new Map(attempt.callParts.map((part, index) => [part, index + 1]))
  const known = new Set(attempt.calls.map(({ part }) => part))
  for (const reply of signal.parts) {
    const { part, ...content } = reply
    if (content.type === 'tool_call') {
      const ordinal = ordinals.get(part) ?? ordinals.size + 1
      ordinals.set(part, ordinal)
      const toolCallId = toolCallIdOf(state.runId, turn, attempt.number, ordinal)
      const { type: _type, ...call } = content
      if (!known.has(part)) {
        facts.push({ type: 'tool_request_ready', ...here, toolCallId, part, ...call })
      }
      parts.push({ ...content, toolCallId })
      continue
    }
    if (isRecorded(state, reply.type === 'reasoning' ? 'reasoning' : 'textDeltas'))
      facts.push(...findMissingDelta(attempt, reply, here))
    parts.push(content)
  }
  const { stopReason, rawStopReason, providerMessageId, providerState, refusal } = signal
  const written = (signal.written ?? []).map(({ part, ...content }) => {
    return { index: signal.parts.findIndex((reply) => reply.part === part), part: content }
  })
  facts.push({
    type: 'assistant_message_finished',
    ...here,
    stopReason,
    partial: false,
    parts,
    ...toPartPositions(signal.parts),
    ...(written.length > 0 && { written }),
    ...omitUndefined({ rawStopReason, providerMessageId, providerState, refusal }),
  })
  return { facts }
}

/** Returns whether a refusal is not the end: the agent, or else the vendor, wants another model to be asked, and there is one. */
function isPassedOn(state: StreamingState, refusal: ModelRefusal | undefined): boolean {
  const wanted = state.definition.onRefusal?.fallback ?? refusal?.askAnother === true
  return wanted && findNextFallback(state) !== undefined
}

/** The rest of a part's text that was not streamed. */
function findMissingDelta(attempt: Attempt, reply: ReplyPart, here: Here): readonly Fact[] {
  if (reply.type !== 'text' && reply.type !== 'reasoning') return []
  const streamed = attempt.drafts.find(({ part }) => part === reply.part)?.text ?? ''
  const text = reply.text.slice(streamed.length)
  if (text === '') return []
  const type = reply.type === 'text' ? 'assistant_text_delta' : 'assistant_reasoning_delta'
  return [{ type, ...here, part: reply.part, text }]
}

/** The text of a delta, as the adapter reported it. */
function recoverText({
  part,
  text,
  replaces,
  written,
}: EventOf<'assistant_text_delta' | 'assistant_reasoning_delta'>): Omit<
  SignalOf<'model_text'>,
  'type' | 'turn' | 'attempt'
> {
  return { part, text, ...omitUndefined({ replaces, written }) }
}

/** A field that the provider reported and that is not a count is represented by -1. */
function recoverUsage(here: Here, event: EventOf<'usage_updated'>): Signal {
  const { usage, refused = [], contextTokens, raw } = event
  const lies = Object.fromEntries(refused.map((field) => [field, -1]))
  return {
    type: 'model_usage',
    ...here,
    usage: { ...usage, ...lies },
    ...omitUndefined({ contextTokens, raw }),
  }
}

/** How a call ended is the last fact of its decision. A signal that breaks the contract counts as a failure. */
function recoverEnd(
  here: Here,
  _first: RuntimeEvent,
  { recorded, index }: RecordedPosition,
  attempt: Attempt,
): Signal | undefined {
  for (let at = index; at < recorded.length; at++) {
    const event = recorded[at]
    if (event?.type === 'model_stream_failed') {
      const { failure, refusal } = event
      if (refusal === undefined) return { type: 'model_failed', ...here, failure }
      return {
        type: 'model_finished',
        ...here,
        stopReason: 'refused',
        parts: listStreamedParts(attempt),
        refusal,
      }
    }
    if (event?.type !== 'assistant_message_finished') continue
    const { stopReason, rawStopReason, providerMessageId, providerState, refusal } = event
    return {
      type: 'model_finished',
      ...here,
      stopReason,
      parts: toReplyParts(event),
      ...omitUndefined({ rawStopReason, providerMessageId, providerState, refusal }),
      ...(event.written && { written: event.written.map(({ index, part }) => atPlace(event, part, index)) }),
    }
  }
  return undefined
}

function toReplyParts(event: EventOf<'assistant_message_finished'>): readonly ReplyPart[] {
  return event.parts.map((content, index): ReplyPart => {
    if (content.type !== 'tool_call') return atPlace(event, content, index)
    const { toolCallId: _own, ...call } = content
    return atPlace(event, call, index)
  })
}

/** Content at its place of the reply, which the event may say beside its index. */
function atPlace<Content extends object>(
  { places }: EventOf<'assistant_message_finished'>,
  content: Content,
  index: number,
): Content & { readonly part: number } {
  return { ...content, part: places?.[index] ?? index }
}

/** The parts of a refused reply that is passed on: those that were streamed. No other part of it is recorded. */
function listStreamedParts({ drafts, calls }: Attempt): readonly ReplyPart[] {
  const texts = drafts.map(({ part, kind, text }): ReplyPart => ({ type: kind, text, part }))
  const requested = calls.map(({ part, providerCallId, name, input }): ReplyPart => {
    return { type: 'tool_call', providerCallId, name, input, part }
  })
  return [...texts, ...requested].sort((one, other) => one.part - other.part)
}

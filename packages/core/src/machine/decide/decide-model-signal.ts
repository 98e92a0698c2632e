import type { AssistantPart, ModelRef } from '../../vocabulary/model/content.ts'
import type { Fact, FactOf } from '../../vocabulary/events/event.ts'
import type { ModelFailure } from '../../vocabulary/model/failure.ts'
import { toolCallIdOf, type ToolCallId } from '../../vocabulary/values/ids.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import { isTokenCount, largerUsage, tokenCounts, usageFields } from '../../vocabulary/billing/usage.ts'
import type { ModelRefusal } from '../../vocabulary/model/refusal.ts'
import type { ReplyPart, Signal } from '../../vocabulary/signals/signal.ts'
import type { Command } from '../../vocabulary/events/command.ts'
import { nextFallback } from '../next/next-model-call.ts'
import { placeOfPart } from '../messages/call-parts.ts'
import { nothing, type Decision, type Stamp } from '../state/decision.ts'
import { partPositions } from '../messages/part-positions.ts'
import { isEmptyReply, replyFault } from './reply-fault.ts'
import { retryAt } from '../limits/retry.ts'
import type { Attempt, RunState, StreamingState } from '../state/state.ts'
import { isRecorded } from '../limits/recorded-parts.ts'
import { costFields, settledUsage } from '../limits/settled-usage.ts'
import { priceOf } from '../state/state-views.ts'

type AnyModelSignal = Extract<Signal, { readonly type: `model_${string}` }>

/** Whether a message is a report of a model call. */
export function isModelSignal(message: Command | Signal): message is AnyModelSignal {
  return message.type.startsWith('model_')
}

/** What follows from a report of the model call that is under way. Reports of any other call are too late to count. */
export function decideModelSignal(state: RunState, signal: AnyModelSignal, stamp: Stamp): Decision {
  if (state.phase !== 'streaming' || state.attempt.failed) return nothing
  if (signal.turn !== state.turn || signal.attempt !== state.attempt.number) return nothing
  const here = { turn: state.turn, attempt: state.attempt.number }
  switch (signal.type) {
    case 'model_started':
      return decideModelStarted(here, signal)
    case 'model_text':
      return decideTextDelta('assistant_text_delta', here, signal)
    case 'model_reasoning':
      return isRecorded(state, 'reasoning')
        ? decideTextDelta('assistant_reasoning_delta', here, signal)
        : nothing
    case 'model_tool_input': {
      if (signal.text === '' || !isRecorded(state, 'toolInputDeltas')) return nothing
      const { part, name, text: more } = signal
      return one({
        type: 'tool_input_delta',
        ...here,
        toolCallId: callIdAt(state, part),
        part,
        name,
        text: more,
      })
    }
    case 'model_tool_request':
      return decideToolRequest(state, signal, stamp)
    case 'model_usage':
      return decideModelUsage(state, signal)
    case 'model_finished':
      return decideModelFinished(state, signal, stamp)
    case 'model_failed':
      return decideModelFailed(state, signal.failure, stamp)
  }
}

/** A report of usage takes nothing back: of each number the largest counts, and what is no count of tokens is refused. */
function decideModelUsage(
  state: StreamingState,
  { usage: report, contextTokens, raw }: Extract<AnyModelSignal, { type: 'model_usage' }>,
): Decision {
  const refused = usageFields.filter((field) => report[field] !== undefined && !isTokenCount(report[field]))
  const usage = largerUsage(state.totals.latestUsage, tokenCounts(report))
  const { turn, attempt } = state
  return one({
    type: 'usage_updated',
    turn,
    attempt: attempt.number,
    usage,
    ...costFields(priceOf(state, attempt.model), usage),
    ...omitUndefined({
      contextTokens: isTokenCount(contextTokens) ? contextTokens : undefined,
      refused: refused.length > 0 ? refused : undefined,
      raw: isRecorded(state, 'rawUsage') ? raw : undefined,
    }),
  })
}

function one(fact: Fact): Decision {
  return { facts: [fact] }
}

function decideModelStarted(
  here: { readonly turn: number; readonly attempt: number },
  { providerMessageId, servedModel, warnings }: Extract<AnyModelSignal, { type: 'model_started' }>,
): Decision {
  return one({
    type: 'assistant_started',
    ...here,
    ...omitUndefined({ providerMessageId, servedModel, warnings }),
  })
}

function decideToolRequest(
  state: StreamingState,
  { part, call }: Extract<AnyModelSignal, { type: 'model_tool_request' }>,
  stamp: Stamp,
): Decision {
  if (isRequested(state.attempt, part)) {
    return decideContractBreach(state, stamp, `part ${part} was reported as a whole call twice`)
  }
  const { providerCallId, name, input, malformed, opaque } = call
  return one({
    type: 'tool_request_ready',
    turn: state.turn,
    attempt: state.attempt.number,
    toolCallId: callIdAt(state, part),
    part,
    providerCallId,
    name,
    input,
    ...(malformed !== undefined && { malformed }),
    ...(opaque !== undefined && { opaque }),
  })
}

/** Whether the call at a place of the reply is whole already. Calls are in the order of their places. */
function isRequested({ calls }: Attempt, part: number): boolean {
  const last = calls.at(-1)
  return last !== undefined && last.part >= part && calls.some((known) => known.part === part)
}

function decideTextDelta(
  type: 'assistant_text_delta' | 'assistant_reasoning_delta',
  here: { readonly turn: number; readonly attempt: number },
  {
    part,
    text: more,
    replaces,
    written,
  }: Extract<AnyModelSignal, { type: 'model_text' | 'model_reasoning' }>,
): Decision {
  if (more === '' && !replaces && !written) return nothing
  return one({
    type,
    ...here,
    part,
    text: more,
    ...(replaces && { replaces }),
    ...omitUndefined({ written }),
  })
}

/** The id of the call at a place of the reply: its ordinal is fixed when the place is first seen. */
function callIdAt(state: StreamingState, part: number): ToolCallId {
  const { callParts, number } = state.attempt
  const place = placeOfPart(callParts, part)
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
    ...omitUndefined({ retryAt: retryAt(state, failure, stamp), refusal }),
  }
  return { facts: [...settledUsage(state, failure.class), fact] }
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
  signal: Extract<AnyModelSignal, { type: 'model_finished' }>,
  stamp: Stamp,
): Decision {
  const { attempt, turn } = state
  const fault = replyFault(attempt, signal.parts)
  if (fault) return decideContractBreach(state, stamp, fault)
  if (signal.stopReason === 'refused' && isPassedOn(state, signal.refusal)) {
    return decideModelFailed(
      state,
      refusedFailure(attempt.model, signal.refusal),
      stamp,
      signal.refusal ?? {},
    )
  }
  if (isEmptyReply(signal)) return decideModelFailed(state, emptyFailure(attempt.model), stamp)
  const here = { turn, attempt: attempt.number }
  const facts: Fact[] = [...settledUsage(state)]
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
    if (reply.type !== 'reasoning' || isRecorded(state, 'reasoning'))
      facts.push(...missingDelta(attempt, reply, here))
    parts.push(content)
  }
  const { stopReason, rawStopReason, providerMessageId, providerState, refusal } = signal
  facts.push({
    type: 'assistant_message_finished',
    ...here,
    stopReason,
    partial: false,
    parts,
    ...partPositions(signal.parts),
    ...writtenIn(signal),
    ...(rawStopReason !== undefined && { rawStopReason }),
    ...omitUndefined({ providerMessageId, providerState, refusal }),
  })
  return { facts }
}

/** What the model wrote in parts that show another text, by their index. */
function writtenIn({
  parts,
  written = [],
}: Extract<AnyModelSignal, { type: 'model_finished' }>): Pick<
  FactOf<'assistant_message_finished'>,
  'written'
> {
  if (written.length === 0) return {}
  const places = parts.map(({ part }) => part)
  return { written: written.map(({ part, ...content }) => ({ index: places.indexOf(part), part: content })) }
}

/** Whether a refusal is not the end: the agent, or else the vendor, wants another model to be asked, and there is one. */
function isPassedOn(state: StreamingState, refusal: ModelRefusal | undefined): boolean {
  const wanted = state.definition.onRefusal?.fallback ?? refusal?.askAnother === true
  return wanted && nextFallback(state) !== undefined
}

function refusedFailure({ modelId }: ModelRef, refusal: ModelRefusal | undefined): ModelFailure {
  const why = refusal?.reason === undefined ? '' : ` (${refusal.reason})`
  return { class: 'refused', message: `${modelId} refused to answer${why}.`, retryable: false }
}

function emptyFailure({ modelId }: ModelRef): ModelFailure {
  const message = `${modelId} ended its reply without a word and without a call.`
  return { class: 'empty_reply', message, retryable: true }
}

/** The rest of a part's text that was not streamed. */
function missingDelta(
  attempt: Attempt,
  reply: ReplyPart,
  here: { readonly turn: number; readonly attempt: number },
): readonly Fact[] {
  if (reply.type !== 'text' && reply.type !== 'reasoning') return []
  const streamed = attempt.drafts.find(({ part }) => part === reply.part)?.text ?? ''
  const text = reply.text.slice(streamed.length)
  if (text === '') return []
  const type = reply.type === 'text' ? 'assistant_text_delta' : 'assistant_reasoning_delta'
  return [{ type, ...here, part: reply.part, text }]
}

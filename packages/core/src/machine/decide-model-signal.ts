import type { AssistantPart } from '../vocabulary/content.ts'
import type { Fact } from '../vocabulary/event.ts'
import type { ModelFailure } from '../vocabulary/failure.ts'
import { toolCallIdOf, type ToolCallId } from '../vocabulary/ids.ts'
import { present } from '../vocabulary/present.ts'
import { replaceUsage } from '../vocabulary/usage.ts'
import { costOf } from '../vocabulary/price.ts'
import type { ReplyPart, Signal } from '../vocabulary/signal.ts'
import type { Command } from '../vocabulary/command.ts'
import { nothing, type Decision, type Stamp } from './decision.ts'
import { withToolInput } from './evolve-calls.ts'
import { replyFault } from './reply-fault.ts'
import { retryAt } from './retry.ts'
import type { Attempt, RunState, StreamingState } from './state.ts'
import { currentPrice } from './state-views.ts'

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
      return began(here, signal)
    case 'model_text':
      return text('assistant_text_delta', here, signal)
    case 'model_reasoning':
      return text('assistant_reasoning_delta', here, signal)
    case 'model_tool_input': {
      if (signal.text === '') return nothing
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
      return requested(state, signal, stamp)
    case 'model_usage': {
      const { raw } = signal
      // A report of a part of the numbers takes nothing back of the others.
      const usage = replaceUsage(state.totals.latestUsage, signal.usage)
      const price = currentPrice(state)
      const cost = price && { costUsd: costOf(price, usage), price }
      return one({ type: 'usage_updated', ...here, usage, ...cost, ...(raw !== undefined && { raw }) })
    }
    case 'model_finished':
      return finished(state, signal, stamp)
    case 'model_failed':
      return failed(state, signal.failure, stamp)
  }
}

function one(fact: Fact): Decision {
  return { facts: [fact] }
}

function began(
  here: { readonly turn: number; readonly attempt: number },
  { providerMessageId, servedModel, warnings }: Extract<AnyModelSignal, { type: 'model_started' }>,
): Decision {
  return one({
    ...{ type: 'assistant_started', ...here },
    ...present({ providerMessageId, servedModel, warnings }),
  })
}

function requested(
  state: StreamingState,
  { part, call }: Extract<AnyModelSignal, { type: 'model_tool_request' }>,
  stamp: Stamp,
): Decision {
  if (state.attempt.calls.some((known) => known.part === part)) {
    return broken(state, stamp, `part ${part} was reported as a whole call twice`)
  }
  const { providerCallId, name, input, malformed, opaque } = call
  return one({
    ...{ type: 'tool_request_ready', turn: state.turn, attempt: state.attempt.number },
    ...{ toolCallId: callIdAt(state, part), part, providerCallId, name, input },
    ...(malformed !== undefined && { malformed }),
    ...(opaque !== undefined && { opaque }),
  })
}

function text(
  type: 'assistant_text_delta' | 'assistant_reasoning_delta',
  here: { readonly turn: number; readonly attempt: number },
  signal: { readonly part: number; readonly text: string },
): Decision {
  return signal.text === '' ? nothing : one({ type, ...here, part: signal.part, text: signal.text })
}

/** The id of the call at a place of the reply: its ordinal is fixed when the place is first seen. */
function callIdAt(state: StreamingState, part: number): ToolCallId {
  const ordinal = withToolInput(state.attempt, part).callParts.indexOf(part) + 1
  return toolCallIdOf(state.runId, state.turn, state.attempt.number, ordinal)
}

function failed(state: StreamingState, failure: ModelFailure, stamp: Stamp): Decision {
  const at = retryAt(state, failure, stamp)
  return one({
    ...{ type: 'model_stream_failed', turn: state.turn, attempt: state.attempt.number, failure },
    ...(at !== undefined && { retryAt: at }),
  })
}

function broken(state: StreamingState, stamp: Stamp, what: string): Decision {
  const message = `The adapter of ${state.attempt.model.provider} broke its contract: ${what}.`
  return failed(state, { class: 'protocol', message, retryable: false }, stamp)
}

/**
 * The reply is whole. Law 12 is settled here: what the adapter says the message is must be what it streamed; a part
 * that it did not stream, or not to its end, is made up for by one more delta.
 */
function finished(
  state: StreamingState,
  signal: Extract<AnyModelSignal, { type: 'model_finished' }>,
  stamp: Stamp,
): Decision {
  const { attempt, turn } = state
  const fault = replyFault(attempt, signal.parts)
  if (fault) return broken(state, stamp, fault)
  const here = { turn, attempt: attempt.number }
  const facts: Fact[] = []
  const parts: AssistantPart[] = []
  let seen: Attempt = attempt
  for (const reply of signal.parts) {
    const { part, ...content } = reply
    if (content.type === 'tool_call') {
      seen = withToolInput(seen, part)
      const ordinal = seen.callParts.indexOf(part) + 1
      const toolCallId = toolCallIdOf(state.runId, turn, attempt.number, ordinal)
      const { type: _type, ...call } = content
      if (!attempt.calls.some((known) => known.part === part)) {
        facts.push({ type: 'tool_request_ready', ...here, toolCallId, part, ...call })
      }
      parts.push({ ...content, toolCallId })
      continue
    }
    facts.push(...missingDelta(attempt, reply, here))
    parts.push(content)
  }
  const { stopReason, rawStopReason, providerMessageId } = signal
  facts.push({
    ...{ type: 'assistant_message_finished', ...here, stopReason, partial: false, parts },
    ...(rawStopReason !== undefined && { rawStopReason }),
    ...(providerMessageId !== undefined && { providerMessageId }),
  })
  return { facts }
}

/** What of a part's text was not streamed. */
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

import type { Cause } from '../../vocabulary/events/cause.ts'
import type { EventOf } from '../../vocabulary/events/event.ts'
import { omitUndefined } from '../../vocabulary/values/omit-undefined.ts'
import type { ReplyPart, Signal } from '../../vocabulary/signals/signal.ts'
import type { RecordedPosition } from '../decide/recorded-position.ts'
import type { Attempt, RunState } from '../state/state.ts'

type ModelCause = Extract<Cause, `model_${string}`>

/** Whether a report of a model call decided it. */
export function isModelCause(cause: Cause): cause is ModelCause {
  return cause.startsWith('model_')
}

/** The report of a model call that decided the events at a place. */
export function recoverModelSignal(
  state: RunState,
  cause: ModelCause,
  place: RecordedPosition,
): Signal | undefined {
  const event = place.recorded[place.index]
  if (event === undefined || !('attempt' in event) || state.phase !== 'streaming') return undefined
  const here = { turn: state.turn, attempt: event.attempt }
  switch (cause) {
    case 'model_started': {
      if (event.type !== 'assistant_started') return undefined
      const { providerMessageId, servedModel, warnings } = event
      return { type: cause, ...here, ...omitUndefined({ providerMessageId, servedModel, warnings }) }
    }
    case 'model_text':
    case 'model_reasoning': {
      if (event.type !== 'assistant_text_delta' && event.type !== 'assistant_reasoning_delta')
        return undefined
      const { part, text, replaces, written } = event
      return { type: cause, ...here, part, text, ...omitUndefined({ replaces, written }) }
    }
    case 'model_tool_input': {
      if (event.type !== 'tool_input_delta') return undefined
      return { type: cause, ...here, part: event.part, name: event.name, text: event.text }
    }
    case 'model_tool_request': {
      // One that breaks the adapter's contract ends the call.
      if (event.type !== 'tool_request_ready') return endOfCall(here, place, state.attempt)
      const { part, providerCallId, name, input, malformed, opaque } = event
      const call = { type: 'tool_call' as const, providerCallId, name, input }
      return { type: cause, ...here, part, call: { ...call, ...omitUndefined({ malformed, opaque }) } }
    }
    case 'model_usage':
      return event.type === 'usage_updated' ? usageReport(here, event) : undefined
    case 'model_finished':
    case 'model_failed':
      return endOfCall(here, place, state.attempt)
  }
}

interface Here {
  readonly turn: number
  readonly attempt: number
}

/** A field that the provider reported and that is not a count is represented by -1. */
function usageReport(here: Here, event: EventOf<'usage_updated'>): Signal {
  const { usage, refused = [], contextTokens, raw } = event
  const lies = Object.fromEntries(refused.map((field) => [field, -1]))
  return {
    type: 'model_usage',
    ...here,
    usage: { ...usage, ...lies },
    ...omitUndefined({ contextTokens, raw }),
  }
}

/** What a call ended in is the last fact of its decision. A report that breaks the contract is one of a failure. */
function endOfCall(here: Here, { recorded, index }: RecordedPosition, attempt: Attempt): Signal | undefined {
  for (let at = index; at < recorded.length; at++) {
    const event = recorded[at]
    if (event?.type === 'model_stream_failed') {
      const { failure, refusal } = event
      if (refusal === undefined) return { type: 'model_failed', ...here, failure }
      return {
        type: 'model_finished',
        ...here,
        stopReason: 'refused',
        parts: streamedParts(attempt),
        refusal,
      }
    }
    if (event?.type !== 'assistant_message_finished') continue
    const { stopReason, rawStopReason, providerMessageId, providerState, refusal } = event
    return {
      type: 'model_finished',
      ...here,
      stopReason,
      parts: replyParts(event),
      ...omitUndefined({ rawStopReason, providerMessageId, providerState, refusal }),
      ...(event.written && { written: event.written.map(({ index, part }) => placed(event, part, index)) }),
    }
  }
  return undefined
}

function replyParts(event: EventOf<'assistant_message_finished'>): readonly ReplyPart[] {
  return event.parts.map((content, index): ReplyPart => {
    if (content.type !== 'tool_call') return placed(event, content, index)
    const { toolCallId: _own, ...call } = content
    return placed(event, call, index)
  })
}

/** Content at its place of the reply, which the event may say beside its index. */
function placed<Content extends object>(
  { places }: EventOf<'assistant_message_finished'>,
  content: Content,
  index: number,
): Content & { readonly part: number } {
  return { ...content, part: places?.[index] ?? index }
}

/** The parts of a refused reply that is passed on: those that were streamed. No other part of it is recorded. */
function streamedParts({ drafts, calls }: Attempt): readonly ReplyPart[] {
  const texts = drafts.map(({ part, kind, text }): ReplyPart => ({ type: kind, text, part }))
  const requested = calls.map(({ part, providerCallId, name, input }): ReplyPart => {
    return { type: 'tool_call', providerCallId, name, input, part }
  })
  return [...texts, ...requested].sort((one, other) => one.part - other.part)
}

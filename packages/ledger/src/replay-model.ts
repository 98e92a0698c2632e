import { present, type EventOf, type ReplyPart, type RuntimeEvent, type Signal } from '@tallystick/core'

/** The events of a model call. */
export type ModelEvent = Extract<
  RuntimeEvent,
  {
    readonly type:
      | 'assistant_started'
      | 'assistant_text_delta'
      | 'assistant_reasoning_delta'
      | 'tool_input_delta'
      | 'tool_request_ready'
      | 'usage_updated'
      | 'assistant_message_finished'
      | 'model_stream_failed'
  }
>

/** What the model reported that made this event; `undefined` where the machine made it by itself. */
export function modelCause(event: ModelEvent, recorded: readonly RuntimeEvent[]): Signal | undefined {
  const { turn, attempt } = event
  const here = { turn, attempt }
  switch (event.type) {
    case 'assistant_started': {
      const { providerMessageId, servedModel, warnings } = event
      return {
        ...{ type: 'model_started', ...here },
        ...present({ providerMessageId, servedModel, warnings }),
      }
    }
    case 'assistant_text_delta':
      return { type: 'model_text', ...here, part: event.part, text: event.text }
    case 'assistant_reasoning_delta':
      return { type: 'model_reasoning', ...here, part: event.part, text: event.text }
    case 'tool_input_delta':
      return { type: 'model_tool_input', ...here, part: event.part, name: event.name, text: event.text }
    case 'tool_request_ready': {
      const { part, providerCallId, name, input, malformed, opaque } = event
      const call = {
        ...{ type: 'tool_call' as const, providerCallId, name, input },
        ...present({ malformed, opaque }),
      }
      return { type: 'model_tool_request', ...here, part, call }
    }
    case 'usage_updated':
      return {
        type: 'model_usage',
        ...here,
        usage: event.usage,
        ...present({ raw: event.raw }),
      }
    case 'assistant_message_finished': {
      if (event.partial) return undefined
      const { stopReason, rawStopReason, providerMessageId } = event
      return {
        ...{ type: 'model_finished', ...here, stopReason, parts: replyParts(event, recorded) },
        ...present({ rawStopReason, providerMessageId }),
      }
    }
    case 'model_stream_failed': {
      if (event.failure.class === 'interrupted') return undefined
      return { type: 'model_failed', ...here, failure: event.failure }
    }
  }
}

/** The events of a turn in front of one of them. They stand together, however long the run is. */
function beforeInTurn(
  { seq, turn }: RuntimeEvent,
  recorded: readonly RuntimeEvent[],
): readonly RuntimeEvent[] {
  let from = seq - 1
  while (from > 0 && recorded[from - 1]?.turn === turn) from--
  return recorded.slice(from, seq - 1)
}

/** The parts of a reply with the places that its deltas and requests name. */
function replyParts(
  message: EventOf<'assistant_message_finished'>,
  recorded: readonly RuntimeEvent[],
): ReplyPart[] {
  const mine = beforeInTurn(message, recorded)
  const places = (type: 'assistant_text_delta' | 'assistant_reasoning_delta'): number[] => {
    const parts = mine.flatMap((event) =>
      event.type === type && event.attempt === message.attempt ? [event.part] : [],
    )
    return [...new Set(parts)].sort((a, b) => a - b)
  }
  const free = { text: places('assistant_text_delta'), reasoning: places('assistant_reasoning_delta') }
  // Parts without any delta stand at places that nothing else names.
  let unnamed = 1 + Math.max(-1, ...mine.flatMap((event) => ('part' in event ? [event.part] : [])))
  return message.parts.map((part): ReplyPart => {
    switch (part.type) {
      case 'tool_call': {
        const { toolCallId, ...call } = part
        const request = mine.find(
          (event) => event.type === 'tool_request_ready' && event.toolCallId === toolCallId,
        )
        return { ...call, part: request?.type === 'tool_request_ready' ? request.part : unnamed++ }
      }
      case 'text':
      case 'reasoning':
        return { ...part, part: part.text === '' ? unnamed++ : (free[part.type].shift() ?? unnamed++) }
      case 'provider':
        return { ...part, part: unnamed++ }
    }
  })
}

import type {
  AssistantMessage,
  AssistantPart,
  ModelRef,
  ModelSignal,
  ToolCallId,
  ToolResult,
} from '@tallystick/core/vocabulary'

type Finished = Extract<ModelSignal, { readonly type: 'model_finished' }>

/** The reply as the runtime records it, its calls under ids that begin at `first`. */
export function recordedReply(
  { provider, api, modelId }: ModelRef,
  { parts, stopReason }: Finished,
  first = 1,
): AssistantMessage {
  let ordinal = first
  const recorded = parts.map((one): AssistantPart => {
    const { part: _, ...part } = one
    if (part.type !== 'tool_call') return part
    return { ...part, toolCallId: `call_${'0'.repeat(32)}_1_1_${ordinal++}` as ToolCallId }
  })
  return { role: 'assistant', parts: recorded, model: { provider, api, modelId }, stopReason, partial: false }
}

/** A good answer to each of its calls. */
export function answersTo(reply: AssistantMessage, text: (providerCallId: string) => string): ToolResult[] {
  return reply.parts.flatMap((part) =>
    part.type === 'tool_call'
      ? [
          {
            toolCallId: part.toolCallId,
            name: part.name,
            outcome: 'success' as const,
            content: [{ type: 'text' as const, text: text(part.providerCallId) }],
          },
        ]
      : [],
  )
}

/** An event without the number that its server gave it. */
export function uncounted<Event extends object>(event: Event): Event {
  const { sequence_number: _, ...rest } = event as Event & { readonly sequence_number?: number }
  return rest as Event
}

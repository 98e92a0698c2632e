import type { ToolCallId } from '@tallystick/core/vocabulary'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { WireMessage } from '../client/wire.ts'
import type { RenderedMessage } from './rendered-message.ts'

/** What the whole request decides about its calls. */
export interface Binding {
  readonly ids: ReadonlyMap<ToolCallId, string>
  readonly names: ToolNames
}

const opening = '(The conversation begins here.)'

/**
 * The history as every model's template can render it: it begins with the user, and the user and the assistant take
 * turns, results standing right after the message that asked for them.
 */
export function messagesOf(
  renderedMessages: readonly RenderedMessage[],
  binding: Binding,
): readonly WireMessage[] {
  const messages: WireMessage[] = []
  for (const rendered of renderedMessages) {
    for (const message of rendered.messages) {
      const bound = boundTo(message, binding)
      const last = messages.at(-1)
      if (last !== undefined && last.role === bound.role && bound.role !== 'tool') {
        messages[messages.length - 1] = merged(last, bound)
      } else messages.push(bound)
    }
  }
  if (messages[0]?.role !== 'user') messages.unshift({ role: 'user', content: opening })
  return messages
}

function boundTo(message: WireMessage, { ids, names }: Binding): WireMessage {
  if (message.tool_call_id !== undefined) {
    const id = ids.get(message.tool_call_id as ToolCallId) ?? message.tool_call_id
    return { ...message, tool_name: names.toWire(message.tool_name ?? ''), tool_call_id: id }
  }
  if (message.tool_calls === undefined) return message
  const tool_calls = message.tool_calls.map((call) => ({
    id: ids.get(call.id as ToolCallId) ?? call.id,
    function: { ...call.function, name: names.toWire(call.function.name) },
  }))
  return { ...message, tool_calls }
}

function merged(first: WireMessage, second: WireMessage): WireMessage {
  const between = (one: string, other: string): string =>
    [one, other].filter((text) => text !== '').join('\n\n')
  const thinking = between(first.thinking ?? '', second.thinking ?? '')
  const images = [...(first.images ?? []), ...(second.images ?? [])]
  const tool_calls = [...(first.tool_calls ?? []), ...(second.tool_calls ?? [])]
  return {
    role: first.role,
    content: between(first.content, second.content),
    ...(thinking !== '' && { thinking }),
    ...(images.length > 0 && { images }),
    ...(tool_calls.length > 0 && { tool_calls }),
  }
}

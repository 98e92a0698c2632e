import type { Message } from '@tallystick/core'
import type { ToolDefinition } from '@tallystick/core/vocabulary'

/** A part of a message or of a result. */
interface Part {
  readonly type: string
  readonly text?: string
  readonly mediaType?: string
  readonly kind?: string
  readonly name?: string
  readonly input?: object
}

/** JSON for people to read. */
export function formatJson(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? ''
}

/** Parts as one text: calls as their name and input, and a note for what is no text. */
export function joinContent(parts: readonly Part[]): string {
  return parts.map(formatPart).join('\n')
}

function formatPart({ type, text, mediaType, kind, name, input }: Part): string {
  if (text !== undefined) return text
  if (type === 'tool_call') return `${name} ${formatJson(input)}`
  return `(${[type, mediaType ?? kind].filter(Boolean).join(' ')})`
}

/** A message as one text. */
export function formatMessage(message: Message): string {
  if (message.role !== 'tool') return joinContent(message.parts)
  return message.results
    .map(({ name, outcome, content }) => `${name}: ${outcome}\n${joinContent(content)}`)
    .join('\n\n')
}

export function formatTools(tools: readonly ToolDefinition[]): string {
  return tools
    .map(({ name, description, inputSchema }) => `${name}\n${description}\n${formatJson(inputSchema)}`)
    .join('\n\n')
}

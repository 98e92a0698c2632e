import { textOf, type Message, type UserMessage } from '../vocabulary/content.ts'

/** A conversation as one text that any model can read: who said what, which tools were called, what they answered. */
export function asPlainText(messages: readonly Message[]): string {
  return messages.flatMap(linesOf).join('\n')
}

function linesOf(message: Message): readonly string[] {
  switch (message.role) {
    case 'user':
      return [`User: ${shown(message.parts)}`]
    case 'assistant': {
      const said = textOf(message.parts)
      const calls = message.parts.flatMap((part) =>
        part.type === 'tool_call' ? [`Assistant called ${part.name} with ${JSON.stringify(part.input)}`] : [],
      )
      return [...(said === '' ? [] : [`Assistant: ${said}`]), ...calls]
    }
    case 'tool':
      return message.results.map(
        ({ name, outcome, content }) => `${name} answered (${outcome}): ${shown(content)}`,
      )
  }
}

function shown(parts: UserMessage['parts']): string {
  return parts.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('')
}

/**
 * An input filter for handoffs: folds the whole history into one user message, so that the next agent reads what
 * happened as a report and not as words of its own.
 */
export function foldedHistory(messages: readonly Message[]): readonly Message[] {
  if (messages.length === 0) return messages
  const text = `What was said and done before you took over:\n${asPlainText(messages)}`
  return [{ role: 'user', parts: [{ type: 'text', text }] }]
}

import { textOf, type Message, type UserMessage } from '../../vocabulary/model/content.ts'

/**
 * Returns a conversation as one text that any model can read: who said what, which tools were called, what they answered. Only
 * the first line of a speaker begins at the beginning of a line; the further lines of what was said are indented, so
 * that no text (such as a tool's result with a line `User: …` in it) reads like another speaker.
 */
export function asPlainText(messages: readonly Message[]): string {
  return messages.flatMap(linesOf).map(indented).join('\n')
}

function linesOf(message: Message): readonly string[] {
  switch (message.role) {
    case 'user':
      return [`User: ${shown(message.parts)}`]
    case 'assistant': {
      const words = textOf(message.parts)
      const calls = message.parts.flatMap((part) =>
        part.type === 'tool_call'
          ? [`Assistant called ${toolName(part.name)} with ${JSON.stringify(part.input)}`]
          : [],
      )
      return [...(words === '' ? [] : [`Assistant: ${words}`]), ...calls]
    }
    case 'tool':
      return message.results.map(
        ({ name, outcome, content }) => `${toolName(name)} answered (${outcome}): ${shown(content)}`,
      )
  }
}

/** Everything that some reader takes for the end of a line. */
// oxlint-disable-next-line no-control-regex -- Separators of files, groups and records end a line for some readers.
const lineEnd = /\r\n|[\n\v\f\r\u001c-\u001e\u0085\u2028\u2029]/g

function indented(words: string): string {
  return words.replaceAll(lineEnd, '\n  ')
}

/** A name as a model wrote it: it may hold anything, also what looks like the words around it. */
function toolName(name: string): string {
  return /^[\w.-]+$/.test(name) && !/^(?:user|assistant|system|human)$/i.test(name)
    ? name
    : JSON.stringify(name)
}

function shown(parts: UserMessage['parts']): string {
  return parts.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('')
}

import type { AssistantPart, Message } from '@tallystick/core'
import { contentText } from './content-text.ts'
import type { Paint } from './paint.ts'

/** What a model is shown, for a person: each message under its role, calls and results under the id that joins them. */
export function transcriptText(messages: readonly Message[], paint: Paint): string {
  return messages.map((message) => `${messageText(message, paint)}\n`).join('')
}

function messageText(message: Message, paint: Paint): string {
  switch (message.role) {
    case 'user':
      return `${paint('bold', 'user')}\n${indented(contentText(message.parts))}\n`
    case 'assistant': {
      const head = `assistant ${paint('dim', `(${message.stopReason}${message.partial ? ', cut off' : ''})`)}`
      return `${paint('bold', head)}\n${message.parts.map((part) => indented(partText(part, paint))).join('\n')}\n`
    }
    case 'tool': {
      const results = message.results.map(
        ({ name, toolCallId, outcome, content }) =>
          `${indented(`${paint('cyan', '└ result ')} ${name} ${paint('dim', toolCallId)} ${outcome}`)}\n` +
          indented(indented(contentText(content))),
      )
      return `${paint('bold', 'tool')}\n${results.join('\n')}\n`
    }
  }
}

function partText(part: AssistantPart, paint: Paint): string {
  switch (part.type) {
    case 'text':
      return part.text
    case 'reasoning':
      return paint('dim', part.text)
    case 'tool_call': {
      const input = part.malformed?.text ?? JSON.stringify(part.input)
      return `${paint('cyan', '┌ request')} ${part.name} ${paint('dim', part.toolCallId)}\n${indented(input)}`
    }
    case 'provider':
      return paint('dim', `[${part.opaque.provider}: ${part.kind}]`)
  }
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ')
}

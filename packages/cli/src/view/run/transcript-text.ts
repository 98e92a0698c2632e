import type { Message } from '@tallystick/core'
import type { AssistantPart, ProviderPart } from '@tallystick/core/vocabulary'
import { citationLines } from '../text/citation-text.ts'
import { contentText } from '../text/content-text.ts'
import { indented } from '../text/indented.ts'
import type { OpenCall } from './open-call.ts'
import type { Paint } from '../../terminal/paint.ts'

/** How a transcript is shown. */
export interface TranscriptView {
  readonly paint: Paint
  /** Calls that have no result yet; a transcript has placeholders for them, which no model has read. */
  readonly open: readonly OpenCall[]
}

/** What a model is shown, for a person: each message under its role, calls and results under the id that joins them. */
export function transcriptText(messages: readonly Message[], view: TranscriptView): string {
  return messages.map((message) => `${messageText(message, view)}\n`).join('')
}

function messageText(message: Message, { paint, open }: TranscriptView): string {
  switch (message.role) {
    case 'user':
      return `${paint('bold', 'user')}\n${indented(contentText(message.parts))}\n`
    case 'assistant': {
      const head = `assistant ${paint('dim', `(${message.stopReason}${message.partial ? ', cut off' : ''})`)}`
      return `${paint('bold', head)}\n${message.parts.map((part) => indented(partText(part, paint))).join('\n')}\n`
    }
    case 'tool': {
      const results = message.results.map(({ name, toolCallId, outcome, content }) => {
        const call = `${name} ${paint('dim', toolCallId)}`
        const waiting = open.find((each) => each.toolCallId === toolCallId)
        if (waiting) return indented(`${paint('yellow', '╎ open   ')} ${call} ${waiting.waits}`)
        return (
          `${indented(`${paint('cyan', '└ result ')} ${call} ${outcome}`)}\n` +
          indented(indented(contentText(content)))
        )
      })
      return `${paint('bold', 'tool')}\n${results.join('\n')}\n`
    }
  }
}

function partText(part: AssistantPart, paint: Paint): string {
  switch (part.type) {
    case 'text':
      return [part.text, ...citationLines(part.citations, paint)].join('\n')
    case 'reasoning':
      return paint('dim', part.text)
    case 'tool_call': {
      const input = part.malformed?.text ?? JSON.stringify(part.input)
      return `${paint('cyan', '┌ request')} ${part.name} ${paint('dim', part.toolCallId)}\n${indented(input)}`
    }
    case 'provider':
      return providerText(part, paint)
  }
}

/** What the vendor did itself: a call of its own tool where the part tells of one. */
export function providerText(part: ProviderPart, paint: Paint): string {
  return [executedText(part, paint), ...citationLines(part.sources, paint)].join('\n')
}

function executedText({ opaque, kind, executed }: ProviderPart, paint: Paint): string {
  const whose = paint('dim', `[${opaque.provider}: ${kind}]`)
  if (executed === undefined) return whose
  const { id, name, input, outcome } = executed
  const asked = input && `${paint('cyan', '┌ run by the provider')} ${name} ${paint('dim', id)} ${whose}`
  const resultLine = outcome && `${paint('cyan', '└ result')} ${name} ${paint('dim', id)} ${outcome} ${whose}`
  return [asked, input && indented(JSON.stringify(input)), resultLine].filter(Boolean).join('\n')
}

import { type Message, textOf } from '@tallystick/core'
import {
  type AssistantMessage,
  type FilePart,
  type ImagePart,
  type ResultPart,
  type UserPart,
  type ToolResult,
} from '@tallystick/core/vocabulary'
import { wellFormed } from '../../shared/json/well-formed.ts'
import { unreadInput } from '../../shared/reply/call-input.ts'
import type { IdentifiedCall } from '../../shared/request/call-ids.ts'
import { leftOutText } from '../../shared/request/left-out.ts'
import { api, provider, type WireCall, type WireMessage } from '../client/wire.ts'

/** One message as it goes over the wire, but for the ids and names of its calls, which the whole request decides. */
export interface RenderedMessage {
  readonly messages: readonly WireMessage[]
  readonly calls: readonly (IdentifiedCall & { readonly name: string })[]
}

/** Renders a message for the model of this id. A call bears our own id and name, until the request decides. */
export function renderMessage(message: Message, modelId: string): RenderedMessage {
  switch (message.role) {
    case 'user':
      return { messages: [userMessage(message.parts, emptyMessage)], calls: [] }
    case 'tool':
      return { messages: [...message.results.map(resultMessage), ...picturesOf(message.results)], calls: [] }
    case 'assistant':
      return renderReply(message, modelId)
  }
}

const emptyMessage = '(The message is empty.)'

function userMessage(parts: readonly (UserPart | ResultPart)[], otherwise: string): WireMessage {
  const images = parts.flatMap((part) => (part.type === 'image' && isCarried(part) ? [part.data!] : []))
  const texts = parts.flatMap((part) => wordsOf(part)).filter((text) => text.trim() !== '')
  const content = texts.join('\n\n') || (images.length > 0 ? '' : otherwise)
  return { role: 'user', content, ...(images.length > 0 && { images }) }
}

/** Returns a part as words: a text, the content of a text file, or the name of anything that the wire cannot carry. */
function wordsOf(part: UserPart | ResultPart): readonly string[] {
  switch (part.type) {
    case 'text':
      return [part.text.toWellFormed()]
    case 'image':
      return isCarried(part) ? [] : [leftOutText(part)]
    case 'file': {
      const text = textOfFile(part)
      return [text === undefined ? leftOutText(part) : `${part.name ? `${part.name}:\n` : ''}${text}`]
    }
  }
}

// What every engine of the server can decode. An image that it cannot would fail this request and all that follow.
const imageTypes = /^image\/(png|jpe?g)\s*(;|$)/i

const textTypes = /^(text\/|application\/(json|xml|yaml|x-yaml|javascript|typescript|toml|x-ndjson|sql)\b)/i

const base64 = /^(?:[A-Za-z0-9+/]{4})+$|^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/

function isCarried({ mediaType, data }: ImagePart): boolean {
  return data !== undefined && imageTypes.test(mediaType) && base64.test(data)
}

function textOfFile({ mediaType, data }: FilePart): string | undefined {
  if (!data || !textTypes.test(mediaType) || !base64.test(data)) return undefined
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0))
  return new TextDecoder().decode(bytes)
}

/** A result holds text only. That it is an error is said in words, since the wire has no mark for it. */
function resultMessage({ toolCallId, name, outcome, content }: ToolResult): WireMessage {
  const text = content
    .flatMap((part) =>
      part.type === 'image' && isCarried(part) ? ['[See the image below.]'] : wordsOf(part),
    )
    .join('\n')
  const resultText =
    outcome === 'success' ? text : `Error (${outcome}): ${text.trim() === '' ? 'there is no output.' : text}`
  return { role: 'tool', content: resultText, tool_name: name, tool_call_id: toolCallId }
}

/** The images of all results of a message, in a message of the user after them. */
function picturesOf(results: readonly ToolResult[]): readonly WireMessage[] {
  const images = results.flatMap(({ content }) =>
    content.filter((part) => part.type === 'image').filter(isCarried),
  )
  const names = results
    .filter(({ content }) => content.some((part) => part.type === 'image' && isCarried(part)))
    .map(({ name }) => name)
  if (images.length === 0) return []
  return [
    { ...userMessage(images, ''), content: `[Images in the results of: ${names.join(', ')}]`.toWellFormed() },
  ]
}

/** Thinking goes back to the model that thought it; others would take it for their own. */
function renderReply({ parts, model }: AssistantMessage, modelId: string): RenderedMessage {
  const own = model.provider === provider && model.api === api
  const thinking =
    own && model.modelId === modelId
      ? parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join('')
      : ''
  const calls = parts.filter((part) => part.type === 'tool_call')
  const content = textOf(parts).toWellFormed()
  if (content.trim() === '' && calls.length === 0) return { messages: [], calls: [] }
  const toolCalls = calls.map(({ toolCallId, name, input, malformed }): WireCall => ({
    id: toolCallId,
    function: { name, arguments: wellFormed(malformed ? unreadInput(malformed.text) : input) },
  }))
  const message: WireMessage = {
    role: 'assistant',
    content,
    ...(thinking.trim() !== '' && { thinking: thinking.toWellFormed() }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
  }
  return {
    messages: [message],
    calls: calls.map(({ toolCallId, name, providerCallId }) => ({
      toolCallId,
      name,
      ...(own && { ownId: providerCallId }),
    })),
  }
}

import type { Message } from '@tallystick/core'
import type {
  AssistantMessage,
  AssistantPart,
  Json,
  JsonObject,
  ToolCallPart,
  ToolResultsMessage,
} from '@tallystick/core/vocabulary'
import { type Carried, carried, carriedResult, type Carrier } from '../../openai/request/media.ts'
import { textAt } from '../../shared/json/json-reading.ts'
import { wellFormed } from '../../shared/json/well-formed.ts'
import { api, type OpaqueData, readOpaque } from '../client/wire.ts'

/** A call, or what answers one: its id, and the name of its tool, only the whole request decides. */
export interface Placeholder {
  readonly toolCallId: ToolCallPart['toolCallId']
  readonly name: string
  /** The id that this service gave the call itself. */
  readonly ownId?: string
}

/** One message as it goes over the wire, but for what the whole request decides. Rendered once per message. */
export type RenderedMessage =
  | { readonly role: 'user'; readonly pieces: readonly Carried[] }
  | RenderedReply
  | { readonly role: 'tool'; readonly answers: readonly RenderedAnswer[]; readonly shown: readonly Carried[] }

/** A reply. */
export interface RenderedReply {
  readonly role: 'assistant'
  readonly text: string
  readonly refusal: string
  readonly calls: readonly RenderedCall[]
  /** The reasoning as fields of the message, for a request that it goes back with. */
  readonly reasoning: JsonObject | undefined
  /** The reasoning as the beginning of the content, for servers that put it there. */
  readonly thoughts: string
  /** Fields of the message that its server wants back whatever becomes of the reasoning. */
  readonly message: JsonObject | undefined
}

/** A call. `unread` is its input as the model wrote it, where that was no JSON object. */
export interface RenderedCall extends Placeholder {
  readonly body: JsonObject
  readonly unread?: string
}

/** The answer to a call: text only, for that is all that the wire takes. */
export interface RenderedAnswer extends Placeholder {
  readonly text: string
}

/** Renders a message for a model of this provider. */
export function renderMessage(message: Message, provider: string): RenderedMessage {
  switch (message.role) {
    case 'user': {
      const pieces = carried(message.parts, carrierOf(provider))
      // Left out, it would leave the assistant the last word, which is another request.
      return { role: 'user', pieces: pieces.length > 0 ? pieces : [text('(The message is empty.)')] }
    }
    case 'tool':
      return renderResults(message, provider)
    case 'assistant':
      return renderReply(message, provider)
  }
}

/** What this wire takes of a service. */
function carrierOf(provider: string): Carrier {
  return { provider, documentUrls: false, imageIds: false, audio: true }
}

function text(words: string): Carried {
  return { kind: 'text', text: words }
}

/** Results: what is no text is shown by the user, after all of them. */
function renderResults({ results }: ToolResultsMessage, provider: string): RenderedMessage {
  const shown: Carried[] = []
  const answers = results.map(({ toolCallId, name, outcome, content }): RenderedAnswer => {
    const pieces = carriedResult(outcome, content, carrierOf(provider))
    const texts = pieces.flatMap((piece) => (piece.kind === 'text' ? [piece.text] : []))
    const media = pieces.filter((piece) => piece.kind !== 'text')
    if (media.length > 0) {
      shown.push(text(`What ${name.toWellFormed() || 'a tool'} returned:`), ...media)
      texts.push('(What it returned is shown in the next message.)')
    }
    return { toolCallId, name, text: texts.join('\n\n') }
  })
  return { role: 'tool', answers, shown }
}

function renderReply({ model, parts }: AssistantMessage, provider: string): RenderedReply {
  const own = model.provider === provider && model.api === api
  const known = (part: AssistantPart) => (own ? readOpaque(part.opaque, provider) : undefined)
  const words = { text: '', refusal: '' }
  const calls: RenderedCall[] = []
  let fields: JsonObject = {}
  for (const part of parts) {
    const providerState = known(part)
    fields = { ...fields, ...providerState?.message }
    if (part.type === 'text') words[providerState?.refusal ? 'refusal' : 'text'] += part.text.toWellFormed()
    if (part.type !== 'tool_call') continue
    const { toolCallId, name, providerCallId, malformed } = part
    calls.push({
      toolCallId,
      name,
      ...(own && { ownId: providerCallId }),
      ...(malformed && { unread: malformed.text.toWellFormed() }),
      body: callBody(part, providerState),
    })
  }
  const { reasoning_content: thought, ...message } = wellFormed(fields)
  const { reasoning, thoughts } = reasoningOf(parts, known)
  return {
    role: 'assistant',
    ...words,
    calls,
    message: Object.keys(message).length > 0 ? message : undefined,
    // That nothing was thought is said only of calls, as servers demand it.
    reasoning:
      reasoning ?? (thought !== undefined && calls.length > 0 ? { reasoning_content: thought } : undefined),
    thoughts,
  }
}

/** A call in the kind that it was asked in. Its id, and the name in `function` or `custom`, come with the request. */
function callBody(part: ToolCallPart, providerState: OpaqueData | undefined): JsonObject {
  const custom = providerState?.field === undefined ? undefined : part.input[providerState.field]
  if (typeof custom === 'string') {
    return {
      ...providerState?.call,
      type: 'custom',
      custom: { name: part.name, input: custom.toWellFormed() },
    }
  }
  const body = { name: part.name, arguments: JSON.stringify(wellFormed(part.input)) }
  return { ...providerState?.call, type: 'function', function: body }
}

/** The reasoning of a reply in the fields that its server showed it in. */
function reasoningOf(
  parts: readonly AssistantPart[],
  known: (part: AssistantPart) => OpaqueData | undefined,
): Pick<RenderedReply, 'reasoning' | 'thoughts'> {
  const fields: { [field: string]: Json } = {}
  let thoughts = ''
  for (const part of parts) {
    const providerState = part.type === 'reasoning' ? known(part) : undefined
    if (part.type !== 'reasoning' || providerState?.reasoning === undefined) continue
    const words = part.text.toWellFormed()
    if (providerState.reasoning === 'thinking') thoughts += words
    else if (words !== '')
      fields[providerState.reasoning] = (textAt(fields, providerState.reasoning) ?? '') + words
    if (providerState.details !== undefined) {
      const before = (fields['reasoning_details'] ?? []) as readonly Json[]
      fields['reasoning_details'] = [...before, ...providerState.details]
    }
  }
  return { reasoning: Object.keys(fields).length > 0 ? wellFormed(fields) : undefined, thoughts }
}

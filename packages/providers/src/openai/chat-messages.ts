import type { Message } from '@tallystick/core'
import { isJsonObject, omitUndefined } from '@tallystick/core/internal'
import type {
  AssistantMessage,
  AssistantPart,
  Json,
  JsonObject,
  Opaque,
  ToolCallId,
  ToolCallPart,
  ToolResultsMessage,
} from '@tallystick/core/vocabulary'
import { textAt, wellFormed } from '../shared/json.ts'
import { inObject } from '../shared/reply.ts'
import { type Binding, callIds, type IdentifiedCall } from '../shared/request.ts'
import type { WholeQuirks } from './options.ts'
import { type Carried, carried, carriedResult, type Carrier } from './request.ts'

/** The name of this wire in `ModelRef` and `Opaque`. */
export const api = 'chat'

/** A piece of a call. Servers repeat and leave out fields as they like. */
export interface WireCallDelta extends JsonObject {
  readonly index?: number
  readonly id?: string
  readonly type?: string
  readonly function?: JsonObject
  readonly custom?: JsonObject
}

/**
 * One chunk of the stream. Servers leave out fields or set them to null, so code may rely only on the shape of the
 * fields that are there.
 */
export interface WireChunk {
  readonly id?: string
  readonly model?: string
  readonly choices?: readonly JsonObject[] | null
  readonly usage?: JsonObject | null
  readonly error?: unknown
  /** Groq, before it sent `usage` where others do. */
  readonly x_groq?: JsonObject
}

/** The body of `POST /v1/chat/completions`. */
export interface WireRequest {
  readonly model: string
  readonly messages: readonly JsonObject[]
  readonly stream: true
  readonly [field: string]: unknown
}

/** The field in which a server shows reasoning and expects it back. */
export type ReasoningField = 'reasoning_content' | 'reasoning' | 'thinking'

/** The data of an `Opaque` of this wire. */
export interface OpaqueData extends JsonObject {
  /** Of reasoning: the field that it came in, and the signed pieces of it that some servers add. */
  readonly reasoning?: ReasoningField
  readonly details?: readonly Json[]
  /** Of the first part of a reply: fields of the whole message, which go back with it. */
  readonly message?: JsonObject
  /** Of text: it is a refusal. */
  readonly refusal?: boolean
  /** Of a call: the fields of it that only its server understands. */
  readonly call?: JsonObject
  /** Of a call of a custom tool: the field that its text became. */
  readonly field?: string
}

/** Reads the data of a part's `Opaque`; `undefined` for another wire or service. */
export function readOpaque(
  opaque: { readonly provider: string; readonly api: string; readonly data: Json } | undefined,
  provider: string,
): OpaqueData | undefined {
  if (opaque === undefined || opaque.provider !== provider || opaque.api !== api) return undefined
  return isJsonObject(opaque.data) ? opaque.data : undefined
}

export function toOpaque(provider: string, data: OpaqueData): Opaque {
  return { provider, api, data }
}

const maxIdentifierLength = 64
const nine = /^[a-zA-Z0-9]{9}$/

/** Gives each call of a request a unique id in the form that the server takes. */
export function chatCallIds(
  calls: readonly IdentifiedCall[],
  rule: 'any' | 'nine_alphanumeric',
): ReadonlyMap<ToolCallId, string> {
  if (rule === 'any') return callIds(calls, maxIdentifierLength)
  const ids = new Map<ToolCallId, string>()
  const taken = new Set<string>()
  for (const { toolCallId, ownId } of calls) {
    if (ids.has(toolCallId)) continue
    let id = ownId !== undefined && nine.test(ownId) ? ownId : hashToNine(toolCallId, 0)
    for (let salt = 0; taken.has(id); salt++) id = hashToNine(toolCallId, salt)
    ids.set(toolCallId, id)
    taken.add(id)
  }
  return ids
}

/** Nine letters and digits that stand for an id: the same ones in every request. */
function hashToNine(text: string, salt: number): string {
  // FNV-1a, 32 bits. Not for security: a collision only costs another salt.
  const seven = (variant: string): string => {
    let hash = 0x811c9dc5
    for (const unit of `${salt} ${variant} ${text}`.split('')) {
      hash = Math.imul(hash ^ unit.charCodeAt(0), 0x01000193)
    }
    return (hash >>> 0).toString(36).padStart(7, '0')
  }
  return `${seven('a')}${seven('b')}`.slice(0, 9)
}

interface ChatBinding extends Binding {
  readonly quirks: Pick<
    WholeQuirks,
    'alternatingRoles' | 'replayReasoning' | 'reasoningPlaceholder' | 'readsArguments' | 'signsCalls'
  >
}

const opening = '(The conversation begins here.)'
const bridge = '(The results are in.)'

/**
 * The history as these servers accept it: every call is answered right after the message that asked, results hold text
 * only, what they showed comes after all of them, and no reply is empty.
 */
export function toMessages(
  renderedMessages: readonly RenderedMessage[],
  binding: ChatBinding,
): readonly JsonObject[] {
  const aloud = repliesAloud(renderedMessages, binding)
  const messages = renderedMessages.flatMap((rendered, place): JsonObject[] => {
    switch (rendered.role) {
      case 'user':
        return [userMessage(rendered.pieces)]
      case 'assistant':
        return assistantMessage(rendered, binding, aloud.has(place))
      case 'tool': {
        const answers = rendered.answers.map(({ toolCallId, text: content }): JsonObject => ({
          role: 'tool',
          tool_call_id: binding.ids.get(toolCallId) ?? toolCallId,
          content,
        }))
        return rendered.shown.length > 0 ? [...answers, userMessage(rendered.shown)] : answers
      }
    }
  })
  if (binding.quirks.alternatingRoles) return alternating(messages)
  return messages.length > 0 ? messages : [{ role: 'user', content: opening }]
}

/** The places of the replies whose reasoning goes back with them. A turn is what lies between two messages of the user. */
function repliesAloud(
  messages: readonly RenderedMessage[],
  { quirks: { replayReasoning } }: ChatBinding,
): ReadonlySet<number> {
  const places = new Set<number>()
  let turn: number[] = []
  let hasCalls = false
  const endTurn = (isOpen: boolean): void => {
    const isAloud =
      replayReasoning === 'always' ||
      (replayReasoning !== 'never' && isOpen) ||
      (replayReasoning === 'turns_with_calls' && hasCalls)
    if (isAloud) for (const place of turn) places.add(place)
    turn = []
    hasCalls = false
  }
  for (const [place, message] of messages.entries()) {
    if (message.role === 'user') endTurn(false)
    if (message.role !== 'assistant') continue
    turn.push(place)
    hasCalls ||= message.calls.length > 0
  }
  endTurn(true)
  return places
}

function userMessage(pieces: readonly Carried[]): JsonObject {
  const texts = pieces.flatMap((piece) => (piece.kind === 'text' ? [piece.text] : []))
  // Many servers take nothing but a text here, so it is one wherever it can be.
  const plain = texts.length === pieces.length
  return { role: 'user', content: plain ? texts.join('\n\n') : pieces.map(contentPart) }
}

function contentPart(piece: Carried): JsonObject {
  switch (piece.kind) {
    case 'text':
      return { type: 'text', text: piece.text }
    case 'image':
      return { type: 'image_url', image_url: { url: piece.url, ...omitUndefined({ detail: piece.detail }) } }
    case 'pdf':
      return { type: 'file', file: { filename: piece.name, file_data: piece.data ?? '' } }
    case 'audio':
      return { type: 'input_audio', input_audio: { data: piece.data, format: piece.format } }
    case 'kept':
      return { type: 'file', file: { file_id: piece.fileId } }
  }
}

function assistantMessage(rendered: RenderedReply, binding: ChatBinding, aloud: boolean): JsonObject[] {
  const { calls, text, refusal, thoughts, message, reasoning } = rendered
  const { quirks } = binding
  if (calls.length === 0 && text.trim() === '' && refusal.trim() === '') return []
  const thinks = aloud && thoughts !== ''
  const content =
    !thinks && refusal === ''
      ? text === ''
        ? null
        : text
      : [
          ...(thinks ? [{ type: 'thinking', thinking: [{ type: 'text', text: thoughts }] }] : []),
          ...(text === '' ? [] : [{ type: 'text', text }]),
          ...(refusal === '' ? [] : [{ type: 'refusal', refusal }]),
        ]
  const { reasoningPlaceholder: placeholder } = quirks
  const lacksReasoning = calls.length > 0 && placeholder !== false && !textAt(reasoning, 'reasoning_content')
  const toolCalls = calls.map(({ toolCallId, name, body, unread }, place) => {
    const kind = body['type'] === 'custom' ? 'custom' : 'function'
    const asked = {
      ...(body[kind] as JsonObject),
      ...(unread !== undefined && { arguments: quirks.readsArguments ? inObject(unread) : unread }),
      name: binding.names.toWire(name),
    }
    const unsigned = quirks.signsCalls && place === 0 && body['extra_content'] === undefined
    return {
      id: binding.ids.get(toolCallId) ?? toolCallId,
      ...body,
      ...(unsigned && noSignature),
      [kind]: asked,
    }
  })
  return [
    {
      role: 'assistant',
      content,
      ...message,
      ...(aloud && reasoning),
      // Some servers refuse a call that no reasoning stands before.
      ...(aloud && lacksReasoning && { reasoning_content: placeholder }),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    },
  ]
}

/** Google's word for a call that another model made, which nobody can have signed. */
const noSignature: JsonObject = {
  extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } },
}

/** For templates that demand alternating roles: neighbours of one role are merged, and the user begins. */
function alternating(messages: readonly JsonObject[]): readonly JsonObject[] {
  const turns: JsonObject[] = []
  for (const message of messages) {
    const last = turns.at(-1)
    const neighbour = last !== undefined && message['role'] !== 'tool' && last['role'] === message['role']
    if (neighbour && last['tool_calls'] === undefined) turns.push(mergeMessages(turns.pop()!, message))
    else if (last?.['role'] === 'tool' && message['role'] === 'user') {
      turns.push({ role: 'assistant', content: bridge }, message)
    } else turns.push(message)
  }
  return turns[0]?.['role'] === 'user' ? turns : [{ role: 'user', content: opening }, ...turns]
}

function mergeMessages(before: JsonObject, after: JsonObject): JsonObject {
  const [first, second] = [before['content'] ?? '', after['content'] ?? '']
  const content =
    typeof first === 'string' && typeof second === 'string'
      ? [first, second].filter((text) => text !== '').join('\n\n')
      : [first, second].flatMap((one) =>
          typeof one !== 'string'
            ? (one as readonly JsonObject[])
            : one === ''
              ? []
              : [{ type: 'text', text: one }],
        )
  return { ...before, ...after, content: content === '' ? null : content }
}

/** A call or a result. Only the whole request decides its id and the name of its tool. */
export interface Placeholder {
  readonly toolCallId: ToolCallPart['toolCallId']
  readonly name: string
  /** The id that this service gave the call itself. */
  readonly ownId?: string
}

/** A message as it goes over the wire, except for what the whole request decides. Rendered once. */
export type RenderedMessage =
  | { readonly role: 'user'; readonly pieces: readonly Carried[] }
  | RenderedReply
  | { readonly role: 'tool'; readonly answers: readonly RenderedAnswer[]; readonly shown: readonly Carried[] }

interface RenderedReply {
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

/** A call. `unread` is its input as the model wrote it, if that was not a JSON object. */
export interface RenderedCall extends Placeholder {
  readonly body: JsonObject
  readonly unread?: string
}

/** The answer to a call: text only, since the wire takes nothing else. */
export interface RenderedAnswer extends Placeholder {
  readonly text: string
}

/** Renders a message for a model of this provider. */
export function renderMessage(message: Message, provider: string): RenderedMessage {
  switch (message.role) {
    case 'user': {
      const pieces = carried(message.parts, describeCarrier(provider))
      // Left out, it would leave the assistant the last word, which is another request.
      return { role: 'user', pieces: pieces.length > 0 ? pieces : [text('(The message is empty.)')] }
    }
    case 'tool':
      return renderResults(message, provider)
    case 'assistant':
      return renderReply(message, provider)
  }
}

function describeCarrier(provider: string): Carrier {
  return { provider, documentUrls: false, imageIds: false, audio: true }
}

function text(words: string): Carried {
  return { kind: 'text', text: words }
}

/** Results are text. A message of the user after all of them shows anything else. */
function renderResults({ results }: ToolResultsMessage, provider: string): RenderedMessage {
  const shown: Carried[] = []
  const answers = results.map(({ toolCallId, name, outcome, content }): RenderedAnswer => {
    const pieces = carriedResult(outcome, content, describeCarrier(provider))
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
  const { reasoning, thoughts } = renderReasoning(parts, known)
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

/** A call of the kind that the model made. The request adds its id and name. */
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
function renderReasoning(
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

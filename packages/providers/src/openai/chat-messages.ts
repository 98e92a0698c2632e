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
import { callIds, type IdentifiedCall, type ToolNames } from '../shared/request.ts'
import type { WholeQuirks } from './options.ts'
import { type Carried, carried, carriedResult, type Carrier } from './request.ts'

/** This wire, as `ModelRef` and `Opaque` name it. Whose service it is, an option says. */
export const api = 'chat'

/** A piece of a call: whichever of its fields the server repeats, or leaves out. */
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

/** The body of `POST /v1/chat/completions`, as far as this adapter writes it. */
export interface WireRequest {
  readonly model: string
  readonly messages: readonly JsonObject[]
  readonly stream: true
  readonly [field: string]: unknown
}

/** Where a server shows its model's reasoning, which is where it wants it back. */
export type ReasoningField = 'reasoning_content' | 'reasoning' | 'thinking'

/** What an `Opaque` of this wire holds, each field where it applies. */
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

/** The fields of a part's `Opaque`, when it is of this wire and this service. */
export function readOpaque(
  opaque: { readonly provider: string; readonly api: string; readonly data: Json } | undefined,
  provider: string,
): OpaqueData | undefined {
  if (opaque === undefined || opaque.provider !== provider || opaque.api !== api) return undefined
  return isJsonObject(opaque.data) ? opaque.data : undefined
}

/** What a part carries, addressed to this wire of this service. */
export function toOpaque(provider: string, data: OpaqueData): Opaque {
  return { provider, api, data }
}

const maxIdentifierLength = 64
const nine = /^[a-zA-Z0-9]{9}$/

/** The id that each call has in one request, as the server takes ids. Unique in the request. */
export function chatCallIds(
  calls: readonly IdentifiedCall[],
  rule: 'any' | 'nine_alphanumeric',
): ReadonlyMap<ToolCallId, string> {
  if (rule === 'any') return callIds(calls, maxIdentifierLength)
  const ids = new Map<ToolCallId, string>()
  const taken = new Set<string>()
  for (const { toolCallId, ownId } of calls) {
    if (ids.has(toolCallId)) continue
    const own = ownId !== undefined && nine.test(ownId) && !taken.has(ownId) ? ownId : undefined
    const id = own ?? freeNine(toolCallId, taken)
    ids.set(toolCallId, id)
    taken.add(id)
  }
  return ids
}

/** Returns nine letters and digits in place of an id: always the same ones, unless another id has taken them. */
function freeNine(text: string, taken: ReadonlySet<string>): string {
  for (let salt = 0; ; salt++) {
    const candidate = `${hashOf(`${salt} a ${text}`)}${hashOf(`${salt} b ${text}`)}`.slice(0, 9)
    if (!taken.has(candidate)) return candidate
  }
}

/** FNV-1a, 32 bits, as seven digits of base 36. Not for security: a collision only costs another salt. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5
  for (let place = 0; place < text.length; place++) {
    hash = Math.imul(hash ^ text.charCodeAt(place), 0x01000193)
  }
  return (hash >>> 0).toString(36).padStart(7, '0')
}

/** What the whole request decides about the messages in it. */
export interface Binding {
  readonly ids: ReadonlyMap<ToolCallId, string>
  readonly names: ToolNames
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
export function messagesOf(
  renderedMessages: readonly RenderedMessage[],
  binding: Binding,
): readonly JsonObject[] {
  const aloud = repliesAloud(renderedMessages, binding)
  const messages = renderedMessages.flatMap((rendered, place): JsonObject[] => {
    switch (rendered.role) {
      case 'user':
        return [userMessage(rendered.pieces)]
      case 'assistant':
        return assistantMessage(rendered, binding, aloud.has(place))
      case 'tool': {
        const answers = rendered.answers.map((answer): JsonObject => ({
          role: 'tool',
          tool_call_id: idOf(answer.toolCallId, binding),
          content: answer.text,
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
  { quirks: { replayReasoning } }: Binding,
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

function idOf(toolCallId: ToolCallId, { ids }: Binding): string {
  return ids.get(toolCallId) ?? toolCallId
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

function assistantMessage(rendered: RenderedReply, binding: Binding, aloud: boolean): JsonObject[] {
  const { calls, text, refusal, message } = rendered
  const { quirks } = binding
  if (calls.length === 0 && text.trim() === '' && refusal.trim() === '') return []
  const toolCalls = calls.map(({ toolCallId, name, body, unread }, place) => {
    const kind = body['type'] === 'custom' ? 'custom' : 'function'
    const asked = {
      ...(body[kind] as JsonObject),
      ...(unread !== undefined && { arguments: quirks.readsArguments ? inObject(unread) : unread }),
      name: binding.names.toWire(name),
    }
    const unsigned = quirks.signsCalls && place === 0 && body['extra_content'] === undefined
    return { id: idOf(toolCallId, binding), ...body, ...(unsigned && noSignature), [kind]: asked }
  })
  return [
    {
      role: 'assistant',
      content: contentOf(rendered, aloud),
      ...message,
      ...(aloud && replayedReasoning(rendered, quirks)),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    },
  ]
}

/** Google's word for a call that another model made, which nobody can have signed. */
const noSignature: JsonObject = {
  extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } },
}

/** The fields of a reply's reasoning, or what stands for it where the server does without none. */
function replayedReasoning(
  { reasoning, calls }: RenderedReply,
  { reasoningPlaceholder: placeholder }: Binding['quirks'],
): JsonObject | undefined {
  if (calls.length === 0 || placeholder === false || textAt(reasoning, 'reasoning_content')) return reasoning
  return { ...reasoning, reasoning_content: placeholder }
}

function contentOf(
  { text, refusal, thoughts }: RenderedReply,
  aloud: boolean,
): readonly JsonObject[] | string | null {
  const thinking = aloud && thoughts !== ''
  if (!thinking && refusal === '') return text === '' ? null : text
  return [
    ...(thinking ? [{ type: 'thinking', thinking: [{ type: 'text', text: thoughts }] }] : []),
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...(refusal === '' ? [] : [{ type: 'refusal', refusal }]),
  ]
}

/** For templates that know nothing but turns: neighbours of one role become one, and the user begins. */
function alternating(messages: readonly JsonObject[]): readonly JsonObject[] {
  const turns: JsonObject[] = []
  for (const message of messages) {
    const last = turns.at(-1)
    const neighbour = last !== undefined && message['role'] !== 'tool' && last['role'] === message['role']
    if (neighbour && last['tool_calls'] === undefined) turns.push(merged(turns.pop()!, message))
    else if (last?.['role'] === 'tool' && message['role'] === 'user') {
      turns.push({ role: 'assistant', content: bridge }, message)
    } else turns.push(message)
  }
  return turns[0]?.['role'] === 'user' ? turns : [{ role: 'user', content: opening }, ...turns]
}

function merged(before: JsonObject, after: JsonObject): JsonObject {
  const [first, second] = [before['content'] ?? '', after['content'] ?? '']
  const content =
    typeof first === 'string' && typeof second === 'string'
      ? [first, second].filter((text) => text !== '').join('\n\n')
      : [...partsOf(first), ...partsOf(second)]
  return { ...before, ...after, content: content === '' ? null : content }
}

function partsOf(content: unknown): readonly JsonObject[] {
  if (typeof content !== 'string') return content as readonly JsonObject[]
  return content === '' ? [] : [{ type: 'text', text: content }]
}

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

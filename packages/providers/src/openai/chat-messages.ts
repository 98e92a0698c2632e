import type { Message } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import type {
  AssistantMessage,
  Json,
  JsonObject,
  Opaque,
  ToolCallPart,
  ToolResultsMessage,
} from '@tallystick/core/vocabulary'
import { getList, getText, mendText } from '../shared/json.ts'
import { wrapInObject, readOpaqueData } from '../shared/reply.ts'
import type { Binding, CallIdRule } from '../shared/request.ts'
import type { WholeQuirks } from './options.ts'
import { type Carried, carryParts, carryResult, type Carrier } from './request.ts'

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
export function readOpaque(opaque: Opaque | undefined, provider: string): OpaqueData | undefined {
  return readOpaqueData(opaque, provider, api)
}

export function toOpaque(provider: string, data: OpaqueData): Opaque {
  return { provider, api, data }
}

/** For servers that take nine letters and digits only. */
export const nineAlphanumeric: CallIdRule = {
  fits: (id) => /^[a-zA-Z0-9]{9}$/.test(id),
  make: (text, salt) => {
    // FNV-1a, 32 bits. Not for security: a collision only costs another salt.
    const seven = (variant: string): string => {
      let hash = 0x811c9dc5
      for (const unit of `${salt} ${variant} ${text}`.split('')) {
        hash = Math.imul(hash ^ unit.charCodeAt(0), 0x01000193)
      }
      return (hash >>> 0).toString(36).padStart(7, '0')
    }
    return `${seven('a')}${seven('b')}`.slice(0, 9)
  },
}

/** The model and the quirks that a history is rendered for. */
interface Rendering {
  readonly provider: string
  readonly binding: Binding
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
export function toMessages(messages: readonly Message[], rendering: Rendering): readonly JsonObject[] {
  const aloud = findReplayedReasoning(messages, rendering)
  const { provider, binding, quirks } = rendering
  const carrier: Carrier = { provider, documentUrls: false, imageIds: false, audio: true }
  const all = messages.flatMap((message): readonly JsonObject[] => {
    switch (message.role) {
      case 'user': {
        const pieces = carryParts(message.parts, carrier)
        // Left out, it would leave the assistant the last word, which is another request.
        return [toUserMessage(pieces.length > 0 ? pieces : [toText('(The message is empty.)')])]
      }
      case 'assistant':
        return renderReply(message, rendering, aloud.has(message))
      case 'tool':
        return renderResults(message, carrier, binding)
    }
  })
  if (quirks.alternatingRoles) return mergeNeighbours(all)
  return all.length > 0 ? all : [{ role: 'user', content: opening }]
}

/** Finds the replies whose reasoning goes back with them. A turn is what lies between two messages of the user. */
function findReplayedReasoning(
  messages: readonly Message[],
  { quirks: { replayReasoning } }: Rendering,
): ReadonlySet<Message> {
  const aloud = new Set<Message>()
  let turn: AssistantMessage[] = []
  for (const message of [...messages, undefined]) {
    if (message?.role === 'assistant') turn.push(message)
    if (message !== undefined && message.role !== 'user') continue
    const isOpen = message === undefined
    const hasCalls = turn.some(({ parts }) => parts.some(({ type }) => type === 'tool_call'))
    const isAloud =
      replayReasoning === 'always' ||
      (replayReasoning !== 'never' && isOpen) ||
      (replayReasoning === 'turns_with_calls' && hasCalls)
    if (isAloud) for (const reply of turn) aloud.add(reply)
    turn = []
  }
  return aloud
}

function toUserMessage(pieces: readonly Carried[]): JsonObject {
  const texts = pieces.flatMap((piece) => (piece.kind === 'text' ? [piece.text] : []))
  // Many servers take nothing but a text here, so it is one wherever it can be.
  const plain = texts.length === pieces.length
  return { role: 'user', content: plain ? texts.join('\n\n') : pieces.map(toContentPart) }
}

function toContentPart(piece: Carried): JsonObject {
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

function toText(words: string): Carried {
  return { kind: 'text', text: words }
}

/** Results are text. A message of the user after all of them shows anything else. */
function renderResults(
  { results }: ToolResultsMessage,
  carrier: Carrier,
  { toWireId }: Binding,
): readonly JsonObject[] {
  const shown: Carried[] = []
  const answers = results.map(({ toolCallId, name, outcome, content }): JsonObject => {
    const pieces = carryResult(outcome, content, carrier)
    const texts = pieces.flatMap((piece) => (piece.kind === 'text' ? [piece.text] : []))
    const media = pieces.filter((piece) => piece.kind !== 'text')
    if (media.length > 0) {
      shown.push(toText(`What ${name.toWellFormed() || 'a tool'} returned:`), ...media)
      texts.push('(What it returned is shown in the next message.)')
    }
    return { role: 'tool', tool_call_id: toWireId(toolCallId), content: texts.join('\n\n') }
  })
  return shown.length > 0 ? [...answers, toUserMessage(shown)] : answers
}

function renderReply(
  { model, parts }: AssistantMessage,
  { provider, binding, quirks }: Rendering,
  aloud: boolean,
): JsonObject[] {
  const own = model.provider === provider && model.api === api
  const words = { text: '', refusal: '' }
  const calls: JsonObject[] = []
  let fields: JsonObject = {}
  // The reasoning goes back in the fields that its server showed it in, or as the beginning of the content.
  const shown: { [field: string]: Json } = {}
  let thoughts = ''
  for (const part of parts) {
    const providerState = own ? readOpaque(part.opaque, provider) : undefined
    fields = { ...fields, ...providerState?.message }
    const { reasoning: field, details } = providerState ?? {}
    if (part.type === 'reasoning' && field !== undefined) {
      if (field === 'thinking') thoughts += part.text.toWellFormed()
      else if (part.text !== '') shown[field] = (getText(shown, field) ?? '') + part.text
      if (details !== undefined)
        shown['reasoning_details'] = [...getList(shown, 'reasoning_details'), ...details]
    }
    if (part.type === 'text') words[providerState?.refusal ? 'refusal' : 'text'] += part.text.toWellFormed()
    if (part.type === 'tool_call') {
      const id = binding.toWireId(part.toolCallId)
      const isSigned = providerState?.call?.['extra_content'] !== undefined
      const unsigned = quirks.signsCalls && calls.length === 0 && !isSigned
      calls.push({
        id,
        ...providerState?.call,
        ...renderCall(part, providerState?.field, binding.names, quirks),
        ...(unsigned && noSignature),
      })
    }
  }
  if (calls.length === 0 && words.text.trim() === '' && words.refusal.trim() === '') return []
  const { reasoning_content: thought, ...message } = mendText(fields)
  // That nothing was thought is said only of calls, as servers demand it.
  const silence = thought !== undefined && calls.length > 0 ? { reasoning_content: thought } : {}
  const reasoning = Object.keys(shown).length > 0 ? mendText(shown) : silence
  const { reasoningPlaceholder: placeholder } = quirks
  const lacksReasoning = calls.length > 0 && placeholder !== false && !getText(reasoning, 'reasoning_content')
  const thinks = aloud && thoughts !== ''
  const content =
    !thinks && words.refusal === ''
      ? words.text || null
      : [
          ...(thinks ? [{ type: 'thinking', thinking: [{ type: 'text', text: thoughts }] }] : []),
          ...(words.text === '' ? [] : [{ type: 'text', text: words.text }]),
          ...(words.refusal === '' ? [] : [{ type: 'refusal', refusal: words.refusal }]),
        ]
  return [
    {
      role: 'assistant',
      content,
      ...message,
      ...(aloud && reasoning),
      // Some servers refuse a call that no reasoning stands before.
      ...(aloud && lacksReasoning && { reasoning_content: placeholder }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ]
}

/** Renders a call in its own kind. `field` is the one that the text of a custom tool became. */
function renderCall(
  part: ToolCallPart,
  field: string | undefined,
  { toWire }: Binding['names'],
  { readsArguments }: Rendering['quirks'],
): JsonObject {
  const name = toWire(part.name)
  const custom = field === undefined ? undefined : part.input[field]
  if (typeof custom === 'string') return { type: 'custom', custom: { name, input: custom.toWellFormed() } }
  const unread = part.malformed?.text.toWellFormed()
  const written = unread === undefined ? JSON.stringify(mendText(part.input)) : unread
  return {
    type: 'function',
    function: { name, arguments: unread !== undefined && readsArguments ? wrapInObject(unread) : written },
  }
}

/** Google's word for a call that another model made, which nobody can have signed. */
const noSignature: JsonObject = {
  extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } },
}

/** For templates that demand alternating roles: neighbours of one role are merged, and the user begins. */
function mergeNeighbours(messages: readonly JsonObject[]): readonly JsonObject[] {
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

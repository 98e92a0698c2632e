import { parseToolCallId, type ToolCallId } from '../values/ids.ts'
import type { Json, JsonObject } from '../values/json.ts'
import {
  count,
  exactly,
  flag,
  json,
  jsonObject,
  listOf,
  objectOf,
  maybe,
  type Schema,
  type ShapeOf,
  text,
  valueThat,
  variantOf,
  wordOf,
} from '../values/schema.ts'

/**
 * Data that one wire needs back verbatim (a signature, encrypted reasoning, a server-side block) and that only its
 * provider reads. An adapter sends it back only to the `provider` and `api` that it came from, and drops it for any
 * other.
 */
export interface Opaque {
  readonly provider: string
  readonly api: string
  readonly data: Json
}

/** Text, as it was written. */
export interface TextPart {
  readonly type: 'text'
  readonly text: string
  /** The sources that the text cites, if its provider names them. */
  readonly citations?: readonly Citation[]
  readonly opaque?: Opaque
}

/** A file stored with a provider, under the provider's id: no other provider can read it. */
export interface ProviderFile {
  /** As `ModelRef` names it, such as `openai`. */
  readonly provider: string
  readonly id: string
}

/** The detail in which a model reads an image, if its provider offers a choice. */
export const imageDetails = ['auto', 'low', 'high', 'original'] as const
export type ImageDetail = (typeof imageDetails)[number]

/** An image: exactly one of `data` (base64), `url` and `providerFile`. */
export interface ImagePart {
  readonly type: 'image'
  readonly mediaType: string
  readonly data?: string
  readonly url?: string
  readonly providerFile?: ProviderFile
  readonly detail?: ImageDetail
}

/**
 * A document such as a PDF, or audio (`audio/wav`, `audio/mpeg`): exactly one of `data` (base64), `url` and
 * `providerFile`.
 */
export interface FilePart {
  readonly type: 'file'
  readonly mediaType: string
  readonly name?: string
  readonly data?: string
  readonly url?: string
  readonly providerFile?: ProviderFile
}

/** The model's reasoning, if the provider shows it; the proof that it is genuine is in `opaque`. */
export interface ReasoningPart {
  readonly type: 'reasoning'
  readonly text: string
  readonly opaque?: Opaque
}

/** A call as the model wrote it. `malformed` is present if the input was not a JSON object; `input` is then `{}`. */
export interface RequestedCall {
  readonly type: 'tool_call'
  readonly providerCallId: string
  readonly name: string
  readonly input: JsonObject
  readonly malformed?: { readonly text: string; readonly error: string }
  readonly opaque?: Opaque
}

/** A tool request in a message: the model's call under the id that the runtime gave it. */
export interface ToolCallPart extends RequestedCall {
  readonly toolCallId: ToolCallId
}

/**
 * The request to a vendor's own tool, or its outcome, in the parts that people may see. The vendor ran it inside the
 * reply: it is not a tool request, and gets no tool result.
 */
export interface ProviderExecuted {
  /** Joins request and outcome, which may be in two parts, or even in two messages. */
  readonly id: string
  readonly name: string
  /** The request, in the part that asks. */
  readonly input?: JsonObject
  /** The outcome, in the part that reports it. */
  readonly outcome?: 'success' | 'failed'
}

/** A block that only its own vendor understands: a server-side tool's use or result, a compaction block. */
export interface ProviderPart {
  readonly type: 'provider'
  readonly kind: string
  readonly opaque: Opaque
  readonly executed?: ProviderExecuted
  /** Content that the provider found and read, such as the results of a search. */
  readonly sources?: readonly Source[]
}

/** The parts that a message of each role may hold. */
export type UserPart = TextPart | ImagePart | FilePart
export type AssistantPart = TextPart | ReasoningPart | ToolCallPart | ProviderPart
export type ResultPart = TextPart | ImagePart | FilePart

/** A part of a model's reply. `part` is its place in the reply, from 0; deltas name the same place. */
export type ReplyPart = (TextPart | ReasoningPart | RequestedCall | ProviderPart) & { readonly part: number }

/** A model of one provider and API. */
export interface ModelRef {
  readonly provider: string
  readonly api: string
  readonly modelId: string
}

/** Returns whether two references mean the same model of the same provider and API. */
export function isSameModel(a: ModelRef, b: ModelRef): boolean {
  return a.provider === b.provider && a.api === b.api && a.modelId === b.modelId
}

/** Why a model stopped, in one vocabulary for all providers; the event also keeps the wire's own word. */
export const stopReasons = [
  'end',
  'tool_use',
  'max_tokens',
  'context_exceeded',
  'refused',
  'content_filtered',
  'paused',
  'compacted',
  'cancelled',
  'failed',
  'other',
] as const
export type StopReason = (typeof stopReasons)[number]

/**
 * How a tool call ended. Each is a result that the model can read; all but `success` are errors to it.
 *
 * - `success`: the tool answered
 * - `invalid_input`: the input does not match the schema; nothing ran
 * - `unknown_tool`: no tool has that name; nothing ran
 * - `denied`: a person or a policy refused; nothing ran
 * - `failed`: the tool threw
 * - `timed_out`: the tool did not end in time
 * - `cancelled`: the run was cancelled
 * - `interrupted`: in doubt: it was started, and its end was not recorded
 * - `repeated`: the same call again; the recorded result was served
 * - `limit_reached`: a limit of the run was reached; nothing ran
 * - `skipped`: the reply that asked for it was cut or failed; nothing ran
 */
export const outcomes = [
  'success',
  'invalid_input',
  'unknown_tool',
  'denied',
  'failed',
  'timed_out',
  'cancelled',
  'interrupted',
  'repeated',
  'limit_reached',
  'skipped',
] as const
export type Outcome = (typeof outcomes)[number]

/** The result of a tool request. */
export interface ToolResult {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly outcome: Outcome
  readonly content: readonly ResultPart[]
}

/** A message of the user. */
export interface UserMessage {
  readonly role: 'user'
  readonly parts: readonly UserPart[]
}

/** A model's reply. `partial` says that it was cut off before its end. */
export interface AssistantMessage {
  readonly role: 'assistant'
  readonly parts: readonly AssistantPart[]
  readonly model: ModelRef
  readonly stopReason: StopReason
  readonly partial: boolean
}

/** The results of one assistant message, in the order of its requests. */
export interface ToolResultsMessage {
  readonly role: 'tool'
  readonly results: readonly ToolResult[]
}

/** The history as a model sees it, as messages. */
export type Message = UserMessage | AssistantMessage | ToolResultsMessage

/** The joined text of the parts that have text. */
export function joinText(parts: readonly { readonly type: string; readonly text?: string }[]): string {
  let text = ''
  for (const part of parts) if (part.type === 'text') text += part.text ?? ''
  return text
}

/** The citations of the texts of a reply, in the order of the texts. */
export function collectCitations(parts: readonly AssistantPart[]): readonly Citation[] {
  return parts.flatMap((part) => (part.type === 'text' ? (part.citations ?? []) : []))
}

/** Names one tool call, as the runtime mints it. */
export const toolCallId: Schema<ToolCallId> = valueThat(
  'a tool call id',
  (value) => typeof value === 'string' && parseToolCallId(value) !== undefined,
)

/** The closed lists of words, and the model's name, as content holds them. */
export const outcome: Schema<Outcome> = wordOf(outcomes)
export const stopReason: Schema<StopReason> = wordOf(stopReasons)
export const modelRef: Schema<ModelRef> = objectOf({ provider: text, api: text, modelId: text })

const opaque: Schema<Opaque> = objectOf({ provider: text, api: text, data: json })
const range = objectOf<{ readonly from: number; readonly to: number }>({ from: count, to: count })
const sourceFields: ShapeOf<Source> = { url: maybe(text), title: maybe(text), fileId: maybe(text) }

/** The fields of parts beside their type. */
type PartFields<Part> = ShapeOf<Omit<Part, 'type'>>
const textFields: PartFields<TextPart> = {
  text,
  citations: maybe(
    listOf(objectOf({ ...sourceFields, quote: maybe(text), pages: maybe(range), place: maybe(range) })),
  ),
  opaque: maybe(opaque),
}
const fileFields: PartFields<FilePart> = {
  mediaType: text,
  name: maybe(text),
  data: maybe(text),
  url: maybe(text),
  providerFile: maybe(objectOf({ provider: text, id: text })),
}
const { name: _name, ...mediaFields } = fileFields
const imageFields: PartFields<ImagePart> = { ...mediaFields, detail: maybe(wordOf(imageDetails)) }
const reasoningFields: PartFields<ReasoningPart> = { text, opaque: maybe(opaque) }
const providerFields: PartFields<ProviderPart> = {
  kind: text,
  opaque,
  executed: maybe(
    objectOf({
      id: text,
      name: text,
      input: maybe(jsonObject),
      outcome: maybe(wordOf(['success', 'failed'])),
    }),
  ),
  sources: maybe(listOf(objectOf(sourceFields))),
}

/** The fields of a call as the model wrote it. */
export const requestedFields: PartFields<RequestedCall> = {
  providerCallId: text,
  name: text,
  input: jsonObject,
  malformed: maybe(objectOf({ text, error: text })),
  opaque: maybe(opaque),
}
/** A call as the model wrote it. */
export const requestedCall: Schema<RequestedCall> = objectOf({
  type: exactly('tool_call'),
  ...requestedFields,
})

export const replyPart: Schema<ReplyPart> = variantOf('type', {
  text: { part: count, ...textFields },
  reasoning: { part: count, ...reasoningFields },
  tool_call: { part: count, ...requestedFields },
  provider: { part: count, ...providerFields },
})
/** The text that a model writes. */
export const writtenContent: Schema<TextPart | ReasoningPart> = variantOf('type', {
  text: textFields,
  reasoning: reasoningFields,
})
/** A part of a reply as a message holds it. */
export const assistantPart: Schema<AssistantPart> = variantOf('type', {
  text: textFields,
  reasoning: reasoningFields,
  tool_call: { ...requestedFields, toolCallId },
  provider: providerFields,
})
/** A part of a tool result, or of what a user says. */
export const resultPart: Schema<ResultPart> = variantOf('type', {
  text: textFields,
  image: imageFields,
  file: fileFields,
})
const toolResult: Schema<ToolResult> = objectOf({
  toolCallId,
  name: text,
  outcome,
  content: listOf(resultPart),
})
const userFields: ShapeOf<Omit<UserMessage, 'role'>> = { parts: listOf(resultPart) }
export const userMessage: Schema<UserMessage> = objectOf({ role: exactly('user'), ...userFields })
/** Any message that a model may be shown. */
export const message: Schema<Message> = variantOf('role', {
  user: userFields,
  assistant: { parts: listOf(assistantPart), model: modelRef, stopReason, partial: flag },
  tool: { results: listOf(toolResult) },
})

/** A source: an address, or a document. Fields that the provider did not report are absent. */
export interface Source {
  readonly url?: string
  readonly title?: string
  /** The id under which the provider keeps the document. */
  readonly fileId?: string
}

/** A source that supports a text, as the provider reports it. */
export interface Citation extends Source {
  /** The words of the source that support the text. */
  readonly quote?: string
  /** Pages of the source, from 1, the last included. */
  readonly pages?: { readonly from: number; readonly to: number }
  /** The part of the text that it supports, in characters from 0, the end not included. Absent: the whole text. */
  readonly place?: { readonly from: number; readonly to: number }
}

/** Where a provider keeps the conversation: after a response, or under an id. One of the two. */
export interface ProviderState {
  /** The id of the last response that the provider keeps. */
  readonly previousResponseId?: string
  /** The id of a conversation that the provider keeps. */
  readonly conversationId?: string
}

/** Checks where a provider keeps what was said. */
export const providerState: Schema<ProviderState> = objectOf({
  previousResponseId: maybe(text),
  conversationId: maybe(text),
})

/** Name of the tool that keeps the list of what an agent has to do. */
export const todoListName = 'todo_list'

export const todoStates = ['open', 'under_way', 'done'] as const
export type TodoState = (typeof todoStates)[number]

/** One thing to do. */
export interface TodoItem {
  readonly text: string
  readonly state: TodoState
}

/** The list that a result of `todo_list` holds; `undefined` for any other content. */
export function readTodoItems(content: readonly ResultPart[]): readonly TodoItem[] | undefined {
  const { items } = Object(parseOrUndefined(joinText(content))) as { readonly items?: unknown }
  return Array.isArray(items) && items.every(isItem) ? items : undefined
}

/** A list as lines: how much is done, then each item. */
export function formatTodo(items: readonly TodoItem[]): readonly [string, ...string[]] {
  const done = items.filter(({ state }) => state === 'done').length
  return [`${done} of ${items.length} done`, ...items.map(({ text, state }) => `${marks[state]} ${text}`)]
}

const marks: { readonly [State in TodoState]: string } = { open: '[ ]', under_way: '[>]', done: '[x]' }

function isItem(item: unknown): item is TodoItem {
  const { text, state } = Object(item) as Partial<Record<string, unknown>>
  return typeof text === 'string' && todoStates.some((known) => known === state)
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** How the base64 of a file begins, by the type that the first bytes of every such file tell. */
const beginnings: readonly (readonly [RegExp, string])[] = [
  [/^iVBORw0KGgo/, 'image/png'],
  [/^\/9j\//, 'image/jpeg'],
  [/^R0lGOD/, 'image/gif'],
  [/^UklGR.{6}XRUJQ/, 'image/webp'],
  [/^UklGR.{6}XQVZF/, 'audio/wav'],
  [/^JVBERi0/, 'application/pdf'],
]

/**
 * A part of a message with the media type that its bytes have: services refuse an image whose type is another one, and so every
 * later run of a session that holds it. A part without bytes here, and one of bytes that tell nothing, stays as it is.
 */
function correctMediaType<Part extends TextPart | ImagePart | FilePart>(
  part: Part,
): Part | ImagePart | FilePart {
  if (part.type === 'text' || part.data === undefined) return part
  const { data, mediaType: declared } = part
  const mediaType = beginnings.find(([beginning]) => beginning.test(data))?.[1]
  if (mediaType === undefined || mediaType === declared.toLowerCase()) return part
  const isImage = mediaType.startsWith('image/')
  if (isImage === declared.startsWith('image/')) return { ...part, mediaType }
  return isImage ? { type: 'image', mediaType, data } : { type: 'file', mediaType, data }
}

/** Returns parts with the media types that their bytes have; the same list if nothing is corrected. */
export function correctMediaTypes<Part extends UserPart | ResultPart>(
  parts: readonly Part[],
): readonly Part[] {
  const corrected = parts.map((part) => correctMediaType(part) as Part)
  return corrected.some((part, place) => part !== parts[place]) ? corrected : parts
}

/** The same for the parts of a message: what a user gave, or tools answered. */
export function correctMessage<Given extends Message>(message: Given): Given {
  if (message.role === 'user') {
    const parts = correctMediaTypes(message.parts)
    return parts === message.parts ? message : { ...message, parts }
  }
  if (message.role !== 'tool') return message
  const results = message.results.map((result) => {
    const content = correctMediaTypes(result.content)
    return content === result.content ? result : { ...result, content }
  })
  return results.some((result, place) => result !== message.results[place])
    ? { ...message, results }
    : message
}

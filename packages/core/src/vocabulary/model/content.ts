import type { Citation, Source } from './citation.ts'
import type { ToolCallId } from '../values/ids.ts'
import type { Json, JsonObject } from '../values/json.ts'

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

/** A file that a provider keeps, under the id that it gave: no other provider can read it. */
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
 * A document such as a PDF, or a sound (`audio/wav`, `audio/mpeg`): exactly one of `data` (base64), `url` and
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

/** A call as the model wrote it. `malformed` is present if the input was no JSON object; `input` is then `{}`. */
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
 * reply: it is no tool request, and gets no tool result.
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
  /** What the provider found and read, such as the results of a search. */
  readonly sources?: readonly Source[]
}

/** The parts that a message of each role may hold. */
export type UserPart = TextPart | ImagePart | FilePart
export type AssistantPart = TextPart | ReasoningPart | ToolCallPart | ProviderPart
export type ResultPart = TextPart | ImagePart | FilePart

/** A model of one provider and API. */
export interface ModelRef {
  readonly provider: string
  readonly api: string
  readonly modelId: string
}

/** Whether two references mean the same model of the same provider and API. */
export function sameModel(a: ModelRef, b: ModelRef): boolean {
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
 * - `invalid_input`: the input does not fit the schema; nothing ran
 * - `unknown_tool`: no tool of that name; nothing ran
 * - `denied`: a person or a policy refused; nothing ran
 * - `failed`: the tool threw
 * - `timed_out`: the tool did not end in time
 * - `cancelled`: the run was cancelled
 * - `interrupted`: in doubt: it was started, and its end was not recorded
 * - `repeated`: the same call again; the recorded result was served
 * - `limit_reached`: a limit of the run was met; nothing ran
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

/** The text of parts that hold text, put together. */
export function textOf(parts: readonly { readonly type: string; readonly text?: string }[]): string {
  let text = ''
  for (const part of parts) if (part.type === 'text') text += part.text ?? ''
  return text
}

/** The citations of the texts of a reply, in the order of the texts. */
export function citationsOf(parts: readonly AssistantPart[]): readonly Citation[] {
  return parts.flatMap((part) => (part.type === 'text' ? (part.citations ?? []) : []))
}

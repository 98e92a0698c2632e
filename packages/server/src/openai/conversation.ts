import type { InputMessage, RunInput } from '@tallystick/core'
import { isJsonObject, readJson } from '@tallystick/core/internal'
import {
  type AssistantPart,
  type JsonObject,
  type Outcome,
  parseToolCallId,
  type ResultPart,
  type ToolCallId,
  type ToolResult,
  type UserPart,
} from '@tallystick/core/vocabulary'
import { createMalformedError } from '../http/problem.ts'

/** An answer to a run that waits: the result of a call, or a decision about it. */
export type Answer =
  | {
      readonly kind: 'result'
      readonly toolCallId: ToolCallId
      readonly content: readonly ResultPart[]
      /** As its run recorded it; a client says none. */
      readonly outcome?: Outcome
    }
  | {
      readonly kind: 'decision'
      readonly approvalId: string
      readonly approved: boolean
      readonly reason: string
    }

/** One item of a conversation that a client of OpenAI keeps. */
export type ConversationItem =
  | { readonly kind: 'user'; readonly parts: readonly UserPart[] }
  | { readonly kind: 'assistant'; readonly text: string }
  | {
      readonly kind: 'call'
      readonly toolCallId: ToolCallId
      readonly name: string
      readonly input: JsonObject
    }
  | Answer

/** Reads the id of a call that this server gave. */
export function parseCallId(id: unknown, place: string): ToolCallId {
  const toolCallId = typeof id === 'string' ? parseToolCallId(id) : undefined
  if (toolCallId !== undefined) return toolCallId
  throw createMalformedError(`${place} has to be the id of a call that this server gave.`)
}

/** The input of a call, which clients carry as text. */
export function parseCallInput(text: unknown, place: string): JsonObject {
  try {
    const input = readJson(String(text))
    if (isJsonObject(input)) return input
  } catch {
    // Refused below.
  }
  throw createMalformedError(`${place} has to be a JSON object, as text.`)
}

/** Returns the answers at the end of a conversation; none if it ends with a message of the user. */
export function listAnswers(items: readonly ConversationItem[]): readonly Answer[] {
  const from = items.findLastIndex(({ kind }) => kind !== 'result' && kind !== 'decision') + 1
  return items.slice(from) as readonly Answer[]
}

/** Returns the input of a run: the last message of the user, after the earlier messages. */
export function toRunInput(items: readonly ConversationItem[]): RunInput {
  const [only, ...more] = items
  if (only?.kind === 'user' && more.length === 0) return only.parts
  const messages: InputMessage[] = []
  const names = new Map<ToolCallId, string>()
  for (const each of items) {
    const last = messages.at(-1)
    if (each.kind === 'user') messages.push({ role: 'user', parts: each.parts })
    if (each.kind === 'assistant' && each.text !== '')
      addToReply(messages, last, { type: 'text', text: each.text })
    if (each.kind === 'call') {
      const { toolCallId, name, input } = each
      names.set(toolCallId, name)
      addToReply(messages, last, { type: 'tool_call', toolCallId, providerCallId: toolCallId, name, input })
    }
    if (each.kind === 'result') {
      const { toolCallId, content, outcome = 'success' } = each
      const name = names.get(toolCallId)
      if (name === undefined) throw createMalformedError(`The result of ${toolCallId} comes before its call.`)
      addResult(messages, last, { toolCallId, name, outcome, content })
    }
  }
  return messages
}

/** The model of replies that a client sends: which model wrote them is not known. */
const givenModel = { provider: 'given', api: 'given', modelId: 'given' }

function addToReply(messages: InputMessage[], last: InputMessage | undefined, part: AssistantPart): void {
  const isReply = last?.role === 'assistant' && 'parts' in last
  const parts = isReply ? [...last.parts, part] : [part]
  if (isReply) messages.pop()
  const stopReason = parts.some(({ type }) => type === 'tool_call') ? 'tool_use' : 'end'
  messages.push({ role: 'assistant', parts, model: givenModel, stopReason, partial: false })
}

function addResult(messages: InputMessage[], last: InputMessage | undefined, result: ToolResult): void {
  const isResults = last?.role === 'tool'
  if (isResults) messages.pop()
  messages.push({ role: 'tool', results: isResults ? [...last.results, result] : [result] })
}

/** A part of a message, in the words of either API. */
type GivenPart = { readonly type?: unknown; readonly [field: string]: unknown }

/** Reads the message of a user: a text, or parts of either API. */
export function readUserParts(content: unknown, place: string): readonly UserPart[] {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  if (!Array.isArray(parts)) throw createMalformedError(`${place} has to be a text, or a list of parts.`)
  const read = parts.flatMap((part, index) => readUserPart(Object(part) as GivenPart, `${place}.${index}`))
  if (read.length > 0) return read
  throw createMalformedError(`${place} is empty.`)
}

/** The text of a message whose parts can only be texts. */
export function readText(content: unknown, place: string): string {
  if (content == null) return ''
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  if (!Array.isArray(parts)) throw createMalformedError(`${place} has to be a text, or a list of parts.`)
  return parts.map((part, index) => readPartText(Object(part) as GivenPart, `${place}.${index}`)).join('')
}

/** Reads the result of a call that a client ran. */
export function readResultParts(content: unknown, place: string): readonly ResultPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : readUserParts(content, place)
}

function readPartText({ type, text, refusal }: GivenPart, place: string): string {
  if (typeof text === 'string') return text
  if (type === 'refusal' && typeof refusal === 'string') return refusal
  throw createMalformedError(`${place} has to be a text.`)
}

function readUserPart(part: GivenPart, place: string): readonly UserPart[] {
  switch (part.type) {
    case 'text':
    case 'input_text':
      return part['text'] === '' ? [] : [{ type: 'text', text: readPartText(part, place) }]
    case 'image_url':
      return [toImage(Object(part['image_url']) as { readonly url?: unknown }, place)]
    case 'input_image':
      return [toImage({ url: part['image_url'] }, place)]
    case 'file':
      return [toFile(Object(part['file']) as GivenPart, place)]
    case 'input_file':
      return [toFile(part, place)]
    default:
      throw createMalformedError(
        `${place} has the type ${String(part.type).slice(0, 40)}, and can be a text, an image or a file.`,
      )
  }
}

function toImage({ url }: { readonly url?: unknown }, place: string): UserPart {
  const { mediaType = 'image/*', ...where } = parseSource(url, place)
  if (mediaType.startsWith('image/')) return { type: 'image', mediaType, ...where }
  throw createMalformedError(`${place} has to be an image.`)
}

function toFile({ file_data, file_url, filename }: GivenPart, place: string): UserPart {
  const { mediaType = 'application/octet-stream', ...where } = parseSource(file_data ?? file_url, place)
  return { type: 'file', mediaType, ...where, ...(typeof filename === 'string' && { name: filename }) }
}

/** The content of a file: in a data URL, or at a URL that the model's provider reads. */
function parseSource(
  url: unknown,
  place: string,
):
  | { readonly mediaType?: string; readonly data: string }
  | { readonly mediaType?: string; readonly url: string } {
  const text = typeof url === 'string' ? url : ''
  const [, mediaType, data] = /^data:([\w.+-]+\/[\w.+-]+);base64,([A-Za-z0-9+/=]*)$/.exec(text) ?? []
  if (mediaType !== undefined && data !== undefined) return { mediaType, data }
  if (/^https?:\/\//.test(text)) return { url: text }
  throw createMalformedError(
    `${place} has no URL of http, https or data with base64. Files by an id are not kept here.`,
  )
}

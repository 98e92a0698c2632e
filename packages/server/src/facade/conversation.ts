import { isJsonObject, readJson } from '@tallystick/core/kit'
import type { InputMessage, RunInput } from '@tallystick/core/kit'
import {
  parseToolCallId,
  type AssistantPart,
  type JsonObject,
  type Outcome,
  type ResultPart,
  type ToolCallId,
  type ToolResult,
  type UserPart,
} from '@tallystick/core/vocabulary'
import { malformed } from '../http/problem.ts'

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
export function callIdOf(id: unknown, place: string): ToolCallId {
  const toolCallId = typeof id === 'string' ? parseToolCallId(id) : undefined
  if (toolCallId !== undefined) return toolCallId
  throw malformed(`${place} has to be the id of a call that this server gave.`)
}

/** The input of a call, which clients carry as text. */
export function callInput(text: unknown, place: string): JsonObject {
  try {
    const input = readJson(String(text))
    if (isJsonObject(input)) return input
  } catch {
    // Refused below.
  }
  throw malformed(`${place} has to be a JSON object, as text.`)
}

/** Returns the answers at the end of a conversation; none if it ends with a message of the user. */
export function answersIn(items: readonly ConversationItem[]): readonly Answer[] {
  const from = items.findLastIndex(({ kind }) => kind !== 'result' && kind !== 'decision') + 1
  return items.slice(from) as readonly Answer[]
}

/** Returns the input of a run: the last message of the user, after the earlier messages. */
export function conversationOf(items: readonly ConversationItem[]): RunInput {
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
      if (name === undefined) throw malformed(`The result of ${toolCallId} comes before its call.`)
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

import {
  type AssistantMessage,
  type AssistantPart,
  digestOf,
  type Json,
  type JsonObject,
  type Message,
  type ToolCallPart,
} from '@tallystick/core'
import { isJsonObject, textAt } from '../../shared/json/json-reading.ts'
import { wellFormed } from '../../shared/json/well-formed.ts'
import { isIdentifier } from '../../shared/request/identifier.ts'
import { api, type CallKind, type KeptResponse, memoryOf, type WireMemory } from '../client/wire.ts'
import { resultItem, userItem } from './input-items.ts'

/** An item whose id, name or kind only the whole request decides. */
export interface Slot {
  readonly at: number
  readonly role: 'call' | 'result'
  readonly toolCallId: ToolCallPart['toolCallId']
  readonly name: string
  /** The id that this service gave the call itself. */
  readonly ownId?: string
  /** Of a call: what answers it has to look like. */
  readonly kind?: CallKind
  /** Of a call from within a program that the vendor runs: who called. The answer has to say so too. */
  readonly caller?: Json
  /** Of a result: whether the call went well, for a call that is a question. */
  readonly approved?: boolean
}

/** One message as it goes over the wire, but for what the whole request decides. Rendered once per message. */
export interface Draft {
  readonly items: readonly JsonObject[]
  readonly slots: readonly Slot[]
  /** Where the service keeps this reply, when it is whole and can be gone on from. */
  readonly kept: KeptResponse | undefined
  /** SHA-256 over the message, in hex; made when it is first needed. */
  readonly digest: () => string
}

/** Renders a message for the model of this id, of this provider. */
export function draftOf(message: Message, provider: string, modelId: string): Draft {
  let digest: string | undefined
  const rendered = renderedMessage(message, provider, modelId)
  return { ...rendered, digest: () => (digest ??= digestOf(message as unknown as Json)) }
}

type Rendered = Omit<Draft, 'digest'>

function renderedMessage(message: Message, provider: string, modelId: string): Rendered {
  switch (message.role) {
    case 'user':
      return { items: [userItem(message, provider)], slots: [], kept: undefined }
    case 'tool':
      return {
        items: message.results.map((result) => resultItem(result, provider)),
        slots: message.results.map(({ toolCallId, name, outcome }, at): Slot => ({
          ...{ at, role: 'result', toolCallId, name, approved: outcome === 'success' },
        })),
        kept: undefined,
      }
    case 'assistant':
      return assistantItems(message, provider, modelId)
  }
}

/**
 * A reply. From the same model, whole, and with the proof of its reasoning, it goes back as it came, ids included.
 * Otherwise it loses reasoning and the vendor's own items, and all ids: an id without the reasoning that it came with
 * is refused, and so is reasoning without what followed it.
 */
function assistantItems(message: AssistantMessage, provider: string, modelId: string): Rendered {
  const { model, parts, partial } = message
  const own = model.provider === provider && model.api === api
  const whole = own && !partial && model.modelId === modelId
  const remembered = parts.map((part): Remembered => ({
    part,
    memory: own ? memoryOf(part.opaque, provider) : undefined,
  }))
  const genuine = whole && remembered.every(isGenuine)
  const items: JsonObject[] = []
  const slots: Slot[] = []
  for (const [place, one] of remembered.entries()) {
    if (genuine && continuesMessage(remembered[place - 1], one)) {
      items.push(withMore(items.pop()!, one))
      continue
    }
    const item = genuine ? genuineItem(one) : plainItem(one)
    if (item === undefined) continue
    if (one.part.type === 'tool_call') {
      slots.push({ ...callSlot(one.part, one, genuine, own), at: items.length })
    }
    items.push(item)
  }
  return {
    items: withoutLooseReasoning(items),
    slots,
    kept: whole ? placeToGoOn(message, remembered) : undefined,
  }
}

/** Where the service keeps a reply, if it ended in a way that can be gone on from. */
function placeToGoOn(
  { stopReason }: AssistantMessage,
  remembered: readonly Remembered[],
): KeptResponse | undefined {
  const ended = stopReason === 'end' || stopReason === 'tool_use' || stopReason === 'refused'
  return ended ? remembered.find(({ memory }) => memory?.kept)?.memory?.kept : undefined
}

function withMore(message: JsonObject, more: Remembered): JsonObject {
  return { ...message, content: [...(message['content'] as readonly JsonObject[]), contentOf(more)] }
}

/** A part of a reply, with what this wire remembers of it. */
interface Remembered {
  readonly part: AssistantPart
  readonly memory: WireMemory | undefined
}

/** Whether two texts are pieces of one message: then they go back as one. */
function continuesMessage(before: Remembered | undefined, { part, memory }: Remembered): boolean {
  if (part.type !== 'text' || before?.part.type !== 'text') return false
  return memory !== undefined && memory.at !== undefined && memory.at === before.memory?.at
}

/**
 * Whether a part can go back exactly as it came: reasoning has to carry its proof, for the service keeps none, or to be
 * the reasoning itself, which servers that show it need back. A summary is neither.
 */
function isGenuine({ part, memory }: Remembered): boolean {
  if (part.type === 'provider') return memory !== undefined && !awaitsCaller(memory.item)
  if (part.type !== 'reasoning') return true
  return !!textAt(memory?.item, 'encrypted_content') || isPlainReasoning(memory?.item)
}

/** Whether an item holds reasoning in the open. */
function isPlainReasoning(item: JsonObject | undefined): boolean {
  const content = item?.['content']
  return Array.isArray(content) && content.some((one: Json) => !!textAt(one, 'text'))
}

function genuineItem({ part, memory }: Remembered): JsonObject | undefined {
  if (memory === undefined) return plainItem({ part, memory })
  const item = wellFormed(memory.item)
  switch (part.type) {
    case 'text':
      return {
        ...fittingId(item),
        type: 'message',
        role: 'assistant',
        content: [contentOf({ part, memory })],
      }
    case 'reasoning':
      // A server that shows reasoning has ids of its own kind.
      return { summary: [], ...withoutNulls(isPlainReasoning(item) ? item : fittingId(item)) }
    case 'tool_call':
      return isQuestion(memory) ? item : { ...fittingId(item), ...callBody(part, memory) }
    case 'provider':
      return item
  }
}

/** A part without what only its own reply could prove. */
function plainItem({ part, memory }: Remembered): JsonObject | undefined {
  switch (part.type) {
    case 'text': {
      if (part.text.trim() === '') return undefined
      const phase = memory && textAt(memory.item, 'phase')
      const content = [{ type: 'output_text', text: part.text.toWellFormed() }]
      return { type: 'message', role: 'assistant', ...(phase && { phase }), content }
    }
    case 'tool_call': {
      if (isQuestion(memory)) return memory?.item
      const namespace = memory && textAt(memory.item, 'namespace')
      return { ...callBody(part, memory), ...(namespace && { namespace }) }
    }
    case 'provider':
      return memory && textAt(memory.item, 'type') === 'compaction' ? memory.item : undefined
    case 'reasoning':
      return undefined
  }
}

/** Whether a call is the vendor's question about a call to an MCP server, which has an answer of its own. */
function isQuestion(memory: WireMemory | undefined): boolean {
  return textAt(memory?.item, 'type') === 'mcp_approval_request'
}

function contentOf({ part, memory }: Remembered): JsonObject {
  const text = part.type === 'text' ? part.text.toWellFormed() : ''
  const fields = memory?.content ?? {}
  return fields['type'] === 'refusal'
    ? { ...fields, type: 'refusal', refusal: text }
    : { annotations: [], ...fields, type: 'output_text', text }
}

/** What a call asks, in the kind that it was asked in. Names and ids are first guesses. */
function callBody(part: ToolCallPart, memory: WireMemory | undefined): JsonObject {
  const custom = memory?.field === undefined ? undefined : part.input[memory.field]
  if (typeof custom === 'string') {
    return {
      type: 'custom_tool_call',
      call_id: part.toolCallId,
      name: part.name,
      input: custom.toWellFormed(),
    }
  }
  const body = { type: 'function_call', call_id: part.toolCallId, name: part.name }
  return { ...body, arguments: JSON.stringify(wellFormed(part.input)) }
}

function callSlot(
  part: ToolCallPart,
  { memory }: Remembered,
  genuine: boolean,
  own: boolean,
): Omit<Slot, 'at'> {
  const { toolCallId, name, providerCallId } = part
  const custom = memory?.field !== undefined && typeof part.input[memory.field] === 'string'
  const kind = isQuestion(memory) ? 'mcp_approval_request' : custom ? 'custom_tool_call' : 'function_call'
  const caller = genuine ? memory?.item['caller'] : undefined
  return {
    ...{ role: 'call', toolCallId, name, kind },
    ...(own && { ownId: providerCallId }),
    ...(caller !== undefined && { caller }),
  }
}

const idPrefixes: { readonly [type: string]: string } = {
  message: 'msg_',
  reasoning: 'rs_',
  function_call: 'fc_',
  custom_tool_call: 'ctc_',
}

/** The item with its id only where the vendor would take it: ids are checked, and not needed. */
function fittingId(item: JsonObject): JsonObject {
  const { id, ...rest } = item
  const prefix = idPrefixes[textAt(item, 'type') ?? '']
  const fits = typeof id === 'string' && isIdentifier(id, 64) && prefix !== undefined && id.startsWith(prefix)
  return fits ? item : rest
}

function withoutNulls(item: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(item).filter(([, value]) => value !== null))
}

/** Items that the caller has to answer in ways of their own, and that nobody here answers. Left open they are refused. */
export function awaitsCaller(item: JsonObject): boolean {
  const type = textAt(item, 'type')
  if (type === 'tool_search_call') return textAt(item, 'execution') === 'client'
  if (type === 'shell_call') {
    return isJsonObject(item['environment']) && textAt(item['environment'], 'type') === 'local'
  }
  return type === 'computer_call' || type === 'local_shell_call' || type === 'apply_patch_call'
}

/** Reasoning has to be followed by what it led to: a reply that was cut behind it loses it too. */
function withoutLooseReasoning(items: readonly JsonObject[]): readonly JsonObject[] {
  const last = items.findLastIndex((item) => item['type'] !== 'reasoning')
  return last === items.length - 1 ? items : items.slice(0, last + 1)
}

import { isJsonObject } from '@tallystick/core/kit'
import type { Message } from '@tallystick/core'
import type { AssistantMessage, AssistantPart, JsonObject, ToolCallPart } from '@tallystick/core/vocabulary'
import { objectAt, textAt } from '../../shared/json/json-reading.ts'
import { wellFormed } from '../../shared/json/well-formed.ts'
import { unreadInput } from '../../shared/reply/call-input.ts'
import { api, provider, readOpaque, type WireBlock } from '../client/wire.ts'
import { contentBlocks, resultBlock, textBlock } from './content-blocks.ts'

/** A block whose id, or name, only the whole request decides. */
export interface Placeholder {
  readonly at: number
  readonly kind: 'call' | 'result'
  readonly toolCallId: ToolCallPart['toolCallId']
  readonly name: string
  /** The id that this vendor gave the call itself. */
  readonly ownId?: string
}

/** One message as it goes over the wire, but for what the whole request decides. Rendered once per message. */
export interface RenderedMessage {
  readonly role: 'user' | 'assistant'
  /** Whether a person's words are in it; tool results alone are no such words. */
  readonly fromUser: boolean
  /** Whether the reply may still get the results of the vendor's own tools, after what answers it. */
  readonly awaitsServer: boolean
  readonly blocks: readonly WireBlock[]
  readonly placeholders: readonly Placeholder[]
  /** The halves of the vendor's own tool calls, in order. */
  readonly serverHalves: readonly ServerHalf[]
  /** The uses of the vendor's own tools from within which blocks of the message were called, by their ids. */
  readonly callers: readonly string[]
  /** The reply answers a request that went out without any earlier thinking. */
  readonly withoutThinking: boolean
  /** The sandbox that the vendor ran code in, as the reply named it. */
  readonly container: JsonObject | undefined
}

/** A use of a tool that runs at the vendor's, or its result, by the id that joins them. */
export interface ServerHalf {
  readonly kind: 'use' | 'result'
  readonly id: string
}

/** The half that a block is, when it is one. */
export function serverHalfOf(block: WireBlock): ServerHalf | undefined {
  const [kind, key] = block.type.endsWith('_tool_use')
    ? (['use', 'id'] as const)
    : block.type.endsWith('_tool_result')
      ? (['result', 'tool_use_id'] as const)
      : []
  const id = key && textAt(block, key)
  return kind && id !== undefined ? { kind, id } : undefined
}

/** How messages are rendered. */
export interface Rendering {
  /** The model that reads them. */
  readonly modelId: string
  /** The model may cite their documents. */
  readonly citations: boolean
  readonly thinking: boolean
}

/** Renders a message. Fields that depend on the whole request get a first guess here. */
export function renderMessage(message: Message, rendering: Rendering): RenderedMessage {
  const { citations } = rendering
  switch (message.role) {
    case 'user': {
      const blocks = contentBlocks(message.parts, citations)
      // Left out, it would leave the assistant the last word, which is another request.
      return {
        ...plain,
        role: 'user',
        fromUser: true,
        blocks: blocks.length > 0 ? blocks : textBlock(emptyMessage),
      }
    }
    case 'tool': {
      const blocks = message.results.map((result) => resultBlock(result, citations))
      const placeholders = message.results.map((result, at): Placeholder => ({
        at,
        kind: 'result',
        ...result,
      }))
      return { ...plain, role: 'user', blocks, placeholders }
    }
    case 'assistant':
      return renderReply(message, rendering)
  }
}

/** The kind of the part that says that a reply answers a request without earlier thinking. */
export const thinkingLeftOut = 'thinking_left_out'

const emptyMessage = '(The message is empty.)'
const plain = {
  serverHalves: [],
  callers: [],
  fromUser: false,
  awaitsServer: false,
  withoutThinking: false,
  placeholders: [],
  container: undefined,
}

function renderReply(message: AssistantMessage, { modelId, thinking }: Rendering): RenderedMessage {
  const { model, stopReason } = message
  const own = model.provider === provider && model.api === api
  const blocks: WireBlock[] = []
  const placeholders: Placeholder[] = []
  let container: JsonObject | undefined
  for (const part of message.parts) {
    container = readOpaque(part.opaque)?.container ?? container
    if (part.type === 'tool_call') placeholders.push(callPlaceholder(part, blocks.length, own))
    blocks.push(...partBlocks(part, thinking && own && model.modelId === modelId))
  }
  const awaitsServer = stopReason === 'paused' || stopReason === 'tool_use'
  const serverHalves = blocks.map(serverHalfOf).filter((half) => half !== undefined)
  const callers = blocks.map(callerOf).filter((caller) => caller !== undefined)
  return {
    role: 'assistant',
    fromUser: false,
    awaitsServer,
    blocks,
    placeholders,
    serverHalves,
    callers,
    withoutThinking: message.parts.some((part) => part.type === 'provider' && part.kind === thinkingLeftOut),
    container,
  }
}

/** The use of a vendor's tool from within which a block was called, by its id. */
export function callerOf(block: WireBlock): string | undefined {
  return textAt(objectAt(block, 'caller'), 'tool_id')
}

function callPlaceholder(part: ToolCallPart, at: number, own: boolean): Placeholder {
  const { toolCallId, name, providerCallId } = part
  return { at, kind: 'call', toolCallId, name, ...(own && { ownId: providerCallId }) }
}

function partBlocks(part: AssistantPart, takesThinking: boolean): WireBlock[] {
  const providerState = readOpaque(part.opaque)?.block
  switch (part.type) {
    case 'text':
      return textBlock(part.text).map((block) => ({ ...providerState, ...block }))
    case 'reasoning':
      return takesThinking && providerState !== undefined ? thinkingBlock(part.text, providerState) : []
    case 'tool_call':
      return [
        {
          ...providerState,
          type: 'tool_use',
          id: part.toolCallId,
          name: part.name,
          input: wellFormed(part.malformed ? unreadInput(part.malformed.text) : part.input),
        },
      ]
    case 'provider':
      return isBlock(providerState) ? [providerState] : []
  }
}

/** Thinking goes back to the character, or the vendor refuses it. A signature holds for one model only. */
function thinkingBlock(text: string, providerState: object): WireBlock[] {
  if (!isBlock(providerState)) return []
  return [providerState.type === 'thinking' ? { ...providerState, thinking: text } : providerState]
}

function isBlock(providerState: unknown): providerState is WireBlock {
  return isJsonObject(providerState) && textAt(providerState, 'type') !== undefined
}

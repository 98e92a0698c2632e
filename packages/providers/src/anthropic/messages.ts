import type { Message } from '@tallystick/core'
import { isJsonObject } from '@tallystick/core/internal'
import type {
  AssistantMessage,
  AssistantPart,
  FilePart,
  ImagePart,
  JsonObject,
  ResultPart,
  ToolResult,
  UserPart,
} from '@tallystick/core/vocabulary'
import { listAt, objectAt, textAt, wellFormed } from '../shared/json.ts'
import { unreadInput } from '../shared/reply.ts'
import {
  bareType,
  type Binding,
  bindItems,
  decodedText,
  keptFileId,
  leftOutText,
  type Placeholder,
} from '../shared/request.ts'
import { api, provider, readOpaque, type WireBlock, type WireTurn } from './client.ts'
import { offeredTools } from './tool-changes.ts'

const imageTypes = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const textTypes = /^(text\/|application\/(json|xml|yaml|x-yaml|javascript|typescript|toml|x-ndjson|sql)$)/

/** Renders what a user wrote, or a tool returned. Leaves out blank text, which the vendor refuses. */
export function contentBlocks(parts: readonly (UserPart | ResultPart)[], citations: boolean): WireBlock[] {
  return parts.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return textBlock(part.text)
      case 'image':
        return imageBlock(part)
      case 'file':
        return fileBlock(part, citations)
    }
  })
}

/** Renders a text; a blank one gives no block. */
export function textBlock(text: string): WireBlock[] {
  return text.trim() === '' ? [] : [{ type: 'text', text: text.toWellFormed() }]
}

function imageBlock(part: ImagePart): WireBlock[] {
  const fileId = keptFileId(part, provider)
  if (fileId !== undefined) return [{ type: 'image', source: { type: 'file', file_id: fileId } }]
  if (part.url !== undefined) return [{ type: 'image', source: { type: 'url', url: part.url } }]
  const mediaType = bareType(part.mediaType) === 'image/jpg' ? 'image/jpeg' : bareType(part.mediaType)
  if (!part.data || !imageTypes.has(mediaType)) return textBlock(leftOutText(part))
  return [{ type: 'image', source: { type: 'base64', media_type: mediaType, data: part.data } }]
}

function fileBlock(part: FilePart, citations: boolean): WireBlock[] {
  const mediaType = bareType(part.mediaType)
  const more = {
    ...(part.name && { title: part.name.toWellFormed() }),
    ...(citations && { citations: { enabled: true } }),
  }
  const fileId = keptFileId(part, provider)
  if (fileId !== undefined) return [{ type: 'document', source: { type: 'file', file_id: fileId }, ...more }]
  if (mediaType === 'application/pdf' && part.url !== undefined) {
    return [{ type: 'document', source: { type: 'url', url: part.url }, ...more }]
  }
  if (mediaType === 'application/pdf' && part.data) {
    return [{ type: 'document', source: { type: 'base64', media_type: mediaType, data: part.data }, ...more }]
  }
  if (part.data && textTypes.test(mediaType)) {
    const data = decodedText(part.data)
    if (data.trim() !== '') {
      return [{ type: 'document', source: { type: 'text', media_type: 'text/plain', data }, ...more }]
    }
  }
  return textBlock(leftOutText(part))
}

/** Renders a result. The vendor takes nothing but text in an error. */
export function resultBlock(result: ToolResult, citations: boolean): WireBlock {
  const isError = result.outcome !== 'success'
  const texts = (): WireBlock[] =>
    result.content.flatMap((part) => textBlock(part.type === 'text' ? part.text : leftOutText(part)))
  const shown = isError ? texts() : contentBlocks(result.content, citations)
  const content =
    isError && shown.length === 0 ? textBlock(`The call ended as ${result.outcome}, without output.`) : shown
  return {
    type: 'tool_result',
    tool_use_id: result.toolCallId,
    ...(content.length > 0 && { content }),
    ...(isError && { is_error: true }),
  }
}

/** A block whose id or name only the whole request decides. */
export interface PlacedCall extends Placeholder {
  readonly kind: 'call' | 'result'
  /** The id that this vendor gave the call itself. */
  readonly ownId?: string
}

/** A message as it goes over the wire, except for what the whole request decides. Rendered once. */
export interface RenderedMessage {
  readonly role: 'user' | 'assistant'
  /** It holds a person's words, not only tool results. */
  readonly fromUser: boolean
  /** The results of the vendor's own tools may still follow, after what answers the reply. */
  readonly awaitsServer: boolean
  readonly blocks: readonly WireBlock[]
  readonly placeholders: readonly PlacedCall[]
  /** The halves of the vendor's own tool calls, in order. */
  readonly serverHalves: readonly ServerHalf[]
  /** The ids of uses of the vendor's own tools that called blocks of the message. */
  readonly callers: readonly string[]
  /** The reply answers a request that went out without any earlier thinking. */
  readonly withoutThinking: boolean
  /** The sandbox that the vendor ran code in, as the reply named it. */
  readonly container: JsonObject | undefined
  /** The tools that the request of the reply offered, if the reply keeps them. */
  readonly offered: readonly JsonObject[] | undefined
}

/** A use of a tool that runs at the vendor's, or its result, by the id that joins them. */
export interface ServerHalf {
  readonly kind: 'use' | 'result'
  readonly id: string
}

/** Reads the half of a server-side tool that a block is, if it is one. */
export function readServerHalf(block: WireBlock): ServerHalf | undefined {
  const [kind, key] = block.type.endsWith('_tool_use')
    ? (['use', 'id'] as const)
    : block.type.endsWith('_tool_result')
      ? (['result', 'tool_use_id'] as const)
      : []
  const id = key && textAt(block, key)
  return kind && id !== undefined ? { kind, id } : undefined
}

export interface Rendering {
  /** The model that reads them. */
  readonly modelId: string
  /** The model may cite their documents. */
  readonly citations: boolean
  readonly thinking: boolean
}

/** Renders a message. Fields that depend on the whole request are decided later. */
export function renderMessage(message: Message, rendering: Rendering): RenderedMessage {
  const { citations } = rendering
  switch (message.role) {
    case 'user': {
      const blocks = contentBlocks(message.parts, citations)
      // Without it the assistant would have the last word, which is another request.
      return {
        ...plain,
        role: 'user',
        fromUser: true,
        blocks: blocks.length > 0 ? blocks : textBlock(emptyMessage),
      }
    }
    case 'tool': {
      const blocks = message.results.map((result) => resultBlock(result, citations))
      const placeholders = message.results.map((result, at): PlacedCall => ({
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

/** The kind of the part of a reply whose request went out without earlier thinking. */
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
  offered: undefined,
}

function renderReply(message: AssistantMessage, { modelId, thinking }: Rendering): RenderedMessage {
  const { model, stopReason } = message
  const own = model.provider === provider && model.api === api
  const blocks: WireBlock[] = []
  const placeholders: PlacedCall[] = []
  let container: JsonObject | undefined
  let offered: readonly JsonObject[] | undefined
  for (const part of message.parts) {
    const opaque = readOpaque(part.opaque)
    container = opaque?.container ?? container
    if (part.type === 'provider' && part.kind === offeredTools && opaque?.note) {
      offered = listAt(opaque.note, 'tools').filter(isJsonObject)
    }
    if (part.type === 'tool_call') {
      const { toolCallId, name, providerCallId: ownId } = part
      placeholders.push({ at: blocks.length, kind: 'call', toolCallId, name, ...(own && { ownId }) })
    }
    blocks.push(...partBlocks(part, thinking && own && model.modelId === modelId))
  }
  const awaitsServer = stopReason === 'paused' || stopReason === 'tool_use'
  const serverHalves = blocks.map(readServerHalf).filter((half) => half !== undefined)
  const callers = blocks.map(readCaller).filter((caller) => caller !== undefined)
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
    offered,
  }
}

/** Returns the id of the use of a vendor's tool that called a block. */
export function readCaller(block: WireBlock): string | undefined {
  return textAt(objectAt(block, 'caller'), 'tool_id')
}

function partBlocks(part: AssistantPart, takesThinking: boolean): WireBlock[] {
  const providerState = readOpaque(part.opaque)?.block
  switch (part.type) {
    case 'text':
      return textBlock(part.text).map((block) => ({ ...providerState, ...block }))
    case 'reasoning':
      // Thinking goes back to the character, or the vendor refuses it. A signature holds for one model only.
      if (!takesThinking || !isBlock(providerState)) return []
      return [providerState.type === 'thinking' ? { ...providerState, thinking: part.text } : providerState]
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

function isBlock(providerState: unknown): providerState is WireBlock {
  return isJsonObject(providerState) && textAt(providerState, 'type') !== undefined
}

interface TurnBinding extends Binding {
  /** System blocks, by the place of the message that they stand before. */
  readonly changes?: ReadonlyMap<number, readonly WireBlock[]>
}

/** True for a block that answered a request for a summary. It takes the place of all messages before it. */
export function isSummary(block: WireBlock | undefined): boolean {
  return block?.type === 'compaction' && typeof block['signature'] === 'string'
}

/** Stands between a summary and the reply to it. */
const continuing = '(Go on from this summary.)'
/** The first message, if the history does not begin with the user. */
const opening = '(The conversation begins here.)'

/**
 * Renders the history as the vendor accepts it: it begins with the user, roles alternate, each message's results come first
 * in the message after it, no message and no text is empty, and the vendor's own tools come in pairs.
 */
export function toTurns(
  renderedMessages: readonly RenderedMessage[],
  binding: TurnBinding,
): readonly WireTurn[] {
  const unpaired = findUnpaired(renderedMessages)
  const { changes = new Map<number, readonly WireBlock[]>() } = binding
  const turns: { role: WireTurn['role']; content: WireBlock[] }[] = []
  const add = (role: WireTurn['role'], content: readonly WireBlock[]): void => {
    if (content.length === 0) return
    const last = turns.at(-1)
    if (last?.role === role) last.content.push(...content)
    else turns.push({ role, content: [...content] })
  }
  for (let place = 0; place < renderedMessages.length;) {
    const { role } = renderedMessages[place]!
    const run: WireBlock[] = []
    const changed: WireBlock[] = []
    for (; place < renderedMessages.length && renderedMessages[place]!.role === role; place++) {
      run.push(...withoutUnpaired(bindBlocks(renderedMessages[place]!, binding), unpaired))
      changed.push(...(changes.get(place) ?? []))
      if (!isSummary(run.at(-1)) || renderedMessages[place + 1]?.role === 'user') continue
      add(role, run.splice(0))
      add('user', textBlock(continuing))
    }
    // A message may not end in thinking: one that was cut there loses it.
    while (isThinking(run.at(-1))) run.pop()
    // A change follows a message of the user and precedes a reply.
    if (changed.length > 0 && turns.length === 0) add('user', textBlock(opening))
    if (run.length > 0) add('system', changed)
    add(role, run)
  }
  add('system', changes.get(renderedMessages.length) ?? [])
  if (turns[0]?.role !== 'user' && turns[0]?.content[0]?.type !== 'compaction') {
    turns.unshift({ role: 'user', content: textBlock(opening) })
  }
  // If the reply is to continue, its text so far may not end in white space.
  const { role, content } = turns.at(-1)!
  const last = content.at(-1)
  if (role === 'assistant' && last?.type === 'text') {
    content[content.length - 1] = { ...last, text: textAt(last, 'text')?.trimEnd() ?? '' }
  }
  return turns
}

function bindBlocks(
  { blocks: items, placeholders }: RenderedMessage,
  binding: Binding,
): readonly WireBlock[] {
  return bindItems<WireBlock, PlacedCall>({ items, placeholders }, binding, (block, { kind }, id, name) =>
    kind === 'call' ? { ...block, id, name } : { ...block, tool_use_id: id },
  )
}

/** True for thinking, shown or redacted. */
export function isThinking(block: WireBlock | undefined): boolean {
  return block?.type === 'thinking' || block?.type === 'redacted_thinking'
}

/** Ids of the vendor's own tool calls whose other half is missing for good. */
interface Unpaired {
  readonly uses: ReadonlySet<string>
  readonly results: ReadonlySet<string>
  /** Uses that calls name as their callers, and that are gone: a compaction may have removed them. */
  readonly callers: ReadonlySet<string>
}

/**
 * Finds uses without results, and results without uses, which the vendor refuses. A reply that paused, or that called our
 * tools, may get the result later, until the user's next message.
 */
function findUnpaired(renderedMessages: readonly RenderedMessage[]): Unpaired {
  const seen = new Set<string>()
  const open = new Map<string, number>()
  const results = new Set<string>()
  renderedMessages.forEach(({ serverHalves }, place) => {
    for (const { kind, id } of serverHalves) {
      if (kind === 'use') open.set(id, place)
      else open.delete(id)
      if (kind === 'use') seen.add(id)
      else if (!seen.has(id)) results.add(id)
    }
  })
  const lastWord = open.size === 0 ? 0 : renderedMessages.findLastIndex((rendered) => rendered.fromUser)
  const isLost = (place: number): boolean => place < lastWord || !renderedMessages[place]!.awaitsServer
  const lost = new Set([...open].flatMap(([use, place]) => (isLost(place) ? [use] : [])))
  const named = renderedMessages.flatMap(({ callers }) => callers)
  const gone = named.filter((id) => !seen.has(id) || lost.has(id))
  return { uses: lost, results, callers: new Set(gone) }
}

function withoutUnpaired(
  blocks: readonly WireBlock[],
  { uses, results, callers }: Unpaired,
): readonly WireBlock[] {
  if (uses.size === 0 && results.size === 0 && callers.size === 0) return blocks
  return blocks.flatMap((block) => {
    const half = readServerHalf(block)
    if (half !== undefined && (half.kind === 'use' ? uses : results).has(half.id)) return []
    // A call made from within a use that is gone becomes a call like any other.
    if (!callers.has(readCaller(block) ?? '')) return [block]
    const { caller: _, ...direct } = block
    return [direct]
  })
}

import type { Message } from '@tallystick/core'
import { isJsonObject } from '@tallystick/core/internal'
import type {
  AssistantMessage,
  AssistantPart,
  FilePart,
  ImagePart,
  ResultPart,
  ToolResult,
  UserPart,
} from '@tallystick/core/vocabulary'
import { getObject, getText, mendText } from '../shared/json.ts'
import { wrapUnreadInput } from '../shared/reply.ts'
import {
  toBareType,
  type Binding,
  imageTypes,
  findKeptFileId,
  describeLeftOut,
  readTextFile,
} from '../shared/request.ts'
import { api, provider, readOpaque, type WireBlock, type WireTurn } from './client.ts'

/** Renders what a user wrote, or a tool returned. Leaves out blank text, which the vendor refuses. */
function toContentBlocks(parts: readonly (UserPart | ResultPart)[], citations: boolean): WireBlock[] {
  return parts.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return toTextBlock(part.text)
      case 'image':
        return toImageBlock(part)
      case 'file':
        return toFileBlock(part, citations)
    }
  })
}

/** Renders a text; a blank one gives no block. */
export function toTextBlock(text: string): WireBlock[] {
  return text.trim() === '' ? [] : [{ type: 'text', text: text.toWellFormed() }]
}

function toImageBlock(part: ImagePart): WireBlock[] {
  const fileId = findKeptFileId(part, provider)
  if (fileId !== undefined) return [{ type: 'image', source: { type: 'file', file_id: fileId } }]
  if (part.url !== undefined) return [{ type: 'image', source: { type: 'url', url: part.url } }]
  const mediaType = toBareType(part.mediaType)
  if (!part.data || !imageTypes.has(mediaType)) return toTextBlock(describeLeftOut(part))
  return [{ type: 'image', source: { type: 'base64', media_type: mediaType, data: part.data } }]
}

function toFileBlock(part: FilePart, citations: boolean): WireBlock[] {
  const document = (source: WireBlock): WireBlock[] => [
    {
      type: 'document',
      source,
      ...(part.name && { title: part.name.toWellFormed() }),
      ...(citations && { citations: { enabled: true } }),
    },
  ]
  const fileId = findKeptFileId(part, provider)
  if (fileId !== undefined) return document({ type: 'file', file_id: fileId })
  if (toBareType(part.mediaType) === 'application/pdf') {
    if (part.url !== undefined) return document({ type: 'url', url: part.url })
    if (part.data) return document({ type: 'base64', media_type: 'application/pdf', data: part.data })
  }
  const data = readTextFile(part)
  if (data.trim() !== '') return document({ type: 'text', media_type: 'text/plain', data })
  return toTextBlock(describeLeftOut(part))
}

/** Renders a result. The vendor takes nothing but text in an error. */
function toResultBlock(
  { toolCallId, outcome, content: parts }: ToolResult,
  citations: boolean,
  toWireId: Binding['toWireId'],
): WireBlock {
  const isError = outcome !== 'success'
  const shown = isError
    ? parts.flatMap((part) => toTextBlock(part.type === 'text' ? part.text : describeLeftOut(part)))
    : toContentBlocks(parts, citations)
  const content =
    isError && shown.length === 0 ? toTextBlock(`The call ended as ${outcome}, without output.`) : shown
  return {
    type: 'tool_result',
    tool_use_id: toWireId(toolCallId),
    ...(content.length > 0 && { content }),
    ...(isError && { is_error: true }),
  }
}

/** Reads which half of a vendor-run tool call a block is, and the id that joins it to the other. */
export function readServerHalf(
  block: WireBlock,
): { readonly kind: 'use' | 'result'; readonly id: string } | undefined {
  const isUse = block.type.endsWith('_tool_use')
  if (!isUse && !block.type.endsWith('_tool_result')) return undefined
  const id = getText(block, isUse ? 'id' : 'tool_use_id')
  return id === undefined ? undefined : { kind: isUse ? 'use' : 'result', id }
}

export interface Rendering {
  readonly binding: Binding
  /** The model that reads them. */
  readonly modelId: string
  /** The model may cite their documents. */
  readonly citations: boolean
  /** True if a message keeps its thinking, by its place. */
  readonly keepsThinking: (place: number) => boolean
  /** System blocks that change the offered tools, by the place of the message that they stand before. */
  readonly changes?: ReadonlyMap<number, readonly WireBlock[]>
}

/** The kind of the part of a reply whose request went out without earlier thinking. */
export const thinkingLeftOut = 'thinking_left_out'

function renderMessage(message: Message, place: number, rendering: Rendering): readonly WireBlock[] {
  const { citations, binding, modelId, keepsThinking } = rendering
  switch (message.role) {
    case 'user': {
      const blocks = toContentBlocks(message.parts, citations)
      // Without it the assistant would have the last word, which is another request.
      return blocks.length > 0 ? blocks : toTextBlock('(The message is empty.)')
    }
    case 'tool':
      return message.results.map((result) => toResultBlock(result, citations, binding.toWireId))
    case 'assistant': {
      const { model, parts } = message
      const takesThinking =
        model.provider === provider && model.api === api && model.modelId === modelId && keepsThinking(place)
      return parts.flatMap((part) => toPartBlocks(part, takesThinking, binding))
    }
  }
}

/** Returns the id of the use of a vendor's tool that called a block. */
export function readCaller(block: WireBlock): string | undefined {
  return getText(getObject(block, 'caller'), 'tool_id')
}

function toPartBlocks(
  part: AssistantPart,
  takesThinking: boolean,
  { toWireId, names }: Binding,
): readonly WireBlock[] {
  const providerState = readOpaque(part.opaque)?.block
  switch (part.type) {
    case 'text':
      return toTextBlock(part.text).map((block) => ({ ...providerState, ...block }))
    case 'reasoning':
      // Thinking goes back to the character, or the vendor refuses it. A signature holds for one model only.
      if (!takesThinking || !isBlock(providerState)) return []
      return [providerState.type === 'thinking' ? { ...providerState, thinking: part.text } : providerState]
    case 'tool_call':
      return [
        {
          ...providerState,
          type: 'tool_use',
          id: toWireId(part.toolCallId),
          name: names.toWire(part.name),
          input: mendText(part.malformed ? wrapUnreadInput(part.malformed.text) : part.input),
        },
      ]
    case 'provider':
      return isBlock(providerState) ? [providerState] : []
  }
}

function isBlock(providerState: unknown): providerState is WireBlock {
  return isJsonObject(providerState) && getText(providerState, 'type') !== undefined
}

/** True for a block that answered a request for a summary. It takes the place of all messages before it. */
function isSummary(block: WireBlock | undefined): boolean {
  return block?.type === 'compaction' && typeof block['signature'] === 'string'
}

/** True for a reply that begins with a summary. */
export function beginsWithSummary(message: Message): boolean {
  if (message.role !== 'assistant') return false
  const first = message.parts.find((part) => part.type !== 'text' || part.text.trim() !== '')
  const block = first?.type === 'provider' ? readOpaque(first.opaque)?.block : undefined
  return isBlock(block) && isSummary(block)
}

/** Stands between a summary and the reply to it. */
const continuing = '(Go on from this summary.)'
/** The first message, if the history does not begin with the user. */
const opening = '(The conversation begins here.)'

/**
 * Renders the history as the vendor accepts it: it begins with the user, roles alternate, each message's results come first
 * in the message after it, no message and no text is empty, and the vendor's own tools come in pairs.
 */
export function toTurns(messages: readonly Message[], rendering: Rendering): readonly WireTurn[] {
  const rendered = messages.map((message, place) => renderMessage(message, place, rendering))
  const unpaired = findUnpaired(messages, rendered)
  const { changes = new Map<number, readonly WireBlock[]>() } = rendering
  const turns: { role: WireTurn['role']; content: WireBlock[] }[] = []
  const add = (role: WireTurn['role'], content: readonly WireBlock[]): void => {
    if (content.length === 0) return
    const last = turns.at(-1)
    if (last?.role === role) last.content.push(...content)
    else turns.push({ role, content: [...content] })
  }
  const roleAt = (place: number) => (messages[place]?.role === 'assistant' ? 'assistant' : 'user')
  for (let place = 0; place < messages.length;) {
    const role = roleAt(place)
    const run: WireBlock[] = []
    const changed: WireBlock[] = []
    for (; place < messages.length && roleAt(place) === role; place++) {
      run.push(...withoutUnpaired(rendered[place]!, unpaired))
      changed.push(...(changes.get(place) ?? []))
      if (!isSummary(run.at(-1)) || (place + 1 < messages.length && roleAt(place + 1) === 'user')) continue
      add(role, run.splice(0))
      add('user', toTextBlock(continuing))
    }
    // A message may not end in thinking: one that was cut there loses it.
    while (isThinking(run.at(-1))) run.pop()
    // A change follows a message of the user and precedes a reply.
    if (changed.length > 0 && turns.length === 0) add('user', toTextBlock(opening))
    if (run.length > 0) add('system', changed)
    add(role, run)
  }
  add('system', changes.get(messages.length) ?? [])
  if (turns[0]?.role !== 'user' && turns[0]?.content[0]?.type !== 'compaction') {
    turns.unshift({ role: 'user', content: toTextBlock(opening) })
  }
  // If the reply is to continue, its text so far may not end in white space.
  const { role, content } = turns.at(-1)!
  const last = content.at(-1)
  if (role === 'assistant' && last?.type === 'text') {
    content[content.length - 1] = { ...last, text: getText(last, 'text')?.trimEnd() ?? '' }
  }
  return turns
}

/** True for thinking, shown or redacted. */
export function isThinking(block: WireBlock | undefined): boolean {
  return block?.type === 'thinking' || block?.type === 'redacted_thinking'
}

/**
 * Ids of the vendor's own tool calls whose other half is missing for good. `callers` are uses that calls name, and that are gone:
 * a compaction may have removed them.
 */
type Unpaired = Readonly<Record<'uses' | 'results' | 'callers', ReadonlySet<string>>>

/**
 * Finds uses without results, and results without uses, which the vendor refuses. A reply that paused, or that called our
 * tools, may get the result later, until the user's next message.
 */
function findUnpaired(messages: readonly Message[], rendered: readonly (readonly WireBlock[])[]): Unpaired {
  const seen = new Set<string>()
  const open = new Map<string, number>()
  const results = new Set<string>()
  const named: string[] = []
  messages.forEach(({ role }, place) => {
    if (role !== 'assistant') return
    for (const block of rendered[place]!) {
      named.push(readCaller(block) ?? '')
      const { kind, id = '' } = readServerHalf(block) ?? {}
      if (kind === 'use') {
        open.set(id, place)
        seen.add(id)
      } else if (kind === 'result') {
        open.delete(id)
        if (!seen.has(id)) results.add(id)
      }
    }
  })
  const lastWord = messages.findLastIndex(({ role }) => role === 'user')
  const lost = [...open].filter(([, place]) => {
    const { stopReason } = messages[place] as AssistantMessage
    return place < lastWord || (stopReason !== 'paused' && stopReason !== 'tool_use')
  })
  const uses = new Set(lost.map(([use]) => use))
  const callers = named.filter((id) => id !== '' && (!seen.has(id) || uses.has(id)))
  return { uses, results, callers: new Set(callers) }
}

function withoutUnpaired(
  blocks: readonly WireBlock[],
  { uses, results, callers }: Unpaired,
): readonly WireBlock[] {
  return blocks.flatMap((block) => {
    const half = readServerHalf(block)
    if (half !== undefined && (half.kind === 'use' ? uses : results).has(half.id)) return []
    // A call made from within a use that is gone becomes a call like any other.
    if (!callers.has(readCaller(block) ?? '')) return [block]
    const { caller: _, ...direct } = block
    return [direct]
  })
}

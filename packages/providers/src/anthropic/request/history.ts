import type { ToolCallId } from '@tallystick/core/vocabulary'
import { textAt } from '../../shared/json/json-reading.ts'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import type { WireBlock, WireTurn } from '../client/wire.ts'
import { textBlock } from './content-blocks.ts'
import { callerOf, type RenderedMessage, serverHalfOf } from './rendered-message.ts'

/** What the whole request decides about its calls. */
export interface Binding {
  readonly ids: ReadonlyMap<ToolCallId, string>
  readonly names: ToolNames
}

/** Sent where the vendor demands a message of the user and the history has none. */
const opening = '(The conversation begins here.)'

/**
 * The history as the vendor accepts it: it begins with the user, roles alternate, each message's results come first in
 * the message after it, no message and no text is empty, and the vendor's own tools are left in pairs.
 */
export function turnsOf(renderedMessages: readonly RenderedMessage[], binding: Binding): readonly WireTurn[] {
  const unpaired = unpairedServerTools(renderedMessages)
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
    for (; place < renderedMessages.length && renderedMessages[place]!.role === role; place++) {
      run.push(...withoutUnpaired(bound(renderedMessages[place]!, binding), unpaired))
    }
    dropTrailingThinking(run)
    add(role, run)
  }
  if (turns[0]?.role !== 'user' && turns[0]?.content[0]?.type !== 'compaction') {
    turns.unshift({ role: 'user', content: textBlock(opening) })
  }
  trimEnd(turns.at(-1))
  return turns
}

const bounds = new WeakMap<RenderedMessage, { readonly key: string; readonly blocks: readonly WireBlock[] }>()

/** The rendered message's blocks with the ids and names of this request: the same blocks as last time, where these are the same. */
function bound(rendered: RenderedMessage, { ids, names }: Binding): readonly WireBlock[] {
  if (rendered.placeholders.length === 0) return rendered.blocks
  const decided = rendered.placeholders.map((placeholder) => ({
    id: ids.get(placeholder.toolCallId) ?? placeholder.toolCallId,
    name: names.toWire(placeholder.name),
  }))
  const key = decided.map(({ id, name }) => `${id} ${name}`).join('\n')
  const before = bounds.get(rendered)
  if (before?.key === key) return before.blocks
  const blocks = [...rendered.blocks]
  rendered.placeholders.forEach(({ at, kind }, place) => {
    const { id, name } = decided[place]!
    blocks[at] = kind === 'call' ? { ...blocks[at]!, id, name } : { ...blocks[at]!, tool_use_id: id }
  })
  bounds.set(rendered, { key, blocks })
  return blocks
}

/** A message may not end in thinking: one that was cut there loses it. */
function dropTrailingThinking(run: WireBlock[]): void {
  while (isThinking(run.at(-1))) run.pop()
}

/** Whether a block is thinking, shown or redacted. */
export function isThinking(block: WireBlock | undefined): boolean {
  return block?.type === 'thinking' || block?.type === 'redacted_thinking'
}

/** Where the reply is to continue after an assistant's words, these may not end in white space. */
function trimEnd(turn: WireTurn | undefined): void {
  if (turn?.role !== 'assistant') return
  const content = turn.content as WireBlock[]
  const last = content.at(-1)
  if (last?.type === 'text')
    content[content.length - 1] = { ...last, text: textAt(last, 'text')?.trimEnd() ?? '' }
}

/** Ids of the vendor's own tool calls that lack their other half, and will not get it any more. */
interface Unpaired {
  readonly uses: ReadonlySet<string>
  readonly results: ReadonlySet<string>
  /** Uses that calls name as their callers, and that are no longer there: a compaction may have cut them off. */
  readonly callers: ReadonlySet<string>
}

/**
 * A use whose result never came is refused, and so is a result without its use; except that a reply which paused, or
 * asked for our tools meanwhile, gets the result later. That ends with the next word of the user.
 */
function unpairedServerTools(renderedMessages: readonly RenderedMessage[]): Unpaired {
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
  const lost = lostUses(renderedMessages, open)
  const named = renderedMessages.flatMap(({ callers }) => callers)
  const gone = named.filter((id) => !seen.has(id) || lost.has(id))
  return { uses: lost, results, callers: new Set(gone) }
}

/** Uses without a result that will not get it any more. */
function lostUses(
  renderedMessages: readonly RenderedMessage[],
  open: ReadonlyMap<string, number>,
): ReadonlySet<string> {
  if (open.size === 0) return new Set()
  const lastWord = renderedMessages.findLastIndex((rendered) => rendered.fromUser)
  const lost = [...open].filter(([, place]) => place < lastWord || !renderedMessages[place]!.awaitsServer)
  return new Set(lost.map(([use]) => use))
}

function withoutUnpaired(
  blocks: readonly WireBlock[],
  { uses, results, callers }: Unpaired,
): readonly WireBlock[] {
  if (uses.size === 0 && results.size === 0 && callers.size === 0) return blocks
  return blocks.flatMap((block) => {
    const half = serverHalfOf(block)
    if (half !== undefined && (half.kind === 'use' ? uses : results).has(half.id)) return []
    // A call made from within a use that is gone becomes a call like any other.
    if (!callers.has(callerOf(block) ?? '')) return [block]
    const { caller: _, ...direct } = block
    return [direct]
  })
}

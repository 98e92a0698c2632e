import type { JsonObject } from '@tallystick/core/vocabulary'
import type { WireBlock, WireTurn } from '../client/wire.ts'

/** How long the vendor keeps the beginning of a prompt. */
export type CachePolicy = '5m' | '1h' | 'off'

/** The vendor takes so many marks in one request. */
const maxMarks = 4

/** What the marks are set in. */
export interface Markable {
  readonly system?: readonly WireBlock[]
  readonly tools?: readonly JsonObject[]
  readonly messages: readonly WireTurn[]
}

/**
 * Marks where the unchanging beginning ends, after the instructions or else after the tools, and the end of the last
 * two user messages: up to the first one the last request is in the cache, up to the second one the next request will
 * find this one. Marks that the caller has set on tools stay, and count.
 */
export function cached<T extends Markable>(request: T, policy: CachePolicy): T {
  if (policy === 'off') return request
  const { system = [], tools = [], messages } = request
  let left = maxMarks - tools.filter((tool) => 'cache_control' in tool).length
  // A tool that is loaded later is not in the beginning, and takes no mark.
  const lastTool = tools.findLastIndex((tool) => tool['defer_loading'] !== true)
  const onTools = system.length === 0 && lastTool >= 0 && !('cache_control' in tools[lastTool]!)
  if (left <= 0) return request
  if (system.length > 0 || onTools) left -= 1
  return {
    ...request,
    ...(system.length > 0 && { system: marked(system, system.length - 1, policy) }),
    ...(onTools && { tools: marked(tools, lastTool, policy) }),
    messages: markedTurns(messages, Math.min(left, 2), policy),
  }
}

function markedTurns(turns: readonly WireTurn[], marks: number, policy: CachePolicy): readonly WireTurn[] {
  const result = [...turns]
  let left = marks
  for (let place = turns.length - 1; place >= 0 && left > 0; place--) {
    const { role, content } = turns[place]!
    if (role !== 'user') continue
    result[place] = { role, content: marked(content, content.length - 1, policy) }
    left -= 1
  }
  return result
}

function marked<T extends JsonObject>(items: readonly T[], place: number, policy: CachePolicy): readonly T[] {
  const mark = { type: 'ephemeral', ...(policy === '1h' && { ttl: policy }) }
  return items.with(place, { ...items[place]!, cache_control: mark })
}

import type { Message } from '@tallystick/core'
import { isJsonObject } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { listAt, textAt } from '../shared/json.ts'
import { readOpaque, type WireBlock } from './client.ts'

/** The kind of the part of a reply that keeps which tools its request offered, if they had changed. */
export const offeredTools = 'offered_tools'

/** The tools of one request, as an unchanging list and the changes to it. */
export interface PlacedTools {
  /** Those that the first request of the history offered. */
  readonly tools: readonly JsonObject[]
  /** System blocks that change what is offered, by the place of the message that they stand before. */
  readonly changes: ReadonlyMap<number, readonly WireBlock[]>
  /** The tools that the reply has to keep for later requests; `undefined` if they have not changed. */
  readonly toKeep: readonly JsonObject[] | undefined
}

/**
 * Places each change of the offered tools where it happened, so that no earlier byte of the request changes: the
 * vendor's cache and the thinking of bound models depend on that. Earlier offers come from the replies of the history.
 */
export function placeToolChanges(messages: readonly Message[], offered: readonly JsonObject[]): PlacedTools {
  const unchanged = { tools: offered, changes: new Map<number, readonly WireBlock[]>() }
  let first: readonly JsonObject[] | undefined
  let last: readonly JsonObject[] = []
  const changes = new Map<number, readonly WireBlock[]>()
  messages.forEach((message, place) => {
    const parts = message.role === 'assistant' ? message.parts : []
    const kept = parts.findLast((part) => part.type === 'provider' && part.kind === offeredTools)
    const note = readOpaque(kept?.opaque)?.note
    if (note === undefined) return
    const then = listAt(note, 'tools').filter(isJsonObject)
    if (first !== undefined) changes.set(place, changesBetween(last, then))
    first ??= then
    last = then
  })
  if (first === undefined) return { ...unchanged, toKeep: offered }
  const now = changesBetween(last, offered)
  if (now.length === 0) return { tools: first, changes, toKeep: undefined }
  // The vendor takes no change between a reply that paused and its continuation.
  if ((messages.at(-1)?.role ?? 'assistant') === 'assistant') return { ...unchanged, toKeep: undefined }
  return { tools: first, changes: changes.set(messages.length, now), toKeep: offered }
}

/** By value, since the vendor takes a definition again without harm, and a reference only to one that it has. */
function changesBetween(before: readonly JsonObject[], after: readonly JsonObject[]): readonly WireBlock[] {
  const byName = (tools: readonly JsonObject[]): Map<string | undefined, string> =>
    new Map(tools.map((tool) => [textAt(tool, 'name'), JSON.stringify(tool)]))
  const [had, has] = [byName(before), byName(after)]
  const removed = before.filter((tool) => !has.has(textAt(tool, 'name')))
  const added = after.filter((tool) => had.get(textAt(tool, 'name')) !== JSON.stringify(tool))
  return [
    ...removed.map(({ name = '' }) => ({ type: 'tool_removal', tool: { type: 'tool_reference', name } })),
    ...added.map((definition) => ({ type: 'tool_addition', tool: { type: 'tool_definition', definition } })),
  ]
}

import type { ToolCallId } from '@tallystick/core/vocabulary'
import { freeIdentifier, isIdentifier } from './identifier.ts'

/** A call in the history. `ownId` is there when the vendor that will read the request gave the id itself. */
export interface IdentifiedCall {
  readonly toolCallId: ToolCallId
  readonly ownId?: string
}

/**
 * The id that each call has in one request: the vendor's own where it fits and is not taken, else one made from
 * `toolCallId`. Unique in the request. Decided from the front, so a longer history changes no earlier id.
 */
export function callIds(calls: Iterable<IdentifiedCall>, maxLength: number): ReadonlyMap<ToolCallId, string> {
  const ids = new Map<ToolCallId, string>()
  const taken = new Set<string>()
  for (const { toolCallId, ownId } of calls) {
    if (ids.has(toolCallId)) continue
    const wanted = [ownId, toolCallId].find(
      (id) => id !== undefined && isIdentifier(id, maxLength) && !taken.has(id),
    )
    const id = wanted ?? freeIdentifier(toolCallId, maxLength, taken)
    ids.set(toolCallId, id)
    taken.add(id)
  }
  return ids
}

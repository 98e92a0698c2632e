import type { ToolCallId } from '@tallystick/core/vocabulary'
import { callIds, type IdentifiedCall } from '../../shared/request/call-ids.ts'

const maxIdentifierLength = 64
const nine = /^[a-zA-Z0-9]{9}$/

/** The id that each call has in one request, as the server takes ids. Unique in the request. */
export function chatCallIds(
  calls: readonly IdentifiedCall[],
  rule: 'any' | 'nine_alphanumeric',
): ReadonlyMap<ToolCallId, string> {
  if (rule === 'any') return callIds(calls, maxIdentifierLength)
  const ids = new Map<ToolCallId, string>()
  const taken = new Set<string>()
  for (const { toolCallId, ownId } of calls) {
    if (ids.has(toolCallId)) continue
    const own = ownId !== undefined && nine.test(ownId) && !taken.has(ownId) ? ownId : undefined
    const id = own ?? freeNine(toolCallId, taken)
    ids.set(toolCallId, id)
    taken.add(id)
  }
  return ids
}

/** Returns nine letters and digits in place of an id: always the same ones, unless another id has taken them. */
function freeNine(text: string, taken: ReadonlySet<string>): string {
  for (let salt = 0; ; salt++) {
    const candidate = `${hashOf(`${salt} a ${text}`)}${hashOf(`${salt} b ${text}`)}`.slice(0, 9)
    if (!taken.has(candidate)) return candidate
  }
}

/** FNV-1a, 32 bits, as seven digits of base 36. Not for security: a collision only costs another salt. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5
  for (let place = 0; place < text.length; place++) {
    hash = Math.imul(hash ^ text.charCodeAt(place), 0x01000193)
  }
  return (hash >>> 0).toString(36).padStart(7, '0')
}

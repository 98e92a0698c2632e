import { isJsonObject } from '@tallystick/core/kit'
import type { ModelSignal, ProviderState, ReplyPart, StopReason } from '@tallystick/core/vocabulary'
import { failureInStream } from '../../openai/client/failure.ts'
import { usageSignal } from '../../openai/reply/usage.ts'
import { listAt, numberAt, objectAt, textAt } from '../../shared/json/json-reading.ts'
import { isCallKind, type WireResponse } from '../client/wire.ts'
import { kindOf, partsOf } from './item.ts'
import { closeItem, readCall, releaseUnread, type Reply } from './reply.ts'
import { incompleteReason } from './stop-reason.ts'

/** Items that the terminal event states and nothing before it did, or whose end was never told. */
function statedItems(reply: Reply, response: WireResponse): ModelSignal[] {
  return listAt(response, 'output').flatMap((item, index) => {
    const known = reply.byIndex.get(index)
    if (known?.closed === true || !isJsonObject(item)) return []
    // A server that leaves indices out has told of its items all the same.
    if (known === undefined && reply.items.length > 0 && !reply.byIndex.has(0)) return []
    return closeItem(reply, index, item)
  })
}

/** Closes the calls whose input is whole, for a server that never ends its items. */
function unendedCalls(reply: Reply): ModelSignal[] {
  return reply.items.flatMap((item) => {
    if (item.closed || kindOf(item) !== 'call' || !item.inputWhole) return []
    item.closed = true
    return readCall(reply, item)
  })
}

/** The reply is whole, or was cut: what is left to say, and the reply itself. */
export function finish(reply: Reply, response: WireResponse, completed: boolean): readonly ModelSignal[] {
  const late = completed ? openEnds(reply, response) : cutItems(reply, response)
  const { responseId, context, kept, items } = reply
  const parts: readonly ReplyPart[] = items
    .flatMap((item) => partsOf(item, context, kept))
    .sort((a, b) => a.part - b.part)
  const raw = textAt(response.incomplete_details, 'reason')
  const stopReason = completed ? completedReason(reply, parts) : incompleteReason(raw ?? '')
  reply.finished = true
  return [
    ...late,
    ...usageOf(reply, response),
    {
      type: 'model_finished',
      stopReason,
      rawStopReason: completed ? 'completed' : (raw ?? 'incomplete'),
      parts,
      ...(responseId !== undefined && { providerMessageId: responseId, ...stateAfter(reply, responseId) }),
    },
  ]
}

function stateAfter({ context }: Reply, responseId: string): { readonly providerState?: ProviderState } {
  const providerState = context.providerState(responseId)
  return providerState ? { providerState } : {}
}

/** What a reply that ended of itself still has to say. */
function openEnds(reply: Reply, response: WireResponse): ModelSignal[] {
  return [
    ...releaseUnread(reply),
    ...statedItems(reply, response),
    ...unendedCalls(reply),
    ...releaseUnread(reply),
  ]
}

/** A reply that was cut keeps its text. Its last call is dropped, since it may be incomplete. */
function cutItems(reply: Reply, response: WireResponse): ModelSignal[] {
  if (reply.unread) delete reply.unread.call
  reply.unread = undefined
  return listAt(response, 'output').flatMap((item, index) => {
    const known = reply.byIndex.get(index)
    const type = textAt(item, 'type')
    if (known?.closed !== false || !isJsonObject(item)) return []
    if (isCallKind(type) || type !== known.fields['type']) return []
    return closeItem(reply, index, item)
  })
}

function completedReason(reply: Reply, parts: readonly ReplyPart[]): StopReason {
  if (parts.some((part) => part.type === 'tool_call')) return 'tool_use'
  const refused = reply.items.some((item) =>
    [...item.pieces.values()].some((piece) => piece.type === 'refusal'),
  )
  return refused ? 'refused' : 'end'
}

/** Marks the response as failed. Returns its usage, if the server states it. */
export function fail(reply: Reply, response: WireResponse): ModelSignal[] {
  reply.failure = failureInStream(response.error ?? {})
  return usageOf(reply, response)
}

function usageOf(reply: Reply, { usage, tool_usage: tools }: WireResponse): ModelSignal[] {
  if (!isJsonObject(usage)) return []
  const reported = numberAt(objectAt(tools, 'web_search'), 'num_requests')
  return [usageSignal(usage, 'responses', reported ?? searchesSeen(reply))]
}

/** Returns the number of web searches, for servers that do not count them; opening a page does not count. */
function searchesSeen({ items }: Reply): number | undefined {
  const searches = items.filter(({ fields }) => {
    const action = textAt(objectAt(fields, 'action'), 'type') ?? 'search'
    return fields['type'] === 'web_search_call' && action === 'search'
  })
  return searches.length > 0 ? searches.length : undefined
}

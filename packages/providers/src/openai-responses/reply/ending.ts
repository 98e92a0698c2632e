import { isJsonObject } from '@tallystick/core/kit'
import type {
  JsonObject,
  ModelSignal,
  ProviderState,
  ReplyPart,
  StopReason,
} from '@tallystick/core/vocabulary'
import { failureInStream, unrunCall } from '../../openai/client/failure.ts'
import { usageSignal } from '../../openai/reply/usage.ts'
import { listAt, numberAt, objectAt, textAt } from '../../shared/json/json-reading.ts'
import { awaitsCaller } from '../request/rendered-message.ts'
import { isCallKind, type WireResponse } from '../client/wire.ts'
import { contentOf, type Item, kindOf, partsOf } from './item.ts'
import { closeItem, readCall, releaseUnread, type Reply } from './reply.ts'
import { incompleteReason } from './stop-reason.ts'

/** An item of the terminal event, and the one that streamed, if any did. */
interface StatedItem {
  readonly fields: JsonObject
  known: Item | undefined
}

/**
 * Finds the streamed item of each item that the terminal event states. Places say nothing: gateways leave items out of
 * either. Ids decide, then what the items hold, since some gateways make up new ids; what is left is taken in order, but
 * for calls, which are two where ids and contents are.
 */
function statedItems(reply: Reply, response: WireResponse): readonly StatedItem[] {
  const stated = listAt(response, 'output')
    .filter(isJsonObject)
    .map((fields): StatedItem => ({ fields, known: undefined }))
  const left = new Set(reply.items)
  for (const keysOf of [idsOf, contentsOf, typeOf]) {
    const byKey = new Map<string, Item[]>()
    for (const item of left) {
      for (const key of keysOf(item.fields, item)) pushTo(byKey, key, item)
    }
    for (const item of stated) {
      const found = item.known ? undefined : firstLeft(keysOf(item.fields), byKey, left)
      if (found === undefined) continue
      item.known = found
      left.delete(found)
    }
  }
  return stated
}

function pushTo(byKey: Map<string, Item[]>, key: string, item: Item): void {
  const items = byKey.get(key)
  if (items) items.push(item)
  else byKey.set(key, [item])
}

function firstLeft(
  keys: readonly string[],
  byKey: ReadonlyMap<string, readonly Item[]>,
  left: ReadonlySet<Item>,
): Item | undefined {
  for (const key of keys) {
    const item = byKey.get(key)?.find((one) => left.has(one))
    if (item) return item
  }
  return undefined
}

function idsOf(fields: JsonObject): readonly string[] {
  return ['call_id', 'id'].flatMap((name) => {
    const id = textAt(fields, name)
    return id ? [`${textAt(fields, 'type')} ${name} ${id}`] : []
  })
}

function contentsOf(fields: JsonObject): readonly string[] {
  return [contentOf(fields)]
}

/** A call that ended under another id is another one. */
function typeOf(fields: JsonObject, item?: Item): readonly string[] {
  const type = textAt(fields, 'type') ?? ''
  return item?.closed && isCallKind(type) ? [] : [type]
}

/** What the terminal event states and nothing before it did, or whose end was never told. */
function lateItems(reply: Reply, response: WireResponse): ModelSignal[] {
  let next = Math.max(-1, ...reply.byIndex.keys()) + 1
  return statedItems(reply, response).flatMap(({ fields, known }) => {
    if (known?.closed) return []
    return closeItem(reply, known?.at ?? next++, fields, known)
  })
}

/** Closes the calls whose input is whole, for a server that never ends its items. */
function unendedCalls(reply: Reply): ModelSignal[] {
  return reply.items.flatMap((item) => {
    if (item.closed || kindOf(item, reply.context) !== 'call' || !item.inputWhole) return []
    item.closed = true
    return readCall(reply, item)
  })
}

/** The reply is whole, or was cut: what is left to say, and the reply itself. */
export function finish(reply: Reply, response: WireResponse, completed: boolean): readonly ModelSignal[] {
  const late = completed ? openEnds(reply, response) : cutItems(reply, response)
  const { responseId, context, kept, items } = reply
  const waiting = completed ? items.find(waitsForCaller(reply)) : undefined
  if (waiting !== undefined) {
    reply.failure = unrunCall(textAt(waiting.fields, 'type') ?? '')
    return [...late, ...usageOf(reply, response)]
  }
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

/** Finds an item that somebody has to act on, where nobody does. */
function waitsForCaller({ items, context }: Reply): (item: Item) => boolean {
  const answered = new Set(
    items
      .filter(({ fields }) => fields['type'] === 'shell_call_output')
      .map(({ fields }) => fields['call_id']),
  )
  return (item) =>
    kindOf(item, context) === 'provider' && awaitsCaller(item.fields) && !answered.has(item.fields['call_id'])
}

function stateAfter({ context }: Reply, responseId: string): { readonly providerState?: ProviderState } {
  const providerState = context.providerState(responseId)
  return providerState ? { providerState } : {}
}

/** What a reply that ended of itself still has to say. */
function openEnds(reply: Reply, response: WireResponse): ModelSignal[] {
  return [
    ...releaseUnread(reply),
    ...lateItems(reply, response),
    ...unendedCalls(reply),
    ...releaseUnread(reply),
  ]
}

/** A reply that was cut keeps its text. Its last call is dropped, since it may be incomplete. */
function cutItems(reply: Reply, response: WireResponse): ModelSignal[] {
  if (reply.unread) delete reply.unread.call
  reply.unread = undefined
  return statedItems(reply, response).flatMap(({ fields, known }) =>
    known === undefined || known.closed || isCallKind(textAt(fields, 'type'))
      ? []
      : closeItem(reply, known.at, fields, known),
  )
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

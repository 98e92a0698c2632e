import { getOwn, isJsonObject, omitUndefined } from '@tallystick/core/internal'
import type { JsonObject, ModelSignal, ReplyPart, StopReason } from '@tallystick/core/vocabulary'
import { listAt, numberAt, objectAt, textAt } from '../shared/json.ts'
import { StatefulReader, type ReplyReader } from '../shared/reply.ts'
import { contradiction, failureInStream, unrunCall } from './failure.ts'
import { usageSignal } from './request.ts'
import { awaitsCaller } from './responses-messages.ts'
import {
  addPiece,
  closeItem,
  describeContent,
  inputSignal,
  type Item,
  classifyItem,
  openItem,
  readCall,
  releaseUnread,
  type Reply,
  showText,
  startReply,
  readToolName,
  toParts,
} from './responses-reply.ts'
import type { ReplyContext } from './responses-request.ts'
import { isCallKind, type WireEvent, type WireResponse } from './responses-wire.ts'

const incomplete: { readonly [reason: string]: StopReason } = {
  max_output_tokens: 'max_tokens',
  content_filter: 'content_filtered',
}

/**
 * Finds the streamed item of each item that the terminal event states. Places say nothing, since gateways leave items out
 * of either. Ids decide, then contents, since some gateways make up new ids. The rest is taken in order, except calls,
 * which are two if their ids and contents differ.
 */
function matchItems(
  reply: Reply,
  response: WireResponse,
): readonly { readonly fields: JsonObject; readonly known: Item | undefined }[] {
  const stated = listAt(response, 'output')
    .filter(isJsonObject)
    .map((fields): { readonly fields: JsonObject; known: Item | undefined } => ({ fields, known: undefined }))
  const left = new Set(reply.items)
  const contents = (fields: JsonObject): readonly string[] => [describeContent(fields)]
  for (const keysOf of [idKeys, contents, typeKeys]) {
    const byKey = new Map<string, Item[]>()
    for (const item of left) {
      for (const key of keysOf(item.fields, item)) byKey.set(key, [...(byKey.get(key) ?? []), item])
    }
    for (const item of stated) {
      if (item.known) continue
      const candidates = keysOf(item.fields).flatMap((key) => byKey.get(key) ?? [])
      const found = candidates.find((one) => left.has(one))
      if (found === undefined) continue
      item.known = found
      left.delete(found)
    }
  }
  return stated
}

function idKeys(fields: JsonObject): readonly string[] {
  return ['call_id', 'id'].flatMap((name) => {
    const id = textAt(fields, name)
    return id ? [`${textAt(fields, 'type')} ${name} ${id}`] : []
  })
}

/** A call that ended under another id is another one. */
function typeKeys(fields: JsonObject, item?: Item): readonly string[] {
  const type = textAt(fields, 'type') ?? ''
  return item?.closed && isCallKind(type) ? [] : [type]
}

/** Closes items that only the terminal event states, or ends. */
function closeLateItems(reply: Reply, response: WireResponse): ModelSignal[] {
  let next = Math.max(-1, ...reply.byIndex.keys()) + 1
  return matchItems(reply, response).flatMap(({ fields, known }) => {
    if (known?.closed) return []
    return closeItem(reply, known?.at ?? next++, fields, known)
  })
}

/** Closes calls with complete input, for a server that never ends its items. */
function closeUnendedCalls(reply: Reply): ModelSignal[] {
  return reply.items.flatMap((item) => {
    if (item.closed || classifyItem(item, reply.context) !== 'call' || !item.inputWhole) return []
    item.closed = true
    return readCall(reply, item)
  })
}

function finish(reply: Reply, response: WireResponse, completed: boolean): readonly ModelSignal[] {
  const late = completed
    ? [
        ...releaseUnread(reply),
        ...closeLateItems(reply, response),
        ...closeUnendedCalls(reply),
        ...releaseUnread(reply),
      ]
    : cutItems(reply, response)
  const { responseId, context, kept, items } = reply
  const waiting = completed ? items.find(waitsForCaller(reply)) : undefined
  if (waiting !== undefined) {
    reply.failure = unrunCall(textAt(waiting.fields, 'type') ?? '')
    return [...late, ...readUsage(reply, response)]
  }
  const parts: readonly ReplyPart[] = items
    .flatMap((item) => toParts(item, context, kept))
    .sort((a, b) => a.part - b.part)
  const raw = textAt(response.incomplete_details, 'reason')
  const stopReason = completed ? completedReason(reply, parts) : (getOwn(incomplete, raw ?? '') ?? 'other')
  reply.finished = true
  return [
    ...late,
    ...readUsage(reply, response),
    {
      type: 'model_finished',
      stopReason,
      rawStopReason: completed ? 'completed' : (raw ?? 'incomplete'),
      parts,
      ...(responseId !== undefined && {
        providerMessageId: responseId,
        ...omitUndefined({ providerState: context.providerState(responseId) }),
      }),
    },
  ]
}

/** Finds items that the application has to act on, and that nobody answers. */
function waitsForCaller({ items, context }: Reply): (item: Item) => boolean {
  const answered = new Set(
    items
      .filter(({ fields }) => fields['type'] === 'shell_call_output')
      .map(({ fields }) => fields['call_id']),
  )
  return (item) =>
    classifyItem(item, context) === 'provider' &&
    awaitsCaller(item.fields) &&
    !answered.has(item.fields['call_id'])
}

/** A reply that was cut keeps its text. Its last call is dropped, since it may be incomplete. */
function cutItems(reply: Reply, response: WireResponse): ModelSignal[] {
  if (reply.unread) delete reply.unread.call
  reply.unread = undefined
  return matchItems(reply, response).flatMap(({ fields, known }) =>
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

function readUsage(reply: Reply, { usage, tool_usage: tools }: WireResponse): ModelSignal[] {
  if (!isJsonObject(usage)) return []
  const reported = numberAt(objectAt(tools, 'web_search'), 'num_requests')
  // Some servers do not count searches. To open a page is not one.
  const seen = reply.items.filter(({ fields }) => {
    const action = textAt(objectAt(fields, 'action'), 'type') ?? 'search'
    return fields['type'] === 'web_search_call' && action === 'search'
  })
  return [usageSignal(usage, 'responses', reported ?? (seen.length || undefined))]
}

/** Returns a reader of one reply, which only a terminal event ends. */
export function replyReader(context: ReplyContext): ReplyReader {
  return new StatefulReader(startReply(context), (reply, event) => readEvent(reply, event as WireEvent))
}

/**
 * PROVIDER MAPPING: turns one event into signals, and keeps state in `reply`. Ignores unknown kinds of events. Throws a
 * `ProviderError` if two streams are spliced together or the stream contradicts itself; puts the failure of a response
 * into `reply.failure`.
 */
function readEvent(reply: Reply, event: WireEvent): readonly ModelSignal[] {
  if (reply.finished || reply.failure || !isJsonObject(event) || isRepeated(reply, event)) return []
  const { type, response = {}, output_index: index = -1 } = event
  switch (type) {
    case 'response.created':
    case 'response.queued':
    case 'response.in_progress':
      return start(reply, response, type === 'response.created')
    case 'response.output_item.added':
      return [...start(reply), ...addItem(reply, index, event.item)]
    case 'response.output_item.done':
      return [...start(reply), ...closeItem(reply, index, event.item)]
    case 'response.content_part.added':
      return openPiece(reply, index, event)
    case 'response.output_text.delta':
      return moreText(reply, index, event, 'output_text')
    case 'response.refusal.delta':
      return moreText(reply, index, event, 'refusal')
    case 'response.reasoning_summary_text.delta':
    case 'response.reasoning_text.delta':
      return moreReasoning(reply, index, event)
    case 'response.function_call_arguments.delta':
      return moreInput(reply, index, event, 'function_call')
    case 'response.custom_tool_call_input.delta':
      return moreInput(reply, index, event, 'custom_tool_call')
    case 'response.function_call_arguments.done':
    case 'response.custom_tool_call_input.done':
      return wholeInput(reply, index, event.arguments ?? event.input)
    case 'response.completed':
    case 'response.incomplete':
      return [...start(reply, response), ...finish(reply, response, type === 'response.completed')]
    case 'response.failed':
      reply.failure = failureInStream(response.error ?? {})
      return readUsage(reply, response)
    case 'error':
      throw failureInStream(event.error ?? event)
    default:
      // The client looks for it in each record; in a list, which some servers send, it finds nothing.
      if (event.error) throw failureInStream(event.error)
      return []
  }
}

/** True for an event that came before: servers that count their events never give two of them one number. */
function isRepeated(reply: Reply, { sequence_number: number }: WireEvent): boolean {
  if (typeof number !== 'number') return false
  const { sequence } = reply
  if (sequence === undefined) {
    reply.sequence = { last: number, counts: false }
    return false
  }
  if (number <= sequence.last) {
    if (number < sequence.last && !sequence.counts) reply.sequence = undefined
    return sequence.counts
  }
  sequence.last = number
  sequence.counts = true
  return false
}

function start(reply: Reply, response: WireResponse = {}, created = false): ModelSignal[] {
  const id = textAt(response, 'id')
  if (reply.started) {
    if (!created || id === reply.responseId || reply.responseId === undefined) return []
    throw contradiction('a second response began before the first had ended, as when a gateway tries again')
  }
  reply.started = true
  reply.responseId = id
  reply.kept = id === undefined ? undefined : reply.context.kept(id)
  const servedModel = textAt(response, 'model')
  return [
    {
      type: 'model_started',
      ...(id !== undefined && { providerMessageId: id }),
      ...(servedModel !== undefined && { servedModel }),
    },
  ]
}

function addItem(reply: Reply, index: number, given: JsonObject | undefined): ModelSignal[] {
  if (!isJsonObject(given) || typeof given['type'] !== 'string') {
    throw contradiction(`item ${index} began without a type`)
  }
  const open = reply.byIndex.get(index)
  if (open && !open.closed) {
    if (open.fields['type'] === given['type']) return []
    throw contradiction(`item ${index} began twice, as two things`)
  }
  const before = releaseUnread(reply)
  openItem(reply, index, given)
  return before
}

/** Begins the reply before the signals if its server left the beginning out. */
function afterStart(reply: Reply, signals: ModelSignal[]): ModelSignal[] {
  return reply.started ? signals : [...start(reply), ...signals]
}

/** Finds the item that continues, or begins it, since some servers leave the beginning out. */
function continueItem(reply: Reply, index: number, type: string): Item {
  const item = reply.byIndex.get(index)
  if (item === undefined) return openItem(reply, index, { type })
  if (item.closed) throw contradiction(`item ${index} continued after its end`)
  return item
}

function openPiece(
  reply: Reply,
  index: number,
  { content_index: place = 0, part }: WireEvent,
): ModelSignal[] {
  const item = reply.byIndex.get(index)
  const type = textAt(part, 'type')
  if (item === undefined || classifyItem(item, reply.context) !== 'message' || item.pieces.has(place))
    return []
  if (type !== 'output_text' && type !== 'refusal') return []
  const piece = addPiece(reply, item, place, type)
  return showText(piece, textAt(part, type === 'refusal' ? 'refusal' : 'text') ?? '')
}

function moreText(reply: Reply, index: number, event: WireEvent, type: string): ModelSignal[] {
  const item = continueItem(reply, index, 'message')
  const place = event.content_index ?? 0
  const piece = item.pieces.get(place) ?? addPiece(reply, item, place, type)
  return afterStart(reply, showText(piece, typeof event.delta === 'string' ? event.delta : ''))
}

function moreReasoning(reply: Reply, index: number, event: WireEvent): ModelSignal[] {
  const item = continueItem(reply, index, 'reasoning')
  const piece = item.pieces.get(0) ?? addPiece(reply, item, 0, 'reasoning')
  const summary = event.type === 'response.reasoning_summary_text.delta'
  const place = summary ? `summary ${event.summary_index ?? 0}` : `content ${event.content_index ?? 0}`
  const delta = typeof event.delta === 'string' ? event.delta : ''
  const paragraph = piece.text !== '' && delta !== '' && piece.place !== place
  if (delta !== '') piece.place = place
  return afterStart(reply, showText(piece, paragraph ? `\n\n${delta}` : delta))
}

function moreInput(reply: Reply, index: number, { delta }: WireEvent, type: string): ModelSignal[] {
  const item = continueItem(reply, index, type)
  if (classifyItem(item, reply.context) !== 'call' || typeof delta !== 'string' || delta === '') return []
  const first = item.inputText === ''
  item.inputText += delta
  if (textAt(item.fields, 'type') !== 'custom_tool_call') return inputSignal(reply, item, delta)
  // Free text becomes JSON, an object with one field, piece by piece.
  const begin = first ? `{${JSON.stringify(reply.context.customField(readToolName(reply, item)))}:"` : ''
  return inputSignal(reply, item, begin + JSON.stringify(delta).slice(1, -1))
}

function wholeInput(reply: Reply, index: number, input: string | undefined): ModelSignal[] {
  const item = reply.byIndex.get(index)
  if (item === undefined || item.closed || typeof input !== 'string') return []
  if (input !== '') item.inputText = input
  item.inputWhole = true
  return []
}

import { isJsonObject } from '@tallystick/core/kit'
import type { JsonObject, ModelSignal } from '@tallystick/core/vocabulary'
import { contradiction, failureInStream } from '../../openai/client/failure.ts'
import { textAt } from '../../shared/json/json-reading.ts'
import { RememberingReader, type ReplyReader } from '../../shared/stream/reply-reader.ts'
import type { WireEvent, WireResponse } from '../client/wire.ts'
import type { ReplyContext } from '../request/reply-context.ts'
import { fail, finish } from './ending.ts'
import { type Item, kindOf, shown } from './item.ts'
import {
  addPiece,
  closeItem,
  inputSignal,
  nameOf,
  openItem,
  releaseUnread,
  type Reply,
  startReply,
} from './reply.ts'

/** The reply as the call reads it. Nothing but a terminal event ends it. */
export function replyReader(context: ReplyContext): ReplyReader {
  return new RememberingReader(startReply(context), (reply, event) => readEvent(reply, event as WireEvent))
}

/**
 * PROVIDER MAPPING: one event of the wire to the signals that follow from it, `reply` being carried along. Kinds of
 * events that it does not know are passed over. Throws a `ProviderError` where the stream is two streams spliced
 * together or contradicts itself; a response that failed is in `reply.failure`.
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
      return fail(reply, response)
    case 'error':
      throw failureInStream(event.error ?? event)
    default:
      // The client looks for it in each record; in a list, which some servers send, it finds nothing.
      if (event.error) throw failureInStream(event.error)
      return []
  }
}

/** Whether this event came before: servers that count their events never give two of them one number. */
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

/** The signals, after the start of the reply where its server left that out. */
function begun(reply: Reply, signals: ModelSignal[]): ModelSignal[] {
  return reply.started ? signals : [...start(reply), ...signals]
}

/** The item that continues. Some servers leave out that it began. */
function itemAt(reply: Reply, index: number, type: string): Item {
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
  if (item === undefined || kindOf(item, reply.context) !== 'message' || item.pieces.has(place)) return []
  if (type !== 'output_text' && type !== 'refusal') return []
  const piece = addPiece(reply, item, place, type)
  return shown(piece, textAt(part, type === 'refusal' ? 'refusal' : 'text') ?? '')
}

function moreText(reply: Reply, index: number, event: WireEvent, type: string): ModelSignal[] {
  const item = itemAt(reply, index, 'message')
  const place = event.content_index ?? 0
  const piece = item.pieces.get(place) ?? addPiece(reply, item, place, type)
  return begun(reply, shown(piece, typeof event.delta === 'string' ? event.delta : ''))
}

function moreReasoning(reply: Reply, index: number, event: WireEvent): ModelSignal[] {
  const item = itemAt(reply, index, 'reasoning')
  const piece = item.pieces.get(0) ?? addPiece(reply, item, 0, 'reasoning')
  const summary = event.type === 'response.reasoning_summary_text.delta'
  const place = summary ? `summary ${event.summary_index ?? 0}` : `content ${event.content_index ?? 0}`
  const delta = typeof event.delta === 'string' ? event.delta : ''
  const paragraph = piece.text !== '' && delta !== '' && piece.place !== place
  if (delta !== '') piece.place = place
  return begun(reply, shown(piece, paragraph ? `\n\n${delta}` : delta))
}

function moreInput(reply: Reply, index: number, { delta }: WireEvent, type: string): ModelSignal[] {
  const item = itemAt(reply, index, type)
  if (kindOf(item, reply.context) !== 'call' || typeof delta !== 'string' || delta === '') return []
  const first = item.inputText === ''
  item.inputText += delta
  const custom = textAt(item.fields, 'type') === 'custom_tool_call'
  return inputSignal(reply, item, custom ? customInput(reply, item, delta, first) : delta)
}

/** Free text as the JSON that it becomes: an object with one field, piece by piece. */
function customInput(reply: Reply, item: Item, text: string, first: boolean): string {
  const begin = first ? `{${JSON.stringify(reply.context.customField(nameOf(reply, item)))}:"` : ''
  return begin + JSON.stringify(text).slice(1, -1)
}

function wholeInput(reply: Reply, index: number, input: string | undefined): ModelSignal[] {
  const item = reply.byIndex.get(index)
  if (item === undefined || item.closed || typeof input !== 'string') return []
  if (input !== '') item.inputText = input
  item.inputWhole = true
  return []
}

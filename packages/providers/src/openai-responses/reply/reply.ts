import { isJsonObject } from '@tallystick/core/kit'
import type { ProviderError } from '@tallystick/core'
import type { JsonObject, ModelSignal } from '@tallystick/core/vocabulary'
import { contradiction } from '../../openai/client/failure.ts'
import { textAt } from '../../shared/json/json-reading.ts'
import type { KeptResponse } from '../client/wire.ts'
import type { ReplyContext } from '../request/reply-context.ts'
import { callOf, contentOf, type Item, kindOf, type Piece, replaced, shown, statedTexts } from './item.ts'

/** One reply while it streams: what has to be remembered between two events. */
export interface Reply {
  readonly context: ReplyContext
  readonly items: Item[]
  /** The item that an event's `output_index` means now. Ids are no help: some gateways make new ones all the time. */
  readonly byIndex: Map<number, Item>
  parts: number
  /** A closed call whose input cannot be read: whether it was cut off is known when the next item or the end comes. */
  unread: Item | undefined
  started: boolean
  responseId: string | undefined
  kept: KeptResponse | undefined
  /** The numbers of the events so far, where the server counts them. */
  sequence: { last: number; counts: boolean } | undefined
  finished: boolean
  failure: ProviderError | undefined
}

/** A reply of which nothing has come yet. */
export function startReply(context: ReplyContext): Reply {
  return {
    context,
    items: [],
    byIndex: new Map(),
    parts: 0,
    unread: undefined,
    started: false,
    responseId: undefined,
    kept: undefined,
    sequence: undefined,
    finished: false,
    failure: undefined,
  }
}

/** Begins an item, with its place in the reply. */
export function openItem(reply: Reply, index: number, fields: JsonObject): Item {
  const type = textAt(fields, 'type')
  const whole = type !== 'message' && type !== 'reasoning'
  const item: Item = {
    at: index,
    fields,
    pieces: new Map(),
    part: whole ? reply.parts++ : undefined,
    inputText: '',
    inputWhole: false,
    closed: false,
  }
  // A reasoning item has one place in the reply from its start on, shown or not: it goes back in either case.
  if (type === 'reasoning') addPiece(reply, item, 0, 'reasoning')
  reply.items.push(item)
  reply.byIndex.set(index, item)
  return item
}

/** Begins a text of an item. */
export function addPiece(reply: Reply, item: Item, index: number, type: string): Piece {
  const kind = type === 'reasoning' ? 'reasoning' : 'text'
  const piece: Piece = { part: reply.parts++, kind, type, text: '', place: '' }
  item.pieces.set(index, piece)
  return piece
}

/** The tool that a call names. */
export function nameOf({ context }: Reply, { fields }: Item): string {
  return fields['type'] === 'mcp_approval_request'
    ? context.approvalTool
    : context.toolName(textAt(fields, 'name') ?? '')
}

/** The signal that shows more of a call's input. */
export function inputSignal(reply: Reply, item: Item, text: string): ModelSignal[] {
  return [{ type: 'model_tool_input', part: item.part!, name: nameOf(reply, item), text }]
}

/** The item as it ended wins over what streamed; words that it does not hold were shown, and are taken back. */
export function closeItem(
  reply: Reply,
  index: number,
  given: JsonObject | undefined,
  known: Item | undefined = reply.byIndex.get(index),
): ModelSignal[] {
  if (!isJsonObject(given) || typeof given['type'] !== 'string') {
    throw contradiction(`item ${index} ended without a type`)
  }
  if (known?.closed === true && textAt(known.fields, 'id') === textAt(given, 'id')) return []
  const open = known?.closed === false
  if (isToldAgain(reply, given, open ? known : undefined)) {
    if (open) known.closed = true
    return []
  }
  const before = open ? [] : releaseUnread(reply)
  const item = open ? known : openItem(reply, index, given)
  item.fields = given
  item.closed = true
  const kind = kindOf(item, reply.context)
  if (kind === 'provider') return before
  return [...before, ...(kind === 'call' ? closeCall(reply, item) : restOfTexts(item, reply))]
}

/** Whether an item ended before, under another index: one of the same ids and the same content is the same item. */
function isToldAgain(reply: Reply, given: JsonObject, open: Item | undefined): boolean {
  const id = textAt(given, 'call_id') || textAt(given, 'id')
  // Words that were shown are a part of the reply, whatever their item is.
  if (!id || (open !== undefined && open.pieces.size > 0)) return false
  return reply.items.some(
    ({ closed, fields }) =>
      closed &&
      fields['type'] === given['type'] &&
      (textAt(fields, 'call_id') || textAt(fields, 'id')) === id &&
      contentOf(fields) === contentOf(given),
  )
}

function closeCall(reply: Reply, item: Item): ModelSignal[] {
  const text = item.inputText !== '' && textAt(item.fields, 'type') === 'custom_tool_call'
  return [...(text ? inputSignal(reply, item, '"}') : []), ...readCall(reply, item)]
}

function restOfTexts(item: Item, reply: Reply): ModelSignal[] {
  return statedTexts(item.fields).flatMap(({ type, text }, index) => {
    const known = item.pieces.get(index)
    if (known === undefined && text === '') return []
    const piece = known ?? addPiece(reply, item, index, type)
    if (text.startsWith(piece.text)) return shown(piece, text.slice(piece.text.length))
    // A server that leaves a text empty in the end says nothing of it.
    return text === '' ? [] : replaced(piece, text)
  })
}

/** Reads a call that is whole, and reports it when it can be read. */
export function readCall(reply: Reply, item: Item): ModelSignal[] {
  // The reply was cut inside the call: the request is not whole.
  if (textAt(item.fields, 'status') === 'incomplete') return []
  item.call = callOf(item, reply.context, reply.kept)
  if (item.call.malformed !== undefined) {
    reply.unread = item
    return []
  }
  return [{ type: 'model_tool_request', part: item.part!, call: item.call }]
}

/**
 * The call is whole: something came after it, or the reply ended normally. It is malformed, and is answered as such.
 */
export function releaseUnread(reply: Reply): ModelSignal[] {
  const { unread } = reply
  reply.unread = undefined
  return unread?.call ? [{ type: 'model_tool_request', part: unread.part!, call: unread.call }] : []
}

import type { ProviderError } from '@tallystick/core'
import { isJsonObject } from '@tallystick/core/internal'
import type {
  Json,
  JsonObject,
  ModelSignal,
  Opaque,
  ProviderExecuted,
  ReplyPart,
  RequestedCall,
  TextPart,
} from '@tallystick/core/vocabulary'
import { listAt, objectAt, omitFields, textAt } from '../shared/json.ts'
import { type CallInput, readCallInput, isEmptyInput } from '../shared/reply.ts'
import { contradiction } from './failure.ts'
import { readCitations, readSources } from './request.ts'
import { awaitsCaller } from './responses-messages.ts'
import type { ReplyContext } from './responses-request.ts'
import {
  type CallKind,
  isCallKind,
  type KeptResponse,
  readNativeKind,
  type OpaqueData,
  toOpaque,
} from './responses-wire.ts'

/** Items of tools that the vendor runs itself, some of them only if the caller does not; the last ones are xAI's. */
const executedKinds = new Set([
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'mcp_call',
  'tool_search_call',
  'shell_call',
  'x_search_call',
  'code_execution_call',
  'view_image_call',
  'view_x_video_call',
  'collections_search_call',
  'custom_tool_call',
])
/** Fields of an item that are not part of its input. */
const nonInputFields = [
  'id',
  'type',
  'status',
  'name',
  'server_label',
  'arguments',
  'action',
  'output',
  'outputs',
  'results',
  'result',
  'error',
  'approval_request_id',
  'container_id',
  'caller',
  'namespace',
]

/**
 * Reads a closed item of a tool that the vendor ran, which holds both the call and its outcome; `undefined` for a call that
 * the caller has to answer.
 */
function readExecuted(item: JsonObject): ProviderExecuted | undefined {
  const type = textAt(item, 'type') ?? ''
  const status = textAt(item, 'status')
  const id = textAt(item, 'id')
  if (!executedKinds.has(type) || id === undefined || awaitsCaller(item)) return undefined
  const server = textAt(item, 'server_label')
  const name = textAt(item, 'name') ?? type.replace(/_call$/, '')
  const failed = (status ?? 'completed') !== 'completed' || (item['error'] ?? null) !== null
  return {
    id,
    name: server === undefined ? name : `${server}/${name}`,
    input: readExecutedInput(item),
    outcome: failed ? 'failed' : 'success',
  }
}

/** The input is a text, an action, or fields beside the others. */
function readExecutedInput(item: JsonObject): JsonObject {
  const text = item['arguments'] ?? item['input']
  if (typeof text === 'string') {
    const { input, malformed } = readCallInput(text)
    return malformed === undefined ? input : { text }
  }
  return isJsonObject(text) ? text : (objectAt(item, 'action') ?? omitFields(item, nonInputFields))
}

/** A piece of a message's content, or all the text of a reasoning item. */
interface Piece {
  readonly part: number
  readonly kind: 'text' | 'reasoning'
  /** Of a message: `output_text` or `refusal`. */
  readonly type: string
  text: string
  /** The place of the last words in a reasoning item: another place begins a new paragraph. */
  place: string
}

/** One output item while it streams, by its `output_index`. */
export interface Item {
  readonly at: number
  /** The item as it began, then as it ended. */
  fields: JsonObject
  /** Texts by `content_index`; reasoning has a single one, at 0. */
  readonly pieces: Map<number, Piece>
  /** The place in the reply of a call, or of an item that only the vendor understands. */
  readonly part: number | undefined
  /** A call's input so far, and whether its end was reported. */
  inputText: string
  inputWhole: boolean
  closed: boolean
  call?: RequestedCall
}

export function classifyItem(
  { fields }: Item,
  { nativeTools, hasProviderTools, knows }: ReplyContext,
): 'message' | 'reasoning' | 'call' | 'provider' {
  const type = textAt(fields, 'type')
  if (type === 'message' || type === 'reasoning') return type
  if (!isCallKind(type)) return 'provider'
  if (type === 'shell_call' || type === 'apply_patch_call') {
    const native = readNativeKind(fields)
    return native !== undefined && nativeTools[native] !== undefined ? 'call' : 'provider'
  }
  // xAI shows what its own tools do as calls of custom tools that nobody offered.
  const name = textAt(fields, 'name') ?? ''
  const isProviders = type === 'custom_tool_call' && hasProviderTools && name !== '' && !knows(name)
  return isProviders ? 'provider' : 'call'
}

/** Shows more of a piece. */
export function showText(piece: Piece, text: string): ModelSignal[] {
  if (text === '') return []
  piece.text += text
  return [{ type: piece.kind === 'text' ? 'model_text' : 'model_reasoning', part: piece.part, text }]
}

/** Shows a piece anew: the item ended with another text than the one shown. */
function replaceText(piece: Piece, text: string): ModelSignal[] {
  piece.text = text
  const type = piece.kind === 'text' ? 'model_text' : 'model_reasoning'
  return [{ type, part: piece.part, text, replaces: true }]
}

/** Reads the texts that an item states: those of a message, or all paragraphs of reasoning as one. */
function readStatedTexts(fields: JsonObject): { readonly type: string; readonly text: string }[] {
  if (fields['type'] === 'reasoning') {
    const paragraphs = [...listAt(fields, 'summary'), ...listAt(fields, 'content')]
    const text = paragraphs.map((one) => textAt(one, 'text') ?? '').join('\n\n')
    return [{ type: 'reasoning', text }]
  }
  return listAt(fields, 'content').map((one) => {
    const type = textAt(one, 'type') ?? 'output_text'
    return { type, text: textAt(one, type === 'refusal' ? 'refusal' : 'text') ?? '' }
  })
}

/** Reads the call of a complete item. */
function readItemCall(item: Item, context: ReplyContext, kept: KeptResponse | undefined): RequestedCall {
  const { at, fields } = item
  const read = callReaders[textAt(fields, 'type') as CallKind]
  const { providerState, ...call } = read(item, context)
  return {
    type: 'tool_call',
    ...call,
    opaque: toOpaque(context.provider, { ...providerState, at, ...(kept && { kept }) }),
  }
}

type CallReader = (
  item: Item,
  context: ReplyContext,
) => Omit<RequestedCall, 'type'> & { providerState: OpaqueData }

const callReaders: { readonly [kind in CallKind]: CallReader } = {
  function_call: ({ fields, inputText }, context) => {
    const text = textOfInput(fields['arguments']) || inputText
    const name = context.toolName(textAt(fields, 'name') ?? '')
    const read: CallInput =
      context.takesNothing(name) && isEmptyInput(text) ? { input: {} } : readCallInput(text)
    const input = read.malformed === undefined ? context.cleaned(name, read.input) : read.input
    const rest = omitFields(fields, ['arguments', 'call_id', 'name'])
    return {
      providerCallId: textAt(fields, 'call_id') ?? '',
      name,
      ...read,
      input,
      providerState: { item: rest },
    }
  },
  custom_tool_call: ({ fields, inputText }, context) => {
    const name = context.toolName(textAt(fields, 'name') ?? '')
    const field = context.customField(name)
    const input: JsonObject = { [field]: textOfInput(fields['input']) || inputText }
    const rest = omitFields(fields, ['input', 'call_id', 'name'])
    return {
      providerCallId: textAt(fields, 'call_id') ?? '',
      name,
      input,
      providerState: { item: rest, field },
    }
  },
  shell_call: (item, { nativeTools }) => nativeCall(item, nativeTools.shell, objectAt(item.fields, 'action')),
  apply_patch_call: (item, { nativeTools }) =>
    nativeCall(item, nativeTools.apply_patch, objectAt(item.fields, 'operation')),
  mcp_approval_request: ({ fields }, { approvalTool }) => ({
    providerCallId: textAt(fields, 'id') ?? '',
    name: approvalTool,
    // A person is asked about the tool and its input.
    input: {
      server: textAt(fields, 'server_label') ?? '',
      tool: textAt(fields, 'name') ?? '',
      input: readExecutedInput({ arguments: textOfInput(fields['arguments']) }),
    },
    providerState: { item: fields },
  }),
}

/** A call of a tool that the vendor gave the form of: the item goes back as it came. */
function nativeCall(
  { fields }: Item,
  name = '',
  asked: JsonObject = {},
): Omit<RequestedCall, 'type'> & { providerState: OpaqueData } {
  const input = omitFields(asked, [])
  return { providerCallId: textAt(fields, 'call_id') ?? '', name, input, providerState: { item: fields } }
}

function textOfInput(stated: Json | undefined): string {
  if (typeof stated === 'string') return stated
  // Some servers send an object where a text belongs.
  return isJsonObject(stated) ? JSON.stringify(stated) : ''
}

/** An item's content without ids and status: equal for an item that is told of twice under other ids. */
export function describeContent(fields: JsonObject): string {
  const content = omitFields(fields, ['id', 'call_id', 'status'])
  return JSON.stringify(Object.entries(content).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** Turns an item into parts of the reply. A call, or an item of the vendor, that never ended gives none. */
export function toParts(item: Item, context: ReplyContext, kept: KeptResponse | undefined): ReplyPart[] {
  const { fields, at, part } = item
  const carry = (restoredParts: JsonObject, content?: JsonObject): Opaque =>
    toOpaque(context.provider, {
      item: restoredParts,
      ...(content && { content }),
      at,
      ...(kept && { kept }),
    })
  switch (classifyItem(item, context)) {
    case 'message': {
      const rest = omitFields(fields, ['content'])
      return [...item.pieces]
        .sort(([a], [b]) => a - b)
        .map(([index, piece]) => ({
          type: 'text',
          text: piece.text,
          part: piece.part,
          ...citedBy(fields, index),
          // A message that never ended is only its words.
          ...(item.closed && { opaque: carry(rest, contentAt(fields, index, piece)) }),
        }))
    }
    case 'reasoning': {
      const piece = item.pieces.get(0)
      if (piece === undefined) return []
      return [
        {
          type: 'reasoning',
          text: piece.text,
          part: piece.part,
          ...(item.closed && { opaque: carry(withStreamedContent(fields, piece)) }),
        },
      ]
    }
    case 'call':
      return item.call === undefined || part === undefined ? [] : [{ ...item.call, part }]
    case 'provider': {
      if (!item.closed || part === undefined) return []
      const kind = textAt(fields, 'type') ?? 'unknown'
      const executed = readExecuted(fields)
      const sources = readSources([
        ...listAt(objectAt(fields, 'action'), 'sources'),
        ...listAt(fields, 'results'),
      ])
      return [
        {
          type: 'provider',
          kind,
          opaque: carry(fields),
          part,
          ...(executed && { executed }),
          ...(sources.length > 0 && { sources }),
        },
      ]
    }
  }
}

/** Reasoning that streamed in the open, and that the item as it ended leaves out. */
function withStreamedContent(fields: JsonObject, { text, place }: Piece): JsonObject {
  const stated = listAt(fields, 'content').length > 0 || !!textAt(fields, 'encrypted_content')
  if (stated || !place.startsWith('content') || text === '') return fields
  return { ...fields, content: [{ type: 'reasoning_text', text }] }
}

function citedBy(fields: JsonObject, index: number): Pick<TextPart, 'citations'> {
  const stated = listAt(fields, 'content')[index]
  const citations = readCitations(isJsonObject(stated) ? stated['annotations'] : undefined)
  return citations.length > 0 ? { citations } : {}
}

/** Fields of a piece of content beside its text: citations, which go back with it. Token odds do not. */
function contentAt(fields: JsonObject, index: number, piece: Piece): JsonObject {
  const stated = listAt(fields, 'content')[index]
  const rest = isJsonObject(stated) ? omitFields(stated, ['type', 'text', 'refusal', 'logprobs']) : {}
  return { type: piece.type, ...rest }
}

/** The state of one reply between two events. */
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

export function addPiece(reply: Reply, item: Item, index: number, type: string): Piece {
  const kind = type === 'reasoning' ? 'reasoning' : 'text'
  const piece: Piece = { part: reply.parts++, kind, type, text: '', place: '' }
  item.pieces.set(index, piece)
  return piece
}

export function readToolName({ context }: Reply, { fields }: Item): string {
  return fields['type'] === 'mcp_approval_request'
    ? context.approvalTool
    : context.toolName(textAt(fields, 'name') ?? '')
}

export function inputSignal(reply: Reply, item: Item, text: string): ModelSignal[] {
  return [{ type: 'model_tool_input', part: item.part!, name: readToolName(reply, item), text }]
}

/** The item as it ended wins over what streamed: text that it does not hold is replaced. */
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
  const kind = classifyItem(item, reply.context)
  if (kind === 'provider') return before
  if (kind !== 'call') return [...before, ...showRest(item, reply)]
  const isText = item.inputText !== '' && textAt(item.fields, 'type') === 'custom_tool_call'
  return [...before, ...(isText ? inputSignal(reply, item, '"}') : []), ...readCall(reply, item)]
}

/** True for an item that ended before, under another index: ids and content are equal. */
function isToldAgain(reply: Reply, given: JsonObject, open: Item | undefined): boolean {
  const id = textAt(given, 'call_id') || textAt(given, 'id')
  // Text that was shown stays a part of the reply.
  if (!id || (open !== undefined && open.pieces.size > 0)) return false
  return reply.items.some(
    ({ closed, fields }) =>
      closed &&
      fields['type'] === given['type'] &&
      (textAt(fields, 'call_id') || textAt(fields, 'id')) === id &&
      describeContent(fields) === describeContent(given),
  )
}

function showRest(item: Item, reply: Reply): ModelSignal[] {
  return readStatedTexts(item.fields).flatMap(({ type, text }, index) => {
    const known = item.pieces.get(index)
    if (known === undefined && text === '') return []
    const piece = known ?? addPiece(reply, item, index, type)
    if (text.startsWith(piece.text)) return showText(piece, text.slice(piece.text.length))
    // An empty text at the end says nothing.
    return text === '' ? [] : replaceText(piece, text)
  })
}

/** Reads a complete call, and reports it if it can be read. */
export function readCall(reply: Reply, item: Item): ModelSignal[] {
  // The reply was cut inside the call: the request is not whole.
  if (textAt(item.fields, 'status') === 'incomplete') return []
  item.call = readItemCall(item, reply.context, reply.kept)
  if (item.call.malformed !== undefined) {
    reply.unread = item
    return []
  }
  return [{ type: 'model_tool_request', part: item.part!, call: item.call }]
}

/** Reports a malformed call: it is complete, since something came after it, or the reply ended normally. */
export function releaseUnread(reply: Reply): ModelSignal[] {
  const { unread } = reply
  reply.unread = undefined
  return unread?.call ? [{ type: 'model_tool_request', part: unread.part!, call: unread.call }] : []
}

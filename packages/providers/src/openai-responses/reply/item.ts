import { isJsonObject } from '@tallystick/core/kit'
import type {
  Json,
  JsonObject,
  ModelSignal,
  Opaque,
  ReplyPart,
  RequestedCall,
  TextPart,
} from '@tallystick/core/vocabulary'
import { type CallInput, readCallInput, saysNothing } from '../../shared/reply/call-input.ts'
import { citationsIn, sourcesIn } from '../../openai/reply/citations.ts'
import { listAt, objectAt, restOf, textAt } from '../../shared/json/json-reading.ts'
import {
  type CallKind,
  isCallKind,
  type KeptResponse,
  nativeKindOf,
  toOpaque,
  type OpaqueData,
} from '../client/wire.ts'
import type { ReplyContext } from '../request/reply-context.ts'
import { executedCall } from './executed-call.ts'

/** One text of an item: a piece of a message's content, or all that a reasoning item shows. */
export interface Piece {
  readonly part: number
  readonly kind: 'text' | 'reasoning'
  /** Of a message: `output_text` or `refusal`. */
  readonly type: string
  text: string
  /** Where in a reasoning item the last words stood: another place begins a new paragraph. */
  place: string
}

/** One output item while it streams, by its `output_index`. */
export interface Item {
  readonly at: number
  /** The item as it is known: as it began, then as it ended. */
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

/** Returns the kind of an item, by the way it is shown. */
export function kindOf(
  { fields }: Item,
  { nativeTools, hasProviderTools, knows }: ReplyContext,
): 'message' | 'reasoning' | 'call' | 'provider' {
  const type = textAt(fields, 'type')
  if (type === 'message' || type === 'reasoning') return type
  if (!isCallKind(type)) return 'provider'
  if (type === 'shell_call' || type === 'apply_patch_call') {
    const native = nativeKindOf(fields)
    return native !== undefined && nativeTools[native] !== undefined ? 'call' : 'provider'
  }
  // xAI shows what its own tools do as calls of custom tools that nobody offered.
  const name = textAt(fields, 'name') ?? ''
  const isProviders = type === 'custom_tool_call' && hasProviderTools && name !== '' && !knows(name)
  return isProviders ? 'provider' : 'call'
}

/** The signal that shows more of a piece. */
export function shown(piece: Piece, text: string): ModelSignal[] {
  if (text === '') return []
  piece.text += text
  return [{ type: piece.kind === 'text' ? 'model_text' : 'model_reasoning', part: piece.part, text }]
}

/** The signal that shows a piece anew: what was shown of it is not what the item holds in the end. */
export function replaced(piece: Piece, text: string): ModelSignal[] {
  piece.text = text
  const type = piece.kind === 'text' ? 'model_text' : 'model_reasoning'
  return [{ type, part: piece.part, text, replaces: true }]
}

/** What an item says it holds, as pieces: the texts of a message, or all of a reasoning item's paragraphs as one. */
export function statedTexts(fields: JsonObject): { readonly type: string; readonly text: string }[] {
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

/** Reads a call whose item is whole. */
export function callOf(item: Item, context: ReplyContext, kept: KeptResponse | undefined): RequestedCall {
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
      context.takesNothing(name) && saysNothing(text) ? { input: {} } : readCallInput(text)
    const input = read.malformed === undefined ? context.cleaned(name, read.input) : read.input
    const rest = restOf(fields, ['arguments', 'call_id', 'name'])
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
    const rest = restOf(fields, ['input', 'call_id', 'name'])
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
    input: approvalInput(fields),
    providerState: { item: fields },
  }),
}

/** A call of a tool that the vendor gave the form of: the item goes back as it came. */
function nativeCall(
  { fields }: Item,
  name = '',
  asked: JsonObject = {},
): Omit<RequestedCall, 'type'> & { providerState: OpaqueData } {
  const input = restOf(asked, [])
  return { providerCallId: textAt(fields, 'call_id') ?? '', name, input, providerState: { item: fields } }
}

function textOfInput(stated: Json | undefined): string {
  if (typeof stated === 'string') return stated
  // Some servers send an object where a text belongs.
  return isJsonObject(stated) ? JSON.stringify(stated) : ''
}

/** What a person is asked about: whose tool it is, and what it would be called with. */
function approvalInput(fields: JsonObject): JsonObject {
  const text = textOfInput(fields['arguments'])
  const { input, malformed } = readCallInput(text)
  return {
    server: textAt(fields, 'server_label') ?? '',
    tool: textAt(fields, 'name') ?? '',
    input: malformed === undefined ? input : { text },
  }
}

/** What an item holds beside its ids and how far it is: equal where it is told of twice under other ids. */
export function contentOf(fields: JsonObject): string {
  const content = restOf(fields, ['id', 'call_id', 'status'])
  return JSON.stringify(Object.entries(content).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** The item as parts of the reply. None of a call, or of a vendor's item, that never ended: half of it is worth nothing. */
export function partsOf(item: Item, context: ReplyContext, kept: KeptResponse | undefined): ReplyPart[] {
  const { fields, at, part } = item
  const carry = (restoredParts: JsonObject, content?: JsonObject): Opaque =>
    toOpaque(context.provider, {
      item: restoredParts,
      ...(content && { content }),
      at,
      ...(kept && { kept }),
    })
  switch (kindOf(item, context)) {
    case 'message': {
      const rest = restOf(fields, ['content'])
      return [...item.pieces].sort(byPlace).map(([index, piece]) => ({
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
      const executed = executedCall(fields)
      const sources = sourcesIn(fields)
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

function byPlace([a]: readonly [number, Piece], [b]: readonly [number, Piece]): number {
  return a - b
}

/** What a piece of content cites. */
function citedBy(fields: JsonObject, index: number): Pick<TextPart, 'citations'> {
  const stated = listAt(fields, 'content')[index]
  const citations = citationsIn(isJsonObject(stated) ? stated['annotations'] : undefined)
  return citations.length > 0 ? { citations } : {}
}

/** Fields of a piece of content beside its text: citations, which go back with it. Token odds do not. */
function contentAt(fields: JsonObject, index: number, piece: Piece): JsonObject {
  const stated = listAt(fields, 'content')[index]
  const rest = isJsonObject(stated) ? restOf(stated, ['type', 'text', 'refusal', 'logprobs']) : {}
  return { type: piece.type, ...rest }
}

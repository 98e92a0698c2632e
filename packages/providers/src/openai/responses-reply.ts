import { isJsonObject } from '@tallystick/core/internal'
import type {
  Json,
  JsonObject,
  ModelSignal,
  Opaque,
  ProviderExecuted,
  ReplyPart,
  RequestedCall,
} from '@tallystick/core/vocabulary'
import { getList, getObject, omitFields, getText } from '../shared/json.ts'
import { type CallInput, readCallInput, isEmptyInput } from '../shared/reply.ts'
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
  const type = getText(item, 'type') ?? ''
  const status = getText(item, 'status')
  const id = getText(item, 'id')
  if (!executedKinds.has(type) || id === undefined || awaitsCaller(item)) return undefined
  const server = getText(item, 'server_label')
  const name = getText(item, 'name') ?? type.replace(/_call$/, '')
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
  return isJsonObject(text) ? text : (getObject(item, 'action') ?? omitFields(item, nonInputFields))
}

/** A piece of a message's content, or all the text of a reasoning item. */
export interface Piece {
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
  const type = getText(fields, 'type')
  if (type === 'message' || type === 'reasoning') return type
  if (!isCallKind(type)) return 'provider'
  if (type === 'shell_call' || type === 'apply_patch_call') {
    const native = readNativeKind(fields)
    return native !== undefined && nativeTools[native] !== undefined ? 'call' : 'provider'
  }
  // xAI shows what its own tools do as calls of custom tools that nobody offered.
  const name = getText(fields, 'name') ?? ''
  const isProviders = type === 'custom_tool_call' && hasProviderTools && name !== '' && !knows(name)
  return isProviders ? 'provider' : 'call'
}

/** Shows more of a piece. */
export function showText(piece: Piece, text: string): ModelSignal[] {
  if (text === '') return []
  piece.text += text
  return [{ type: piece.kind === 'text' ? 'model_text' : 'model_reasoning', part: piece.part, text }]
}

/** Reads the texts that an item states: those of a message, or all paragraphs of reasoning as one. */
export function readStatedTexts(fields: JsonObject): { readonly type: string; readonly text: string }[] {
  if (fields['type'] === 'reasoning') {
    const paragraphs = [...getList(fields, 'summary'), ...getList(fields, 'content')]
    const text = paragraphs.map((one) => getText(one, 'text') ?? '').join('\n\n')
    return [{ type: 'reasoning', text }]
  }
  return getList(fields, 'content').map((one) => {
    const type = getText(one, 'type') ?? 'output_text'
    return { type, text: getText(one, type === 'refusal' ? 'refusal' : 'text') ?? '' }
  })
}

/** Reads the call of a complete item. */
export function readItemCall(
  { at, fields, inputText }: Item,
  context: ReplyContext,
  kept: KeptResponse | undefined,
): RequestedCall {
  const toCall = (
    providerCallId: string,
    name: string,
    read: CallInput,
    data: OpaqueData,
  ): RequestedCall => ({
    type: 'tool_call',
    providerCallId,
    name,
    ...read,
    opaque: toOpaque(context.provider, { ...data, at, ...(kept && { kept }) }),
  })
  const callId = getText(fields, 'call_id') ?? ''
  const name = context.toolName(getText(fields, 'name') ?? '')
  const { nativeTools } = context
  switch (getText(fields, 'type') as CallKind) {
    case 'function_call': {
      const text = readInputText(fields['arguments']) || inputText
      const isNothing = context.takesNothing(name) && isEmptyInput(text)
      const read: CallInput = isNothing ? { input: {} } : readCallInput(text)
      const input = read.malformed === undefined ? context.cleaned(name, read.input) : read.input
      const item = omitFields(fields, ['arguments', 'call_id', 'name'])
      return toCall(callId, name, { ...read, input }, { item })
    }
    case 'custom_tool_call': {
      const field = context.customField(name)
      const input = { [field]: readInputText(fields['input']) || inputText }
      const item = omitFields(fields, ['input', 'call_id', 'name'])
      return toCall(callId, name, { input }, { item, field })
    }
    // The vendor gave these tools their form: the item goes back as it came.
    case 'shell_call': {
      const input = omitFields(getObject(fields, 'action') ?? {}, [])
      return toCall(callId, nativeTools.shell ?? '', { input }, { item: fields })
    }
    case 'apply_patch_call': {
      const input = omitFields(getObject(fields, 'operation') ?? {}, [])
      return toCall(callId, nativeTools.apply_patch ?? '', { input }, { item: fields })
    }
    case 'mcp_approval_request': {
      // A person is asked about the tool and its input.
      const input = {
        server: getText(fields, 'server_label') ?? '',
        tool: getText(fields, 'name') ?? '',
        input: readExecutedInput({ arguments: readInputText(fields['arguments']) }),
      }
      return toCall(getText(fields, 'id') ?? '', context.approvalTool, { input }, { item: fields })
    }
  }
}

function readInputText(stated: Json | undefined): string {
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
        .map(([index, { type, text, part }]) => {
          const stated = getList(fields, 'content')[index]
          const piece = isJsonObject(stated) ? stated : {}
          const citations = readCitations(piece['annotations'])
          // Citations go back with the text. Token odds do not.
          const content = { type, ...omitFields(piece, ['type', 'text', 'refusal', 'logprobs']) }
          return {
            type: 'text',
            text,
            part,
            ...(citations.length > 0 && { citations }),
            // A message that never ended is only its words.
            ...(item.closed && { opaque: carry(rest, content) }),
          }
        })
    }
    case 'reasoning': {
      const piece = item.pieces.get(0)
      if (piece === undefined) return []
      const { text, place } = piece
      const isStated = getList(fields, 'content').length > 0 || !!getText(fields, 'encrypted_content')
      // Reasoning may stream in the open, and the item as it ended leave it out.
      const isLeftOut = !isStated && place.startsWith('content') && text !== ''
      const whole = isLeftOut ? { ...fields, content: [{ type: 'reasoning_text', text }] } : fields
      return [{ type: 'reasoning', text, part: piece.part, ...(item.closed && { opaque: carry(whole) }) }]
    }
    case 'call':
      return item.call === undefined || part === undefined ? [] : [{ ...item.call, part }]
    case 'provider': {
      if (!item.closed || part === undefined) return []
      const executed = readExecuted(fields)
      const sources = readSources([
        ...getList(getObject(fields, 'action'), 'sources'),
        ...getList(fields, 'results'),
      ])
      return [
        {
          type: 'provider',
          kind: getText(fields, 'type') ?? 'unknown',
          opaque: carry(fields),
          part,
          ...(executed && { executed }),
          ...(sources.length > 0 && { sources }),
        },
      ]
    }
  }
}

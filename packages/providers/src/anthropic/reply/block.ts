import { getOwn } from '@tallystick/core/kit'
import type {
  Json,
  JsonObject,
  ModelSignal,
  Opaque,
  ReplyPart,
  RequestedCall,
} from '@tallystick/core/vocabulary'
import { listAt, restOf, textAt } from '../../shared/json/json-reading.ts'
import type { ToolNames } from '../../shared/request/tool-names.ts'
import { api, provider, type OpaqueData, type WireBlock } from '../client/wire.ts'
import { citationsIn, sourcesIn } from './citations.ts'
import { executedCall } from './executed-call.ts'
import { type CallInput, readCallInput, readGivenInput } from '../../shared/reply/call-input.ts'

/** One content block while it streams. `part` is its place in the reply. */
export interface Block {
  readonly part: number
  readonly kind: 'text' | 'reasoning' | 'call' | 'provider'
  /** The block as it began, with every delta but text and input folded in. */
  readonly fields: { [field: string]: Json }
  /** Text or thinking so far. */
  text: string
  /** Input so far, as raw JSON text: parsed once, when the block closes. */
  inputText: string
  closed: boolean
  call?: RequestedCall
}

const kinds: { readonly [type: string]: Block['kind'] } = {
  text: 'text',
  thinking: 'reasoning',
  redacted_thinking: 'reasoning',
  tool_use: 'call',
}

/** A block of which only its start is known: `content_block_start`, or a block that came whole. */
export function openBlock(part: number, start: WireBlock): Block {
  const kind = getOwn(kinds, start.type) ?? 'provider'
  const textField = start.type === 'text' ? 'text' : start.type === 'thinking' ? 'thinking' : undefined
  const text = (textField && textAt(start, textField)) ?? ''
  return { part, kind, fields: { ...start }, text, inputText: '', closed: false }
}

/** What a block shows of itself from its start on: the text that some servers put there. */
export function openingSignals(block: Block): ModelSignal[] {
  return block.text === '' ? [] : shownText(block, block.text)
}

/** Adds one delta to the block. Returns signals for the part of it that can be shown. */
export function extendBlock(block: Block, delta: JsonObject, names: ToolNames): ModelSignal[] {
  // Fields of deltas are read by their names: by a variable name it costs more than all the rest.
  switch (delta['type'] as string) {
    case 'text_delta':
      if (block.kind === 'text') return moreText(block, delta['text'])
      break
    case 'thinking_delta':
      if (block.kind === 'reasoning') return moreText(block, delta['thinking'])
      break
    case 'input_json_delta':
      return moreInput(block, textAt(delta, 'partial_json') ?? '', names)
    case 'citations_delta':
      block.fields['citations'] = [...listAt(block.fields, 'citations'), delta['citation'] ?? null]
      return []
    case 'signature_delta':
      // A genuine block has one signature. The same one twice is a repetition, another one is its next piece.
      if (textAt(block.fields, 'signature') === textAt(delta, 'signature')) return []
      foldFields(block.fields, delta)
      return []
  }
  // A delta's fields carry the names of the block's: what neither of us knows yet still goes back whole.
  if (block.kind === 'provider') foldFields(block.fields, delta)
  return []
}

function moreText(block: Block, text: Json | undefined): ModelSignal[] {
  if (typeof text !== 'string' || text === '') return []
  block.text += text
  return shownText(block, text)
}

function shownText(block: Block, text: string): ModelSignal[] {
  return [{ type: block.kind === 'text' ? 'model_text' : 'model_reasoning', part: block.part, text }]
}

function moreInput(block: Block, text: string, names: ToolNames): ModelSignal[] {
  block.inputText += text
  if (block.kind !== 'call' || text === '') return []
  return [{ type: 'model_tool_input', part: block.part, name: callName(block, names), text }]
}

function foldFields(fields: { [field: string]: Json }, delta: JsonObject): void {
  for (const [key, value] of Object.entries(delta)) {
    if (key === 'type' || value === null) continue
    const before = fields[key]
    fields[key] = typeof before === 'string' && typeof value === 'string' ? before + value : value
  }
}

/** Marks the block as whole, and reads the input of a call. */
export function closeBlock(block: Block, names: ToolNames, container: JsonObject | undefined): void {
  block.closed = true
  if (block.kind !== 'call') return
  const rest = restOf(block.fields, ['type', 'id', 'name', 'input'])
  const carries = container !== undefined || Object.keys(rest).length > 0
  block.call = {
    type: 'tool_call',
    providerCallId: textAt(block.fields, 'id') ?? '',
    name: callName(block, names),
    ...readInput(block),
    ...(carries && { opaque: opaqueOf({ block: rest, ...(container && { container }) }) }),
  }
}

function callName(block: Block, names: ToolNames): string {
  return names.fromWire(textAt(block.fields, 'name') ?? '')
}

/** Deltas win over the block's start, where input is `{}` as a placeholder, or whole when no delta follows. */
function readInput({ fields, inputText }: Block): CallInput {
  if (inputText.trim() !== '') return readCallInput(inputText)
  return readGivenInput(fields['input'])
}

/**
 * The block as a part of the reply. None for a call or a vendor's block that never closed: half of it is worth nothing.
 * `useOf` finds the block that a result answers, by its id.
 */
export function partOf(block: Block, useOf: (id: string) => JsonObject | undefined): ReplyPart | undefined {
  const { part, kind, text, fields } = block
  switch (kind) {
    case 'text': {
      const rest = restOf(fields, ['type', 'text'])
      const citations = citationsIn(fields)
      return {
        type: 'text',
        text,
        part,
        ...(citations.length > 0 && { citations }),
        ...(Object.keys(rest).length > 0 && { opaque: opaqueOf({ block: rest }) }),
      }
    }
    case 'reasoning': {
      // Without its signature, or its encrypted data, thinking proves nothing and would be refused.
      const genuine = textAt(fields, fields['type'] === 'thinking' ? 'signature' : 'data')
      const providerState = { block: restOf(fields, ['thinking']) }
      return { type: 'reasoning', text, part, ...(genuine && { opaque: opaqueOf(providerState) }) }
    }
    case 'call':
      return block.call && { ...block.call, part }
    case 'provider': {
      if (!block.closed) return undefined
      const input = block.inputText.trim() === '' ? {} : { input: readInput(block).input }
      const whole: WireBlock = { type: 'unknown', ...fields, ...input }
      const executed = executedCall(whole, useOf)
      const sources = sourcesIn(whole)
      return {
        type: 'provider',
        kind: whole.type,
        opaque: opaqueOf({ block: whole }),
        part,
        ...(executed && { executed }),
        ...(sources.length > 0 && { sources }),
      }
    }
  }
}

/** Lets something that concerns the whole reply ride on one of its parts, so that the next request finds it. */
export function withContainer(parts: readonly ReplyPart[], container: JsonObject): readonly ReplyPart[] {
  const carrier =
    parts.findLast((part) => part.type === 'provider') ?? parts.findLast((part) => part.type !== 'tool_call')
  if (carrier === undefined) {
    const carried = parts.some(
      ({ opaque }) => (opaque?.data as OpaqueData | undefined)?.container !== undefined,
    )
    if (carried || parts.length === 0) return parts
    return withProviderState(parts, 'container', { block: {}, container })
  }
  const providerState = (carrier.opaque?.data ?? { block: {} }) as OpaqueData
  const loaded = { ...carrier, opaque: opaqueOf({ ...providerState, container }) }
  return parts.map((part) => (part === carrier ? loaded : part))
}

/** Adds a part that is no block and never goes back: what the vendor says about the reply as a whole. */
export function withProviderState(
  parts: readonly ReplyPart[],
  kind: string,
  data: OpaqueData,
): readonly ReplyPart[] {
  const part = parts.reduce((last, { part: place }) => Math.max(last, place), -1) + 1
  return [...parts, { type: 'provider', kind, opaque: opaqueOf(data), part }]
}

function opaqueOf(data: OpaqueData): Opaque {
  return { provider, api, data }
}

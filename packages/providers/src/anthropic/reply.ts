import type { Usage } from '@tallystick/core'
import { getOwn, isJsonObject } from '@tallystick/core/internal'
import type {
  Citation,
  Json,
  JsonObject,
  ModelSignal,
  Opaque,
  ProviderExecuted,
  ReplyPart,
  RequestedCall,
  Source,
  StopReason,
} from '@tallystick/core/vocabulary'
import { countAt, itemsOf, listAt, numberAt, objectAt, restOf, textAt } from '../shared/json.ts'
import { type CallInput, known, readCallInput, readGivenInput } from '../shared/reply.ts'
import type { ToolNames } from '../shared/request.ts'
import { api, type OpaqueData, provider, type WireBlock } from './client.ts'
import { serverHalfOf } from './messages.ts'

/** What a block of text cites, in the words of the ledger. The block's own fields go back as they came. */
function citationsIn(block: JsonObject): readonly Citation[] {
  const citations = listAt(block, 'citations').filter(isJsonObject).map(citationOf)
  return citations.filter((citation) => Object.keys(citation).length > 0)
}

function citationOf(citation: JsonObject): Citation {
  const [from, end] = [numberAt(citation, 'start_page_number'), numberAt(citation, 'end_page_number')]
  return known<Citation>({
    url: textAt(citation, 'url') ?? textAt(citation, 'source'),
    title: textAt(citation, 'title') ?? textAt(citation, 'document_title'),
    fileId: textAt(citation, 'file_id'),
    quote: textAt(citation, 'cited_text'),
    // The vendor does not count the last page in.
    pages: from === undefined || end === undefined ? undefined : { from, to: Math.max(from, end - 1) },
    place: undefined,
  })
}

/** What a search or a fetch of the vendor's found. */
function sourcesIn(block: JsonObject): readonly Source[] {
  const { content } = block
  if (block['type'] === 'web_search_tool_result') return listAt(block, 'content').flatMap(sourceOf)
  if (block['type'] !== 'web_fetch_tool_result' || !isJsonObject(content)) return []
  const title = textAt(objectAt(content, 'content'), 'title')
  return sourceOf({ ...content, ...(title !== undefined && { title }) })
}

function sourceOf(found: Json): readonly Source[] {
  const url = textAt(found, 'url')
  return url === undefined ? [] : [known<Source>({ url, title: textAt(found, 'title'), fileId: undefined })]
}

/**
 * Returns what a closed block shows of a tool that the vendor ran. `useOf` finds the block of this reply that requested
 * it, by its id: a result names only that, and after a pause the request is in another reply.
 */
function executedCall(
  block: WireBlock,
  useOf: (id: string) => JsonObject | undefined,
): ProviderExecuted | undefined {
  const half = serverHalfOf(block)
  if (half === undefined) return undefined
  if (half.kind === 'use')
    return { id: half.id, name: toolName(block), input: objectAt(block, 'input') ?? {} }
  const use = useOf(half.id)
  const name = use === undefined ? block.type.replace(/_tool_result$/, '') : toolName(use)
  return { id: half.id, name, outcome: failed(block) ? 'failed' : 'success' }
}

/** Tools of an MCP server go by both names: two servers may have one of the same name. */
function toolName(use: JsonObject): string {
  const server = textAt(use, 'server_name')
  const name = textAt(use, 'name') ?? ''
  return server === undefined ? name : `${server}/${name}`
}

/** Errors of the vendor's tools are results like any other, told apart by their type only. */
function failed({ is_error: isError, content }: WireBlock): boolean {
  return isError === true || (isJsonObject(content) && (textAt(content, 'type') ?? '').endsWith('_error'))
}

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

/**
 * A later report over an earlier one. Reports are totals of the whole message, so every field that says something
 * replaces; adding them up would count the prompt twice.
 */
export function laterUsage(earlier: JsonObject, later: JsonObject): JsonObject {
  return { ...earlier, ...Object.fromEntries(Object.entries(later).filter(([, value]) => value != null)) }
}

/** Where the vendor ran tools of its own inside the reply, so that the model read several prompts for it. */
export interface Steps {
  /** How many times the model was asked: once, and again after each batch of results. */
  readonly count: number
  /** Tokens of the first prompt, which the message's start says. */
  readonly firstPrompt: number | undefined
}

/**
 * Tokens as we count them: the wire's `input_tokens` leaves cache reads and writes out, `inputTokens` holds them. The
 * message's own numbers leave out what compaction, an advisor or a model that declined took; `iterations` lists those, and
 * all that it lists is billed. `steps`: where the start of the message is known.
 */
export function usageSignal(raw: JsonObject, steps?: Steps): Extract<ModelSignal, { type: 'model_usage' }> {
  const iterations = iterationsOf(raw['iterations'])
  const billed = tokensOf(raw)
  for (const iteration of iterations.map(tokensOf).reduce(sumInto, new Map())) raise(billed, iteration)
  const reasoningTokens = countAt(objectAt(raw, 'output_tokens_details'), 'thinking_tokens')
  const webSearches = countAt(objectAt(raw, 'server_tool_use'), 'web_search_requests')
  const usage: Usage = {
    ...(Object.fromEntries(billed) as Usage),
    ...(reasoningTokens !== undefined && { reasoningTokens }),
    ...(webSearches !== undefined && { webSearches }),
  }
  const contextTokens = contextOf(iterations, usage, steps)
  return { type: 'model_usage', usage, ...(contextTokens !== undefined && { contextTokens }), raw }
}

/** Tokens of the prompt that a report counts, cache reads and writes included. */
export function promptTokens(raw: JsonObject): number | undefined {
  return tokensOf(raw).get('inputTokens')
}

type Tokens = Map<keyof Usage, number>

/** What one report, or one iteration of it, counts. */
function tokensOf(raw: JsonObject): Tokens {
  const uncached = countAt(raw, 'input_tokens')
  const written = countAt(raw, 'cache_creation_input_tokens')
  const read = countAt(raw, 'cache_read_input_tokens')
  const counts: readonly (readonly [keyof Usage, number | undefined])[] = [
    ['inputTokens', uncached === undefined ? undefined : uncached + (written ?? 0) + (read ?? 0)],
    ['outputTokens', countAt(raw, 'output_tokens')],
    ['cacheReadTokens', read],
    ['cacheWriteTokens', written],
    ['cacheWriteLongTokens', countAt(objectAt(raw, 'cache_creation'), 'ephemeral_1h_input_tokens')],
  ]
  return new Map(counts.flatMap(([field, count]) => (count === undefined ? [] : [[field, count] as const])))
}

function sumInto(sum: Tokens, more: Tokens): Tokens {
  for (const [field, count] of more) sum.set(field, (sum.get(field) ?? 0) + count)
  return sum
}

/** Nothing that the one of two counts said is lost where the other says less. */
function raise(billed: Tokens, [field, count]: readonly [keyof Usage, number]): void {
  billed.set(field, Math.max(billed.get(field) ?? 0, count))
}

function iterationsOf(value: Json | undefined): readonly JsonObject[] {
  return itemsOf(value).filter(isJsonObject)
}

/**
 * How long the conversation is behind the reply, where that is not what is billed: the last iteration that wrote the
 * message says it. Without iterations it is estimated from the first prompt and the sum of all, as if each step had
 * added as much as the others, which is exact for two steps.
 */
function contextOf(
  iterations: readonly JsonObject[],
  { inputTokens, outputTokens = 0 }: Usage,
  steps: Steps | undefined,
): number | undefined {
  const last = iterations.findLast((iteration) =>
    /^(fallback_)?message$/.test(textAt(iteration, 'type') ?? ''),
  )
  if (last !== undefined) {
    const tokens = tokensOf(last)
    return (tokens.get('inputTokens') ?? 0) + (tokens.get('outputTokens') ?? 0)
  }
  if (steps?.firstPrompt === undefined || inputTokens === undefined || steps.count < 2) return undefined
  const { count, firstPrompt } = steps
  if (inputTokens <= firstPrompt) return undefined
  const lastPrompt = Math.round((2 * inputTokens) / count) - firstPrompt
  return Math.max(firstPrompt, lastPrompt) + outputTokens
}

const stopReasons: { readonly [raw: string]: StopReason } = {
  end_turn: 'end',
  stop_sequence: 'end',
  tool_use: 'tool_use',
  max_tokens: 'max_tokens',
  model_context_window_exceeded: 'context_exceeded',
  refusal: 'refused',
  pause_turn: 'paused',
  compaction: 'compacted',
}

/** The vendor's stop reason in our words; one that it added later is `other`. */
export function stopReasonOf(raw: string): StopReason {
  return getOwn(stopReasons, raw) ?? 'other'
}

/** Whether the reply was cut where it stood, so that its last block may be half a block. */
export function cutsReply(stopReason: StopReason): boolean {
  return stopReason === 'max_tokens' || stopReason === 'context_exceeded' || stopReason === 'refused'
}

import type { Usage } from '@tallystick/core'
import { getOwn, isJsonObject, omitUndefined } from '@tallystick/core/internal'
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
import { getCount, toItems, getList, getNumber, getObject, omitFields, getText } from '../shared/json.ts'
import { type CallInput, omitUnknown, readCallInput, readGivenInput } from '../shared/reply.ts'
import type { ToolNames } from '../shared/request.ts'
import { api, type OpaqueData, provider, type WireBlock } from './client.ts'
import { readServerHalf } from './messages.ts'

/** Reads the citations of a text. The block's own fields go back as they came. */
function readCitations(block: JsonObject): readonly Citation[] {
  return getList(block, 'citations').flatMap((one) => {
    const [from, end] = [getNumber(one, 'start_page_number'), getNumber(one, 'end_page_number')]
    const citation = omitUnknown<Citation>({
      url: getText(one, 'url') ?? getText(one, 'source'),
      title: getText(one, 'title') ?? getText(one, 'document_title'),
      fileId: getText(one, 'file_id'),
      quote: getText(one, 'cited_text'),
      // The vendor's range excludes its last page.
      pages: from === undefined || end === undefined ? undefined : { from, to: Math.max(from, end - 1) },
      place: undefined,
    })
    return Object.keys(citation).length > 0 ? [citation] : []
  })
}

/** Reads what the vendor's web search or fetch found. */
function readSources({ type, content = null }: WireBlock): readonly Source[] {
  const found =
    type === 'web_search_tool_result'
      ? toItems(content)
      : type === 'web_fetch_tool_result' && isJsonObject(content)
        ? [content]
        : []
  return found.flatMap((one) => {
    const url = getText(one, 'url')
    const title = getText(getObject(one, 'content'), 'title') ?? getText(one, 'title')
    return url === undefined ? [] : [omitUnknown<Source>({ url, title, fileId: undefined })]
  })
}

/**
 * Reads a closed block of a tool that the vendor ran. `useOf` finds the block of this reply with the call, by its id: a
 * result names only that, and after a pause the call is in another reply.
 */
function readExecuted(
  block: WireBlock,
  useOf: (id: string) => JsonObject | undefined,
): ProviderExecuted | undefined {
  const half = readServerHalf(block)
  if (half === undefined) return undefined
  if (half.kind === 'use')
    return { id: half.id, name: nameTool(block), input: getObject(block, 'input') ?? {} }
  const use = useOf(half.id)
  const name = use === undefined ? block.type.replace(/_tool_result$/, '') : nameTool(use)
  // Errors of the vendor's tools are results like any other, and differ by their type only.
  const { is_error: isError, content } = block
  const failed = isError === true || (getText(content, 'type') ?? '').endsWith('_error')
  return { id: half.id, name, outcome: failed ? 'failed' : 'success' }
}

/** Two MCP servers may have tools of the same name, so theirs includes the server. */
function nameTool(use: JsonObject): string {
  const server = getText(use, 'server_name')
  const name = getText(use, 'name') ?? ''
  return server === undefined ? name : `${server}/${name}`
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

/** Begins a block from `content_block_start`, or from a complete block. */
export function openBlock(part: number, start: WireBlock): Block {
  const kind = getOwn(kinds, start.type) ?? 'provider'
  const textField = start.type === 'text' ? 'text' : start.type === 'thinking' ? 'thinking' : undefined
  const text = (textField && getText(start, textField)) ?? ''
  return { part, kind, fields: { ...start }, text, inputText: '', closed: false }
}

/** Adds one delta to the block. Returns signals for the part of it that can be shown. */
export function extendBlock(block: Block, delta: JsonObject, names: ToolNames): ModelSignal[] {
  // Fields of deltas are read by their names: by a variable name it costs more than all the rest.
  switch (delta['type'] as string) {
    case 'text_delta':
      if (block.kind === 'text') return addText(block, delta['text'])
      break
    case 'thinking_delta':
      if (block.kind === 'reasoning') return addText(block, delta['thinking'])
      break
    case 'input_json_delta': {
      const text = getText(delta, 'partial_json') ?? ''
      block.inputText += text
      if (block.kind !== 'call' || text === '') return []
      return [{ type: 'model_tool_input', part: block.part, name: readCallName(block, names), text }]
    }
    case 'citations_delta':
      block.fields['citations'] = [...getList(block.fields, 'citations'), delta['citation'] ?? null]
      return []
    case 'signature_delta':
      // A genuine block has one signature. The same one twice is a repetition, another one is its next piece.
      if (getText(block.fields, 'signature') === getText(delta, 'signature')) return []
      foldFields(block.fields, delta)
      return []
  }
  // A delta's fields carry the names of the block's: what neither of us knows yet still goes back whole.
  if (block.kind === 'provider') foldFields(block.fields, delta)
  return []
}

function addText(block: Block, text: Json | undefined): ModelSignal[] {
  if (typeof text !== 'string' || text === '') return []
  block.text += text
  return showText(block, text)
}

/** Shows a text, also one that some servers put into the start of a block. */
export function showText(block: Block, text: string): ModelSignal[] {
  return [{ type: block.kind === 'text' ? 'model_text' : 'model_reasoning', part: block.part, text }]
}

function foldFields(fields: { [field: string]: Json }, delta: JsonObject): void {
  for (const [key, value] of Object.entries(delta)) {
    if (key === 'type' || value === null) continue
    const before = fields[key]
    fields[key] = typeof before === 'string' && typeof value === 'string' ? before + value : value
  }
}

/** Marks a block as complete, and reads the input of a call. */
export function closeBlock(block: Block, names: ToolNames, container: JsonObject | undefined): void {
  block.closed = true
  if (block.kind !== 'call') return
  const rest = omitFields(block.fields, ['type', 'id', 'name', 'input'])
  const carries = container !== undefined || Object.keys(rest).length > 0
  block.call = {
    type: 'tool_call',
    providerCallId: getText(block.fields, 'id') ?? '',
    name: readCallName(block, names),
    ...readInput(block),
    ...(carries && { opaque: toOpaque({ block: rest, ...(container && { container }) }) }),
  }
}

function readCallName(block: Block, names: ToolNames): string {
  return names.fromWire(getText(block.fields, 'name') ?? '')
}

/** Deltas win over the start of the block, whose input is a placeholder, or complete if no delta follows. */
function readInput({ fields, inputText }: Block): CallInput {
  if (inputText.trim() !== '') return readCallInput(inputText)
  return readGivenInput(fields['input'])
}

/**
 * Turns a block into a part of the reply; `undefined` for a call, or a block of the vendor, that never closed. `useOf` finds
 * the block that a result answers, by its id.
 */
export function toPart(block: Block, useOf: (id: string) => JsonObject | undefined): ReplyPart | undefined {
  const { part, kind, text, fields } = block
  switch (kind) {
    case 'text': {
      const rest = omitFields(fields, ['type', 'text'])
      const citations = readCitations(fields)
      return {
        type: 'text',
        text,
        part,
        ...(citations.length > 0 && { citations }),
        ...(Object.keys(rest).length > 0 && { opaque: toOpaque({ block: rest }) }),
      }
    }
    case 'reasoning': {
      // Without its signature, or its encrypted data, thinking proves nothing and would be refused.
      const genuine = getText(fields, fields['type'] === 'thinking' ? 'signature' : 'data')
      const providerState = { block: omitFields(fields, ['thinking']) }
      return { type: 'reasoning', text, part, ...(genuine && { opaque: toOpaque(providerState) }) }
    }
    case 'call':
      return block.call && { ...block.call, part }
    case 'provider': {
      if (!block.closed) return undefined
      const input = block.inputText.trim() === '' ? {} : { input: readInput(block).input }
      const whole: WireBlock = { type: 'unknown', ...fields, ...input }
      const executed = readExecuted(whole, useOf)
      const sources = readSources(whole)
      return {
        type: 'provider',
        kind: whole.type,
        opaque: toOpaque({ block: whole }),
        part,
        ...(executed && { executed }),
        ...(sources.length > 0 && { sources }),
      }
    }
  }
}

/** Puts the sandbox of a reply on one of its parts, so that the next request finds it. */
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
  const loaded = { ...carrier, opaque: toOpaque({ ...providerState, container }) }
  return parts.map((part) => (part === carrier ? loaded : part))
}

/** Adds a part that never goes back: what the vendor says about the reply as a whole. */
export function withProviderState(
  parts: readonly ReplyPart[],
  kind: string,
  data: OpaqueData,
): readonly ReplyPart[] {
  const part = parts.reduce((last, { part: place }) => Math.max(last, place), -1) + 1
  return [...parts, { type: 'provider', kind, opaque: toOpaque(data), part }]
}

function toOpaque(data: OpaqueData): Opaque {
  return { provider, api, data }
}

/**
 * Merges two reports of usage. Reports are totals of the whole message, so later fields replace earlier ones; adding them up
 * would count the prompt twice.
 */
export function mergeUsage(earlier: JsonObject, later: JsonObject): JsonObject {
  return { ...earlier, ...Object.fromEntries(Object.entries(later).filter(([, value]) => value != null)) }
}

/**
 * The prompts that the model read for one reply: it is asked once, and again after each batch of results of the vendor's own
 * tools. `firstPrompt` is in tokens; the message's start says it.
 */
export interface Steps {
  readonly count: number
  readonly firstPrompt: number | undefined
}

/**
 * Counts tokens: the wire's `input_tokens` excludes cache reads and writes, `inputTokens` includes them. The message's own
 * numbers exclude compaction, an advisor, or a model that declined; `iterations` lists all of them, and all are billed.
 */
export function toUsageSignal(raw: JsonObject, steps?: Steps): Extract<ModelSignal, { type: 'model_usage' }> {
  const iterations = toItems(raw['iterations']).filter(isJsonObject)
  const billed = countTokens(raw)
  const sum: Tokens = new Map()
  for (const [field, count] of iterations.flatMap((one) => [...countTokens(one)])) {
    sum.set(field, (sum.get(field) ?? 0) + count)
  }
  // Neither count is lost if the other says less.
  for (const [field, count] of sum) billed.set(field, Math.max(billed.get(field) ?? 0, count))
  const reasoningTokens = getCount(getObject(raw, 'output_tokens_details'), 'thinking_tokens')
  const webSearches = getCount(getObject(raw, 'server_tool_use'), 'web_search_requests')
  const usage: Usage = { ...Object.fromEntries(billed), ...omitUndefined({ reasoningTokens, webSearches }) }
  const contextTokens = estimateContext(iterations, usage, steps)
  return { type: 'model_usage', usage, ...omitUndefined({ contextTokens }), raw }
}

/** Counts the tokens of a prompt, cache reads and writes included. */
export function countPromptTokens(raw: JsonObject): number | undefined {
  return countTokens(raw).get('inputTokens')
}

type Tokens = Map<keyof Usage, number>

function countTokens(raw: JsonObject): Tokens {
  const uncached = getCount(raw, 'input_tokens')
  const written = getCount(raw, 'cache_creation_input_tokens')
  const read = getCount(raw, 'cache_read_input_tokens')
  const counts: readonly (readonly [keyof Usage, number | undefined])[] = [
    ['inputTokens', uncached === undefined ? undefined : uncached + (written ?? 0) + (read ?? 0)],
    ['outputTokens', getCount(raw, 'output_tokens')],
    ['cacheReadTokens', read],
    ['cacheWriteTokens', written],
    ['cacheWriteLongTokens', getCount(getObject(raw, 'cache_creation'), 'ephemeral_1h_input_tokens')],
  ]
  return new Map(counts.flatMap(([field, count]) => (count === undefined ? [] : [[field, count] as const])))
}

/**
 * Estimates the tokens of the conversation after the reply if they are not what is billed. The last iteration that wrote the
 * message says it. Without iterations the first prompt and the sum of all tell, as if each step had added equally much,
 * which is exact for two steps.
 */
function estimateContext(
  iterations: readonly JsonObject[],
  { inputTokens, outputTokens = 0 }: Usage,
  steps: Steps | undefined,
): number | undefined {
  // A reply that is only a summary leaves only that.
  const [first, ...others] = iterations
  if (others.length === 0 && getText(first, 'type') === 'compaction') return getCount(first, 'output_tokens')
  const last = iterations.findLast((iteration) =>
    /^(fallback_)?message$/.test(getText(iteration, 'type') ?? ''),
  )
  if (last !== undefined) {
    const tokens = countTokens(last)
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

export function toStopReason(raw: string): StopReason {
  return getOwn(stopReasons, raw) ?? 'other'
}

/** True for a reply that was cut off, so that its last block may be incomplete. */
export function cutsReply(stopReason: StopReason): boolean {
  return stopReason === 'max_tokens' || stopReason === 'context_exceeded' || stopReason === 'refused'
}

import { getOwn, isJsonObject, omitUndefined } from '@tallystick/core/internal'
import type {
  Citation,
  Json,
  JsonObject,
  ModelSignal,
  Opaque,
  ReplyPart,
  RequestedCall,
  Source,
  StopReason,
} from '@tallystick/core/vocabulary'
import { toUsageSignal as anthropicUsage } from '../anthropic/reply.ts'
import { formatFailureText } from '../shared/failure.ts'
import { toItems, getNumber, getObject, getText } from '../shared/json.ts'
import { mergeUsageCounts, omitUnknown, readCallInput, type ReplyReader } from '../shared/reply.ts'
import type { ToolNames } from '../shared/request.ts'
import { createErroneousReplyError, failures, isMissingEnd, toProviderError } from './failure.ts'
import { type AiSdkWarning, api, toJson, toJsonObject, type OpaqueData, type WirePart } from './options.ts'

/** Reads citations. Version 3 lists only what was found. */
function readCitations(citations: Json | undefined): readonly Citation[] {
  return toItems(citations).flatMap((one) => {
    const source = getObject(one, 'source')
    if (source === undefined) return []
    const [from, to] = [getNumber(one, 'startIndex'), getNumber(one, 'endIndex')]
    const place = from === undefined || to === undefined || to <= from ? undefined : { from, to }
    const quote = getText(one, 'citedText')
    return readSources(source).map((found) => ({
      ...found,
      ...omitUnknown<Pick<Citation, 'quote' | 'place'>>({ quote, place }),
    }))
  })
}

function readSources(part: JsonObject | undefined): readonly Source[] {
  const [url, title] = [getText(part, 'url'), getText(part, 'title') ?? getText(part, 'filename')]
  return url === undefined && title === undefined
    ? []
    : [omitUnknown<Source>({ url, title, fileId: undefined })]
}

/** A part of the reply while it streams. */
class Block {
  readonly part: number
  readonly kind: 'text' | 'reasoning' | 'call' | 'provider'
  /** The last that was said of it: each word replaces the one before, as in the AI SDK itself. */
  metadata: JsonObject | undefined
  text = ''
  citations: Json | undefined
  /** The whole part, if it is the provider's own. */
  whole: JsonObject | undefined
  call: RequestedCall | undefined

  constructor(part: number, kind: Block['kind'], metadata: unknown) {
    this.part = part
    this.kind = kind
    this.metadata = toJsonObject(metadata)
  }
}

function toOpaque(provider: string, block: Block): { readonly opaque?: Opaque } {
  const { metadata, citations, whole } = block
  if (metadata === undefined && citations === undefined && whole === undefined) return {}
  const data: OpaqueData = {
    ...(metadata && { metadata: metadata as OpaqueData['metadata'] & JsonObject }),
    ...(citations !== undefined && { citations }),
    ...(whole && { part: whole }),
  }
  return { opaque: { provider, api, data } }
}

/** Turns a block into a part of the reply; `undefined` for a call that never ended. */
function toPart(provider: string, block: Block): ReplyPart | undefined {
  const { part, kind, text, call, whole } = block
  const carried = toOpaque(provider, block)
  switch (kind) {
    case 'text': {
      const citations = readCitations(block.citations)
      return { type: kind, text, part, ...(citations.length > 0 && { citations }), ...carried }
    }
    case 'reasoning':
      return { type: kind, text, part, ...carried }
    case 'call':
      return call && { ...call, part }
    case 'provider': {
      const { opaque } = carried
      const type = getText(whole, 'type') ?? 'unknown'
      const sources = type === 'source' ? readSources(whole) : []
      return opaque && { type: kind, kind: type, opaque, part, ...(sources.length > 0 && { sources }) }
    }
  }
}

/** Providers' own words for which the AI SDK has only a coarser one. */
const byRaw: { readonly [raw: string]: StopReason } = {
  refusal: 'refused',
  pause_turn: 'paused',
  compaction: 'compacted',
  model_context_window_exceeded: 'context_exceeded',
}

const byUnified: { readonly [unified: string]: StopReason } = {
  stop: 'end',
  length: 'max_tokens',
  'content-filter': 'content_filtered',
  'tool-calls': 'tool_use',
}

/** A reply that calls our tools and says that it is done waits for them. */
export function toStopReason(unified: string, raw: string | undefined, hadCalls: boolean): StopReason {
  const known = raw === undefined ? undefined : getOwn(byRaw, raw)
  const reason = known ?? getOwn(byUnified, unified) ?? 'other'
  return reason === 'end' && hadCalls ? 'tool_use' : reason
}

/** True for a reply that was cut off, so that its last call may be incomplete. */
export function cutsReply(reason: StopReason): boolean {
  return ['max_tokens', 'context_exceeded', 'refused', 'content_filtered'].includes(reason)
}

/**
 * Returns why the reply ended. Throws a `ProviderError` if nothing proves that it did: if the provider says itself that the end
 * is missing, or if the last call, without readable input, leaves it `unproven`.
 */
export function requireReason(
  unified: string,
  raw: string | undefined,
  {
    endOfStreamIsEnd,
    endMissing,
    unproven,
  }: { readonly endOfStreamIsEnd: boolean; readonly endMissing: boolean; readonly unproven: boolean },
): string {
  if (unified === 'error' && !endMissing) throw createErroneousReplyError(raw)
  // For a stream that was cut, version 3 gives neither a reason nor a raw one.
  const proven = unified !== 'interrupted' && (unified !== 'other' || raw !== undefined)
  if (proven && !endMissing) return unified
  // Only the input itself could prove its end.
  if (!endOfStreamIsEnd || unproven) throw failures.truncatedReply()
  return 'stop'
}

/**
 * The tokens of the call: none if the provider counted none. `raw` is the provider's own object, with what it did not
 * support of the request as `warnings` beside it, if it said so.
 */
function toUsageSignals(
  { inputTokens, outputTokens, raw }: Extract<WirePart, { readonly type: 'finish' }>['usage'],
  warnings: Json,
): readonly ModelSignal[] {
  const usage = mergeUsageCounts({
    inputTokens: inputTokens.total,
    outputTokens: outputTokens.total,
    cacheReadTokens: inputTokens.cacheRead,
    cacheWriteTokens: inputTokens.cacheWrite,
    reasoningTokens: outputTokens.reasoning,
    cacheWriteLongTokens: undefined,
    webSearches: undefined,
  })
  // The AI SDK's counts exclude an advisor, the cache of a compaction, and searches, all of which Anthropic bills.
  const ofAnthropic =
    isJsonObject(raw) && 'cache_creation_input_tokens' in raw ? anthropicUsage(raw) : undefined
  const billed = ofAnthropic && {
    usage: { ...usage, ...ofAnthropic.usage },
    ...omitUndefined({ contextTokens: ofAnthropic.contextTokens }),
  }
  const shown = { ...toJsonObject(raw), ...(warnings !== null && { warnings }) }
  const [counted, isReported] = [usage, shown].map((object) => Object.keys(object).length > 0)
  return counted || isReported
    ? [{ type: 'model_usage', usage, ...billed, ...(isReported && { raw: shown }) }]
    : []
}

/** True for a warning of a provider that does not pass the schema of an answer on. */
export function isOfAnswerSchema(warning: object): boolean {
  return getText(warning, 'feature')?.startsWith('responseFormat') === true
}

/** The parts of the request that reading a reply needs. */
export interface ReplyContext {
  readonly provider: string
  readonly names: ToolNames
  /** A reply without a sign of its end counts as complete. */
  readonly endOfStreamIsEnd: boolean
  readonly now: () => number
  readonly warn: (warning: AiSdkWarning) => void
}

type ContentPart = Exclude<
  WirePart,
  { readonly type: 'stream-start' | 'response-metadata' | 'raw' | 'ping' | 'error' | 'finish' }
>

interface Described {
  readonly id: string
  readonly providerMetadata?: unknown
}

/** Reads one reply, which only its last part ends. */
export class AiSdkReader implements ReplyReader<WirePart> {
  readonly #context: ReplyContext
  readonly #blocks: Block[] = []
  /** The blocks that stream now, by the kind and the id that the AI SDK gave them. */
  readonly #open = new Map<string, Block>()
  /** The names of calls whose input streams as JSON. */
  readonly #typed = new Map<string, string>()
  /** The provider says itself that the stream ended before the reply did. */
  #endMissing = false
  /** The last call has no readable input, so it may have been cut. */
  #unproven = false
  #warnings: Json = null
  #messageId: string | undefined
  #started = false
  finished = false

  constructor(context: ReplyContext) {
    this.#context = context
  }

  /**
   * PROVIDER MAPPING: turns one part of the AI SDK's stream into signals. Keeps parts of unknown kinds as the provider's own.
   * Throws a `ProviderError` if the stream reports a failure, or ends without proof.
   */
  *read(part: WirePart): Generator<ModelSignal, void> {
    if (this.finished || part.type === 'raw' || part.type === 'ping') return
    if (part.type === 'error') {
      // The next parts decide whether it is an end.
      if (!isMissingEnd(part.error)) throw toProviderError(part.error, { now: this.#context.now() })
      this.#endMissing = true
    } else if (part.type === 'stream-start') {
      if (part.warnings.length > 0) this.#warnings = toJson(part.warnings)
      for (const warning of part.warnings) {
        const texts = Object.entries(warning).flatMap(([key, value]) =>
          key === 'type' ? [] : [value as unknown],
        )
        const message = formatFailureText(texts.filter((text) => typeof text === 'string').join(': '))
        this.#context.warn({ what: warning.type, message })
      }
    } else if (part.type === 'response-metadata') {
      this.#messageId = part.id ?? this.#messageId
      yield* this.#start(part.modelId)
    } else if (part.type === 'finish') yield* this.#finish(part)
    else {
      yield* this.#start()
      yield* this.#readContent(part)
    }
  }

  #start(servedModel?: string): readonly ModelSignal[] {
    if (this.#started) return []
    this.#started = true
    return [{ type: 'model_started', ...omitUndefined({ providerMessageId: this.#messageId, servedModel }) }]
  }

  #readContent(part: ContentPart): readonly ModelSignal[] {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#openBlock(part.type === 'text-start' ? 'text' : 'reasoning', part)
        return []
      case 'text-delta':
      case 'reasoning-delta':
        return this.#addText(part.type === 'text-delta' ? 'text' : 'reasoning', part)
      case 'text-end':
      case 'reasoning-end': {
        const key = `${part.type === 'text-end' ? 'text' : 'reasoning'} ${part.id}`
        const block = this.#open.get(key)
        this.#open.delete(key)
        if (block === undefined) return []
        block.metadata = toJsonObject(part.providerMetadata) ?? block.metadata
        if (part.type === 'text-end' && part.citations?.length) block.citations = toJson(part.citations)
        return []
      }
      case 'tool-input-start':
        if (part.providerExecuted === true) return []
        this.#openBlock('call', part)
        if (part.inputEncoding !== 'text')
          this.#typed.set(part.id, this.#context.names.fromWire(part.toolName))
        return []
      case 'tool-input-delta': {
        const { id, delta: text } = part
        const [block, name] = [this.#open.get(`call ${id}`), this.#typed.get(id)]
        if (block === undefined || name === undefined || text === '') return []
        return [{ type: 'model_tool_input', part: block.part, name, text }]
      }
      case 'tool-input-end':
        return []
      case 'tool-call':
        if (part.providerExecuted === true) break
        this.#keepCall(part)
        return []
      case 'tool-result':
        // The final result follows a preliminary one.
        if (part.preliminary === true) return []
        break
      case 'source':
      case 'file':
      case 'reasoning-file':
      case 'tool-approval-request':
        break
      case 'custom':
        // It describes the whole message, and is not a piece of it.
        if (part.kind.endsWith('.message_start')) return []
    }
    // Only the provider understands it: its own tools, sources, files, new kinds.
    const { providerMetadata, ...whole } = part
    this.#newBlock('provider', providerMetadata).whole = toJsonObject(whole)
    return []
  }

  #newBlock(kind: Block['kind'], metadata: unknown): Block {
    const block = new Block(this.#blocks.length, kind, metadata)
    this.#blocks.push(block)
    return block
  }

  #openBlock(kind: 'text' | 'reasoning' | 'call', { id, providerMetadata }: Described): Block {
    const block = this.#newBlock(kind, providerMetadata)
    this.#open.set(`${kind} ${id}`, block)
    return block
  }

  #addText(kind: 'text' | 'reasoning', part: Described & { readonly delta: string }): readonly ModelSignal[] {
    const block = this.#open.get(`${kind} ${part.id}`) ?? this.#openBlock(kind, part)
    block.metadata = toJsonObject(part.providerMetadata) ?? block.metadata
    block.text += part.delta
    if (part.delta === '') return []
    return [{ type: kind === 'text' ? 'model_text' : 'model_reasoning', part: block.part, text: part.delta }]
  }

  /**
   * Calls are reported only after the reply has proved complete: at the end of a stream that was cut, providers complete what
   * they have of a call.
   */
  #keepCall(part: Extract<WirePart, { readonly type: 'tool-call' }>): void {
    const key = `call ${part.toolCallId}`
    const block = this.#open.get(key) ?? this.#newBlock('call', undefined)
    this.#open.delete(key)
    block.metadata = toJsonObject(part.providerMetadata) ?? block.metadata
    block.call = {
      type: 'tool_call',
      providerCallId: part.toolCallId,
      name: this.#context.names.fromWire(part.toolName),
      ...readCallInput(part.input),
      ...toOpaque(this.#context.provider, block),
    }
    this.#unproven = part.input.trim() === '' || block.call.malformed !== undefined
  }

  *#finish({
    usage,
    finishReason,
  }: Extract<WirePart, { readonly type: 'finish' }>): Generator<ModelSignal, void> {
    const { raw } = finishReason
    const { provider, endOfStreamIsEnd } = this.#context
    yield* toUsageSignals(usage, this.#warnings)
    const unified = requireReason(finishReason.unified, raw, {
      endOfStreamIsEnd,
      endMissing: this.#endMissing,
      unproven: this.#unproven,
    })
    yield* this.#start()
    const calls = this.#blocks.filter(({ call }) => call !== undefined)
    const stopReason = toStopReason(unified, raw, calls.length > 0)
    // The last call of a reply that was cut is incomplete if it cannot be read.
    if (cutsReply(stopReason) && calls.at(-1)?.call?.malformed) calls.pop()!.call = undefined
    for (const { part, call } of calls) if (call) yield { type: 'model_tool_request', part, call }
    this.finished = true
    yield {
      type: 'model_finished',
      stopReason,
      ...omitUndefined({ rawStopReason: raw }),
      parts: this.#blocks.map((block) => toPart(provider, block)).filter((one) => one !== undefined),
      ...omitUndefined({ providerMessageId: this.#messageId }),
      // The reason is Anthropic's, for every host of the model; so is the advice.
      ...(raw === 'refusal' && { refusal: { leaveOut: true as const, askAnother: true as const } }),
    }
  }
}

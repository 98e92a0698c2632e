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
import { usageSignal as anthropicUsage } from '../anthropic/reply.ts'
import { failureText } from '../shared/failure.ts'
import { itemsOf, numberAt, objectAt, textAt } from '../shared/json.ts'
import {
  mergeUsageCounts,
  omitUnknown,
  readCallInput,
  StatefulReader,
  type ReplyReader,
} from '../shared/reply.ts'
import type { ToolNames } from '../shared/request.ts'
import { erroneousReply, failures, isMissingEnd, toProviderError } from './failure.ts'
import { type AiSdkWarning, api, toJson, toJsonObject, type OpaqueData, type WirePart } from './options.ts'

/** Reads citations. Version 3 lists only what was found. */
function citationsIn(citations: Json | undefined): readonly Citation[] {
  return itemsOf(citations).flatMap((one) => {
    const source = objectAt(one, 'source')
    if (source === undefined) return []
    const [from, to] = [numberAt(one, 'startIndex'), numberAt(one, 'endIndex')]
    const place = from === undefined || to === undefined || to <= from ? undefined : { from, to }
    const quote = textAt(one, 'citedText')
    return sourcesIn(source).map((found) => ({
      ...found,
      ...omitUnknown<Pick<Citation, 'quote' | 'place'>>({ quote, place }),
    }))
  })
}

function sourcesIn(part: JsonObject | undefined): readonly Source[] {
  const [url, title] = [textAt(part, 'url'), textAt(part, 'title') ?? textAt(part, 'filename')]
  return url === undefined && title === undefined
    ? []
    : [omitUnknown<Source>({ url, title, fileId: undefined })]
}

/** A part of the reply while it streams. */
interface Block {
  readonly part: number
  readonly kind: 'text' | 'reasoning' | 'call' | 'provider'
  text: string
  /** The last that was said of it: each word replaces the one before, as in the AI SDK itself. */
  metadata: JsonObject | undefined
  citations: Json | undefined
  /** The whole part, where it is the provider's own. */
  whole: JsonObject | undefined
  call: RequestedCall | undefined
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
  const { part, kind, text } = block
  const { opaque } = toOpaque(provider, block)
  switch (kind) {
    case 'text': {
      const citations = citationsIn(block.citations)
      return { type: kind, text, part, ...(citations.length > 0 && { citations }), ...(opaque && { opaque }) }
    }
    case 'reasoning':
      return { type: kind, text, part, ...(opaque && { opaque }) }
    case 'call':
      return block.call && { ...block.call, part }
    case 'provider': {
      const type = block.whole?.['type']
      const sources = type === 'source' ? sourcesIn(block.whole) : []
      const shown = sources.length > 0 && { sources }
      return (
        opaque && {
          type: 'provider',
          kind: typeof type === 'string' ? type : 'unknown',
          opaque,
          part,
          ...shown,
        }
      )
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

/** How a stream ended, beside the reason that it gives. */
export interface Proof {
  /** A reply without a sign of its end counts as complete. */
  readonly endOfStreamIsEnd: boolean
  /** The provider says itself that the stream ended before the reply did. */
  readonly endMissing: boolean
  /** The last call has no readable input, so it may have been cut. */
  readonly unproven: boolean
}

/** Returns why the reply ended. Throws a `ProviderError` if nothing proves that it did. */
export function provenReason(
  unified: string,
  raw: string | undefined,
  { endOfStreamIsEnd, endMissing, unproven }: Proof,
): string {
  if (unified === 'error' && !endMissing) throw erroneousReply(raw)
  // For a stream that was cut, version 3 gives neither a reason nor a raw one.
  const proven = unified !== 'interrupted' && (unified !== 'other' || raw !== undefined)
  if (proven && !endMissing) return unified
  // Only the input itself could prove its end.
  if (!endOfStreamIsEnd || unproven) throw failures.truncatedReply()
  return 'stop'
}

type Counted = Extract<WirePart, { readonly type: 'finish' }>['usage']

/**
 * The tokens of the call: none where the provider counted none. `raw` is the provider's own object, with what it did not
 * support of the request as `warnings` beside it, if it said so.
 */
function usageSignals({ inputTokens, outputTokens, raw }: Counted, warnings: Json): readonly ModelSignal[] {
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

type WireWarning = Extract<WirePart, { readonly type: 'stream-start' }>['warnings'][number]

/** True if a provider says that it does not pass the schema of an answer on. */
export function isOfAnswerSchema(warning: WireWarning): boolean {
  return (
    'feature' in warning &&
    typeof warning.feature === 'string' &&
    warning.feature.startsWith('responseFormat')
  )
}

/** The state of one reply between two parts of the stream. */
export interface Reply {
  readonly provider: string
  readonly names: ToolNames
  /** A reply without a sign of its end counts as complete. */
  readonly endOfStreamIsEnd: boolean
  readonly now: () => number
  readonly warn: (warning: AiSdkWarning) => void
  readonly blocks: Block[]
  /** The blocks that stream now, by the kind and the id that the AI SDK gave them. */
  readonly open: Map<string, Block>
  /** The names of calls whose input streams as JSON. */
  readonly typed: Map<string, string>
  /** The provider says itself that the stream ended before the reply did. */
  endMissing: boolean
  /** The last call has no readable input, so it may have been cut. */
  unproven: boolean
  warnings: Json
  messageId: string | undefined
  started: boolean
  finished: boolean
}

/** The parts of the request that reading a reply needs. */
export type ReplyContext = Pick<Reply, 'provider' | 'names' | 'endOfStreamIsEnd' | 'now' | 'warn'>

export function startReply(given: ReplyContext): Reply {
  return {
    ...given,
    blocks: [],
    open: new Map(),
    typed: new Map(),
    endMissing: false,
    unproven: false,
    warnings: null,
    messageId: undefined,
    started: false,
    finished: false,
  }
}

/** Returns a reader of one reply, which only its last part ends. */
export function replyReader(context: ReplyContext): ReplyReader<WirePart> {
  return new StatefulReader(startReply(context), readPart)
}

/**
 * PROVIDER MAPPING: turns one part of the AI SDK's stream into signals, and keeps state in `reply`. Keeps parts of unknown
 * kinds as the provider's own. Throws a `ProviderError` if the stream reports a failure, or ends without proof.
 */
export function* readPart(reply: Reply, part: WirePart): Generator<ModelSignal, void> {
  if (reply.finished || part.type === 'raw' || part.type === 'ping') return
  if (part.type === 'error') {
    // The next parts decide whether it is an end.
    if (isMissingEnd(part.error)) reply.endMissing = true
    else throw toProviderError(part.error, { now: reply.now() })
    return
  }
  if (part.type === 'stream-start') {
    if (part.warnings.length > 0) reply.warnings = toJson(part.warnings)
    for (const warning of part.warnings) {
      const texts = Object.entries(warning).flatMap(([key, value]) =>
        key === 'type' ? [] : [value as unknown],
      )
      const message = failureText(texts.filter((text) => typeof text === 'string').join(': '))
      reply.warn({ what: warning.type, message })
    }
  } else if (part.type === 'response-metadata') {
    reply.messageId = part.id ?? reply.messageId
    if (!reply.started) yield start(reply, part.modelId)
  } else if (part.type === 'finish') yield* finish(reply, part)
  else {
    if (!reply.started) yield start(reply, undefined)
    yield* readContent(reply, part)
  }
}

function start(reply: Reply, servedModel: string | undefined): ModelSignal {
  reply.started = true
  return {
    type: 'model_started',
    ...(reply.messageId !== undefined && { providerMessageId: reply.messageId }),
    ...(servedModel !== undefined && { servedModel }),
  }
}

type ContentPart = Exclude<
  WirePart,
  { readonly type: 'stream-start' | 'response-metadata' | 'raw' | 'ping' | 'error' | 'finish' }
>

function* readContent(reply: Reply, part: ContentPart): Generator<ModelSignal, void> {
  switch (part.type) {
    case 'text-start':
    case 'reasoning-start':
      openBlock(reply, part.type === 'text-start' ? 'text' : 'reasoning', part)
      return
    case 'text-delta':
    case 'reasoning-delta':
      yield* moreText(reply, part.type === 'text-delta' ? 'text' : 'reasoning', part)
      return
    case 'text-end':
    case 'reasoning-end':
      closeText(reply, part)
      return
    case 'tool-input-start':
      if (part.providerExecuted === true) return
      openBlock(reply, 'call', part)
      if (part.inputEncoding !== 'text') reply.typed.set(part.id, reply.names.fromWire(part.toolName))
      return
    case 'tool-input-delta': {
      const { id, delta: text } = part
      const [block, name] = [reply.open.get(`call ${id}`), reply.typed.get(id)]
      if (block === undefined || name === undefined || text === '') return
      yield { type: 'model_tool_input', part: block.part, name, text }
      return
    }
    case 'tool-input-end':
      return
    case 'tool-call':
      if (part.providerExecuted === true) keepWhole(reply, part)
      else keepCall(reply, part)
      return
    case 'tool-result':
      // The final result follows a preliminary one.
      if (part.preliminary !== true) keepWhole(reply, part)
      return
    case 'source':
    case 'file':
    case 'reasoning-file':
    case 'tool-approval-request':
      break
    case 'custom':
      // It describes the whole message, and is not a piece of it.
      if (part.kind.endsWith('.message_start')) return
  }
  keepWhole(reply, part)
}

interface Described {
  readonly id: string
  readonly providerMetadata?: unknown
}

function newBlock(reply: Reply, kind: Block['kind'], metadata: unknown): Block {
  const block: Block = {
    part: reply.blocks.length,
    kind,
    text: '',
    metadata: toJsonObject(metadata),
    citations: undefined,
    whole: undefined,
    call: undefined,
  }
  reply.blocks.push(block)
  return block
}

function openBlock(
  reply: Reply,
  kind: 'text' | 'reasoning' | 'call',
  { id, providerMetadata }: Described,
): Block {
  const block = newBlock(reply, kind, providerMetadata)
  reply.open.set(`${kind} ${id}`, block)
  return block
}

function* moreText(
  reply: Reply,
  kind: 'text' | 'reasoning',
  part: Described & { readonly delta: string },
): Generator<ModelSignal, void> {
  const block = reply.open.get(`${kind} ${part.id}`) ?? openBlock(reply, kind, part)
  block.metadata = toJsonObject(part.providerMetadata) ?? block.metadata
  block.text += part.delta
  if (part.delta === '') return
  yield { type: kind === 'text' ? 'model_text' : 'model_reasoning', part: block.part, text: part.delta }
}

function closeText(
  reply: Reply,
  part: Extract<WirePart, { readonly type: 'text-end' | 'reasoning-end' }>,
): void {
  const key = `${part.type === 'text-end' ? 'text' : 'reasoning'} ${part.id}`
  const block = reply.open.get(key)
  reply.open.delete(key)
  if (block === undefined) return
  block.metadata = toJsonObject(part.providerMetadata) ?? block.metadata
  if (part.type === 'text-end' && part.citations?.length) block.citations = toJson(part.citations)
}

/**
 * Calls are reported only after the reply has proved complete: at the end of a stream that was cut, providers complete what
 * they have of a call.
 */
function keepCall(reply: Reply, part: Extract<WirePart, { readonly type: 'tool-call' }>): void {
  const key = `call ${part.toolCallId}`
  const block = reply.open.get(key) ?? newBlock(reply, 'call', undefined)
  reply.open.delete(key)
  block.metadata = toJsonObject(part.providerMetadata) ?? block.metadata
  block.call = {
    type: 'tool_call',
    providerCallId: part.toolCallId,
    name: reply.names.fromWire(part.toolName),
    ...readCallInput(part.input),
    ...toOpaque(reply.provider, block),
  }
  reply.unproven = part.input.trim() === '' || block.call.malformed !== undefined
}

/** Keeps a part that only the provider understands: of its own tools, sources, files, new kinds. */
function keepWhole(reply: Reply, part: ContentPart): void {
  const { providerMetadata, ...whole } = part
  newBlock(reply, 'provider', providerMetadata).whole = toJsonObject(whole)
}

function* finish(
  reply: Reply,
  { usage, finishReason }: Extract<WirePart, { readonly type: 'finish' }>,
): Generator<ModelSignal, void> {
  const { messageId } = reply
  const { raw } = finishReason
  yield* usageSignals(usage, reply.warnings)
  const unified = provenReason(finishReason.unified, raw, reply)
  if (!reply.started) yield start(reply, undefined)
  const calls = reply.blocks.filter(({ call }) => call !== undefined)
  const stopReason = toStopReason(unified, raw, calls.length > 0)
  // The last call of a reply that was cut is incomplete if it cannot be read.
  if (cutsReply(stopReason) && calls.at(-1)?.call?.malformed) calls.pop()!.call = undefined
  for (const { part, call } of calls) if (call) yield { type: 'model_tool_request', part, call }
  reply.finished = true
  yield {
    type: 'model_finished',
    stopReason,
    ...(raw !== undefined && { rawStopReason: raw }),
    parts: reply.blocks.map((block) => toPart(reply.provider, block)).filter((one) => one !== undefined),
    ...(messageId !== undefined && { providerMessageId: messageId }),
    // The reason is Anthropic's, for every host of the model; so is the advice.
    ...(raw === 'refusal' && { refusal: { leaveOut: true as const, askAnother: true as const } }),
  }
}

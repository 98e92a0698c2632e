import { isJsonObject } from '@tallystick/core/kit'
import type { ProviderError } from '@tallystick/core'
import type { Citation, Json, JsonObject, ModelSignal, ReplyPart, Source } from '@tallystick/core/vocabulary'
import { contradiction, failureInStream, lostCall } from '../../openai/client/failure.ts'
import { citationsIn, sourcesOf } from '../../openai/reply/citations.ts'
import { usageSignal } from '../../openai/reply/usage.ts'
import { itemsOf, numberAt, objectAt, restOf, textAt } from '../../shared/json/json-reading.ts'
import { readCallInput } from '../../shared/reply/call-input.ts'
import { RememberingReader, type ReplyReader } from '../../shared/stream/reply-reader.ts'
import type { StreamEnding } from '../../shared/stream/stream-tail.ts'
import {
  toOpaque,
  type OpaqueData,
  type ReasoningField,
  readOpaque,
  type WireCallDelta,
  type WireChunk,
} from '../client/wire.ts'
import type { ReplyContext } from '../request/reply-context.ts'
import { cutsReply, isBroken, stopReasonOf, stopsForTools } from './stop-reason.ts'
import { callOf, extendCall, type StreamedCall, streamedCallFor } from './streamed-call.ts'

/** A stretch of text or reasoning. */
interface Piece {
  readonly part: number
  readonly kind: 'text' | 'refusal' | ReasoningField
  text: string
  details: Json[]
  readonly citations: Citation[]
}

/** One reply while it streams: what has to be remembered between two chunks. */
interface Reply {
  readonly context: ReplyContext
  readonly pieces: Piece[]
  readonly streamedCalls: StreamedCall[]
  readonly choices: ChoiceCount
  /** Fields of the message that only its server understands, and wants back. */
  readonly message: { [field: string]: Json }
  parts: number
  started: boolean
  messageId: string | undefined
  /** How many chunks had the id of the first. */
  sameId: number
  rawStopReason: string | undefined
  /** What the whole reply leans on, where its server lists it beside the words. */
  listed: readonly Source[]
  failure: ProviderError | undefined
}

/**
 * Which choices of the chunks are the reply. We ask for one, but some servers count its index up with every chunk, while
 * others answer with several, whose chunks take turns.
 */
interface ChoiceCount {
  own: number | undefined
  next: number
  /** Choices that may be the reply's: what comes next tells. */
  held: JsonObject[]
  ways: 'unknown' | 'counts' | 'several'
}

/** A reply of which nothing has come yet. */
function startReply(context: ReplyContext): Reply {
  return {
    context,
    pieces: [],
    streamedCalls: [],
    choices: { own: undefined, next: 0, held: [], ways: 'unknown' },
    message: {},
    parts: 0,
    started: false,
    sameId: 0,
    listed: [],
    messageId: undefined,
    rawStopReason: undefined,
    failure: undefined,
  }
}

/**
 * The reply as the call reads it. A finish reason proves that it is whole, and yet usage, or a failure, may follow: only
 * the end of the stream ends it.
 */
export function replyReader(context: ReplyContext): ReplyReader {
  const reply = startReply(context)
  const reader = new RememberingReader<Reply, WireChunk>(reply, readChunk)
  return Object.assign(reader, { end: (ending: StreamEnding) => finish(reply, ending) })
}

/**
 * PROVIDER MAPPING: one chunk of the wire to the signals that follow from it, `reply` being carried along. Only one
 * choice is read. Throws a `ProviderError` where two streams are spliced together or the chunk tells of a failure.
 */
function readChunk(reply: Reply, chunk: WireChunk): readonly ModelSignal[] {
  if (!isJsonObject(chunk)) return []
  const told = errorIn(chunk)
  if (told) throw failureInStream(told)
  const signals = start(reply, chunk)
  const choices = ownChoices(reply, chunk)
  for (const choice of choices) signals.push(...readChoice(reply, choice))
  if (Array.isArray(chunk.citations)) reply.listed = sourcesOf(chunk.citations)
  // Kimi counts in the last choice.
  const usage = chunk.usage ?? objectAt(chunk.x_groq, 'usage') ?? objectAt(choices.at(-1), 'usage')
  if (isJsonObject(usage)) signals.push(usageSignal(usage, 'chat'))
  return signals
}

/** What went wrong, where the chunk says so: in its own field, or as all that the chunk is. */
function errorIn(chunk: WireChunk): unknown {
  if (chunk.error) return chunk.error
  const words = ['message', 'detail'].some((name) => textAt(chunk, name))
  return chunk.choices === undefined && words ? chunk : undefined
}

function ownChoices(reply: Reply, chunk: WireChunk): readonly JsonObject[] {
  const count = reply.choices
  const choices = itemsOf(chunk.choices).filter(isJsonObject)
  const [first] = choices
  if (first === undefined) return []
  if (count.own === undefined) {
    count.own = placeOf(first)
    count.next = count.own + 1
    return [first]
  }
  const own = choices.find((choice) => placeOf(choice) === count.own)
  if (own !== undefined) {
    if (count.held.length > 0) Object.assign(count, { held: [], ways: 'several' })
    if (count.ways !== 'counts') count.next = Infinity
    return [own]
  }
  if (count.ways === 'several' || placeOf(first) !== count.next) return []
  count.next++
  count.held.push(first)
  // Choices that take turns come under one id, and nobody asks for so many.
  const isOtherId = textAt(chunk, 'id') !== reply.messageId
  if (count.ways !== 'counts' && !isOtherId && count.held.length < 3) return []
  count.ways = 'counts'
  return count.held.splice(0)
}

function placeOf(choice: JsonObject): number {
  return numberAt(choice, 'index') ?? 0
}

function start(reply: Reply, chunk: WireChunk): ModelSignal[] {
  const id = textAt(chunk, 'id') || undefined
  if (reply.started) {
    checkIdentity(reply, id, chunk)
    return []
  }
  const servedModel = textAt(chunk, 'model') || undefined
  // Azure's first chunk names neither the reply nor the model.
  if (id === undefined && servedModel === undefined && chunk.choices?.length === 0) return []
  reply.started = true
  reply.messageId = id
  return [
    {
      type: 'model_started',
      ...(id !== undefined && { providerMessageId: id }),
      ...(servedModel !== undefined && { servedModel }),
    },
  ]
}

/** Another id is another reply, unless the server makes up a new one for every chunk, as some do. */
function checkIdentity(reply: Reply, id: string | undefined, chunk: WireChunk): void {
  if (id === undefined) return
  reply.messageId ??= id
  if (id === reply.messageId) reply.sameId += 1
  else if (reply.sameId > 0 && isFirst(chunk)) {
    throw contradiction('a second reply began before the first had ended, as when a gateway tries again')
  }
}

/** Whether a chunk says nothing but that a reply begins. */
function isFirst({ choices }: WireChunk): boolean {
  const choice = Array.isArray(choices) ? choices[0] : undefined
  const { role, ...rest } = objectAt(choice, 'delta') ?? {}
  const silent = Object.values(rest).every((value) => value === null || value === '')
  return role === 'assistant' && silent && !textAt(choice, 'finish_reason')
}

function readChoice(reply: Reply, choice: JsonObject): ModelSignal[] {
  const delta = objectAt(choice, 'delta') ?? objectAt(choice, 'message') ?? {}
  const signals = readReasoning(reply, delta)
  signals.push(...readContent(reply, delta['content']))
  signals.push(...more(reply, 'refusal', textAt(delta, 'refusal') ?? ''))
  signals.push(...readCalls(reply, delta))
  const extra = objectAt(delta, 'extra_content')
  if (extra) reply.message['extra_content'] = { ...objectAt(reply.message, 'extra_content'), ...extra }
  reply.pieces.findLast(({ kind }) => kind === 'text')?.citations.push(...citationsIn(delta['annotations']))
  const reason = textAt(choice, 'finish_reason')
  if (reason) reply.rawStopReason = reason
  if (reason !== undefined && isBroken(reason)) {
    const told = isJsonObject(choice) ? choice['error'] : undefined
    reply.failure = failureInStream(told || { code: reason, message: 'the server gave the reply up' })
  }
  return signals
}

function readReasoning(reply: Reply, delta: JsonObject): ModelSignal[] {
  const details = delta['reasoning_details']
  const field = (['reasoning_content', 'reasoning'] as const).find((one) => textAt(delta, one))
  const signals = field === undefined ? [] : more(reply, field, textAt(delta, field) ?? '')
  // A model that thought nothing says so, and its server wants to hear it again.
  if (delta['reasoning_content'] === '') reply.message['reasoning_content'] = ''
  if (!Array.isArray(details) || details.length === 0) return signals
  const last = reply.pieces.at(-1)
  const piece = last && isReasoning(last) ? last : addPiece(reply, 'reasoning')
  piece.details.push(...(details as readonly Json[]))
  return signals
}

/** Text as a string, or in pieces, some of which are thoughts. */
function readContent(reply: Reply, content: Json | undefined): ModelSignal[] {
  if (typeof content === 'string') return more(reply, 'text', content)
  if (!Array.isArray(content)) return []
  return content.flatMap((one: Json) => {
    if (textAt(one, 'type') !== 'thinking') return more(reply, 'text', textAt(one, 'text') ?? '')
    const thoughts = isJsonObject(one) ? one['thinking'] : undefined
    const texts = Array.isArray(thoughts)
      ? thoughts.map((thought: Json) => textAt(thought, 'text') ?? '')
      : []
    return more(reply, 'thinking', typeof thoughts === 'string' ? thoughts : texts.join(''))
  })
}

function more(reply: Reply, kind: Piece['kind'], text: string): ModelSignal[] {
  if (text === '') return []
  const last = reply.pieces.at(-1)
  const piece = last?.kind === kind && last.part === reply.parts - 1 ? last : addPiece(reply, kind)
  piece.text += text
  return [{ type: isReasoning(piece) ? 'model_reasoning' : 'model_text', part: piece.part, text }]
}

function addPiece(reply: Reply, kind: Piece['kind']): Piece {
  const piece: Piece = { part: reply.parts++, kind, text: '', details: [], citations: [] }
  reply.pieces.push(piece)
  return piece
}

function isReasoning({ kind }: Piece): boolean {
  return kind !== 'text' && kind !== 'refusal'
}

function readCalls(reply: Reply, delta: JsonObject): ModelSignal[] {
  const listed = delta['tool_calls']
  const old = objectAt(delta, 'function_call')
  if (!Array.isArray(listed)) return old ? readCall(reply, { index: 0, function: old }) : []
  return listed.flatMap((piece: Json) => (isJsonObject(piece) ? readCall(reply, piece) : []))
}

function readCall(reply: Reply, delta: WireCallDelta): ModelSignal[] {
  const { streamedCalls, context } = reply
  const streamed = streamedCallFor(streamedCalls, delta, context, () => reply.parts++)
  if (streamed === undefined) return []
  const first = streamed.inputText === ''
  const text = extendCall(streamed, delta, context)
  if (text === '' || isServersOwn(streamed, context)) return []
  const name = reply.context.toolName(streamed.name)
  const begin = first ? `{${JSON.stringify(reply.context.customField(name))}:"` : ''
  const shown = streamed.custom ? begin + JSON.stringify(text).slice(1, -1) : text
  return [{ type: 'model_tool_input', part: streamed.part, name, text: shown }]
}

/** Whether the server runs a call itself: it says that it is no function, and names no tool of the request. */
function isServersOwn({ kind, name }: StreamedCall, { knows }: ReplyContext): boolean {
  return kind !== '' && !knows(name)
}

/** The last signals, when the reply was whole by now. */
function finish(reply: Reply, ending: StreamEnding): readonly ModelSignal[] | undefined {
  const held: ModelSignal[] = []
  for (const choice of reply.choices.held.splice(0)) held.push(...readChoice(reply, choice))
  const raw = reply.rawStopReason
  if (raw === undefined && !isWholeWithoutReason(reply, ending)) return undefined
  const cut = raw !== undefined && cutsReply(raw)
  citeListed(reply)
  const own = reply.streamedCalls.filter((streamed) => isServersOwn(streamed, reply.context))
  const asked = reply.streamedCalls.filter((streamed) => !own.includes(streamed))
  const calls = asked.flatMap((streamed, place) => {
    const call = callOf(streamed, reply.context)
    const last = place === asked.length - 1
    // Of a reply that was cut the last call may lack its end, and whether it does, only its input could say.
    const half = cut && last && (call.malformed !== undefined || streamed.inputText.trim() === '')
    return half ? [] : [{ streamed, call }]
  })
  const refused = reply.pieces.some(({ kind }) => kind === 'refusal')
  if (raw !== undefined && stopsForTools(raw) && calls.length + own.length === 0) throw lostCall(raw)
  const stopReason = stopReasonOf(raw ?? 'stop', calls.length > 0, refused)
  const { messageId, context } = reply
  const { provider } = context
  const parts: ReplyPart[] = [
    ...reply.pieces.map((piece) => partOf(piece, provider)),
    ...calls.map(({ streamed, call }): ReplyPart => ({ ...call, part: streamed.part })),
    ...own.map((streamed) => serversOwnPart(streamed, provider)),
  ]
  parts.sort((a, b) => a.part - b.part)
  return [
    ...held,
    ...calls.flatMap(({ streamed, call }): ModelSignal[] => [
      ...(streamed.custom && streamed.inputText !== '' ? [ended(streamed, call.name)] : []),
      { type: 'model_tool_request', part: streamed.part, call },
    ]),
    {
      type: 'model_finished',
      stopReason,
      ...(raw !== undefined && { rawStopReason: raw }),
      parts: withMessageFields(parts, reply),
      ...(messageId !== undefined && { providerMessageId: messageId }),
    },
  ]
}

/** Puts the fields of the message on its first part. */
function withMessageFields([first, ...more]: readonly ReplyPart[], { message, context }: Reply): ReplyPart[] {
  if (first === undefined) return []
  if (Object.keys(message).length === 0) return [first, ...more]
  const { provider } = context
  const opaque = toOpaque(provider, { ...readOpaque(first.opaque, provider), message })
  return [{ ...first, opaque }, ...more]
}

function serversOwnPart({ part, id, name, kind, inputText }: StreamedCall, provider: string): ReplyPart {
  const { input } = readCallInput(inputText)
  const executed = { id, name, input, outcome: 'success' as const }
  return { type: 'provider', kind, part, opaque: toOpaque(provider, {}), ...(id !== '' && { executed }) }
}

/** What a server lists beside the reply is cited by its last words, unless these say themselves what they cite. */
function citeListed({ pieces, listed }: Reply): void {
  const texts = pieces.filter(({ kind }) => kind === 'text')
  if (texts.every(({ citations }) => citations.length === 0)) texts.at(-1)?.citations.push(...listed)
}

/**
 * Whether a reply without a finish reason is whole. A server that is known to give none proves it by its last word, or by
 * the proper end of the stream; but a gateway may end a cut stream properly, so that a last call whose input never came, or
 * cannot be read, needs the last word.
 */
function isWholeWithoutReason({ pieces, streamedCalls, context }: Reply, ending: StreamEnding): boolean {
  if (!context.finishReasonOptional || ending === 'broken') return false
  if (streamedCalls.length === 0) return pieces.some(({ text }) => text !== '')
  const last = streamedCalls.at(-1) as StreamedCall
  const begun = last.inputText.trim() !== '' && callOf(last, context).malformed === undefined
  return begun || ending === 'terminated'
}

function ended({ part }: StreamedCall, name: string): ModelSignal {
  return { type: 'model_tool_input', part, name, text: '"}' }
}

function partOf({ part, kind, text, details, citations }: Piece, provider: string): ReplyPart {
  if (kind === 'text') return { type: 'text', text, part, ...(citations.length > 0 && { citations }) }
  if (kind === 'refusal') return { type: 'text', text, part, opaque: toOpaque(provider, { refusal: true }) }
  const merged = mergedDetails(details)
  const providerState: OpaqueData = { reasoning: kind, ...(merged.length > 0 && { details: merged }) }
  return { type: 'reasoning', text, part, opaque: toOpaque(provider, providerState) }
}

/**
 * The signed pieces of reasoning as they were before the server cut them up for the stream: the pieces of one text have one
 * index, and its signature comes last. Cut up, the signature would fit none of them.
 */
function mergedDetails(details: readonly Json[]): readonly Json[] {
  const merged: { [field: string]: Json }[] = []
  for (const detail of details) {
    if (!isJsonObject(detail)) continue
    const begun = merged.findLast((one) => one['type'] === detail['type'] && one['index'] === detail['index'])
    const field = streamedFields[textAt(detail, 'type') ?? '']
    if (field === undefined || begun === undefined || isSigned(begun)) {
      if (begun === undefined || !isSameDetail(begun, detail)) merged.push({ ...detail })
      continue
    }
    const text = `${textAt(begun, field) ?? ''}${textAt(detail, field) ?? ''}`
    Object.assign(begun, restOf(detail, [field]), text !== '' && { [field]: text })
  }
  return merged
}

/** Where the text is of a piece of reasoning that may come in pieces. */
const streamedFields: { readonly [type: string]: string } = {
  'reasoning.text': 'text',
  'reasoning.summary': 'summary',
}

function isSigned(detail: JsonObject): boolean {
  return !!textAt(detail, 'signature')
}

function isSameDetail(one: JsonObject, other: JsonObject): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

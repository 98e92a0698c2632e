import type { ProviderError } from '@tallystick/core'
import { getOwn, isJsonObject } from '@tallystick/core/internal'
import type {
  Citation,
  Json,
  JsonObject,
  ModelSignal,
  ReplyPart,
  RequestedCall,
  Source,
  StopReason,
} from '@tallystick/core/vocabulary'
import type { StreamEnding } from '../shared/body.ts'
import { itemsOf, numberAt, objectAt, omitFields, textAt } from '../shared/json.ts'
import { readCallInput, StatefulReader, type ReplyReader, isEmptyInput } from '../shared/reply.ts'
import {
  type OpaqueData,
  readOpaque,
  type ReasoningField,
  toOpaque,
  type WireCallDelta,
  type WireChunk,
} from './chat-messages.ts'
import type { ReplyContext } from './chat-request.ts'
import { contradiction, failureInStream, lostCall } from './failure.ts'
import { type CallContext, readCitations, readSources, usageSignal } from './request.ts'

const known: { readonly [raw: string]: StopReason } = {
  stop: 'end',
  eos: 'end',
  eos_token: 'end',
  stop_sequence: 'end',
  end_turn: 'end',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  tool_use: 'tool_use',
  length: 'max_tokens',
  max_tokens: 'max_tokens',
  model_length: 'context_exceeded',
  model_context_window_exceeded: 'context_exceeded',
  content_filter: 'content_filtered',
  sensitive: 'content_filtered',
}

/** Finish reasons that say that the server gave up in the middle. */
const broken = new Set(['error', 'abort', 'cancelled', 'insufficient_system_resource', 'network_error'])
/** Gemini's finish reason, alone or after a filter's name, for a call that it could not read itself. */
const unreadCall = /malformed_function_call/i

/**
 * Returns a server's finish reason in our words. The calls decide whether the model wants tools: many servers say
 * `stop` after calls.
 */
export function toStopReason(raw: string, calls: boolean, refused: boolean): StopReason {
  const reason = getOwn(known, raw) ?? 'other'
  if (reason !== 'end' && reason !== 'tool_use') return reason
  if (calls) return 'tool_use'
  return refused ? 'refused' : 'end'
}

/** True for a reply that was cut off, so that its last call may be incomplete. */
export function cutsReply(raw: string): boolean {
  const reason = getOwn(known, raw)
  return reason === 'max_tokens' || reason === 'context_exceeded' || reason === 'content_filtered'
}

/** True for a reason that says that the server broke the reply off. */
export function isBroken(raw: string): boolean {
  return broken.has(raw) || unreadCall.test(raw)
}

/** One call while it streams. */
interface StreamedCall {
  readonly part: number
  /** Every index that its pieces came under. */
  readonly indexes: Set<number>
  /** It began under the index of a call that was whole: the server gives indexes again. */
  readonly beganLate: boolean
  id: string
  name: string
  /** The server's type of the call if it is neither a function nor a custom tool: then the server runs it itself. */
  kind: string
  custom: boolean
  inputText: string
  /** The server wrote `null` where the input belongs. */
  inputIsNull: boolean
  /** Other fields, such as signatures. */
  fields: JsonObject
  /** The nesting of the input up to where `isWhole` has scanned it. */
  nesting: { scanned: number; depth: number; inText: boolean; escaped: boolean }
}

/**
 * Finds or begins the call that a piece belongs to. The index joins pieces, as in the vendor's own client, since some
 * servers make up an id for each piece. But a piece that names a tool after a whole call begins another one, since other
 * servers give every call the index 0, or none. A piece of input without id and name continues the call that still waits
 * for its input, whatever its index. Returns `undefined` for a piece that says nothing.
 */
function findCall(
  calls: StreamedCall[],
  delta: WireCallDelta,
  context: CallContext,
  nextPart: () => number,
): StreamedCall | undefined {
  const { index } = delta
  const piece: CallPiece = { id: readId(delta), name: readName(delta), text: readInput(delta), index }
  const known = matchPiece(calls, piece, context)
  const call = known === 'another' ? beginCall(calls, piece, nextPart) : known
  if (index !== undefined) call?.indexes.add(index)
  return call
}

interface CallPiece {
  readonly id: string
  readonly name: string
  readonly text: string
  readonly index: number | undefined
}

function matchPiece(
  calls: readonly StreamedCall[],
  piece: CallPiece,
  context: CallContext,
): StreamedCall | 'another' | undefined {
  const { id, name, text, index } = piece
  const last = calls.at(-1)
  const inPlace = index === undefined ? last : calls.findLast(({ indexes }) => indexes.has(index))
  const sameId = id === '' ? undefined : calls.find((call) => call.id === id)
  if (inPlace === undefined) {
    if (name !== '') return 'another'
    if (sameId !== undefined) return sameId
    if (text === '') return id === '' ? undefined : 'another'
    return last !== undefined && !isWhole(last) ? last : 'another'
  }
  if (sameId !== undefined) {
    // One id for two calls: the index, where it says so, tells them apart.
    const call = index === undefined || sameId.indexes.has(index) ? sameId : inPlace
    // A second object in the input of a whole call cannot belong to it.
    const isAnother = name !== '' && isWhole(call) && text.trim() !== '' && text !== call.inputText
    return isAnother ? 'another' : call
  }
  return beginsAnother(inPlace, piece, context) ? 'another' : inPlace
}

/** Decides for a piece under the index of a call, but not under its id. */
function beginsAnother(call: StreamedCall, { id, name, text }: CallPiece, { knows }: CallContext): boolean {
  if (name === '' || call.name === '') return false
  if (isWhole(call)) return (id !== '' && call.id !== '') || name !== call.name || text.trim() !== ''
  if (name === call.name) return false
  if (call.inputText.trim() !== '') return true
  // Both may be pieces of one name, or the second may be the whole name so far.
  const isName = knows(call.name + name) || (name.startsWith(call.name) && knows(name))
  return !isName && (knows(call.name) || knows(name))
}

function beginCall(calls: StreamedCall[], { index }: CallPiece, nextPart: () => number): StreamedCall {
  const call: StreamedCall = {
    part: nextPart(),
    indexes: new Set(),
    beganLate: index !== undefined && calls.some(({ indexes }) => indexes.has(index)),
    id: '',
    name: '',
    kind: '',
    custom: false,
    inputText: '',
    inputIsNull: false,
    fields: {},
    nesting: { scanned: 0, depth: 0, inText: false, escaped: false },
  }
  calls.push(call)
  return call
}

/** True if the input so far is a complete object. Scans each character once, however often it is called. */
function isWhole({ inputText, nesting }: StreamedCall): boolean {
  for (; nesting.scanned < inputText.length; nesting.scanned++) {
    const character = inputText[nesting.scanned]
    if (nesting.escaped) nesting.escaped = false
    else if (nesting.inText) {
      if (character === '\\') nesting.escaped = true
      else if (character === '"') nesting.inText = false
    } else if (character === '"') nesting.inText = true
    else if (character === '{' || character === '[') nesting.depth++
    else if (character === '}' || character === ']') nesting.depth--
  }
  return nesting.depth === 0 && !nesting.inText && inputText.trim() !== ''
}

/** Adds a piece to its call. Returns the new text of the input. */
function extendCall(streamed: StreamedCall, delta: WireCallDelta, context: CallContext): string {
  streamed.custom ||= delta.type === 'custom' || isJsonObject(delta.custom)
  const { type } = delta
  if (typeof type === 'string' && !['function', 'custom'].includes(type)) streamed.kind ||= type
  // Some servers repeat the id, others send it empty, or another one with each piece: the first one counts.
  streamed.id ||= readId(delta)
  // A name may come in pieces, but not behind the beginning of the input.
  if (streamed.name === '' || streamed.inputText === '') {
    streamed.name = joinedName(streamed.name, readName(delta), context)
  }
  const rest = omitFields(delta, ['index', 'id', 'type', 'function', 'custom'])
  streamed.fields = { ...streamed.fields, ...rest }
  streamed.inputIsNull ||= readBody(delta)['arguments'] === null
  const text = readInput(delta)
  // A server that sends a whole call again says nothing new.
  if (text !== '' && text === streamed.inputText && readName(delta) !== '' && isWhole(streamed)) return ''
  streamed.inputText += text
  return text
}

function readBody({ custom, function: asked }: WireCallDelta): JsonObject {
  return isJsonObject(custom) ? custom : isJsonObject(asked) ? asked : {}
}

/** Some servers write `null` as a text. */
function readId(delta: WireCallDelta): string {
  const id = textAt(delta, 'id') ?? ''
  return /^(null|none|undefined)$/i.test(id) ? '' : id
}

function readName(delta: WireCallDelta): string {
  return textAt(readBody(delta), 'name') ?? ''
}

/** Some servers send an object where a text belongs. */
function readInput(delta: WireCallDelta): string {
  const body = readBody(delta)
  const given: Json | undefined = body['arguments'] ?? body['input']
  if (typeof given === 'string') return given
  return given === undefined || given === null ? '' : JSON.stringify(given)
}

/** A name comes whole, again with each piece, or in pieces. */
function joinedName(before: string, more: string, { knows }: CallContext): string {
  if (before === '' || more === '' || before === more) return before || more
  if (knows(before + more)) return before + more
  if (knows(before)) return before
  return more.startsWith(before) ? more : before + more
}

/** Reads a complete call. */
function readWholeCall(streamed: StreamedCall, context: CallContext): RequestedCall {
  const name = context.toolName(streamed.name)
  const field = streamed.custom ? context.customField(name) : undefined
  const read =
    field === undefined ? readJsonInput(streamed, name, context) : { input: { [field]: streamed.inputText } }
  const data: OpaqueData = {
    ...(field !== undefined && { field }),
    ...(Object.keys(streamed.fields).length > 0 && { call: streamed.fields }),
  }
  return {
    type: 'tool_call',
    providerCallId: streamed.id,
    name,
    ...read,
    ...(Object.keys(data).length > 0 && { opaque: toOpaque(context.provider, data) }),
  }
}

function readJsonInput(
  { inputText, beganLate, inputIsNull }: StreamedCall,
  name: string,
  { cleaned, takesNothing }: CallContext,
): Pick<RequestedCall, 'input' | 'malformed'> {
  const text = inputText.trim()
  if (takesNothing(name) && isEmptyInput(text)) return { input: {} }
  if (text === '' && (beganLate || inputIsNull)) {
    return {
      input: {},
      malformed: { text: '', error: inputIsNull ? 'The input is null.' : 'The input never came.' },
    }
  }
  const read = readCallInput(inputText)
  return read.malformed === undefined ? { input: cleaned(name, read.input) } : read
}

/** A stretch of text or reasoning. */
interface Piece {
  readonly part: number
  readonly kind: 'text' | 'refusal' | ReasoningField
  text: string
  details: Json[]
  readonly citations: Citation[]
}

/** The state of one reply between two chunks. */
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
  /** The sources that the server lists for the whole reply. */
  listed: readonly Source[]
  failure: ProviderError | undefined
}

/**
 * Tells which choices of the chunks are the reply. We ask for one, but some servers count its index up with every chunk,
 * while others answer with several whose chunks alternate.
 */
interface ChoiceCount {
  own: number | undefined
  next: number
  /** Choices that may be the reply's; the next chunks decide. */
  held: JsonObject[]
  ways: 'unknown' | 'counts' | 'several'
}

/**
 * Returns a reader of one reply. A finish reason proves that the reply is complete, but usage, or a failure, may follow:
 * only the end of the stream ends it.
 */
export function replyReader(context: ReplyContext): ReplyReader {
  const reply: Reply = {
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
  const reader = new StatefulReader<Reply, WireChunk>(reply, readChunk)
  return Object.assign(reader, { end: (ending: StreamEnding) => finish(reply, ending) })
}

/**
 * PROVIDER MAPPING: turns one chunk into signals, and keeps state in `reply`. Reads one choice only. Throws a
 * `ProviderError` if two streams are spliced together, or if the chunk reports a failure.
 */
function readChunk(reply: Reply, chunk: WireChunk): readonly ModelSignal[] {
  if (!isJsonObject(chunk)) return []
  const told = readError(chunk)
  if (told) throw failureInStream(told)
  const signals = start(reply, chunk)
  const choices = ownChoices(reply, chunk)
  for (const choice of choices) signals.push(...readChoice(reply, choice))
  if (Array.isArray(chunk.citations)) reply.listed = readSources(chunk.citations)
  // Kimi counts in the last choice.
  const usage = chunk.usage ?? objectAt(chunk.x_groq, 'usage') ?? objectAt(choices.at(-1), 'usage')
  if (isJsonObject(usage)) signals.push(usageSignal(usage, 'chat'))
  return signals
}

/** Returns the error that a chunk reports, in a field or as the whole chunk. */
function readError(chunk: WireChunk): unknown {
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
    count.own = readPlace(first)
    count.next = count.own + 1
    return [first]
  }
  const own = choices.find((choice) => readPlace(choice) === count.own)
  if (own !== undefined) {
    if (count.held.length > 0) Object.assign(count, { held: [], ways: 'several' })
    if (count.ways !== 'counts') count.next = Infinity
    return [own]
  }
  if (count.ways === 'several' || readPlace(first) !== count.next) return []
  count.next++
  count.held.push(first)
  // Choices that take turns come under one id, and nobody asks for so many.
  const isOtherId = textAt(chunk, 'id') !== reply.messageId
  if (count.ways !== 'counts' && !isOtherId && count.held.length < 3) return []
  count.ways = 'counts'
  return count.held.splice(0)
}

function readPlace(choice: JsonObject): number {
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

/** True for a chunk that only begins a reply. */
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
  signals.push(...addText(reply, 'refusal', textAt(delta, 'refusal') ?? ''))
  const old = objectAt(delta, 'function_call')
  const calls = delta['tool_calls'] ?? (old ? [{ index: 0, function: old }] : [])
  for (const piece of itemsOf(calls)) if (isJsonObject(piece)) signals.push(...readCall(reply, piece))
  const extra = objectAt(delta, 'extra_content')
  if (extra) reply.message['extra_content'] = { ...objectAt(reply.message, 'extra_content'), ...extra }
  reply.pieces.findLast(({ kind }) => kind === 'text')?.citations.push(...readCitations(delta['annotations']))
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
  const signals = field === undefined ? [] : addText(reply, field, textAt(delta, field) ?? '')
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
  if (typeof content === 'string') return addText(reply, 'text', content)
  if (!Array.isArray(content)) return []
  return content.flatMap((one: Json) => {
    if (textAt(one, 'type') !== 'thinking') return addText(reply, 'text', textAt(one, 'text') ?? '')
    const thoughts = isJsonObject(one) ? one['thinking'] : undefined
    const texts = Array.isArray(thoughts)
      ? thoughts.map((thought: Json) => textAt(thought, 'text') ?? '')
      : []
    return addText(reply, 'thinking', typeof thoughts === 'string' ? thoughts : texts.join(''))
  })
}

function addText(reply: Reply, kind: Piece['kind'], text: string): ModelSignal[] {
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

function readCall(reply: Reply, delta: WireCallDelta): ModelSignal[] {
  const { streamedCalls, context } = reply
  const streamed = findCall(streamedCalls, delta, context, () => reply.parts++)
  if (streamed === undefined) return []
  const first = streamed.inputText === ''
  const text = extendCall(streamed, delta, context)
  if (text === '' || isServersOwn(streamed, context)) return []
  const name = reply.context.toolName(streamed.name)
  const begin = first ? `{${JSON.stringify(reply.context.customField(name))}:"` : ''
  const shown = streamed.custom ? begin + JSON.stringify(text).slice(1, -1) : text
  return [{ type: 'model_tool_input', part: streamed.part, name, text: shown }]
}

/** True if the server runs a call itself: it is not a function, and names no tool of the request. */
function isServersOwn({ kind, name }: StreamedCall, { knows }: ReplyContext): boolean {
  return kind !== '' && !knows(name)
}

/** Returns the last signals if the reply is complete. */
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
    const call = readWholeCall(streamed, reply.context)
    const last = place === asked.length - 1
    // The last call of a reply that was cut may lack its end, and only its input tells.
    const half = cut && last && (call.malformed !== undefined || streamed.inputText.trim() === '')
    return half ? [] : [{ streamed, call }]
  })
  const refused = reply.pieces.some(({ kind }) => kind === 'refusal')
  if (raw !== undefined && getOwn(known, raw) === 'tool_use' && calls.length + own.length === 0)
    throw lostCall(raw)
  const stopReason = toStopReason(raw ?? 'stop', calls.length > 0, refused)
  const { messageId, context } = reply
  const { provider } = context
  const parts: ReplyPart[] = [
    ...reply.pieces.map((piece) => toPart(piece, provider)),
    ...calls.map(({ streamed, call }): ReplyPart => ({ ...call, part: streamed.part })),
    ...own.map((streamed) => serversOwnPart(streamed, provider)),
  ]
  parts.sort((a, b) => a.part - b.part)
  return [
    ...held,
    ...calls.flatMap(({ streamed, call }): ModelSignal[] => [
      ...(streamed.custom && streamed.inputText !== ''
        ? [{ type: 'model_tool_input', part: streamed.part, name: call.name, text: '"}' } as const]
        : []),
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

/** The last text cites what the server lists for the whole reply, unless texts cite themselves. */
function citeListed({ pieces, listed }: Reply): void {
  const texts = pieces.filter(({ kind }) => kind === 'text')
  if (texts.every(({ citations }) => citations.length === 0)) texts.at(-1)?.citations.push(...listed)
}

/**
 * Decides whether a reply without a finish reason is complete. A server that is known to give none proves it by `[DONE]`,
 * or by the proper end of the stream. But a gateway may end a cut stream properly, so a last call whose input never came,
 * or cannot be read, needs `[DONE]`.
 */
function isWholeWithoutReason({ pieces, streamedCalls, context }: Reply, ending: StreamEnding): boolean {
  if (!context.finishReasonOptional || ending === 'broken') return false
  if (streamedCalls.length === 0) return pieces.some(({ text }) => text !== '')
  const last = streamedCalls.at(-1) as StreamedCall
  const begun = last.inputText.trim() !== '' && readWholeCall(last, context).malformed === undefined
  return begun || ending === 'terminated'
}

function toPart({ part, kind, text, details, citations }: Piece, provider: string): ReplyPart {
  if (kind === 'text') return { type: 'text', text, part, ...(citations.length > 0 && { citations }) }
  if (kind === 'refusal') return { type: 'text', text, part, opaque: toOpaque(provider, { refusal: true }) }
  const merged = mergeDetails(details)
  const providerState: OpaqueData = { reasoning: kind, ...(merged.length > 0 && { details: merged }) }
  return { type: 'reasoning', text, part, opaque: toOpaque(provider, providerState) }
}

/**
 * Joins the signed pieces of reasoning that the server cut up for the stream: the pieces of one text have one index, and
 * its signature comes last and fits only the whole text.
 */
function mergeDetails(details: readonly Json[]): readonly Json[] {
  const merged: { [field: string]: Json }[] = []
  for (const detail of details) {
    if (!isJsonObject(detail)) continue
    const begun = merged.findLast((one) => one['type'] === detail['type'] && one['index'] === detail['index'])
    const field = streamedFields[textAt(detail, 'type') ?? '']
    if (field === undefined || begun === undefined || textAt(begun, 'signature')) {
      if (JSON.stringify(begun) !== JSON.stringify(detail)) merged.push({ ...detail })
      continue
    }
    const text = `${textAt(begun, field) ?? ''}${textAt(detail, field) ?? ''}`
    Object.assign(begun, omitFields(detail, [field]), text !== '' && { [field]: text })
  }
  return merged
}

/** The field that holds the text of a kind of reasoning. */
const streamedFields: { readonly [type: string]: string } = {
  'reasoning.text': 'text',
  'reasoning.summary': 'summary',
}

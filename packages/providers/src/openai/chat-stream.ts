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
import { itemsOf, numberAt, objectAt, restOf, textAt } from '../shared/json.ts'
import { readCallInput, RememberingReader, type ReplyReader, saysNothing } from '../shared/reply.ts'
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
import { type CallContext, citationsIn, sourcesOf, usageSignal } from './request.ts'

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

/** Words for an end that was none: the server gave up in the middle. */
const broken = new Set(['error', 'abort', 'cancelled', 'insufficient_system_resource', 'network_error'])
/** Gemini's word, alone or behind a filter's name, for a call that it could not read itself. */
const unreadCall = /malformed_function_call/i

/**
 * Returns a server's finish reason in our words. The calls decide whether the model wants tools: many servers say
 * `stop` after calls.
 */
export function stopReasonOf(raw: string, calls: boolean, refused: boolean): StopReason {
  const reason = getOwn(known, raw) ?? 'other'
  if (reason !== 'end' && reason !== 'tool_use') return reason
  if (calls) return 'tool_use'
  return refused ? 'refused' : 'end'
}

/** Whether the reply was cut where it stood, so that its last call may be half a call. */
export function cutsReply(raw: string): boolean {
  const reason = getOwn(known, raw)
  return reason === 'max_tokens' || reason === 'context_exceeded' || reason === 'content_filtered'
}

/** Whether the reason says that the server broke the reply off. */
export function isBroken(raw: string): boolean {
  return broken.has(raw) || unreadCall.test(raw)
}

/** Whether the reason says that the model waits for tools. */
function stopsForTools(raw: string): boolean {
  return getOwn(known, raw) === 'tool_use'
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
  /** What the server says that it is, where that is neither a function nor a custom tool: the server runs it itself. */
  kind: string
  custom: boolean
  inputText: string
  /** The server wrote `null` where the input belongs. */
  inputIsNull: boolean
  /** What else the server says of it: signatures, for instance. */
  fields: JsonObject
  /** How deep in objects and lists the input stood when it was last looked at; see `isWhole`. */
  nesting: { scanned: number; depth: number; inText: boolean; escaped: boolean }
}

/**
 * The call that a piece belongs to. The index joins pieces, as in the vendor's own client, since some servers make up an
 * id for each piece; but a piece that names a tool where a whole call stands begins another one, since other servers
 * give every call the index 0, or leave it out. A piece of an input that has neither id nor name continues the call that
 * still waits for its input, whatever its index. `undefined`: the piece says nothing.
 */
function streamedCallFor(
  calls: StreamedCall[],
  delta: WireCallDelta,
  context: CallContext,
  nextPart: () => number,
): StreamedCall | undefined {
  const { index } = delta
  const piece: CallPiece = { id: idOf(delta), name: nameIn(delta), text: inputIn(delta), index }
  const known = knownCall(calls, piece, context)
  const call = known === 'another' ? beginCall(calls, piece, nextPart) : known
  if (index !== undefined) call?.indexes.add(index)
  return call
}

/** What a piece says. */
interface CallPiece {
  readonly id: string
  readonly name: string
  readonly text: string
  readonly index: number | undefined
}

function knownCall(
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
    return name !== '' && isAnotherCall(call, text) ? 'another' : call
  }
  return beginsAnother(inPlace, piece, context) ? 'another' : inPlace
}

/** Whether a call under the id of a whole one is another: a second object in its input cannot belong to it. */
function isAnotherCall(call: StreamedCall, text: string): boolean {
  return isWhole(call) && text.trim() !== '' && text !== call.inputText
}

/** Whether a piece under the index of a call, and not under its id, begins another call. */
function beginsAnother(call: StreamedCall, { id, name, text }: CallPiece, context: CallContext): boolean {
  if (name === '' || call.name === '') return false
  if (isWhole(call)) return (id !== '' && call.id !== '') || name !== call.name || text.trim() !== ''
  if (name === call.name) return false
  return call.inputText.trim() !== '' || !isPartOfName(call.name, name, context)
}

/** Whether two words are pieces of one name, or the second is the first with what came since. */
function isPartOfName(before: string, more: string, { knows }: CallContext): boolean {
  if (knows(before + more) || (more.startsWith(before) && knows(more))) return true
  return !knows(before) && !knows(more)
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

/** Whether the input so far is an object that has ended. Each character is looked at once, however often it is asked. */
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
  streamed.kind ||= ownKind(delta)
  // Some servers repeat it, others send it empty, or another one with each piece: the first one counts.
  streamed.id ||= idOf(delta)
  // A name may come in pieces, but not behind the beginning of the input.
  if (streamed.name === '' || streamed.inputText === '') {
    streamed.name = joinedName(streamed.name, nameIn(delta), context)
  }
  const rest = restOf(delta, ['index', 'id', 'type', 'function', 'custom'])
  streamed.fields = { ...streamed.fields, ...rest }
  streamed.inputIsNull ||= bodyOf(delta)['arguments'] === null
  const text = inputIn(delta)
  // A server that sends a whole call again says nothing new.
  if (text !== '' && text === streamed.inputText && nameIn(delta) !== '' && isWhole(streamed)) return ''
  streamed.inputText += text
  return text
}

function bodyOf({ custom, function: asked }: WireCallDelta): JsonObject {
  return isJsonObject(custom) ? custom : isJsonObject(asked) ? asked : {}
}

/** Some servers write that they have no id. */
function idOf(delta: WireCallDelta): string {
  const id = textAt(delta, 'id') ?? ''
  return /^(null|none|undefined)$/i.test(id) ? '' : id
}

function nameIn(delta: WireCallDelta): string {
  return textAt(bodyOf(delta), 'name') ?? ''
}

/** Some servers send an object where a text belongs. */
function inputIn(delta: WireCallDelta): string {
  const body = bodyOf(delta)
  const given: Json | undefined = body['arguments'] ?? body['input']
  if (typeof given === 'string') return given
  return given === undefined || given === null ? '' : JSON.stringify(given)
}

function ownKind({ type }: WireCallDelta): string {
  return typeof type === 'string' && !['function', 'custom'].includes(type) ? type : ''
}

/** A name comes whole, again with each piece, or in pieces. */
function joinedName(before: string, more: string, { knows }: CallContext): string {
  if (before === '' || more === '' || before === more) return before || more
  if (knows(before + more)) return before + more
  if (knows(before)) return before
  return more.startsWith(before) ? more : before + more
}

/** Reads a call that is whole. */
function callOf(streamed: StreamedCall, context: CallContext): RequestedCall {
  const name = context.toolName(streamed.name)
  const { providerState, ...read } = streamed.custom
    ? customInput(streamed, name, context)
    : jsonInput(streamed, name, context)
  const data: OpaqueData = {
    ...providerState,
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

type Read = Pick<RequestedCall, 'input' | 'malformed'> & { readonly providerState: OpaqueData }

function customInput({ inputText }: StreamedCall, name: string, { customField }: CallContext): Read {
  const field = customField(name)
  return { input: { [field]: inputText }, providerState: { field } }
}

function jsonInput(streamed: StreamedCall, name: string, { cleaned, takesNothing }: CallContext): Read {
  const { inputText, beganLate, inputIsNull } = streamed
  const text = inputText.trim()
  if (takesNothing(name) && saysNothing(text)) return { input: {}, providerState: {} }
  if (text === '' && (beganLate || inputIsNull)) {
    const error = inputIsNull ? 'The input is null.' : 'The input never came.'
    return { input: {}, malformed: { text: '', error }, providerState: {} }
  }
  const read = readCallInput(inputText)
  if (read.malformed !== undefined) return { ...read, providerState: {} }
  return { input: cleaned(name, read.input), providerState: {} }
}

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

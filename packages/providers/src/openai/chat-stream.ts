import type { ProviderError } from '@tallystick/core'
import { getOwn, isJsonObject, omitUndefined } from '@tallystick/core/internal'
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
import { toItems, getList, getNumber, getObject, omitFields, getText } from '../shared/json.ts'
import { isEmptyInput, readCallInput, type ReplyReader } from '../shared/reply.ts'
import {
  type OpaqueData,
  readOpaque,
  type ReasoningField,
  toOpaque,
  type WireCallDelta,
  type WireChunk,
} from './chat-messages.ts'
import type { ReplyContext } from './chat-request.ts'
import { createContradiction, toStreamFailure, createLostCallError } from './failure.ts'
import { readCitations, readSources, toUsageSignal } from './request.ts'

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
class StreamedCall {
  readonly part: number
  /** Every index that its pieces came under. */
  readonly indexes = new Set<number>()
  /** It began under the index of a call that was whole: the server gives indexes again. */
  readonly beganLate: boolean
  id = ''
  name = ''
  /** The server's type of the call if it is neither a function nor a custom tool: then the server runs it itself. */
  kind = ''
  custom = false
  inputText = ''
  /** The server wrote `null` where the input belongs. */
  inputIsNull = false
  /** Other fields, such as signatures. */
  fields: JsonObject = {}
  /** The nesting of the input up to where it was scanned. */
  readonly #nesting = { scanned: 0, depth: 0, inText: false, escaped: false }

  constructor(part: number, beganLate: boolean) {
    this.part = part
    this.beganLate = beganLate
  }

  /** True if the input so far is a complete object. Scans each character once, however often it is called. */
  isWhole(): boolean {
    const nesting = this.#nesting
    for (; nesting.scanned < this.inputText.length; nesting.scanned++) {
      const character = this.inputText[nesting.scanned]
      if (nesting.escaped) nesting.escaped = false
      else if (nesting.inText) {
        if (character === '\\') nesting.escaped = true
        else if (character === '"') nesting.inText = false
      } else if (character === '"') nesting.inText = true
      else if (character === '{' || character === '[') nesting.depth++
      else if (character === '}' || character === ']') nesting.depth--
    }
    return nesting.depth === 0 && !nesting.inText && this.inputText.trim() !== ''
  }
}

interface CallPiece {
  readonly id: string
  readonly name: string
  readonly text: string
  readonly index: number | undefined
}

/** A stretch of text or reasoning. */
interface Piece {
  readonly part: number
  readonly kind: 'text' | 'refusal' | ReasoningField
  text: string
  details: Json[]
  readonly citations: Citation[]
}

/**
 * Reads one reply, one choice of it only. A finish reason proves that the reply is complete, but usage, or a failure, may
 * follow: only the end of the stream ends it.
 */
export class ChatReader implements ReplyReader<WireChunk> {
  readonly #context: ReplyContext
  readonly #pieces: Piece[] = []
  readonly #calls: StreamedCall[] = []
  /**
   * Tells which choices of the chunks are the reply. We ask for one, but some servers count its index up with every chunk,
   * while others answer with several whose chunks alternate. Those held may be the reply's; the next chunks decide.
   */
  readonly #choices = {
    own: undefined as number | undefined,
    next: 0,
    held: [] as JsonObject[],
    ways: 'unknown' as 'unknown' | 'counts' | 'several',
  }
  /** Fields of the message that only its server understands, and wants back. */
  readonly #message: { [field: string]: Json } = {}
  #parts = 0
  #started = false
  #messageId: string | undefined
  /** How many chunks had the id of the first. */
  #sameId = 0
  #rawStopReason: string | undefined
  /** The sources that the server lists for the whole reply. */
  #listed: readonly Source[] = []
  readonly finished = false
  failure: ProviderError | undefined

  constructor(context: ReplyContext) {
    this.#context = context
  }

  /**
   * PROVIDER MAPPING: turns one chunk into signals. Throws a `ProviderError` if two streams are spliced together, or if the
   * chunk reports a failure.
   */
  read(chunk: WireChunk): readonly ModelSignal[] {
    if (!isJsonObject(chunk)) return []
    if (chunk.error) throw toStreamFailure(chunk.error)
    const words = ['message', 'detail'].some((name) => getText(chunk, name))
    if (chunk.choices === undefined && words) throw toStreamFailure(chunk)
    const signals = this.#start(chunk)
    const choices = this.#ownChoices(chunk)
    for (const choice of choices) signals.push(...this.#readChoice(choice))
    if (Array.isArray(chunk.citations)) this.#listed = readSources(chunk.citations)
    // Kimi counts in the last choice.
    const usage = chunk.usage ?? getObject(chunk.x_groq, 'usage') ?? getObject(choices.at(-1), 'usage')
    if (isJsonObject(usage)) signals.push(toUsageSignal(usage, 'chat'))
    return signals
  }

  #start(chunk: WireChunk): ModelSignal[] {
    const id = getText(chunk, 'id') || undefined
    if (this.#started) {
      if (id === undefined) return []
      this.#messageId ??= id
      if (id === this.#messageId) this.#sameId += 1
      // Another id is another reply, unless the server makes up a new one for every chunk, as some do.
      else if (this.#sameId > 0 && isFirst(chunk)) {
        throw createContradiction(
          'a second reply began before the first had ended, as when a gateway tries again',
        )
      }
      return []
    }
    const servedModel = getText(chunk, 'model') || undefined
    // Azure's first chunk names neither the reply nor the model.
    if (id === undefined && servedModel === undefined && chunk.choices?.length === 0) return []
    this.#started = true
    this.#messageId = id
    return [{ type: 'model_started', ...omitUndefined({ providerMessageId: id, servedModel }) }]
  }

  #ownChoices(chunk: WireChunk): readonly JsonObject[] {
    const count = this.#choices
    const choices = toItems(chunk.choices).filter(isJsonObject)
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
    const isOtherId = getText(chunk, 'id') !== this.#messageId
    if (count.ways !== 'counts' && !isOtherId && count.held.length < 3) return []
    count.ways = 'counts'
    return count.held.splice(0)
  }

  #readChoice(choice: JsonObject): ModelSignal[] {
    const delta = getObject(choice, 'delta') ?? getObject(choice, 'message') ?? {}
    const field = (['reasoning_content', 'reasoning'] as const).find((one) => getText(delta, one))
    const signals = field === undefined ? [] : this.#addText(field, getText(delta, field) ?? '')
    // A model that thought nothing says so, and its server wants to hear it again.
    if (delta['reasoning_content'] === '') this.#message['reasoning_content'] = ''
    const details = getList(delta, 'reasoning_details')
    if (details.length > 0) {
      const last = this.#pieces.at(-1)
      const piece = last && isReasoning(last) ? last : this.#addPiece('reasoning')
      piece.details.push(...details)
    }
    signals.push(...this.#readContent(delta['content']))
    signals.push(...this.#addText('refusal', getText(delta, 'refusal') ?? ''))
    const old = getObject(delta, 'function_call')
    const calls = delta['tool_calls'] ?? (old ? [{ index: 0, function: old }] : [])
    for (const piece of toItems(calls)) if (isJsonObject(piece)) signals.push(...this.#readCall(piece))
    const extra = getObject(delta, 'extra_content')
    if (extra) this.#message['extra_content'] = { ...getObject(this.#message, 'extra_content'), ...extra }
    const citing = this.#pieces.findLast(({ kind }) => kind === 'text')
    citing?.citations.push(...readCitations(delta['annotations']))
    const reason = getText(choice, 'finish_reason')
    if (reason) this.#rawStopReason = reason
    if (reason !== undefined && isBroken(reason)) {
      this.failure = toStreamFailure(
        choice['error'] || { code: reason, message: 'the server abandoned the reply' },
      )
    }
    return signals
  }

  /** Text as a string, or in pieces; some are thoughts. */
  #readContent(content: Json | undefined): ModelSignal[] {
    if (typeof content === 'string') return this.#addText('text', content)
    return toItems(content).flatMap((one) => {
      if (getText(one, 'type') !== 'thinking') return this.#addText('text', getText(one, 'text') ?? '')
      const thoughts = getText(one, 'thinking')
      const texts = getList(one, 'thinking').map((thought) => getText(thought, 'text') ?? '')
      return this.#addText('thinking', thoughts ?? texts.join(''))
    })
  }

  #addText(kind: Piece['kind'], text: string): ModelSignal[] {
    if (text === '') return []
    const last = this.#pieces.at(-1)
    const piece = last?.kind === kind && last.part === this.#parts - 1 ? last : this.#addPiece(kind)
    piece.text += text
    return [{ type: isReasoning(piece) ? 'model_reasoning' : 'model_text', part: piece.part, text }]
  }

  #addPiece(kind: Piece['kind']): Piece {
    const piece: Piece = { part: this.#parts++, kind, text: '', details: [], citations: [] }
    this.#pieces.push(piece)
    return piece
  }

  /** Adds a piece to its call, unless it says nothing. */
  #readCall(delta: WireCallDelta): ModelSignal[] {
    const id = getText(delta, 'id') ?? ''
    const piece: CallPiece = {
      // Some servers write `null` as a text.
      id: /^(null|none|undefined)$/i.test(id) ? '' : id,
      name: getText(readBody(delta), 'name') ?? '',
      text: readInput(delta),
      index: delta.index,
    }
    const known = this.#findCall(piece)
    if (known === undefined) return []
    const streamed = known === 'another' ? this.#beginCall(piece) : known
    if (piece.index !== undefined) streamed.indexes.add(piece.index)
    const isFirst = streamed.inputText === ''
    streamed.custom ||= delta.type === 'custom' || isJsonObject(delta.custom)
    const { type } = delta
    if (typeof type === 'string' && !['function', 'custom'].includes(type)) streamed.kind ||= type
    // Some servers repeat the id, others send it empty, or another one with each piece: the first one counts.
    streamed.id ||= piece.id
    // A name may come in pieces, but not behind the beginning of the input.
    if (streamed.name === '' || isFirst) streamed.name = this.#joinName(streamed.name, piece.name)
    const rest = omitFields(delta, ['index', 'id', 'type', 'function', 'custom'])
    streamed.fields = { ...streamed.fields, ...rest }
    streamed.inputIsNull ||= readBody(delta)['arguments'] === null
    const { text } = piece
    // A server that repeats a whole call adds nothing.
    if (text === '' || (text === streamed.inputText && piece.name !== '' && streamed.isWhole())) return []
    streamed.inputText += text
    if (this.#isServersOwn(streamed)) return []
    const name = this.#context.toolName(streamed.name)
    const begin = isFirst ? `{${JSON.stringify(this.#context.customField(name))}:"` : ''
    const shown = streamed.custom ? begin + JSON.stringify(text).slice(1, -1) : text
    return [{ type: 'model_tool_input', part: streamed.part, name, text: shown }]
  }

  /**
   * Finds the call that a piece belongs to. The index joins pieces, as in the vendor's own client, since some servers make up
   * an id for each piece. But a piece that names a tool after a whole call begins another one, since other servers give every
   * call the index 0, or none. A piece of input without id and name continues the call that still waits for its input,
   * whatever its index. Returns `undefined` for a piece that says nothing.
   */
  #findCall({ id, name, text, index }: CallPiece): StreamedCall | 'another' | undefined {
    const calls = this.#calls
    const { knows } = this.#context
    const last = calls.at(-1)
    const inPlace = index === undefined ? last : calls.findLast(({ indexes }) => indexes.has(index))
    const sameId = id === '' ? undefined : calls.find((call) => call.id === id)
    if (inPlace === undefined) {
      if (name !== '') return 'another'
      if (sameId !== undefined) return sameId
      if (text === '') return id === '' ? undefined : 'another'
      return last !== undefined && !last.isWhole() ? last : 'another'
    }
    if (sameId !== undefined) {
      // One id for two calls: the index, if present, tells them apart.
      const call = index === undefined || sameId.indexes.has(index) ? sameId : inPlace
      // A second object in the input of a whole call cannot belong to it.
      const isAnother = name !== '' && call.isWhole() && text.trim() !== '' && text !== call.inputText
      return isAnother ? 'another' : call
    }
    // The piece came under the index of a call, but not under its id.
    const call = inPlace
    if (name === '' || call.name === '') return call
    if (call.isWhole()) {
      const isAnother = (id !== '' && call.id !== '') || name !== call.name || text.trim() !== ''
      return isAnother ? 'another' : call
    }
    if (name === call.name) return call
    if (call.inputText.trim() !== '') return 'another'
    // Both may be pieces of one name, or the second may be the whole name so far.
    const isName = knows(call.name + name) || (name.startsWith(call.name) && knows(name))
    return !isName && (knows(call.name) || knows(name)) ? 'another' : call
  }

  #beginCall({ index }: CallPiece): StreamedCall {
    const beganLate = index !== undefined && this.#calls.some(({ indexes }) => indexes.has(index))
    const call = new StreamedCall(this.#parts++, beganLate)
    this.#calls.push(call)
    return call
  }

  /** A name comes whole, again with each piece, or in pieces. */
  #joinName(before: string, more: string): string {
    const { knows } = this.#context
    if (before === '' || more === '' || before === more) return before || more
    if (knows(before + more)) return before + more
    if (knows(before)) return before
    return more.startsWith(before) ? more : before + more
  }

  /** True if the server runs a call itself: it is not a function, and names no tool of the request. */
  #isServersOwn({ kind, name }: StreamedCall): boolean {
    return kind !== '' && !this.#context.knows(name)
  }

  /** Returns the last signals if the reply is complete. */
  end(ending: StreamEnding): readonly ModelSignal[] | undefined {
    const signals = this.#choices.held.splice(0).flatMap((choice) => this.#readChoice(choice))
    const raw = this.#rawStopReason
    if (raw === undefined && !this.#isWholeWithoutReason(ending)) return undefined
    const cut = raw !== undefined && cutsReply(raw)
    // The last text cites what the server lists for the whole reply, unless texts cite themselves.
    const texts = this.#pieces.filter(({ kind }) => kind === 'text')
    if (texts.every(({ citations }) => citations.length === 0)) texts.at(-1)?.citations.push(...this.#listed)
    const own = this.#calls.filter((streamed) => this.#isServersOwn(streamed))
    const asked = this.#calls.filter((streamed) => !own.includes(streamed))
    const calls = asked.flatMap((streamed, place) => {
      const call = this.#readWholeCall(streamed)
      const last = place === asked.length - 1
      // The last call of a reply that was cut may be incomplete; only its input shows that.
      const half = cut && last && (call.malformed !== undefined || streamed.inputText.trim() === '')
      return half ? [] : [{ streamed, call }]
    })
    if (raw !== undefined && getOwn(known, raw) === 'tool_use' && calls.length + own.length === 0)
      throw createLostCallError(raw)
    const { provider } = this.#context
    const parts: ReplyPart[] = [
      ...this.#pieces.map((piece) => toPart(piece, provider)),
      ...calls.map(({ streamed, call }): ReplyPart => ({ ...call, part: streamed.part })),
      ...own.map(({ id, name, kind, part, inputText }): ReplyPart => {
        const executed = { id, name, input: readCallInput(inputText).input, outcome: 'success' as const }
        return {
          type: 'provider',
          kind,
          part,
          opaque: toOpaque(provider, {}),
          ...(id !== '' && { executed }),
        }
      }),
    ]
    parts.sort((a, b) => a.part - b.part)
    const [first] = parts
    if (first !== undefined && Object.keys(this.#message).length > 0) {
      const data = { ...readOpaque(first.opaque, provider), message: this.#message }
      parts[0] = { ...first, opaque: toOpaque(provider, data) }
    }
    for (const { streamed, call } of calls) {
      const { part, custom, inputText } = streamed
      if (custom && inputText !== '')
        signals.push({ type: 'model_tool_input', part, name: call.name, text: '"}' })
      signals.push({ type: 'model_tool_request', part, call })
    }
    const isRefused = this.#pieces.some(({ kind }) => kind === 'refusal')
    return [
      ...signals,
      {
        type: 'model_finished',
        stopReason: toStopReason(raw ?? 'stop', calls.length > 0, isRefused),
        ...(raw !== undefined && { rawStopReason: raw }),
        parts,
        ...omitUndefined({ providerMessageId: this.#messageId }),
      },
    ]
  }

  /**
   * Decides whether a reply without a finish reason is complete. A server that is known to give none proves it by `[DONE]`,
   * or by the proper end of the stream. But a gateway may end a cut stream properly, so a last call whose input never came,
   * or cannot be read, needs `[DONE]`.
   */
  #isWholeWithoutReason(ending: StreamEnding): boolean {
    if (!this.#context.finishReasonOptional || ending === 'broken') return false
    const last = this.#calls.at(-1)
    if (last === undefined) return this.#pieces.some(({ text }) => text !== '')
    const begun = last.inputText.trim() !== '' && this.#readWholeCall(last).malformed === undefined
    return begun || ending === 'terminated'
  }

  #readWholeCall(streamed: StreamedCall): RequestedCall {
    const name = this.#context.toolName(streamed.name)
    const field = streamed.custom ? this.#context.customField(name) : undefined
    const read =
      field === undefined ? this.#readJsonInput(streamed, name) : { input: { [field]: streamed.inputText } }
    const data: OpaqueData = {
      ...(field !== undefined && { field }),
      ...(Object.keys(streamed.fields).length > 0 && { call: streamed.fields }),
    }
    return {
      type: 'tool_call',
      providerCallId: streamed.id,
      name,
      ...read,
      ...(Object.keys(data).length > 0 && { opaque: toOpaque(this.#context.provider, data) }),
    }
  }

  #readJsonInput(
    { inputText, beganLate, inputIsNull }: StreamedCall,
    name: string,
  ): Pick<RequestedCall, 'input' | 'malformed'> {
    const text = inputText.trim()
    if (this.#context.takesNothing(name) && isEmptyInput(text)) return { input: {} }
    if (text === '' && (beganLate || inputIsNull)) {
      const error = inputIsNull ? 'The input is null.' : 'The input never came.'
      return { input: {}, malformed: { text: '', error } }
    }
    const read = readCallInput(inputText)
    return read.malformed === undefined ? { input: this.#context.cleaned(name, read.input) } : read
  }
}

function readBody({ custom, function: asked }: WireCallDelta): JsonObject {
  return isJsonObject(custom) ? custom : isJsonObject(asked) ? asked : {}
}

/** Some servers send an object where a text belongs. */
function readInput(delta: WireCallDelta): string {
  const body = readBody(delta)
  const given: Json | undefined = body['arguments'] ?? body['input']
  if (typeof given === 'string') return given
  return given === undefined || given === null ? '' : JSON.stringify(given)
}

function readPlace(choice: JsonObject): number {
  return getNumber(choice, 'index') ?? 0
}

/** True for a chunk that only begins a reply. */
function isFirst({ choices }: WireChunk): boolean {
  const choice = Array.isArray(choices) ? choices[0] : undefined
  const { role, ...rest } = getObject(choice, 'delta') ?? {}
  const silent = Object.values(rest).every((value) => value === null || value === '')
  return role === 'assistant' && silent && !getText(choice, 'finish_reason')
}

function isReasoning({ kind }: Piece): boolean {
  return kind !== 'text' && kind !== 'refusal'
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
    const field = streamedFields[getText(detail, 'type') ?? '']
    if (field === undefined || begun === undefined || getText(begun, 'signature')) {
      if (JSON.stringify(begun) !== JSON.stringify(detail)) merged.push({ ...detail })
      continue
    }
    const text = `${getText(begun, field) ?? ''}${getText(detail, field) ?? ''}`
    Object.assign(begun, omitFields(detail, [field]), text !== '' && { [field]: text })
  }
  return merged
}

/** The field that holds the text of a kind of reasoning. */
const streamedFields: { readonly [type: string]: string } = {
  'reasoning.text': 'text',
  'reasoning.summary': 'summary',
}

import { isJsonObject } from '@tallystick/core/kit'
import type { Json, JsonObject, RequestedCall } from '@tallystick/core/vocabulary'
import { readCallInput, saysNothing } from '../../shared/reply/call-input.ts'
import type { CallContext } from '../../openai/request/call-context.ts'
import { restOf, textAt } from '../../shared/json/json-reading.ts'
import { toOpaque, type OpaqueData, type WireCallDelta } from '../client/wire.ts'

/** One call while it streams. */
export interface StreamedCall {
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
export function streamedCallFor(
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
export function extendCall(streamed: StreamedCall, delta: WireCallDelta, context: CallContext): string {
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
export function callOf(streamed: StreamedCall, context: CallContext): RequestedCall {
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

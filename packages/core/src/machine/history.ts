import { ConfigurationError } from '../values/errors.ts'
import { type Message, joinText, type ToolResult, type UserMessage } from '../events/content.ts'
import { anyObject, listOf, requireNoPromise, requireOptions } from '../values/option.ts'
import { deepFreezeOnce, isSameJson } from '../values/json.ts'
import { computeDigest } from '../values/digest.ts'
import { estimateMessageTokens } from './tokens.ts'
import type { ShownChange, ShownMessages, ShownPiece } from '../events/event.ts'

/**
 * Law 3, for messages of any origin: returns why providers would refuse them. After each message that asked for tools
 * come its results, all of them, in its order; results come nowhere else. `undefined` if nothing is wrong. Whether the
 * messages before `from` are followed by what they have to be followed by is known.
 */
export function findPairingFault(messages: readonly Message[], from: number = 0): string | undefined {
  for (let index = from; index < messages.length; index++) {
    const message = messages[index] as Message
    const next = messages[index + 1]
    if (message.role === 'assistant') {
      const asked = message.parts.flatMap((part) => (part.type === 'tool_call' ? [part.toolCallId] : []))
      const answered = next?.role === 'tool' ? next.results.map(({ toolCallId }) => toolCallId) : []
      if (asked.join() !== answered.join()) return `message ${index} and its tool results do not match`
    } else if (next?.role === 'tool') {
      return `the tool results at ${index + 1} answer no message`
    }
  }
  return messages[0]?.role === 'tool' ? 'the tool results at 0 answer no message' : undefined
}

/** Refuses what an agent's code would show a model, and no provider would take. `subject` names the code. */
export function requireShown(messages: readonly Message[] | undefined, subject: string): void {
  if (messages === undefined) return
  requireNoPromise(subject, messages)
  requireOptions(subject, listOf(anyObject), messages, 'messages')
  const fault = messages.length === 0 ? 'nothing is left to be shown' : findPairingFault(messages)
  if (fault === undefined) return
  throw new ConfigurationError(
    `${subject} returned messages that no provider takes: ${fault}. Keep at least one message, and each call together with its result.`,
  )
}

/**
 * The messages of a conversation, growing at the end only. Values of this type never change, yet appending costs the
 * same however long the history is: views of one growth share their store, and each sees its first `length` messages.
 */
export interface History {
  readonly length: number
  readonly store: HistoryStore
}

/** Shared by all views of one growing history. It only grows; digests and tokens are computed once for each place. */
interface HistoryStore {
  readonly messages: Message[]
  /** Running digests of the first messages. */
  readonly digests: string[]
  /** About how many tokens the first messages are worth, up to each. */
  readonly tokens: number[]
  /** So many of the first messages are followed by what they have to be followed by: see `findPairingFault`. */
  followed: number
  /** So many of the first messages are copies that no code can change. */
  frozen: number
}

/**
 * The running digest of a history in which nothing was said: that of the text `tallystick history 1`. As a literal, since every
 * process that imports core would compute it.
 */
export const emptyHistoryDigest: string = '92c84428943c85c5678528fb003c4ffbb50dca1c180da9090754b00fca6df95d'

/** The histories that immutable arrays were made of. */
const knownHistories = new WeakMap<readonly Message[], History>()

/** A history of these messages: the one that they were made of, where they came out of `freezeMessages` or `withDigests`. */
export function createHistory(messages: readonly Message[]): History {
  const known = knownHistories.get(messages)
  if (known) return known
  const store = { messages: [...messages], digests: [], tokens: [], followed: 0, frozen: 0 }
  return { length: messages.length, store }
}

/** Returns the history with one more message. The given history does not change. */
export function appendMessage(history: History, message: Message): History {
  const { length, store } = history
  const next = store.messages[length]
  // A run that is read again has the history that its writer had: it shares what is known about it.
  if (next !== undefined && isSameJson(next, message)) return { length: length + 1, store }
  // A view that is not the newest of its store has other siblings: it grows in a store of its own.
  const own = next === undefined ? store : copyStore(history)
  own.messages.push(message)
  return { length: length + 1, store: own }
}

function copyStore({ length, store }: History): HistoryStore {
  const { messages, digests, tokens, followed, frozen } = store
  return {
    messages: messages.slice(0, length),
    digests: digests.slice(0, length),
    tokens: tokens.slice(0, length),
    followed: Math.min(followed, Math.max(0, length - 1)),
    frozen: Math.min(frozen, length),
  }
}

/** The messages, as an array that does not grow with later ones. */
export function readMessages(history: History): readonly Message[] {
  return history.store.messages.slice(0, history.length)
}

/** The message at a place from 0; `undefined` after the end. */
export function getMessage(history: History, index: number): Message | undefined {
  return index < history.length ? history.store.messages[index] : undefined
}

/**
 * A digest over all messages, each link taking in the one before it. Computed links are kept, so that a turn costs
 * what it adds.
 */
export function computeHistoryDigest(history: History): string {
  return digestBeginnings(history)[history.length - 1] ?? emptyHistoryDigest
}

/** The running digest of the first messages of a history, as many as `length` says, with others after them. */
export function computeDigestAfter({ store }: History, length: number, others: readonly Message[]): string {
  const beginning = computeHistoryDigest({ store, length })
  return others.reduce((digest, message) => computeDigest([digest, message]), beginning)
}

function digestBeginnings({ length, store }: History): readonly string[] {
  const { digests, messages } = store
  for (let index = digests.length; index < length; index++) {
    const before = digests[index - 1] ?? emptyHistoryDigest
    digests[index] = computeDigest([before, messages[index]])
  }
  return digests
}

/** About how many input tokens the messages are worth. Computed sums are kept. */
export function countHistoryTokens({ length, store }: History): number {
  const { tokens, messages } = store
  for (let index = tokens.length; index < length; index++) {
    tokens[index] = (tokens[index - 1] ?? 0) + estimateMessageTokens(messages[index] as Message)
  }
  return tokens[length - 1] ?? 0
}

/** `findPairingFault` of the messages. Those that were checked before are not checked again. */
export function findHistoryFault(history: History): string | undefined {
  const { length, store } = history
  const last = Math.max(0, length - 1)
  const fault = findPairingFault(readMessages(history), Math.min(store.followed, last))
  if (fault === undefined) store.followed = Math.max(store.followed, last)
  return fault
}

/** Returns the messages as an immutable array, which `historyOf` knows again. */
export function freezeMessages(history: History): readonly Message[] {
  const { length, store } = history
  for (; store.frozen < length; store.frozen++) {
    store.messages[store.frozen] = deepFreezeOnce(store.messages[store.frozen] as Message)
  }
  digestBeginnings(history)
  const messages = deepFreezeOnce(store.messages.slice(0, length))
  knownHistories.set(messages, history)
  return messages
}

/**
 * The running digests of messages, up to each place: those that a store can name what is shared by. They are computed
 * once for an array that came out of `freezeMessages` or `withDigests`.
 */
export function computeHistoryDigests(messages: readonly Message[]): readonly string[] {
  return digestBeginnings(createHistory(messages)).slice(0, messages.length)
}

/**
 * Returns messages that a store has read as an immutable array, and keeps the running digests that the store has checked,
 * so that a fold does not compute them again. Where they come after those of an array that this returned, `before`, they
 * share with it what is known of that.
 */
export function withDigests(
  messages: readonly Message[],
  digests: readonly string[],
  before: readonly Message[] = [],
): readonly Message[] {
  let grown = createHistory(before)
  for (const [index, message] of messages.entries()) {
    grown = appendMessage(grown, message)
    const known = grown.store.digests
    if (known.length === grown.length - 1) known.push(digests[index] as string)
  }
  return freezeMessages(grown)
}

/** The first messages of an array, as many as `length` says, as an immutable array that shares with it what is known of them. */
export function digestBeginning(messages: readonly Message[], length: number): readonly Message[] {
  return freezeMessages({ length, store: createHistory(messages).store })
}

/** The messages that a turn shows instead of the history; `undefined` if it shows the history as it is. */
export function toShownMessages(history: History, messages: readonly Message[]): ShownMessages | undefined {
  const pieces = toPieces(readMessages(history), messages)
  const [only] = pieces
  const isWhole = only && 'from' in only && only.from === 0 && only.to === history.length
  if (pieces.length === 1 && isWhole) return undefined
  return { digest: computePiecesDigest(history, pieces), pieces }
}

/** The messages that a turn shows. */
export function readShownMessages(history: History, { shown, messages }: ShownChange): readonly Message[] {
  return shown ? readPieces(history, shown.pieces) : (messages ?? readMessages(history))
}

/** Returns whether a turn shows other messages than the history. */
export function showsOtherMessages({ shown, messages }: ShownChange = {}): boolean {
  return shown !== undefined || messages !== undefined
}

/** Returns whether a turn shows other messages, instructions or tools, so that its input is to be counted again. */
export function showsOtherWords(change: ShownChange): boolean {
  return showsOtherMessages(change) || change.instructions !== undefined || change.tools !== undefined
}

/** The messages that a turn shows, with the digest of those that this history gives. */
export function withShownDigest(history: History, change: ShownChange): ShownChange {
  const { shown } = change
  return shown
    ? { ...change, shown: { ...shown, digest: computePiecesDigest(history, shown.pieces) } }
    : change
}

function readPieces(history: History, pieces: readonly ShownPiece[]): readonly Message[] {
  const all = readMessages(history)
  return pieces.flatMap((piece) => ('messages' in piece ? piece.messages : all.slice(piece.from, piece.to)))
}

/** The running digest of the messages that pieces give. The known links of the history are used for a beginning of it. */
function computePiecesDigest(history: History, pieces: readonly ShownPiece[]): string {
  const [first] = pieces
  const isBeginning = first !== undefined && 'from' in first && first.from === 0
  const others = readPieces(history, isBeginning ? pieces.slice(1) : pieces)
  return computeDigestAfter(history, isBeginning ? Math.min(first.to, history.length) : 0, others)
}

/** Messages as ranges of a history, and those that are not in it. */
function toPieces(all: readonly Message[], messages: readonly Message[]): readonly ShownPiece[] {
  const places = new Map(all.map((message, place) => [message, place]))
  const pieces: ShownPiece[] = []
  /** The place of the next message, if each one replaced one of the history. */
  let expected = 0
  for (const message of messages) {
    const likely = all[expected]
    const isLikely = likely !== undefined && (likely === message || isSameJson(likely, message))
    const place = isLikely ? expected : places.get(message)
    append(pieces, place === undefined ? { messages: [message] } : { from: place, to: place + 1 })
    expected = (place ?? expected) + 1
  }
  return pieces
}

function append(pieces: ShownPiece[], next: ShownPiece): void {
  const last = pieces.at(-1)
  if (last && 'messages' in last && 'messages' in next) {
    pieces.splice(-1, 1, { messages: [...last.messages, ...next.messages] })
  } else if (last && 'from' in last && 'from' in next && last.to === next.from) {
    pieces.splice(-1, 1, { from: last.from, to: next.to })
  } else pieces.push(next)
}

/**
 * Returns a conversation as one text that any model can read: who said what, which tools were called, what they answered. Only
 * the first line of a speaker begins at the beginning of a line; the further lines of what was said are indented, so
 * that no text (such as a tool's result with a line `User: …` in it) reads like another speaker.
 */
export function formatPlainText(messages: readonly Message[]): string {
  return messages
    .flatMap(toLines)
    .map((line) => line.replaceAll(lineEnd, '\n  '))
    .join('\n')
}

function toLines(message: Message): readonly string[] {
  switch (message.role) {
    case 'user':
      return [`User: ${formatParts(message.parts)}`]
    case 'assistant': {
      const words = joinText(message.parts)
      const calls = message.parts.flatMap((part) =>
        part.type === 'tool_call'
          ? [`Assistant called ${formatToolName(part.name)} with ${JSON.stringify(part.input)}`]
          : [],
      )
      return [...(words === '' ? [] : [`Assistant: ${words}`]), ...calls]
    }
    case 'tool':
      return message.results.map(
        ({ name, outcome, content }) =>
          `${formatToolName(name)} answered (${outcome}): ${formatParts(content)}`,
      )
  }
}

/** Everything that some reader takes for the end of a line. */
// oxlint-disable-next-line no-control-regex -- Separators of files, groups and records end a line for some readers.
const lineEnd = /\r\n|[\n\v\f\r\u001c-\u001e\u0085\u2028\u2029]/g

/** A name as a model wrote it: it may hold anything, also what looks like the words around it. */
function formatToolName(name: string): string {
  return /^[\w.-]+$/.test(name) && !/^(?:user|assistant|system|human)$/i.test(name)
    ? name
    : JSON.stringify(name)
}

function formatParts(parts: UserMessage['parts']): string {
  return parts.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join('')
}

/** A settled call, as later calls are compared with it. */
export interface LoggedCall {
  readonly toolCallId: string
  readonly name: string
  readonly inputDigest: string
  readonly result: ToolResult
  /** The digest of what the tool answered, where that is not the content of `result`. */
  readonly resultDigest?: string
}

export function computeAnswerDigest(outcome: ToolResult['outcome'], content: ToolResult['content']): string {
  return computeDigest([outcome, content])
}

/**
 * Every call of a run whose answer later ones are compared with, in order, found again by tool and input. Values of this type never
 * change, yet adding costs the same however long the run is: as with `History`, views of one growth share their store.
 */
export interface CallLog {
  readonly length: number
  readonly store: CallLogStore
}

/** Shared by all views of one growing log. */
interface CallLogStore {
  readonly calls: LoggedCall[]
  readonly positions: Map<string, number[]>
  /** The digests of answers that were compared so far: most calls have no equal. */
  readonly digests: Map<number, string>
}

/** The log of a run that has called nothing. All such runs share it: a store of its own is made for the first call. */
export const emptyCallLog: CallLog = { length: 0, store: createEmptyStore() }

function createEmptyStore(): CallLogStore {
  return { calls: [], positions: new Map(), digests: new Map() }
}

/** The log with one more call at its end. */
export function logCall(log: CallLog, call: LoggedCall): CallLog {
  // A view that is not the newest of its store, or holds nothing yet, grows in a store of its own.
  const isNewest = log.length > 0 && log.store.calls.length === log.length
  const { store } = isNewest ? log : readCalls(log).reduce(logCall, { length: 0, store: createEmptyStore() })
  const key = toKey(call)
  const places = store.positions.get(key)
  store.calls.push(call)
  if (places) places.push(log.length)
  else store.positions.set(key, [log.length])
  return { length: log.length + 1, store }
}

function getDigestAt({ calls, digests }: CallLogStore, place: number): string {
  const known = digests.get(place)
  if (known !== undefined) return known
  const { result, resultDigest } = calls[place] as LoggedCall
  const digest = resultDigest ?? computeAnswerDigest(result.outcome, result.content)
  digests.set(place, digest)
  return digest
}

export function readCalls({ length, store }: CallLog): readonly LoggedCall[] {
  return store.calls.slice(0, length)
}

function toKey({ name, inputDigest }: Pick<LoggedCall, 'name' | 'inputDigest'>): string {
  return `${inputDigest} ${name}`
}

/**
 * Returns whether the last call of a log got an answer that the same call had not got when it was made before: something has
 * changed, or the model has learned something.
 */
export function endsInNews({ length, store }: CallLog): boolean {
  const last = store.calls[length - 1]
  if (last === undefined) return false
  const before = store.positions.get(toKey(last))?.findLast((place) => place < length - 1)
  return before === undefined || getDigestAt(store, before) !== getDigestAt(store, length - 1)
}

/**
 * The answers that the same call (tool and canonical input) has got from a place of the log on, from the last
 * backwards, as long as they are the same answer. A different answer is progress: what lies before it does not count.
 */
export function listSameAnswers(
  log: CallLog,
  call: Pick<LoggedCall, 'name' | 'inputDigest'>,
  from = 0,
): readonly LoggedCall[] {
  const { store } = log
  const places = store.positions.get(toKey(call)) ?? []
  const found: LoggedCall[] = []
  let digest: string | undefined
  for (let index = places.length - 1; index >= 0; index--) {
    const place = places[index] as number
    if (place >= log.length) continue
    if (place < from) break
    digest ??= getDigestAt(store, place)
    if (getDigestAt(store, place) !== digest) break
    found.push(store.calls[place] as LoggedCall)
  }
  return found
}

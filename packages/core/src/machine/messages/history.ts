import type { Message } from '../../vocabulary/model/content.ts'
import { isSameJson } from '../../vocabulary/values/json.ts'
import { deepFreezeOnce, freezeListOnce } from '../../vocabulary/values/deep-freeze.ts'
import { freshDigestOf } from '../../vocabulary/values/digest.ts'
import { pairingFault } from './pairing.ts'
import { messageTokens } from './token-estimate.ts'

/**
 * The messages of a conversation, growing at the end only. Values of this type never change, yet appending costs the
 * same however long the history is: views of one growth share their store, and each sees its first `length` messages.
 */
export interface History {
  readonly length: number
  readonly store: HistoryStore
}

/** What views of one growth share. Grows only; what is known of its messages is found out once, up to any place. */
interface HistoryStore {
  readonly messages: Message[]
  /** Running digests of the first messages. */
  readonly digests: string[]
  /** About how many tokens the first messages are worth, up to each. */
  readonly tokens: number[]
  /** So many of the first messages are followed by what they have to be followed by: see `pairingFault`. */
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

/** An empty conversation. */
export function emptyHistory(): History {
  return ownHistory([])
}

function ownHistory(messages: Message[]): History {
  return { length: messages.length, store: { messages, digests: [], tokens: [], followed: 0, frozen: 0 } }
}

/** A history of these messages: the one that they were made of, where they came out of `carriedMessages` or `withDigests`. */
export function historyOf(messages: readonly Message[]): History {
  return knownHistories.get(messages) ?? ownHistory([...messages])
}

/** Returns the history with one more message. The given history does not change. */
export function appendMessage(history: History, message: Message): History {
  const { length, store } = history
  const next = store.messages[length]
  // A run that is read again says what its writer had said: it shares what is known of that.
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
export function messagesOf(history: History): readonly Message[] {
  return history.store.messages.slice(0, history.length)
}

/** The message at a place from 0; `undefined` after the end. */
export function messageAt(history: History, index: number): Message | undefined {
  return index < history.length ? history.store.messages[index] : undefined
}

/**
 * A digest over all messages, each link taking in the one before it. Computed links are kept, so that a turn costs
 * what it adds.
 */
export function historyDigest(history: History): string {
  return digestsOf(history)[history.length - 1] ?? emptyHistoryDigest
}

/** The running digest of the first messages of a history, as many as `length` says, with others after them. */
export function digestAfter({ store }: History, length: number, others: readonly Message[]): string {
  const beginning = historyDigest({ store, length })
  return others.reduce((digest, message) => freshDigestOf([digest, message]), beginning)
}

function digestsOf({ length, store }: History): readonly string[] {
  const { digests, messages } = store
  for (let index = digests.length; index < length; index++) {
    const before = digests[index - 1] ?? emptyHistoryDigest
    digests[index] = freshDigestOf([before, messages[index]])
  }
  return digests
}

/** About how many input tokens the messages are worth. Computed sums are kept. */
export function historyTokens({ length, store }: History): number {
  const { tokens, messages } = store
  for (let index = tokens.length; index < length; index++) {
    tokens[index] = (tokens[index - 1] ?? 0) + messageTokens(messages[index] as Message)
  }
  return tokens[length - 1] ?? 0
}

/** What `pairingFault` says of the messages. Those that were checked before are not checked again. */
export function historyFault(history: History): string | undefined {
  const { length, store } = history
  const last = Math.max(0, length - 1)
  const fault = pairingFault(messagesOf(history), Math.min(store.followed, last))
  if (fault === undefined) store.followed = Math.max(store.followed, last)
  return fault
}

/** Returns the messages as an immutable array, which `historyOf` knows again. */
export function carriedMessages(history: History): readonly Message[] {
  const { length, store } = history
  for (; store.frozen < length; store.frozen++) {
    store.messages[store.frozen] = deepFreezeOnce(store.messages[store.frozen] as Message)
  }
  digestsOf(history)
  const messages = freezeListOnce(store.messages.slice(0, length))
  knownHistories.set(messages, history)
  return messages
}

/**
 * The running digests of messages, up to each place: those that a store can name what is shared by. They are computed
 * once for an array that came out of `carriedMessages` or `withDigests`.
 */
export function historyDigests(messages: readonly Message[]): readonly string[] {
  return digestsOf(historyOf(messages)).slice(0, messages.length)
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
  return carriedMessages(withMessages(historyOf(before), messages, digests))
}

/** The first messages of an array, as many as `length` says, as an immutable array that shares with it what is known of them. */
export function beginningOf(messages: readonly Message[], length: number): readonly Message[] {
  return carriedMessages({ length, store: historyOf(messages).store })
}

/** The history with more messages, of which the running digest after each is known. */
export function withMessages(
  history: History,
  messages: readonly Message[],
  digests: readonly string[],
): History {
  let grown = history
  for (const [index, message] of messages.entries()) {
    grown = appendMessage(grown, message)
    const known = grown.store.digests
    if (known.length === grown.length - 1) known.push(digests[index] as string)
  }
  return grown
}

import type { Message } from '../../vocabulary/model/content.ts'
import type { Json } from '../../vocabulary/values/json.ts'
import { deepFreezeOnce } from '../../vocabulary/values/deep-freeze.ts'
import { freshDigestOf } from '../../vocabulary/values/digest.ts'

/**
 * The messages of a conversation, growing at the end only. Values of this type never change, yet appending costs the
 * same however long the history is: views of one growth share their store, and each sees its first `length` messages.
 */
export interface History {
  readonly length: number
  readonly store: { readonly messages: Message[]; readonly digests: string[] }
}

/**
 * The running digest of a history in which nothing was said: that of the text `tallystick history 1`. As a literal, since every
 * process that imports core would compute it.
 */
export const emptyHistoryDigest: string = '92c84428943c85c5678528fb003c4ffbb50dca1c180da9090754b00fca6df95d'

/** Running digests of immutable messages, up to each place. */
const knownDigests = new WeakMap<readonly Message[], readonly string[]>()

/** An empty conversation. */
export function emptyHistory(): History {
  return { length: 0, store: { messages: [], digests: [] } }
}

/** A history of these messages. Reuses their known digests. */
export function historyOf(messages: readonly Message[]): History {
  const digests = [...(knownDigests.get(messages) ?? [])]
  return { length: messages.length, store: { messages: [...messages], digests } }
}

/** Returns the history with one more message. The given history does not change. */
export function appendMessage(history: History, message: Message): History {
  const { length, store } = history
  // A view that is not the newest of its store has later siblings: it grows in a store of its own.
  const own = store.messages.length === length ? store : copyStore(history)
  own.messages.push(message)
  return { length: length + 1, store: own }
}

function copyStore({ length, store }: History): History['store'] {
  return { messages: store.messages.slice(0, length), digests: store.digests.slice(0, length) }
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

function digestsOf({ length, store }: History): readonly string[] {
  const { digests, messages } = store
  for (let index = Math.min(digests.length, length); index < length; index++) {
    const before = digests[index - 1] ?? emptyHistoryDigest
    digests[index] = freshDigestOf([before, messages[index] as unknown as Json])
  }
  return digests
}

/** Returns the messages as an immutable array, and keeps their running digests. */
export function carriedMessages(history: History): readonly Message[] {
  const { length, store } = history
  return withDigests(store.messages.slice(0, length), digestsOf(history).slice(0, length))
}

/**
 * The running digests of messages, up to each place: those that a store can name what is shared by. They are computed
 * once for an array that came out of `carriedMessages` or `withDigests`.
 */
export function historyDigests(messages: readonly Message[]): readonly string[] {
  return knownDigests.get(messages) ?? digestsOf(historyOf(messages))
}

/**
 * Returns messages that a store has read as an immutable array, and keeps the running digests that the store has
 * checked, so that a fold does not compute them again.
 */
export function withDigests(messages: readonly Message[], digests: readonly string[]): readonly Message[] {
  const known = deepFreezeOnce(messages.map((message) => deepFreezeOnce(message)))
  knownDigests.set(known, digests)
  return known
}

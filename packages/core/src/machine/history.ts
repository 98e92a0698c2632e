import type { Message } from '../vocabulary/content.ts'
import type { Json } from '../vocabulary/json.ts'
import { digestOf } from './digest.ts'

/**
 * The messages of a conversation, growing at the end only. Values of this type never change, yet appending costs the
 * same however long the history is: views of one growth share their store, and each sees its first `length` messages.
 */
export interface History {
  readonly length: number
  readonly store: { readonly messages: Message[]; readonly digests: string[] }
}

const noMessages = digestOf('tallystick history 1')

/** A conversation in which nothing was said. */
export function emptyHistory(): History {
  return { length: 0, store: { messages: [], digests: [] } }
}

/** A history of these messages. */
export function historyOf(messages: readonly Message[]): History {
  return { length: messages.length, store: { messages: [...messages], digests: [] } }
}

/** The history with one more message. The one that is handed in stays as it is. */
export function appendMessage(history: History, message: Message): History {
  const { length, store } = history
  // A view that is not the newest of its store has siblings behind it: it grows in a store of its own.
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

/** The message at a place from 0; `undefined` behind the end. */
export function messageAt(history: History, index: number): Message | undefined {
  return index < history.length ? history.store.messages[index] : undefined
}

/**
 * A digest over all messages, each link taking in the one before it. Computed links are kept, so that a turn costs
 * what it adds.
 */
export function historyDigest({ length, store }: History): string {
  for (let index = Math.min(store.digests.length, length); index < length; index++) {
    const before = store.digests[index - 1] ?? noMessages
    store.digests[index] = digestOf([before, store.messages[index] as unknown as Json])
  }
  return store.digests[length - 1] ?? noMessages
}

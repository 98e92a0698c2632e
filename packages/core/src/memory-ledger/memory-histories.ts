import { historyDigests, withDigests } from '../machine/messages/history.ts'
import type { Message } from '../vocabulary/model/content.ts'
import { canonicalJson, type Json } from '../vocabulary/values/json.ts'
import { deepFreezeOnce } from '../vocabulary/values/deep-freeze.ts'

/** Messages that come after others. */
interface Piece {
  /** The digest of the messages before them. */
  readonly before: string | undefined
  readonly messages: readonly Message[]
  readonly digests: readonly string[]
}

/**
 * What runs of sessions begin with, each message kept once: a history is named by its running digest, and holds what it
 * adds to the longest one that is there already.
 */
export class MemoryHistories {
  readonly #pieces = new Map<string, Piece>()

  /** Keeps messages under the digest of all of them. */
  keep(messages: readonly Message[]): void {
    const digests = historyDigests(messages)
    const shared = digests.findLastIndex((digest) => this.#pieces.has(digest)) + 1
    const digest = digests.at(-1)
    if (digest === undefined || shared === digests.length) return
    const added = JSON.parse(canonicalJson(messages.slice(shared) as unknown as Json)) as Message[]
    this.#pieces.set(digest, {
      before: digests[shared - 1],
      messages: added.map((message) => deepFreezeOnce(message)),
      digests: digests.slice(shared),
    })
  }

  /** What was kept under a digest. */
  messages(digest: string): readonly Message[] {
    const pieces: Piece[] = []
    for (let piece = this.#pieces.get(digest); piece; piece = this.#pieces.get(piece.before ?? '')) {
      pieces.push(piece)
    }
    pieces.reverse()
    return withDigests(
      pieces.flatMap((piece) => piece.messages),
      pieces.flatMap((piece) => piece.digests),
    )
  }
}

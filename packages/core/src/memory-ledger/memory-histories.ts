import {
  carriedMessages,
  emptyHistory,
  historyDigests,
  withMessages,
  type History,
} from '../machine/messages/history.ts'
import type { Message } from '../vocabulary/model/content.ts'
import { canonicalJson } from '../vocabulary/values/json.ts'

/**
 * What runs of sessions begin with, each message kept once: a history is named by its running digest, and shares its store
 * with the longest one that is there already.
 */
export class MemoryHistories {
  readonly #histories = new Map<string, History>()

  /** Keeps messages under the digest of all of them. */
  keep(messages: readonly Message[]): void {
    const digests = historyDigests(messages)
    const shared = digests.findLastIndex((digest) => this.#histories.has(digest)) + 1
    const digest = digests.at(-1)
    if (digest === undefined || shared === digests.length) return
    const before = this.#histories.get(digests[shared - 1] ?? '') ?? emptyHistory()
    const added = JSON.parse(canonicalJson(messages.slice(shared))) as Message[]
    this.#histories.set(digest, withMessages(before, added, digests.slice(shared)))
  }

  /** What was kept under a digest. */
  messages(digest: string): readonly Message[] {
    return carriedMessages(this.#histories.get(digest) ?? emptyHistory())
  }
}

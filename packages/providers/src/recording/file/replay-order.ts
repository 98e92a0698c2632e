/** How a request finds its recorded answer: by what it asks, or by its turn. */
export type Matching = 'request' | 'order'

/** Hands out what was recorded, each entry once. */
export interface ReplayOrder<Entry> {
  /** The answer to a request of this key; `undefined` where none is left. */
  take(key: string): Entry | undefined
  /** The first that was not taken yet. */
  readonly waiting: Entry | undefined
  /** How many were not taken yet. */
  readonly left: number
}

/** Entries by key, those of one key in their order; or all of them in their order, whatever is asked. */
export function replayOrder<Entry>(
  entries: readonly { readonly key: string; readonly entry: Entry }[],
  matching: Matching,
): ReplayOrder<Entry> {
  const waiting = [...entries]
  return {
    take(key) {
      const place = matching === 'order' ? 0 : waiting.findIndex((one) => one.key === key)
      return place < 0 ? undefined : waiting.splice(place, 1)[0]?.entry
    },
    get waiting() {
      return waiting[0]?.entry
    },
    get left() {
      return waiting.length
    },
  }
}

/**
 * A text in which the ids of tool calls no longer tell which run they were made in: a new run makes the same calls under
 * ids of its own, and has to find the answers all the same.
 */
export function withoutRunIds(text: string): string {
  return text.replaceAll(/\bcall_[0-9a-f]{32}_(?=\d+_\d+_\d+)/g, 'call_run_')
}

import type { RunId } from '@tallystick/core'

/**
 * Keeps the appends of a run in the order in which they were begun, where one of them has to wait before it comes to the
 * store: for a key, or for the role of the writer. An append that overtook it would be a conflict.
 */
export class AppendOrder {
  /** The last append under way of each run that has one which waits; none of them rejects. */
  readonly #last = new Map<RunId, Promise<unknown>>()

  /** Calls `append` at once where it waits for nothing, and no earlier append of the run is waiting. */
  begin<T>(runId: RunId, waits: boolean, append: () => Promise<T>): Promise<T> {
    const before = this.#last.get(runId)
    if (!waits && before === undefined) return append()
    const appended = before ? before.then(append) : append()
    const ended = appended.then(nothing, nothing)
    this.#last.set(runId, ended)
    void ended.then(() => {
      if (this.#last.get(runId) === ended) this.#last.delete(runId)
    })
    return appended
  }
}

function nothing(): void {}

/** What has to end before a ledger closes: the runs that the runtimes of this process drive. */
export class OpenUses {
  readonly #uses = new Set<{ readonly end: () => Promise<unknown> }>()

  /** Has `end` called before the ledger closes, unless the returned function was called before. */
  add(end: () => Promise<unknown>): () => void {
    const use = { end }
    this.#uses.add(use)
    return () => void this.#uses.delete(use)
  }

  /** Ends every use, then calls `close`; at once where nothing is to be ended. */
  closeAfter(close: () => Promise<void>): Promise<void> {
    return this.#uses.size === 0 ? close() : this.#end().then(close)
  }

  /** Ends those that begin meanwhile, too. Each is asked once: one that fails to end keeps nothing open. */
  async #end(): Promise<void> {
    const asked = new Set<unknown>()
    for (;;) {
      const uses = [...this.#uses].filter((use) => !asked.has(use))
      if (uses.length === 0) return
      for (const use of uses) asked.add(use)
      await Promise.allSettled(uses.map(({ end }) => end()))
    }
  }
}

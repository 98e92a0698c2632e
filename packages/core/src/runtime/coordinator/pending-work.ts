/** Work that a result waits for, each piece from the moment it is added until it ends, well or not. */
export class PendingWork {
  readonly #pieces = new Set<Promise<unknown>>()

  get isEmpty(): boolean {
    return this.#pieces.size === 0
  }

  add(work: Promise<unknown>): void {
    const done: Promise<unknown> = work.catch(() => {}).finally(() => this.#pieces.delete(done))
    this.#pieces.add(done)
  }

  /** Resolves once nothing is left, what was added in the meantime included. */
  async ended(): Promise<void> {
    while (!this.isEmpty) await Promise.all(this.#pieces)
  }
}

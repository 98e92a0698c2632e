/** Timers that go off when the test says so, and never by themselves. */
export class HeldTimers {
  readonly #timers = new Set<{ readonly delayMs: number; readonly callback: () => void }>()
  #noticed: (() => void)[] = []

  schedule(delayMs: number, callback: () => void): () => void {
    const timer = { delayMs, callback }
    this.#timers.add(timer)
    for (const notice of this.#noticed.splice(0)) notice()
    return () => void this.#timers.delete(timer)
  }

  /** How many are set and were neither cancelled nor fired. */
  get count(): number {
    return this.#timers.size
  }

  /** Resolves as soon as a timer of this delay is set. */
  async isSet(delayMs: number): Promise<() => void> {
    for (;;) {
      for (const timer of this.#timers) if (timer.delayMs === delayMs) return timer.callback
      await new Promise<void>((resolve) => void this.#noticed.push(resolve))
    }
  }

  /** Fires the timer of this delay, as soon as it is set. */
  async fire(delayMs: number): Promise<void> {
    const callback = await this.isSet(delayMs)
    for (const timer of this.#timers) if (timer.callback === callback) this.#timers.delete(timer)
    callback()
  }
}

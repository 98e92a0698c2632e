/** Wakes one waiter. Wake-ups before the wait are merged into one, and end the wait at once: none is lost. */
export class Wakeup {
  #isWoken = false
  #resolve: (() => void) | undefined

  /** Whether a wake-up came since the last wait or `clear`. */
  get isWoken(): boolean {
    return this.#isWoken
  }

  wake(): void {
    this.#isWoken = true
    this.#resolve?.()
  }

  /** Forgets the wake-ups so far: the waiter looks now, and so sees what they were about. */
  clear(): void {
    this.#isWoken = false
  }

  /** Resolves at the next wake-up, and clears it. */
  async wait(): Promise<void> {
    if (!this.#isWoken) {
      await new Promise<void>((resolve) => {
        this.#resolve = resolve
      })
      this.#resolve = undefined
    }
    this.#isWoken = false
  }
}

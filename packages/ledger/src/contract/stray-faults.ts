/** What the code of others leaves behind: rejections that nothing handles, and errors thrown from timers. */
export class StrayFaults {
  #first: unknown
  #isAny = false
  readonly #onFault = (fault: unknown): void => {
    if (!this.#isAny) this.#first = fault
    this.#isAny = true
  }

  constructor() {
    process.on('unhandledRejection', this.#onFault)
    process.on('uncaughtException', this.#onFault)
  }

  /** Returns the first fault so far, and forgets it. Waits until what was left behind has come to light. */
  async take(): Promise<{ readonly fault: unknown } | undefined> {
    await new Promise<void>((resolve) => void setImmediate(resolve))
    if (!this.#isAny) return undefined
    const fault = this.#first
    this.#isAny = false
    this.#first = undefined
    return { fault }
  }

  /** Ends the watch. */
  stop(): void {
    process.off('unhandledRejection', this.#onFault)
    process.off('uncaughtException', this.#onFault)
  }
}

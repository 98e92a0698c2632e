/** Lets so many through at a time; the others wait in their order. */
export class ConnectionGate {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(places: number) {
    this.#free = places
  }

  /** Resolves when a place is free and taken, with the function that gives it back; `undefined` where `signal` aborts first. */
  enter(signal: AbortSignal): Promise<(() => void) | undefined> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve(undefined)
      const leave = (): void => {
        const index = this.#waiting.indexOf(admit)
        if (index !== -1) this.#waiting.splice(index, 1)
        resolve(undefined)
      }
      const admit = (): void => {
        signal.removeEventListener('abort', leave)
        resolve(() => this.#release())
      }
      if (this.#free > 0) {
        this.#free--
        return admit()
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.push(admit)
    })
  }

  #release(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free++
    else next()
  }
}

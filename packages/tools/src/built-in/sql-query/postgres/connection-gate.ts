/** Lets so many through at a time; the others wait in their order. */
export class ConnectionGate {
  #free: number
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>()

  constructor(places: number) {
    this.#free = places
  }

  /** Resolves when a place is free and taken, with the function that gives it back; `undefined` where `signal` aborts first. */
  enter(signal: AbortSignal): Promise<(() => void) | undefined> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve(undefined)
      const leave = (): void => {
        this.#waiting.delete(admit)
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
      signal.addEventListener('abort', leave)
      this.#waiting.add(admit)
    })
  }

  #release(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free++
      return
    }
    this.#waiting.delete(next)
    next()
  }
}

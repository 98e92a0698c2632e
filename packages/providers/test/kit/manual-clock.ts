import type { Cancel, Clock } from '@tallystick/core'

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #now = Date.UTC(2026, 0, 1)
  readonly #timers = new Set<{ readonly at: number; readonly callback: () => void }>()

  now(): number {
    return this.#now
  }

  schedule(delayMs: number, callback: () => void): Cancel {
    const timer = { at: this.#now + Math.max(1, delayMs), callback }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  /** How many timers wait. */
  get waiting(): number {
    return this.#timers.size
  }

  advance(byMs: number): void {
    const until = this.#now + byMs
    for (let timer = this.#next(until); timer; timer = this.#next(until)) {
      this.#timers.delete(timer)
      this.#now = timer.at
      timer.callback()
    }
    this.#now = until
  }

  #next(until: number) {
    return [...this.#timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0]
  }
}

import type { Clock } from '@tallystick/core'
import type { Cancel } from '@tallystick/core/vocabulary'

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #now = Date.UTC(2026, 0, 1)
  readonly #timers = new Set<{ readonly at: number; readonly callback: () => void }>()
  #whenIdle: (() => void)[] = []

  now(): number {
    return this.#now
  }

  schedule(delayMs: number, callback: () => void): Cancel {
    const timer = { at: this.#now + Math.max(1, delayMs), callback }
    this.#timers.add(timer)
    return () => this.#drop(timer)
  }

  /** How many timers wait. */
  get waiting(): number {
    return this.#timers.size
  }

  /** Resolves when no timer waits. */
  idle(): Promise<void> {
    return new Promise((resolve) => (this.waiting === 0 ? resolve() : void this.#whenIdle.push(resolve)))
  }

  advance(byMs: number): void {
    const until = this.#now + byMs
    for (let timer = this.#next(until); timer; timer = this.#next(until)) {
      this.#now = timer.at
      this.#timers.delete(timer)
      timer.callback()
      this.#drop(timer)
    }
    this.#now = until
  }

  #drop(timer: { readonly at: number; readonly callback: () => void }): void {
    this.#timers.delete(timer)
    if (this.waiting === 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  #next(until: number) {
    return [...this.#timers].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0]
  }
}

import type { Cancel, Clock } from './clock.ts'

/** A run's clock: that of the host, but for its jumps. */
export interface SteadyClock extends Clock {
  /** From here on it shows no time before this one, in milliseconds since 1970 UTC. */
  atLeast(time: number): void
}

/** How late a timer of a busy process may be, in milliseconds: what is beyond it is a clock that was set ahead. */
const MAX_LATE_MS = 1_000

/**
 * The time of a run. It never falls, even when the host's clock is set back, or when another host with a clock ahead
 * dated the last event: then it continues from the last time, so that no wait takes longer than decided. It never
 * leaps, so that a clock set ahead ends no run: it follows the host's `even` time or, without one, the host's timers.
 */
export function steadyClock(clock: Clock): SteadyClock {
  return new RunClock(clock)
}

class RunClock implements SteadyClock {
  readonly #clock: Clock
  /** When it was made, by the host's even time, if that has one, and by its clock. */
  readonly #begunEven: number | undefined
  readonly #begunAt: number
  #last = -Infinity
  /** How far the host's clock is ahead of the run's. */
  #ahead = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#begunEven = clock.even?.()
    this.#begunAt = this.#begunEven === undefined ? 0 : clock.now()
  }

  now(): number {
    const time = this.#read()
    this.#ahead = Math.min(this.#ahead, time - this.#last)
    this.#last = time - this.#ahead
    return this.#last
  }

  schedule(delayMs: number, callback: () => void): Cancel {
    const waitMs = Math.max(0, delayMs)
    const due = this.now() + waitMs
    return this.#clock.schedule(waitMs, () => {
      const late = this.#read() - this.#ahead - due
      if (late > MAX_LATE_MS) this.#ahead += late
      callback()
    })
  }

  atLeast(time: number): void {
    this.#last = Math.max(this.#last, time)
  }

  /** The host's time of now, carried on by its even time. */
  #read(): number {
    const begun = this.#begunEven
    if (begun === undefined) return this.#clock.now()
    return this.#begunAt + Math.floor((this.#clock.even?.() ?? begun) - begun)
  }
}

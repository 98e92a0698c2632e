import type { Clock } from '@tallystick/core'
import type { Cancel } from '@tallystick/core/vocabulary'

/** A clock that stands still until it is moved. */
export interface StillClock extends Clock {
  /** How many timers wait. */
  readonly waiting: number
  /** Lets this much time pass, in milliseconds. */
  advance(byMs: number): void
}

/** Makes a clock at the beginning of 2026. */
export function stillClock(): StillClock {
  let now = Date.UTC(2026, 0, 1)
  const timers = new Set<{ readonly at: number; readonly callback: () => void }>()
  const nextUntil = (until: number) =>
    [...timers].filter(({ at }) => at <= until).toSorted((one, other) => one.at - other.at)[0]
  return {
    now: () => now,
    schedule(delayMs, callback): Cancel {
      const timer = { at: now + Math.max(1, delayMs), callback }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    get waiting() {
      return timers.size
    },
    advance(byMs) {
      const until = now + byMs
      for (let timer = nextUntil(until); timer; timer = nextUntil(until)) {
        now = timer.at
        timers.delete(timer)
        timer.callback()
      }
      now = until
    },
  }
}

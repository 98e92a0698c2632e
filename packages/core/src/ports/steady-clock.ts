import type { Clock } from './clock.ts'

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
  const read = evenTime(clock)
  let last = -Infinity
  /** How far the host's clock is ahead of the run's. */
  let ahead = 0
  const now = (): number => {
    const time = read()
    ahead = Math.min(ahead, time - last)
    last = time - ahead
    return last
  }
  return {
    now,
    schedule(delayMs, callback) {
      const waitMs = Math.max(0, delayMs)
      const due = now() + waitMs
      return clock.schedule(waitMs, () => {
        const late = read() - ahead - due
        if (late > MAX_LATE_MS) ahead += late
        callback()
      })
    },
    atLeast(time) {
      last = Math.max(last, time)
    },
  }
}

/** The host's time of now, carried on by its even time. */
function evenTime(clock: Clock): () => number {
  const begun = clock.even?.()
  if (begun === undefined) return () => clock.now()
  const start = clock.now()
  return () => start + Math.floor((clock.even?.() ?? begun) - begun)
}

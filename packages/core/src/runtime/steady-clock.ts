import type { Clock } from '../ports/clock.ts'

/** A run's clock: that of the host, but for jumps backwards. */
export interface SteadyClock extends Clock {
  /** From here on it shows no time before this one, in milliseconds since 1970 UTC. */
  atLeast(time: number): void
}

/**
 * Time as a run sees it: it never falls, though somebody sets the host's clock back, or another host has dated the
 * last event and was ahead. Where it would fall it goes on from where it was, so that nobody waits longer than was
 * decided.
 */
export function steadyClock(clock: Clock): SteadyClock {
  let last = -Infinity
  let behind = 0
  return {
    now() {
      const time = clock.now()
      behind = Math.max(behind, last - time)
      last = time + behind
      return last
    },
    schedule: (delayMs, callback) => clock.schedule(delayMs, callback),
    atLeast(time) {
      last = Math.max(last, time)
    },
  }
}

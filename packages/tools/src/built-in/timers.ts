import type { Clock } from '@tallystick/core'

/** What a built-in tool needs of a clock for the time limit that it keeps itself. */
export type Timers = Pick<Clock, 'schedule'>

/** The host's timers. */
export const hostTimers: Timers = {
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs)
    return () => clearTimeout(timer)
  },
}

/** The host's timers, which keep no process alive. */
export const unheldTimers: Timers = {
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

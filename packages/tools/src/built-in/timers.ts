import type { Clock } from '@tallystick/core'

/** What a built-in tool needs of a clock for the time limit that it keeps itself. */
export type Timers = Pick<Clock, 'schedule'>

/**
 * Calls `exceed` after this time, once what has arrived until then was read: in a host that was busy the timer is due before
 * the message that says that all is well. Returns what cancels it.
 */
export function scheduleLimit(timers: Timers, limitMs: number, exceed: () => void): () => void {
  let look: NodeJS.Immediate | undefined
  const cancel = timers.schedule(limitMs, () => (look = setImmediate(exceed)))
  return () => {
    cancel()
    clearImmediate(look)
  }
}

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

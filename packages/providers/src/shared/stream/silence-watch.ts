import type { Clock } from '@tallystick/core'
import type { Cancel } from '@tallystick/core/vocabulary'

/** Notices when no sign of life came for too long. */
export interface SilenceWatch {
  /** There was a sign of life. */
  signOfLife(): void
  /** From now on this much silence is allowed, in milliseconds. */
  allow(limitMs: number): void
  stop(): void
}

/**
 * Calls `onSilence` once, when `limitMs` have passed since the last sign of life. One timer at a time, which is set again only
 * when it goes off: a sign of life costs a look at the clock.
 */
export function watchSilence(
  clock: Clock,
  limitMs: number,
  onSilence: (limitMs: number) => void,
): SilenceWatch {
  let limit = limitMs
  let lastSignAt = clock.now()
  let cancel: Cancel | undefined
  const set = (delayMs: number): void => {
    cancel = clock.schedule(delayMs, () => {
      const leftMs = lastSignAt + limit - clock.now()
      if (leftMs > 0) return set(leftMs)
      cancel = undefined
      onSilence(limit)
    })
  }
  const stop = (): void => {
    cancel?.()
    cancel = undefined
  }
  set(limit)
  return {
    signOfLife() {
      lastSignAt = clock.now()
    },
    allow(newLimitMs) {
      if (cancel === undefined) return
      stop()
      limit = newLimitMs
      lastSignAt = clock.now()
      set(limit)
    },
    stop,
  }
}

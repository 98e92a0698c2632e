import type { Cancel, Clock } from '@tallystick/core'

/** Notices when nothing was heard for too long. */
export interface SilenceWatch {
  /** Something was heard. */
  heard(): void
  /** From now on this much silence is allowed, in milliseconds. */
  allow(limitMs: number): void
  stop(): void
}

/**
 * Calls `onSilence` once, when `limitMs` have passed since the last word. One timer at a time, which is set again only
 * when it goes off: hearing something costs a look at the clock.
 */
export function watchSilence(
  clock: Clock,
  limitMs: number,
  onSilence: (limitMs: number) => void,
): SilenceWatch {
  let limit = limitMs
  let heardAt = clock.now()
  let cancel: Cancel | undefined
  const set = (delayMs: number): void => {
    cancel = clock.schedule(delayMs, () => {
      const leftMs = heardAt + limit - clock.now()
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
    heard() {
      heardAt = clock.now()
    },
    allow(newLimitMs) {
      if (cancel === undefined) return
      stop()
      limit = newLimitMs
      heardAt = clock.now()
      set(limit)
    },
    stop,
  }
}

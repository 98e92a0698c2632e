import type { Cancel, Clock } from './host.ts'
import { isThenable } from './option.ts'

/** How long the application's code may take to judge something of a run where it does not say, in milliseconds. */
export const CHECK_MS = 60_000

/** In the place of an answer that did not come in its time. */
export const late: unique symbol = Symbol('late')

/** Returns what the application's code answers, or `late` if that takes longer than `timeoutMs`. */
export async function answerInTime<Answer>(
  ask: () => Answer | PromiseLike<Answer>,
  clock: Clock,
  timeoutMs: number = CHECK_MS,
): Promise<Answer | typeof late> {
  const answer = ask()
  if (!isThenable(answer)) return answer
  let stopTimer: Cancel | undefined
  const timer = new Promise<typeof late>((resolve) => {
    stopTimer = clock.schedule(timeoutMs, () => resolve(late))
  })
  try {
    return await Promise.race([answer, timer])
  } finally {
    stopTimer?.()
  }
}

/** A clock whose timers end when `stop` is called: those that are set, and those that would be set later. */
export function createStoppableClock(clock: Clock): { readonly clock: Clock; readonly stop: () => void } {
  const timers: Cancel[] = []
  let isStopped = false
  return {
    clock: {
      now: () => clock.now(),
      schedule(delayMs, callback) {
        if (isStopped) return () => {}
        const stopTimer = clock.schedule(delayMs, callback)
        timers.push(stopTimer)
        return stopTimer
      },
    },
    stop() {
      isStopped = true
      for (const stopTimer of timers) stopTimer()
    },
  }
}

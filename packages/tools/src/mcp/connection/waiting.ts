import type { Timers } from '../../built-in/timers.ts'

/** The longest time that timers of the platform take, in milliseconds: for requests whose time is measured elsewhere. */
export const noTimeoutMs = 2_147_483_647

/** Resolves after a time, or when the signal aborts. */
export function pause(ms: number, timers: Timers, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const end = (): void => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = timers.schedule(ms, end)
    signal.addEventListener('abort', end)
  })
}

/** Settles like the work, or rejects with the reason of the signal when that aborts before. */
export function resultOrAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

import type { Timers } from '../../built-in/timers.ts'

/** The time of one call. */
export interface CallDeadline {
  /** Aborts when the time is over. */
  readonly signal: AbortSignal
  /** The server has shown that it is at work. */
  readonly progress: () => void
  /** A person decides: the time stands still until `resume`. */
  readonly pause: () => void
  readonly resume: () => void
  readonly stop: () => void
}

/** Starts the time of a call: `quietMs` without progress, and `totalMs` at most since the last question was answered. */
export function callDeadline(timers: Timers, quietMs: number, totalMs: number): CallDeadline {
  const over = new AbortController()
  let pauses = 0
  let hasStopped = false
  let cancelQuiet = (): void => {}
  let cancelTotal = (): void => {}
  const end = (): void => {
    cancelQuiet()
    cancelTotal()
  }
  const giveUp = (): void => {
    end()
    over.abort(new DOMException('The time of the call is over.', 'TimeoutError'))
  }
  const isRunning = (): boolean => pauses === 0 && !hasStopped && !over.signal.aborted
  const progress = (): void => {
    if (!isRunning()) return
    cancelQuiet()
    cancelQuiet = timers.schedule(quietMs, giveUp)
  }
  const begin = (): void => {
    if (!isRunning()) return
    progress()
    cancelTotal = timers.schedule(totalMs, giveUp)
  }
  begin()
  return {
    signal: over.signal,
    progress,
    pause() {
      pauses++
      end()
    },
    resume() {
      pauses--
      begin()
    },
    stop() {
      hasStopped = true
      end()
    },
  }
}

/** Has the deadlines that there are now stand still. Returns what lets them run again. */
export function standStill(deadlines: Iterable<CallDeadline>): () => void {
  const paused = [...deadlines]
  for (const deadline of paused) deadline.pause()
  return () => {
    for (const deadline of paused) deadline.resume()
  }
}

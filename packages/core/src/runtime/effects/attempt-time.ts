import type { Cancel, Clock } from '../../ports/clock.ts'
import type { Tool } from '../../ports/tool.ts'

/** The time that one attempt of a call has. */
export interface AttemptTime {
  /** The tool has reported progress. */
  onReport(): void
  /** Calls back after a last time, which no report prolongs. */
  last(ms: number, callback: () => void): void
  stop(): void
}

/** Starts the time of an attempt: `timeoutMs` at most, and `quietMs` without a report. Calls back once, with the reason. */
export function attemptTime(
  clock: Pick<Clock, 'schedule'>,
  { timeoutMs, quietMs }: Pick<Tool, 'timeoutMs' | 'quietMs'>,
  onOver: (reason: string) => void,
): AttemptTime {
  let isOver = false
  let stopTimer: Cancel | undefined
  let stopQuietTimer: Cancel | undefined
  const stop = (): void => {
    isOver = true
    stopTimer?.()
    stopQuietTimer?.()
  }
  const over = (reason: string): void => {
    stop()
    onOver(reason)
  }
  const onReport = (): void => {
    if (quietMs === undefined || isOver) return
    stopQuietTimer?.()
    stopQuietTimer = clock.schedule(quietMs, () => over('The tool reported no progress for too long.'))
  }
  if (timeoutMs !== undefined) stopTimer = clock.schedule(timeoutMs, () => over('The tool took too long.'))
  onReport()
  return {
    onReport,
    stop,
    last(ms, callback) {
      stop()
      stopTimer = clock.schedule(ms, callback)
    },
  }
}

import type { Cancel, Clock } from '../../values/host.ts'
import type { Tool } from '../../tools/tool.ts'

/** The time that one attempt of a call has: `timeoutMs` at most, and `quietMs` without a report. Calls back once, with the reason. */
export class AttemptTime {
  readonly #clock: Pick<Clock, 'schedule'>
  readonly #quietMs: number | undefined
  readonly #onOver: (reason: string) => void
  #isOver = false
  #stopTimer: Cancel | undefined
  #stopQuietTimer: Cancel | undefined

  constructor(
    clock: Pick<Clock, 'schedule'>,
    { timeoutMs, quietMs }: Pick<Tool, 'timeoutMs' | 'quietMs'>,
    onOver: (reason: string) => void,
  ) {
    this.#clock = clock
    this.#quietMs = quietMs
    this.#onOver = onOver
    if (timeoutMs !== undefined)
      this.#stopTimer = clock.schedule(timeoutMs, () => this.#over('The tool took too long.'))
    this.onReport()
  }

  /** The tool has reported progress. */
  onReport(): void {
    if (this.#quietMs === undefined || this.#isOver) return
    this.#stopQuietTimer?.()
    const over = (): void => this.#over('The tool reported no progress for too long.')
    this.#stopQuietTimer = this.#clock.schedule(this.#quietMs, over)
  }

  /** Calls back after a last time, which no report prolongs. */
  last(ms: number, callback: () => void): void {
    this.stop()
    this.#stopTimer = this.#clock.schedule(ms, callback)
  }

  stop(): void {
    this.#isOver = true
    this.#stopTimer?.()
    this.#stopQuietTimer?.()
  }

  #over(reason: string): void {
    this.stop()
    this.#onOver(reason)
  }
}

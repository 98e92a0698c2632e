import type { RunId } from '../values/ids.ts'

/** How a stretch of driving a run ended, and what has to happen next. */
export interface Rest {
  /**
   * - `done`: the run has ended.
   * - `waiting`: the run is suspended: it continues by a command, or at `wakeAt`.
   * - `parked`: the run waits only for a time that is further away than `parkMs`, such as a retry-after; it continues at `wakeAt`.
   * - `handedBack`: the stretch was told to end, by `maxMs` or its signal: drive the run again, here or elsewhere.
   * - `lost`: another process drives the run. What was under way here was told to stop, and nothing is left to do.
   */
  readonly status: 'done' | 'waiting' | 'parked' | 'handedBack' | 'lost'
  readonly runId: RunId
  /** The number of the run's last event that this process knows. */
  readonly seq: number
  /**
   * The earliest time at which the run or a child run has something to do by itself, in milliseconds since 1970 UTC. Absent
   * where only a command can wake it.
   */
  readonly wakeAt?: number
  /** The inbox was not empty at the end: drive the run again. */
  readonly pending: boolean
}

/** How a run begins that a driver starts: plain JSON, which an engine carries to whichever process drives it first. */
export interface StartData {
  /** The name of an agent that the runtime of each worker knows. */
  readonly agent: string
  /** The user's message, or the messages with which the run begins. */
  readonly input: unknown
  /** Options of `runtime.run` that are JSON, such as `sessionId`, `limits`, `subject` and `metadata`. */
  readonly options?: Readonly<Record<string, unknown>>
}

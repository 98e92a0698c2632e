/** Cancels a scheduled callback; calling it again does nothing. */
export type Cancel = () => void

/** The only source of time. */
export interface Clock {
  /**
   * Milliseconds since 1970 UTC, an integer. It may jump: a run smooths jumps, so its own time neither falls nor
   * leaps.
   */
  now(): number
  /**
   * Milliseconds since a fixed start, if the host has a monotonic clock. They never jump, even when a user sets the
   * host's clock.
   */
  even?(): number
  /**
   * Calls back once after `delayMs`, never at once. The callback must not throw. A timer for `upkeep` is no reason for the
   * process to live on: nothing waits for it.
   */
  schedule(delayMs: number, callback: () => void, purpose?: 'upkeep'): Cancel
}

/** The process that a runtime is in, as others that use its ledger know it. */
export interface HostProcess {
  /** Names the process for people and for `hasEnded`: a line of text, of this process alone. */
  readonly name: string
  /**
   * Whether the process that a name begins with is known to have ended. `false` where that cannot be known: for processes of
   * other machines.
   */
  hasEnded(name: string): boolean
}

/** The only source of randomness: a number from 0 (included) to 1 (excluded). */
export type Random = () => number

/** What the runtime needs from its host. */
export interface Host {
  readonly clock: Clock
  readonly random: Random
  /**
   * Reports errors that no caller receives, with what happened in words: a subscriber threw, or a run failed and no
   * code awaited its result. Must not throw.
   */
  readonly report: (error: unknown, what: string) => void
  /** Absent in a host without processes: there, each lease of a run ends by time alone. */
  readonly process?: HostProcess | undefined
}

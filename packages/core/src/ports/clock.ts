/** Cancels what it was returned for; calling it again does nothing. */
export type Cancel = () => void

/** The only source of time. */
export interface Clock {
  /** Milliseconds since 1970 UTC, an integer. It may jump: a run lets its own time neither fall nor leap. */
  now(): number
  /**
   * Milliseconds that have passed since some beginning, where the host can tell: they never jump, whatever somebody sets
   * its clock to.
   */
  even?(): number
  /** Calls back once after `delayMs`, never at once. The callback must not throw. */
  schedule(delayMs: number, callback: () => void): Cancel
}

/** The only source of randomness: a number from 0 (included) to 1 (excluded). */
export type Random = () => number

/** What the runtime needs of the place that it runs in. */
export interface Host {
  readonly clock: Clock
  readonly random: Random
  /**
   * Hears of errors that nobody else hears of, with what happened in words: a subscriber that threw, a run that failed
   * while nobody waited for it. Must not throw.
   */
  readonly report: (error: unknown, what: string) => void
}

/** Cancels what it was returned for; calling it again does nothing. */
export type Cancel = () => void

/** The only source of time. */
export interface Clock {
  /** Milliseconds since 1970 UTC, an integer. It may jump: a run never lets its own time fall. */
  now(): number
  /** Calls back once after `delayMs`, never at once. The callback must not throw. */
  schedule(delayMs: number, callback: () => void): Cancel
}

/** The only source of randomness: a number from 0 (included) to 1 (excluded). */
export type Random = () => number

/** What the runtime needs of the place that it runs in. */
export interface Host {
  readonly clock: Clock
  readonly random: Random
  /** Hears of errors that belong to nobody on the stack: a subscriber that threw. Must not throw. */
  readonly report: (error: unknown) => void
}

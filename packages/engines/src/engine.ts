import type { Rest, RunId, StartData } from '@tallystick/core'

/** Asks that a run is driven. */
export interface Wake {
  readonly runId: RunId
  /** The earliest time to drive it, in milliseconds since 1970 UTC. Default: now. */
  readonly at?: number | undefined
  /** Runs of one key are driven one at a time, where the engine can: a session, for example. */
  readonly key?: string | undefined
  /** Runs with a higher number are driven first, where the engine can. Default: 0. */
  readonly priority?: number | undefined
  /** Whose run it is: no tenant with many runs keeps those of others waiting, where the engine can. */
  readonly tenant?: string | undefined
  /** How the run begins, if it is not on record yet. */
  readonly start?: StartData | undefined
}

/** Drives a run for a while. Resolves when the engine may forget the wake; rejects for it to be delivered again, with backoff. */
export type Drive = (wake: Wake, signal: AbortSignal) => Promise<Rest>

/** A worker that takes wakes from an engine. */
export interface EngineWorker {
  /**
   * Takes no more wakes, aborts the signal of each drive, and resolves when all of them have ended or after `graceMs`. A wake
   * whose drive has not ended by then is delivered again, without a counted failure.
   */
  stop(graceMs: number): Promise<void>
}

/**
 * - `exclusivePerKey`: it drives runs of one key one at a time by itself. Without it only the lease of a run keeps drivers apart.
 * - `transactional`: `wake` takes a transaction of the ledger's database, so that a command and its wake are one commit.
 * - `priorities`: runs with a higher priority are driven first.
 * - `fairness`: a tenant with many runs does not keep others waiting.
 * - `rateLimits`: it can bound how many drives begin in a time, over all workers.
 */
export type EngineCapability = 'exclusivePerKey' | 'transactional' | 'priorities' | 'fairness' | 'rateLimits'

/**
 * An engine delivers "drive this run": at least once, now or at a time, one at a time for each run. It carries ids; the ledger
 * holds the state.
 *
 * For authors of bindings:
 * - `wake` is durable when it resolves. Wakes of one run merge, and the earliest time wins: a timer of tomorrow must not keep a
 *   wake of now waiting, nor one of now be forgotten for it. A wake that comes while the run is driven leads to another drive
 *   after that one.
 * - `work` calls `drive` for each wake that is due, `concurrency` at a time. When it resolves, the wake is acknowledged, whatever
 *   it resolves with; the next wake that follows from it was made before. When it rejects, the wake is delivered again, later each
 *   time. The wake of a worker that has died is delivered again to another one.
 */
export interface Engine {
  /** Names the engine in messages, such as `pg-boss`. */
  readonly name: string
  readonly capabilities: ReadonlySet<EngineCapability>
  /** Rejects if the wake may not be on record. `within` is a transaction of an engine that is `transactional`. */
  wake(wake: Wake, within?: unknown): Promise<void>
  work(drive: Drive, options: { readonly concurrency: number }): Promise<EngineWorker>
}

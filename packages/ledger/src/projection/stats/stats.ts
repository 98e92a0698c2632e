import type { Usage } from '@tallystick/core'
import type { ModelRef } from '@tallystick/core/vocabulary'
import type { RunSummary, RunStatus, UnreadableRun } from '../summary/run-summary.ts'

/** Model calls of one agent and model on one day. */
export interface DaySpending {
  /** Days since 1970 UTC. */
  readonly day: number
  readonly agent: string
  readonly model: ModelRef
  readonly calls: number
  readonly usage: Usage
  /** US dollars for the calls that had a price; absent where none had. */
  readonly costUsd?: number
  /** Calls that had no price. */
  readonly unpriced: number
}

/** The totals of the runs of a session, with those child runs that have ended. */
export interface SessionTotals {
  readonly sessionId: string
  readonly runs: number
  /** Milliseconds since 1970 UTC, of the first event and of the last. */
  readonly startedAt: number
  readonly lastAt: number
  readonly turns: number
  readonly toolCalls: number
  readonly usage: Usage
  /** US dollars of the runs that have a cost; absent where none has. */
  readonly costUsd?: number
  /** Runs that have no cost. */
  readonly unpriced: number
}

/** Statistics of the runs of a ledger. */
export interface LedgerStats {
  /** Beginning of the hour from which model calls are counted, and ends and sessions are listed. */
  readonly since: number
  /** The number of runs of each status. */
  readonly counts: Readonly<Record<RunStatus, number>>
  /** Runs that only a command continues, the newest first; for child runs, their root. */
  readonly suspended: readonly RunSummary[]
  /** Runs of which something is in flight, or was when their process ended; the newest first. */
  readonly unfinished: readonly RunSummary[]
  /** Runs that have ended since then without success; the newest first. */
  readonly failed: readonly RunSummary[]
  readonly unreadable: readonly UnreadableRun[]
  /** Model calls since then, the first day first. */
  readonly spending: readonly DaySpending[]
  /**
   * Sessions with an event since then, the most expensive first, then those with most tokens, with their whole totals.
   */
  readonly sessions: readonly SessionTotals[]
}

/** What stats are asked for. */
export interface StatsQuery {
  /** Milliseconds since 1970 UTC; counted from the beginning of that hour. */
  readonly since: number
  /** The most runs of each kind, and the most sessions, to list. */
  readonly maxListed: number
}

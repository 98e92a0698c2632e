import type { PendingApproval } from '../../machine/calls.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Agent } from '../../agent/agent.ts'
import type { Prices } from '../../models/prices.ts'
import type { RunId } from '../../values/ids.ts'
import type { JsonObject } from '../../values/json.ts'
import type { ManualClock } from '../doubles/manual-clock.ts'
import type { CrashPoint, MortalLedger } from './faults.ts'

/** What a person answers to an approval, and how many milliseconds later. */
export type SimulatedDecision = { readonly afterMs?: number | undefined } & (
  | { readonly approve: true; readonly input?: JsonObject | undefined }
  | { readonly approve: false; readonly reason: string }
)

/** A run, and what is to happen to it. */
export interface Simulation {
  /** Outlives every process. Fresh, or holding the run that `resume` names. */
  readonly ledger: Ledger
  readonly clock: ManualClock
  /**
   * Returns what a tool, a model or the ledger waits for outside of this code, such as a file or a server; see `untilSettled`.
   */
  readonly outside?: (() => Promise<unknown> | undefined) | undefined
  /** Randomness of the runtime, from 0 to 1. */
  readonly random: () => number
  /** The agent as each process makes it; it gets its process's view of the ledger. */
  readonly agentOf: (ledger: MortalLedger) => Agent<unknown>
  readonly input: string
  readonly prices?: Prices | undefined
  /** Takes this run up instead of starting one. */
  readonly resume?: RunId | undefined
  /** Where the first, the second … process dies. Those after the last live. */
  readonly crashes?: readonly CrashPoint[] | undefined
  /** The session that the run is in. */
  readonly sessionId?: string | undefined
  /** Whom the run is about. */
  readonly subject?: string | undefined
  /** Cancels when the event of this number is seen. */
  readonly cancelAtSeq?: number | undefined
  /** Drains the process that sees the event of this number, once; the next process resumes the run. */
  readonly drainAtSeq?: number | undefined
  /** Says something when the event of this number is seen. */
  readonly inputs?: readonly { readonly atSeq: number; readonly delivery: 'steer' | 'queue' }[] | undefined
  /** Answers approvals; approves everything where not given. */
  readonly decide?: ((pending: PendingApproval) => SimulatedDecision) | undefined
}

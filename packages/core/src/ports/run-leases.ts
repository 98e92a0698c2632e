import type { RunId } from '../vocabulary/values/ids.ts'

/** What a process asks for when it drives a run: that it alone does, for a while. */
export interface LeaseClaim {
  /** Names the one that asks, unique among all that use the store, such as `process 4711 on web-1 … 0b1c…`. */
  readonly holder: string
  /** How long the lease lasts unless it is renewed, in milliseconds. */
  readonly forMs: number
}

/** What is asked for in taking a run over. */
export interface TakeOverClaim extends LeaseClaim {
  /**
   * The holder whose lease ends here, though it lasts: that process has died, or a person has said that it has. The lease
   * of any other holder, which may have taken the run over since, is respected.
   */
  readonly from?: string | undefined
}

/** A lease that lasts. */
export interface Lease {
  readonly holder: string
  /** How long it lasts unless it is renewed, in milliseconds, by the store's clock. */
  readonly leftMs: number
}

/**
 * Leases of runs: who drives a run now. They are part of the `Ledger` port, two columns of the row of a run (`lease_holder`,
 * `lease_until`), and no part of the record: hashes, exports and `tail` know nothing of them, and a lease that is lost with a
 * disk costs nothing but a wait.
 *
 * For authors of stores:
 * - Time is the store's: the server's clock, or the machine's where a file is shared by its processes. `until` is that clock
 *   plus `forMs`, computed where the row is written; the clocks of the processes may differ. A lease with `until` of now or
 *   earlier has ended, so `forMs: 0` ends at once, which is how the contract tests ends without waiting.
 * - `append` with `lease` gives the run to that holder for `forMs` from then on, in the same transaction, whoever had it: the
 *   epoch has decided already that this writer may. So the first append of a run takes its lease, and later ones renew it. An
 *   append without `lease` leaves it as it is; so may one without events, or one that was stored before and is recognised. An
 *   append that is refused changes nothing. An append with `run_finished` ends the lease, whatever it is given: a run that has
 *   ended has none. Runtimes do not send `lease` with each append, only when a good part of it is over.
 * - `acquire` with a claim raises the epoch and gives the run to the holder in one transaction, unless a lease of another holder
 *   lasts that `from` does not name: then nothing changes, and it rejects with a `LedgerConflictError` of kind `lease`, whose
 *   `lease` says who has the run and for how long. Of several that acquire at once one wins. Without a claim it raises the epoch
 *   in any case, and ends the lease.
 * - `renew` lets the leases of a holder last `forMs` from now, of those of these runs that it has, and returns them. One that has
 *   ended and that nobody has taken since is renewed too. It is called when a tool or a model has been silent for long, for all
 *   such runs of a process at once. It need not be durable, and must not wait behind long work.
 * - `release` ends the lease of a run if that holder has it. It need not be durable.
 * - `lease` returns the lease of a run that lasts; `undefined` where there is none, or no such run.
 * - A lease refuses no append: only the epoch decides which writer may. It keeps others from raising the epoch while a tool is
 *   at work, which no epoch can stop.
 * - A store judges nothing else. Whether the process of a holder has died is for the runtime to say, which knows its machine.
 * - `changes` need not emit for a lease that is taken, renewed or released.
 */
export interface RunLeases {
  lease(runId: RunId): Promise<Lease | undefined>
  renew(runIds: readonly RunId[], claim: LeaseClaim): Promise<readonly RunId[]>
  release(runId: RunId, holder: string): Promise<void>
}

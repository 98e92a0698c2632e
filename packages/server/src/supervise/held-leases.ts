import type { Clock, Ledger, RunId } from '@tallystick/core'

/** What keeps the leases of a supervisor. */
export interface LeaseKeeping {
  readonly clock: Clock
  readonly leaseMs: number
  readonly report: (error: unknown, what: string) => void
}

/** How often a lease is renewed while it lasts: one renewal may be late or fail, and the lease lasts on. */
const renewals = 3

/**
 * The leases of the runs that one supervisor drives. It renews them as long as it has some. A ledger without leases
 * gives every run to each supervisor.
 */
export class HeldLeases {
  readonly #ledger: Ledger
  readonly #keeping: LeaseKeeping
  /** Names this supervisor in the ledger. */
  readonly #holder = crypto.randomUUID()
  readonly #held = new Set<RunId>()
  #stopTimer: (() => void) | undefined

  constructor(ledger: Ledger, keeping: LeaseKeeping) {
    this.#ledger = ledger
    this.#keeping = keeping
  }

  /** Returns the runs whose holder has gone. */
  async expired(): Promise<ReadonlySet<RunId>> {
    return new Set(await this.#ledger.leases?.expired())
  }

  /**
   * Takes the lease of a run, and returns whether this supervisor has it now. Returns `false`, too, if the run has an event after
   * `seq`: then another process has resumed it since it was found to be due, and has given its lease back already.
   */
  async take(runId: RunId, seq: number): Promise<boolean> {
    const { leases } = this.#ledger
    if (leases === undefined) return true
    if (!(await leases.take(runId, this.#holder, this.#keeping.leaseMs))) return false
    this.#held.add(runId)
    this.#renewLater()
    let isAsFound = false
    try {
      isAsFound = (await this.#ledger.head(runId))?.seq === seq
    } finally {
      if (!isAsFound) await this.giveBack(runId)
    }
    return isAsFound
  }

  /** Never rejects: a lease that cannot be given back expires. */
  async giveBack(runId: RunId): Promise<void> {
    if (!this.#held.delete(runId)) return
    if (this.#held.size === 0) {
      this.#stopTimer?.()
      this.#stopTimer = undefined
    }
    try {
      await this.#ledger.leases?.giveBack(runId, this.#holder)
    } catch (error) {
      this.#keeping.report(error, `The lease of run ${runId} could not be given back, and expires`)
    }
  }

  #renewLater(): void {
    const { clock, leaseMs } = this.#keeping
    this.#stopTimer ??= clock.schedule(leaseMs / renewals, () => {
      this.#stopTimer = undefined
      void this.#renew()
    })
  }

  async #renew(): Promise<void> {
    try {
      await this.#ledger.leases?.renew(this.#holder, this.#keeping.leaseMs)
    } catch (error) {
      this.#keeping.report(error, 'The leases of a supervisor could not be renewed')
    }
    if (this.#held.size > 0) this.#renewLater()
  }
}

import type { Clock } from '../ports/clock.ts'
import type { Lease, LeaseClaim, TakeOverClaim } from '../ports/run-leases.ts'
import type { RuntimeEvent } from '../vocabulary/events/event.ts'
import type { RunId } from '../vocabulary/values/ids.ts'
import { drivenByOther, endsRun } from './append-rules.ts'

/** The leases of the runs of a `memoryLedger`. */
export class MemoryLeases {
  readonly #clock: Pick<Clock, 'now'>
  readonly #held = new Map<RunId, { readonly holder: string; readonly until: number }>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  of(runId: RunId): Lease | undefined {
    const { holder, until } = this.#held.get(runId) ?? {}
    const leftMs = (until ?? 0) - this.#clock.now()
    return holder !== undefined && leftMs > 0 ? { holder, leftMs } : undefined
  }

  appended(runId: RunId, events: readonly RuntimeEvent[], claim: LeaseClaim | undefined): void {
    if (endsRun(events)) this.#held.delete(runId)
    else if (claim && events.length > 0) this.#give(runId, claim)
  }

  /** Throws where a holder has the run from whom it is not to be taken. */
  acquire(runId: RunId, claim: TakeOverClaim | undefined): void {
    if (claim === undefined) return void this.#held.delete(runId)
    const lease = this.of(runId)
    if (lease && lease.holder !== claim.holder && lease.holder !== claim.from)
      throw drivenByOther(runId, lease)
    this.#give(runId, claim)
  }

  renew(runIds: readonly RunId[], claim: LeaseClaim): readonly RunId[] {
    const held = runIds.filter((runId) => this.#held.get(runId)?.holder === claim.holder)
    for (const runId of held) this.#give(runId, claim)
    return held
  }

  release(runId: RunId, holder: string): void {
    if (this.#held.get(runId)?.holder === holder) this.#held.delete(runId)
  }

  #give(runId: RunId, { holder, forMs }: LeaseClaim): void {
    this.#held.set(runId, { holder, until: this.#clock.now() + forMs })
  }
}

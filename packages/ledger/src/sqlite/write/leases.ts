import { RunNotFoundError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { drivenByOther, endsRun } from '@tallystick/core/store-kit'
import type { Lease, LeaseClaim, TakeOverClaim } from '@tallystick/core/vocabulary'
import type { Database, Statement } from 'better-sqlite3'
import { isRunId } from '../../record/stored-ids.ts'

/** The time of this machine, which all processes with the file share, in milliseconds since 1970 UTC. */
const now = `cast(unixepoch('subsec') * 1000 as integer)`

const texts = {
  lease: `select lease_holder as holder, lease_until - ${now} as leftMs from run where run_id = :runId and lease_until > ${now}`,
  give: `update run set lease_holder = :holder, lease_until = ${now} + :forMs where run_id = :runId`,
  renew: `update run set lease_until = ${now} + :forMs where run_id = :runId and lease_holder = :holder`,
  release: `update run set lease_holder = null, lease_until = null where run_id = :runId and lease_holder = :holder`,
  end: `update run set lease_holder = null, lease_until = null where run_id = :runId and lease_holder is not null`,
} as const

interface LeaseInput {
  readonly runId: RunId
  readonly holder?: string
  readonly forMs?: number
}

/** The leases of a ledger: columns of the row of a run. All but `of` is called within a transaction. */
export class SqliteLeases {
  readonly #database: Database
  readonly #prepared = new Map<string, Statement<[LeaseInput], Lease>>()

  constructor(database: Database) {
    this.#database = database
  }

  of(runId: RunId): Lease | undefined {
    return isRunId(runId) ? this.#statement('lease').get({ runId }) : undefined
  }

  appended(runId: RunId, events: readonly RuntimeEvent[], claim: LeaseClaim | undefined): void {
    if (endsRun(events)) this.#statement('end').run({ runId })
    else if (claim && events.length > 0) this.#statement('give').run({ runId, ...ofClaim(claim) })
  }

  acquired(runId: RunId, claim: TakeOverClaim | undefined): void {
    if (claim === undefined) return void this.#statement('end').run({ runId })
    const lease = this.of(runId)
    if (lease && lease.holder !== claim.holder && lease.holder !== claim.from)
      throw drivenByOther(runId, lease)
    if (this.#statement('give').run({ runId, ...ofClaim(claim) }).changes === 0)
      throw new RunNotFoundError(runId)
  }

  renew(runIds: readonly RunId[], claim: LeaseClaim): readonly RunId[] {
    const given = ofClaim(claim)
    return runIds.filter(
      (runId) => isRunId(runId) && this.#statement('renew').run({ runId, ...given }).changes > 0,
    )
  }

  release(runId: RunId, holder: string): void {
    if (isRunId(runId)) this.#statement('release').run({ runId, holder })
  }

  #statement(name: keyof typeof texts): Statement<[LeaseInput], Lease> {
    const known = this.#prepared.get(name)
    if (known) return known
    const statement = this.#database.prepare<[LeaseInput], Lease>(texts[name])
    this.#prepared.set(name, statement)
    return statement
  }
}

function ofClaim({ holder, forMs }: LeaseClaim): Omit<LeaseInput, 'runId'> {
  return { holder, forMs: Math.ceil(forMs) }
}

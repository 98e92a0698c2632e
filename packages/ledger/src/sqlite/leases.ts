import type { RunId } from '@tallystick/core'
import { drivenByOther } from '@tallystick/core/store-kit'
import type { Lease, LeaseClaim, TakeOverClaim } from '@tallystick/core/vocabulary'
import type { Database } from 'better-sqlite3'
import { isRunId } from '../format/stored-ids.ts'
import type { AppendRequest } from '../store/store.ts'
import { Statements } from './statements.ts'

/** The time of this machine, which all processes with the file share, in milliseconds since 1970 UTC. */
const now = `cast(unixepoch('subsec') * 1000 as integer)`

/** The leases of a ledger: columns of the row of a run. All but `of` is called within a transaction. */
export class SqliteLeases {
  readonly #statements: ReturnType<typeof statementsOf>

  constructor(database: Database) {
    this.#statements = statementsOf(database)
  }

  of(runId: RunId): Lease | undefined {
    return isRunId(runId) ? this.#statements.lease.get(runId) : undefined
  }

  appended({ runId, events, lease }: AppendRequest): void {
    if (events.some(({ event }) => event.type === 'run_finished')) this.#statements.end.run(runId)
    else if (lease && events.length > 0) this.#give(runId, lease)
  }

  /** Throws a `LedgerConflictError` while another holder has the run. */
  acquired(runId: RunId, claim: TakeOverClaim | undefined): void {
    if (claim === undefined) return void this.#statements.end.run(runId)
    const lease = this.of(runId)
    if (lease && lease.holder !== claim.holder && lease.holder !== claim.from)
      throw drivenByOther(runId, lease)
    this.#give(runId, claim)
  }

  renew(runIds: readonly RunId[], { holder, forMs }: LeaseClaim): readonly RunId[] {
    return runIds.filter(
      (runId) => isRunId(runId) && this.#statements.renew.run(Math.ceil(forMs), runId, holder).changes > 0,
    )
  }

  release(runId: RunId, holder: string): void {
    if (isRunId(runId)) this.#statements.release.run(runId, holder)
  }

  #give(runId: RunId, { holder, forMs }: LeaseClaim): void {
    this.#statements.give.run(holder, Math.ceil(forMs), runId)
  }
}

function statementsOf(database: Database) {
  const statements = new Statements(database)
  return {
    lease: statements.rows<Lease>(
      `select lease_holder as holder, lease_until - ${now} as leftMs from run where run_id = ? and lease_until > ${now}`,
    ),
    give: statements.rows(`update run set lease_holder = ?, lease_until = ${now} + ? where run_id = ?`),
    renew: statements.rows(`update run set lease_until = ${now} + ? where run_id = ? and lease_holder = ?`),
    release: statements.rows(
      'update run set lease_holder = null, lease_until = null where run_id = ? and lease_holder = ?',
    ),
    end: statements.rows(
      'update run set lease_holder = null, lease_until = null where run_id = ? and lease_holder is not null',
    ),
  }
}

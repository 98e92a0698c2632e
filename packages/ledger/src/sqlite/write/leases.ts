import type { RunId } from '@tallystick/core'
import type { RunLeases } from '@tallystick/core/vocabulary'
import type { Database, Statement } from 'better-sqlite3'
import { isRunId } from '../../record/stored-ids.ts'
import type { GroupCommit } from './group-commit.ts'

/** The time of this machine, which all processes with the file share, in milliseconds since 1970 UTC. */
const now = `cast(unixepoch('subsec') * 1000 as integer)`

const texts: Readonly<Record<keyof RunLeases, string>> = {
  take: `insert into lease (run_id, holder, epoch, until)
    select run_id, :holder, epoch + 1, ${now} + :forMs from run where run_id = :runId
    on conflict (run_id) do update set holder = excluded.holder, epoch = excluded.epoch, until = excluded.until
    where lease.holder = excluded.holder or lease.until <= ${now}`,
  renew: `update lease set until = ${now} + :forMs where holder = :holder`,
  giveBack: `delete from lease where run_id = :runId and holder = :holder`,
  expired: `select run_id from lease join run using (run_id)
    where until <= ${now} and run.epoch <= lease.epoch
      and not exists (select 1 from event where event.run_id = lease.run_id and once_key = 'run_finished')
    order by run_id`,
}

interface LeaseInput {
  readonly runId?: RunId
  readonly holder?: string
  readonly forMs?: number
}

/**
 * The leases of a ledger. A row names the epoch that the take-over of its holder will have, so that a later take-over
 * by another process can be told from it.
 */
export class SqliteLeases {
  readonly #database: Database
  readonly #group: GroupCommit
  readonly #prepared = new Map<string, Statement<[LeaseInput], { readonly run_id: string }>>()

  constructor(database: Database, group: GroupCommit) {
    this.#database = database
    this.#group = group
  }

  async take(runId: RunId, holder: string, forMs: number): Promise<boolean> {
    return isRunId(runId) && (await this.#change('take', { runId, holder, forMs })) > 0
  }

  async renew(holder: string, forMs: number): Promise<void> {
    await this.#change('renew', { holder, forMs })
  }

  async giveBack(runId: RunId, holder: string): Promise<void> {
    if (isRunId(runId)) await this.#change('giveBack', { runId, holder })
  }

  expired(): readonly RunId[] {
    return this.#statement('expired')
      .all({})
      .map(({ run_id }) => run_id)
      .filter(isRunId)
  }

  /** Returns how many leases it changed. */
  #change(name: keyof RunLeases, input: LeaseInput): Promise<number> {
    const work = (): number => this.#statement(name).run(input).changes
    return this.#group.submit({ durability: 'lazy', events: 1, bytes: 0, work })
  }

  #statement(name: keyof RunLeases): Statement<[LeaseInput], { readonly run_id: string }> {
    const known = this.#prepared.get(name)
    if (known) return known
    const statement = this.#database.prepare<[LeaseInput], { readonly run_id: string }>(texts[name])
    this.#prepared.set(name, statement)
    return statement
  }
}

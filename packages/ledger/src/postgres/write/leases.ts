import type { RunId } from '@tallystick/core'
import type { RunLeases } from '@tallystick/core/vocabulary'
import { isRunId } from '../../record/stored-ids.ts'
import type { Connections } from '../connection/connections.ts'
import { durabilityText } from '../rows/statement-parts.ts'

/** The time of the server, in milliseconds since 1970 UTC. */
const now = `(extract(epoch from clock_timestamp()) * 1000)::int8`

/**
 * The leases of a ledger. A row names the epoch that the take-over of its holder will have, so that a later take-over
 * by another process can be told from it.
 */
export class PostgresLeases implements RunLeases {
  readonly #connections: Connections
  readonly #texts: Readonly<Record<keyof RunLeases, string>>

  constructor(connections: Connections, schema: string) {
    this.#connections = connections
    this.#texts = {
      take: `insert into ${schema}.lease as held (run_id, holder, epoch, until)
        select run_id, $2::text, epoch + 1, ${now} + $3::int8 from ${schema}.run where run_id = $1
        on conflict (run_id) do update set holder = excluded.holder, epoch = excluded.epoch, until = excluded.until
        where held.holder = excluded.holder or held.until <= ${now}
        returning run_id, ${durabilityText.lazy}`,
      renew: `update ${schema}.lease set until = ${now} + $2::int8 where holder = $1 returning ${durabilityText.lazy}`,
      giveBack: `delete from ${schema}.lease where run_id = $1 and holder = $2 returning ${durabilityText.lazy}`,
      expired: `select run_id from ${schema}.lease join ${schema}.run using (run_id)
        where until <= ${now} and run.epoch <= lease.epoch
          and not exists (select from ${schema}.event where event.run_id = lease.run_id and once_key = 'run_finished')
        order by run_id`,
    }
  }

  async take(runId: RunId, holder: string, forMs: number): Promise<boolean> {
    return isRunId(runId) && (await this.#rows('take', [runId, holder, forMs])).length > 0
  }

  async renew(holder: string, forMs: number): Promise<void> {
    await this.#rows('renew', [holder, forMs])
  }

  async giveBack(runId: RunId, holder: string): Promise<void> {
    if (isRunId(runId)) await this.#rows('giveBack', [runId, holder])
  }

  async expired(): Promise<readonly RunId[]> {
    return (await this.#rows('expired', [])).map(({ run_id }) => run_id).filter(isRunId)
  }

  #rows(name: keyof RunLeases, values: readonly unknown[]): Promise<readonly { readonly run_id: string }[]> {
    return this.#connections.rows({ name: `tallystick lease ${name}`, text: this.#texts[name], values })
  }
}

import type { Connections } from '../connection/connections.ts'
import { horizon } from './tail-texts.ts'

/** A transaction that is under way somewhere on the server, in any of its databases. */
export interface OpenTransaction {
  /** Its server process, as `pg_terminate_backend` takes it; absent where it was prepared and waits for its second phase. */
  readonly pid?: number
  readonly database: string
  /** As its client calls itself; the name of the transaction where it was prepared. */
  readonly applicationName: string
  /**
   * Such as `idle in transaction`, when its client runs no statement, or `prepared`. Absent, like `ageMs`, if the
   * role of this ledger may not see it: `pg_read_all_stats` allows it.
   */
  readonly state?: string
  /** How long it has been under way, in milliseconds, by the clock of the server. */
  readonly ageMs?: number
}

/** How far tails over all runs are delayed, and by which transaction. */
export interface TailHorizon {
  /** Committed events that no tail yields yet, since the oldest transaction may put others in front of them. */
  readonly waitingEvents: number
  /** The oldest transaction that has written; absent where none has. */
  readonly oldest?: OpenTransaction
}

type OldestRow = {
  readonly [Name in keyof Required<OpenTransaction>]: Required<OpenTransaction>[Name] | null
} & {
  readonly waitingEvents: number
}

/** Looks at the horizon of a schema, whose name is quoted already. */
export async function tailHorizon(connections: Connections, schema: string): Promise<TailHorizon> {
  const [row] = await connections.rows<OldestRow>({ text: horizonText(schema), values: [] })
  if (row === undefined) throw new Error('A statement that returns one row returned none.')
  const { waitingEvents, pid, database, applicationName, state, ageMs } = row
  if (database === null) return { waitingEvents }
  const seen = {
    ...(pid !== null && { pid }),
    ...(state !== null && { state }),
    ...(ageMs !== null && { ageMs }),
  }
  return { waitingEvents, oldest: { database, applicationName: applicationName ?? '', ...seen } }
}

function horizonText(schema: string): string {
  const ageOf = (begun: string): string => `(extract(epoch from clock_timestamp() - ${begun}) * 1000)::float8`
  return `select waiting.events as "waitingEvents", oldest.*
    from (select coalesce(sum(1 + seq - coalesce(first_seq, seq)), 0)::int8 as events from ${schema}.event where xid >= ${horizon}) as waiting
    left join lateral (
      select pid, coalesce(datname::text, '') as database, application_name as "applicationName", state,
        ${ageOf('xact_start')} as "ageMs"
      from pg_catalog.pg_stat_activity where backend_xid = ${horizon}::xid
      union all
      select null, database::text, gid, 'prepared', ${ageOf('prepared')}
      from pg_catalog.pg_prepared_xacts where transaction = ${horizon}::xid
    ) as oldest on true limit 1`
}

import { eventColumns } from './search-texts.ts'
import { bytesPerBatch, eventsPerBatch } from './statements.ts'

/** The statements of a tail. */
export interface TailTexts {
  /** The row at ($1, $2), the xid and the pos, of the run $3; and what comes after ($1, $4). */
  readonly begin: string
  /** Events after ($1, $2) and below the horizon $3. */
  readonly batch: string
  readonly mark: string
}

/** Below it no transaction is under way: what has ended is seen, and nothing comes there any more. */
export const horizon = 'pg_snapshot_xmin(pg_current_snapshot())'

/**
 * Whether every commit that this statement sees is on the disk. What replays the log of another server sees nothing
 * else; where standbys have to follow, only a commit that waits for them can tell.
 */
const isDurable = `case when pg_is_in_recovery() then true else current_setting('synchronous_standby_names') = ''
  and pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn() end`

/** Writes the statements for a schema, whose name is quoted already. */
export function tailTexts(schema: string): TailTexts {
  const heldBack = `exists (select from ${schema}.event where xid >= ${horizon})`
  return {
    begin: `select ${horizon} as horizon, named.hash, named.events,
      exists (select from ${schema}.removal where run_id = $3::text and kind = 'dropped') as is_dropped,
      exists (select from ${schema}.event where (xid, pos) > ($1::xid8, $4::int8) and xid < ${horizon}) as is_more,
      ${heldBack} as is_held_back,
      exists (select from ${schema}.event where xid >= pg_snapshot_xmax(pg_current_snapshot())) as is_foreign,
      ${isDurable} as is_durable
      from (select) as one left join (
        select hash, 1 + seq - coalesce(first_seq, seq) as events from ${schema}.event
        where xid = $1::xid8 and pos = $2::int8 and run_id || '' = $3::text
      ) as named on true`,
    batch: `select event.*, previous.pos as previous_pos, previous.epoch as previous_epoch, previous.hash as previous_hash
      from (
        select chosen.*, salt, body, sum(octet_length(body)) over (
          order by chosen.xid, chosen.pos rows between unbounded preceding and 1 preceding
        ) as bytes_before
        from (
          select ${eventColumns.join(', ')}, event.xid from ${schema}.event
          where (event.xid, event.pos) > ($1::xid8, $2::int8) and event.xid < $3::xid8
          order by event.xid, event.pos limit ${eventsPerBatch}
        ) as chosen left join ${schema}.payload on payload.pos = chosen.pos
      ) as event left join ${schema}.event as previous on previous.run_id = event.run_id
        and previous.seq = coalesce(event.first_seq, event.seq) - 1
      where coalesce(bytes_before, 0) < ${bytesPerBatch} order by event.xid, event.pos`,
    mark: `select coalesce(
        (select xid || ' ' || pos from ${schema}.event where xid < ${horizon} order by xid desc, pos desc limit 1), ''
      ) || ' ' || coalesce((select max(pos) from ${schema}.inbox), 0) as mark, ${heldBack} as is_held_back`,
  }
}

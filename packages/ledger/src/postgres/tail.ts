import { LedgerUnavailableError } from '@tallystick/core'
import { isStorableName } from '@tallystick/core/store-kit'
import { eventColumnsText, isFull, selectLinked } from '../store/database.ts'
import type { BegunTail, TailRow, TailStart } from '../store/tail-events.ts'
import type { OpenSchema } from './database.ts'
import type { OpenTransaction, TailHorizon } from './options.ts'

/** All transactions below it have ended: their events are visible, and none can follow. */
const horizon = 'pg_snapshot_xmin(pg_current_snapshot())'

/**
 * Every commit that this statement sees is on the disk. A server that replays the log of another one sees nothing
 * else; where standbys have to follow, only a commit that waits for them can tell.
 */
const isDurable = `case when pg_is_in_recovery() then true else current_setting('synchronous_standby_names') = ''
  and pg_current_wal_insert_lsn() <= pg_current_wal_flush_lsn() end`

interface Beginning {
  /** Below it no transaction is under way. */
  readonly horizon: string
  readonly run_id: string | null
  readonly hash: string | null
  readonly is_dropped: boolean
  readonly is_more: boolean
  readonly is_held_back: boolean
  readonly is_foreign: boolean
  readonly is_durable: boolean
}

/** The beginning of a tail, and whether there are events that it does not reach yet. */
export interface BegunPostgresTail extends BegunTail {
  readonly isHeldBack: boolean
}

/**
 * Begins a tail. Transactions get their numbers when they first write, and end in any order; so the events of a tail are ordered
 * by (xid, pos), and it goes up to the lowest number that is under way. After that everything is as it will ever be. `harden`
 * makes every commit before it durable.
 */
export async function beginTail(
  { ask, askBatch }: OpenSchema,
  start: TailStart,
  { harden, description }: { readonly harden: () => Promise<unknown>; readonly description: string },
): Promise<BegunPostgresTail> {
  const text = `select ${horizon} as horizon, named.run_id, named.hash,
    exists (select from @.removal where run_id = $3::text and kind = 'dropped') as is_dropped,
    exists (select from @.event where (xid, pos) > ($1::xid8, $2::int8) and xid < ${horizon}) as is_more,
    exists (select from @.event where xid >= ${horizon}) as is_held_back,
    exists (select from @.event where xid >= pg_snapshot_xmax(pg_current_snapshot())) as is_foreign,
    ${isDurable} as is_durable
    from (select) as one left join (
      select run_id, hash from @.event where xid = $1::xid8 and pos = $2::int8
    ) as named on true`
  // A text that Postgres cannot hold names no run.
  const runId = isStorableName(start.runId) ? start.runId : ''
  const [begun] = await ask<Beginning>(text, [start.xid, start.pos, runId])
  if (begun === undefined) throw new Error('A statement that returns one row returned none.')
  if (begun.is_foreign) throw createOtherServerError(description)
  // A reader continues after the last event it saw, so a crash of the server must not lose that event.
  if (begun.is_more && !begun.is_durable) await harden()
  const { run_id, hash } = begun
  return {
    atCursor: run_id !== null && hash !== null ? { runId: run_id, hash } : undefined,
    isDropped: begun.is_dropped,
    isHeldBack: begun.is_held_back,
    batch: async ({ xid, pos }) => {
      if (!begun.is_more) return { rows: [], isLast: true }
      const condition = '(event.xid, event.pos) > ($1::xid8, $2::int8) and event.xid < $3::xid8'
      const text = selectLinked(condition, `${eventColumnsText}, event.xid`)
      const rows = await askBatch<TailRow>(text, ['xid', 'pos'], [xid, pos, begun.horizon])
      return { rows, isLast: !isFull(rows) }
    },
  }
}

/** The mark of a tail over all runs: it differs from one look to the next when events, or inbox entries, were added. */
export interface TailMark {
  readonly mark: string
  /** Events wait for transactions that are under way. */
  readonly isHeldBack: boolean
}

export async function readTailMark({ ask }: OpenSchema): Promise<TailMark> {
  const text = `select coalesce(
      (select xid || ' ' || pos from @.event where xid < ${horizon} order by xid desc, pos desc limit 1), ''
    ) || ' ' || coalesce((select max(pos) from @.inbox), 0) as mark,
    exists (select from @.event where xid >= ${horizon}) as is_held_back`
  const [row] = await ask<{ readonly mark: string; readonly is_held_back: boolean }>(text)
  return { mark: row?.mark ?? '', isHeldBack: row?.is_held_back ?? false }
}

function createOtherServerError(description: string): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `The ledger at ${description} came from another server, as by a restored dump: its events name ` +
      'transactions that this server has not reached, so their order of commit is unknown, and a tail ' +
      'would leave events out. Everything else works. Let the owner number them anew, as src/postgres/README.md of ' +
      '@tallystick/ledger says under "The order of a tail", and begin the tail without a cursor.',
  )
}

type OldestRow = {
  readonly [Name in keyof Required<OpenTransaction>]: Required<OpenTransaction>[Name] | null
} & {
  readonly waitingEvents: number
}

/** How far tails are held back, and by which transaction. */
export async function readHorizon({ ask }: OpenSchema): Promise<TailHorizon> {
  const [row] = await ask<OldestRow>(horizonText)
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

const selectAge = (begun: string): string =>
  `(extract(epoch from clock_timestamp() - ${begun}) * 1000)::float8`

const horizonText = `select waiting.events as "waitingEvents", oldest.*
    from (select count(*) as events from @.event where xid >= ${horizon}) as waiting
    left join lateral (
      select pid, coalesce(datname::text, '') as database, application_name as "applicationName", state,
        ${selectAge('xact_start')} as "ageMs"
      from pg_catalog.pg_stat_activity where backend_xid = ${horizon}::xid
      union all
      select null, database::text, gid, 'prepared', ${selectAge('prepared')}
      from pg_catalog.pg_prepared_xacts where transaction = ${horizon}::xid
    ) as oldest on true limit 1`

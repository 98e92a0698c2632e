import { LedgerUnavailableError } from '@tallystick/core'
import type {
  ChangedRuns,
  ChangePart,
  ProjectionDatabase,
  ProjectionDialect,
} from '../projection/database.ts'
import { rareType } from '../store/store.ts'
import type { Statement } from './connections.ts'
import { horizon } from './search.ts'

/** How many events are looked at for the runs that they are of. */
const eventsPerRead = 4096

/** Runs with unsettled events are reported again and again; more of them than this are a fault. */
const maxUnsettled = 2_000

/** The SQL of Postgres, for a schema whose name is quoted already. */
export function postgresDialect(schema: string): ProjectionDialect {
  return {
    table: (name) => `${schema}.${name}`,
    rareEvents: `(select * from ${schema}.event where ${rareType}) as event`,
    texts: (parameter) => `json_array_elements_text(${parameter}::json) as item(value)`,
    objects: (parameter) => `json_array_elements(${parameter}::json) as item(value)`,
    hasText: (array, parameter) => `${array}::jsonb ? ${parameter}`,
    held: 'for share',
    unindexed: (column) => `${column} + 0`,
  }
}

/** How the tables are reached. */
interface ProjectionSource {
  readonly isWritable: boolean
  read<Row>(statement: Statement): Promise<readonly Row[]>
  write<Row>(statement: Statement): Promise<readonly Row[]>
}

/** The tables of a schema that follow from its events. */
export function postgresProjections(source: ProjectionSource, schema: string): ProjectionDatabase {
  const ask = <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    source.read({ text, values })
  return {
    dialect: postgresDialect(schema),
    isWritable: source.isWritable,
    ask,
    async change(parts, values) {
      const text = changeText(parts)
      const rows = await source.write<{ readonly changed: number }>({ text, values })
      return (rows[0]?.changed ?? 0) > 0
    },
    changedRuns: (after) => changedRuns(ask, schema, after),
    async isAfter(place, runId, seq) {
      const { xid, pos } = placeOf(place)
      const rows = await ask(
        `select 1 from ${schema}.event where run_id = $1 and seq = $2 and (xid, pos) > ($3::xid8, $4::int8)`,
        [runId, seq, xid, pos],
      )
      return rows.length > 0
    },
    async eventsAfter(after) {
      const [last] = await ask<{ readonly pos: number | null }>(`select max(pos) as pos from ${schema}.event`)
      return Math.max(0, (last?.pos ?? 0) - placeOf(after).pos)
    },
  }
}

/**
 * Returns the runs that changed after a place. Settled events follow the order of the tail. Other events may still
 * come before an unsettled one, so the place stays before it; its run is reported now, and again when it has settled.
 */
async function changedRuns(
  ask: ProjectionDatabase['ask'],
  schema: string,
  after: string,
): Promise<ChangedRuns> {
  const place = placeOf(after)
  const [now] = await ask<SettledEvents>(
    `select ${horizon}::text as settled, array(
      select distinct run_id from ${schema}.event where xid >= ${horizon} limit ${maxUnsettled + 1}
    ) as unsettled, exists (select from ${schema}.event where xid = $1::xid8 and pos = $2::int8) as is_there`,
    [place.xid, place.pos],
  )
  const { settled = '0', unsettled = [], is_there = false } = now ?? {}
  if (after !== '' && !is_there) return { runIds: [], cursor: after, isLast: true, isLost: true }
  if (unsettled.length > maxUnsettled) throw tooManyUnsettled()
  const rows = await ask<{ readonly xid: string; readonly pos: number; readonly run_id: string }>(
    `select xid::text as xid, pos, run_id from ${schema}.event as event
      where (xid, pos) > ($1::xid8, $2::int8) and xid < $3::xid8
      order by event.xid, event.pos limit ${eventsPerRead}`,
    [place.xid, place.pos, settled],
  )
  const last = rows.at(-1)
  const isLast = rows.length < eventsPerRead
  return {
    runIds: [...new Set([...rows.map(({ run_id }) => run_id), ...(isLast ? unsettled : [])])],
    cursor: last ? `${last.xid} ${last.pos}` : after,
    isLast,
  }
}

interface SettledEvents {
  /** The transaction below which everything has settled. */
  readonly settled: string
  /** Runs with events that have not. */
  readonly unsettled: readonly string[]
  /** Whether the event is at the given place: a copy on another server may number them anew. */
  readonly is_there: boolean
}

function tooManyUnsettled(): LedgerUnavailableError {
  return new LedgerUnavailableError(
    'Events of too many runs wait for a transaction that is still open, or came with a copy of another server, so ' +
      'projections cannot be brought up to date. End that transaction; the horizon() of the ledger names it.',
  )
}

/** One statement, and so one transaction, which need not wait for the disk. */
function changeText(parts: readonly ChangePart[]): string {
  const [first, ...others] = parts as readonly [ChangePart, ...ChangePart[]]
  const when = `exists (select 1 from ${first.name})`
  const steps = [
    `${first.name} as (${first.text('true')} returning 1)`,
    ...others.map(({ name, text }) => `${name} as (${text(when)} returning 1)`),
  ]
  return `with ${steps.join(',\n')}
    select count(*) as changed, set_config('synchronous_commit', 'off', true) from ${first.name}`
}

function placeOf(cursor: string): { readonly xid: string; readonly pos: number } {
  const [xid = '0', pos = '0'] = cursor === '' ? [] : cursor.split(' ')
  return { xid, pos: Number(pos) }
}

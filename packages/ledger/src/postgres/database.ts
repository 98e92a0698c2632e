import { hash } from 'node:crypto'
import { LedgerUnavailableError } from '@tallystick/core'
import type { EventRow } from '../format/event-row.ts'
import {
  type Build,
  bytesPerBatch,
  type ChangedRuns,
  type Queries,
  rowsPerBatch,
  type Steps,
  type StoreDatabase,
} from '../store/database.ts'
import type { Connections, Statement } from './connections.ts'
import { durabilityText, inSchema, nowText } from './schema.ts'
import { horizon } from './tail.ts'

/** How many events are looked at for the runs that they are of. */
const eventsPerRead = 4096

/** Runs with unsettled events are reported again and again; more of them than this are a fault. */
const maxUnsettled = 2_000

/** An open schema, for statements. */
export type OpenSchema = Omit<StoreDatabase, 'isWritable' | 'requireOpen'>

/** The database of a schema. */
export function openSchema(connections: Connections, quotedSchema: string, queries: Queries): OpenSchema {
  const known = new Map<string, Pick<Statement, 'name' | 'text'>>()
  // With a name, connections keep a statement parsed.
  const named = (text: string): Pick<Statement, 'name' | 'text'> => {
    const found = known.get(text)
    if (found) return found
    const name = `tallystick ${hash('sha256', text).slice(0, 20)}`
    const statement = { name, text: inSchema(text, quotedSchema) }
    known.set(text, statement)
    return statement
  }
  const ask = <Row>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    connections.rows<Row>({ ...named(text), values })
  return {
    maxScanned: 65_536,
    now: nowText,
    ask,
    askBatch: <Row extends EventRow>(text: string, order: readonly string[], values: readonly unknown[]) =>
      ask<Row>(boundedText(text, order), values),
    query(build, { patiently = false } = {}) {
      const { sql: text, parameters: values } = build(queries).compile(queries.db)
      return patiently ? connections.patiently({ text, values }) : connections.rows({ text, values })
    },
    queryBatch<Row extends EventRow>(build: Build<Row>, order: readonly string[]) {
      const { sql: text, parameters: values } = build(queries).compile(queries.db)
      return connections.rows<Row>({ text: boundedText(text, order), values })
    },
    change: (steps) =>
      connections.transact(async (query) => {
        await query({ text: `select ${durabilityText.lazy}`, values: [] })
        return await carryOut(steps(queries), query)
      }),
    changedRuns: (after) => findChangedRuns(ask, after),
    async isAfter(place, runId, seq) {
      const { xid, pos } = parsePlace(place)
      const rows = await ask(
        'select 1 from @.event where run_id = $1 and seq = $2 and (xid, pos) > ($3::xid8, $4::int8)',
        [runId, seq, xid, pos],
      )
      return rows.length > 0
    },
    async eventsAfter(after) {
      const [last] = await ask<{ readonly pos: number | null }>('select max(pos) as pos from @.event')
      return Math.max(0, (last?.pos ?? 0) - parsePlace(after).pos)
    },
  }
}

/** Rows up to the first that takes their bodies over what a batch holds. */
function boundedText(query: string, columns: readonly string[]): string {
  const order = columns.join(', ')
  const inner = columns.map((column) => `event.${column}`).join(', ')
  return `select * from (
    select chosen.*, sum(octet_length(body)) over (order by ${order} rows between unbounded preceding and 1 preceding) as bytes_before
    from (${query} order by ${inner} limit ${rowsPerBatch}) as chosen
  ) as event where coalesce(bytes_before, 0) < ${bytesPerBatch} order by ${order}`
}

/**
 * Returns the runs that changed after a place. Settled events follow the order of the tail. Other events may still
 * come before an unsettled one, so the place stays before it; its run is reported now, and again when it has settled.
 */
async function findChangedRuns(ask: OpenSchema['ask'], after: string): Promise<ChangedRuns> {
  const place = parsePlace(after)
  const [now] = await ask<SettledEvents>(
    `select ${horizon}::text as settled, array(
      select distinct run_id from @.event where xid >= ${horizon} limit ${maxUnsettled + 1}
    ) as unsettled, exists (select from @.event where xid = $1::xid8 and pos = $2::int8) as is_there`,
    [place.xid, place.pos],
  )
  const { settled = '0', unsettled = [], is_there = false } = now ?? {}
  if (after !== '' && !is_there) return { runIds: [], cursor: after, isLast: true, isLost: true }
  if (unsettled.length > maxUnsettled) throw tooManyUnsettled()
  const rows = await ask<{ readonly xid: string; readonly pos: number; readonly run_id: string }>(
    `select xid::text as xid, pos, run_id from @.event as event
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
  /** The event at the given place exists: a copy on another server may number them anew. */
  readonly is_there: boolean
}

function tooManyUnsettled(): LedgerUnavailableError {
  return new LedgerUnavailableError(
    'Events of too many runs wait for a transaction that is still open, or came with a copy of another server, so ' +
      'projections cannot be brought up to date. End that transaction; the horizon() of the ledger names it.',
  )
}

/** Sends the queries of a transaction one by one. */
export async function carryOut<T>(
  steps: Steps<T>,
  query: (statement: Statement) => Promise<readonly unknown[]>,
): Promise<T> {
  let next = steps.next([])
  while (!next.done) next = steps.next(await query({ text: next.value.sql, values: next.value.parameters }))
  return next.value
}

function parsePlace(cursor: string): { readonly xid: string; readonly pos: number } {
  const [xid = '0', pos = '0'] = cursor === '' ? [] : cursor.split(' ')
  return { xid, pos: Number(pos) }
}

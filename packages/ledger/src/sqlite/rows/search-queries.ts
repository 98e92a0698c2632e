import type { Database } from 'better-sqlite3'
import { sql, type Kysely, type RawBuilder } from 'kysely'
import type { FoundRow, SearchSource } from '../../read/event-search.ts'
import type { EventRow } from '../../record/event-row.ts'
import { prepareFor, type Parameter, type PreparedQuery } from './prepared-query.ts'
import { rowBytes, type JoinedRow } from './row-bytes.ts'
import { rareType } from '../migrations/0010-shared-rows.ts'
import type { LedgerTables } from '../schema/tables.ts'

/** The parameters of the batches of a search. A batch ignores parameters that it does not use. */
export interface SearchInput {
  readonly runId: string
  readonly type: string
  /** Of the filters, null lets every event pass. */
  readonly turn: number | null
  readonly toolCallId: string | null
  /** As a JSON array. */
  readonly types: string | null
  readonly fromAt: number
  readonly toAt: number
  /** After `after`, up to and with `to`. */
  readonly afterSeq: number
  readonly toSeq: number
  readonly afterPos: number
  readonly toPos: number
}

interface Places {
  /** Null without a limit. */
  readonly fromPos: number | null
  readonly toPos: number | null
}

/** A row that was found, with its bytes laid together. */
export type FoundJoinedRow = JoinedRow & Pick<FoundRow, 'previous_pos' | 'previous_epoch' | 'previous_hash'>

/** Sources with a query of their own; the events of a turn are read as a part of their run. */
type IndexedBy = Exclude<SearchSource['by'], 'turn'>

/** What searching needs: a query for each index, and what begins a search. */
export type SearchQueries = {
  readonly [By in IndexedBy]: PreparedQuery<SearchInput, FoundJoinedRow>
} & {
  /** The first row of a run that ends at an event or after it. */
  readonly turnAt: PreparedQuery<
    { readonly runId: string; readonly seq: number },
    { readonly seq: number; readonly turn: number }
  >
  readonly runsOfCall: PreparedQuery<{ readonly toolCallId: string }, { readonly run_id: string }>
  readonly places: PreparedQuery<object, Places>
  readonly placesAt: PreparedQuery<Pick<SearchInput, 'fromAt' | 'toAt'>, Places>
  readonly rowAt: PreparedQuery<
    { readonly pos: number },
    Pick<EventRow, 'run_id' | 'hash' | 'first_seq' | 'seq'>
  >
  /** Of runs that were dropped. */
  readonly dropped: PreparedQuery<{ readonly runId: string }, { readonly pos: number }>
}

/** Prepares the queries of searches. */
export function searchQueries(database: Database, tables: Kysely<LedgerTables>): SearchQueries {
  const prepare = prepareFor<SearchInput>(database)
  const batch = (by: IndexedBy): PreparedQuery<SearchInput, FoundJoinedRow> =>
    prepare((parameter) => ({ compile: () => batchQuery(by, parameter).compile(tables) }))
  return {
    run: batch('run'),
    type: batch('type'),
    call: batch('call'),
    place: batch('place'),
    ...beginnings(database, tables),
  }
}

/** The index of each source by its name, since without figures about a file SQLite would take the wrong one. */
function sourceOf(
  by: IndexedBy,
  parameter: Parameter<SearchInput>,
): { readonly index: RawBuilder<unknown>; readonly where: RawBuilder<unknown> } {
  const ofRun = sql`event.run_id = ${parameter('runId')}`
  if (by === 'type') {
    const ofType = sql`${ofRun} and event.type = ${parameter('type')} and event.${sql.raw(rareType)}`
    return { index: sql`indexed by event_rare_type`, where: ofType }
  }
  if (by === 'call') {
    const ofCall = sql`event.tool_call_id = ${parameter('toolCallId')} and +${ofRun}`
    return { index: sql`indexed by event_tool_call`, where: ofCall }
  }
  return { index: sql``, where: by === 'run' ? ofRun : sql`true` }
}

function batchQuery(by: IndexedBy, parameter: Parameter<SearchInput>): RawBuilder<FoundJoinedRow> {
  const { index, where } = sourceOf(by, parameter)
  const [order, after, to] =
    by === 'place'
      ? [sql`event.pos`, parameter('afterPos'), parameter('toPos')]
      : [sql`event.seq`, parameter('afterSeq'), parameter('toSeq')]
  return sql<FoundJoinedRow>`select event.pos, event.run_id, event.first_seq, event.seq, event.epoch, event.type, event.v, event.turn,
      event.tool_call_id, event.at, event.once_key, ${sql.raw(rowBytes)} as bytes,
      previous.pos as previous_pos, previous.epoch as previous_epoch, previous.hash as previous_hash
    from event ${index} left join payload on payload.pos = event.pos
      left join event as previous on previous.run_id = event.run_id
        and previous.seq = coalesce(event.first_seq, event.seq) - 1
    where ${where} and ${order} > ${after} and ${order} <= ${to} and ${passes(parameter)} order by ${order}`
}

/** The filters that no source applies, in a form that tempts no planner to another index. */
function passes(parameter: Parameter<SearchInput>): RawBuilder<unknown> {
  const [turn, types] = [parameter('turn'), parameter('types')]
  return sql`+event.at >= ${parameter('fromAt')} and +event.at <= ${parameter('toAt')}
    and (${turn} is null or +event.turn = ${turn})
    and (${types} is null or +event.type in (select value from json_each(${types})))`
}

function beginnings(
  database: Database,
  tables: Kysely<LedgerTables>,
): Pick<SearchQueries, 'turnAt' | 'runsOfCall' | 'places' | 'placesAt' | 'rowAt' | 'dropped'> {
  return {
    runsOfCall: prepareFor<{ toolCallId: string }>(database)((parameter) =>
      tables
        .selectFrom('event')
        .select('run_id')
        .distinct()
        .where('tool_call_id', '=', parameter('toolCallId')),
    ),
    turnAt: prepareFor<{ runId: string; seq: number }>(database)((parameter) =>
      tables
        .selectFrom('event')
        .select(['seq', 'turn'])
        .where('run_id', '=', parameter('runId'))
        .where('seq', '>=', parameter('seq'))
        .orderBy('seq')
        .limit(1),
    ),
    rowAt: prepareFor<{ pos: number }>(database)((parameter) =>
      tables
        .selectFrom('event')
        .select(['run_id', 'hash', 'first_seq', 'seq'])
        .where('pos', '=', parameter('pos')),
    ),
    dropped: prepareFor<{ runId: string }>(database)((parameter) =>
      tables
        .selectFrom('removal')
        .select('pos')
        .where('run_id', '=', parameter('runId'))
        .where('kind', '=', 'dropped'),
    ),
    // One query each, so that each reads one end of the table.
    places: prepareFor<object>(database)(() =>
      tables.selectNoFrom([
        tables
          .selectFrom('event')
          .select(({ fn }) => fn.min<number | null>('pos').as('pos'))
          .as('fromPos'),
        tables
          .selectFrom('event')
          .select(({ fn }) => fn.max<number | null>('pos').as('pos'))
          .as('toPos'),
      ]),
    ),
    placesAt: prepareFor<Pick<SearchInput, 'fromAt' | 'toAt'>>(database)((parameter) =>
      tables
        .selectFrom('event')
        .select(({ fn }) => [
          fn.min<number | null>('pos').as('fromPos'),
          fn.max<number | null>('pos').as('toPos'),
        ])
        .where('at', '>=', parameter('fromAt'))
        .where('at', '<=', parameter('toAt')),
    ),
  }
}

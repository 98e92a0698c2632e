import type { Database } from 'better-sqlite3'
import { sql, type Kysely } from 'kysely'
import { prepareFor, type PreparedQuery } from './prepared-query.ts'
import type { OfRun } from './queries.ts'
import type { LedgerTables } from '../schema/tables.ts'

/** What SQLite keeps of its own. */
interface SqliteTables extends LedgerTables {
  readonly sqlite_schema: { readonly type: string; readonly name: string; readonly sql: string | null }
  readonly sqlite_sequence: { readonly name: string; readonly seq: number }
}

/** How many events some rows hold. */
const eventsInRows = sql<number>`coalesce(sum(1 + seq - coalesce(first_seq, seq)), 0)`

type Count = { readonly count: number }

/** One table, index or trigger, and the statement that makes it. */
export interface SchemaObject {
  readonly type: string
  readonly name: string
  readonly sql: string | null
}

/** What `verify` asks beside the events themselves. */
export interface AuditQueries {
  /** How many events a run has, and the last one's number. */
  readonly extent: PreparedQuery<OfRun, { readonly events: number; readonly lastSeq: number | null }>
  /** Runs that have events and no row. */
  readonly orphans: PreparedQuery<{ readonly limit: number }, { readonly run_id: string }>
  /** The highest place that was ever given to an event. */
  readonly placesGiven: PreparedQuery<object, { readonly seq: number }>
  readonly events: PreparedQuery<object, Count>
  readonly eventsUpTo: PreparedQuery<{ readonly pos: number }, Count>
  /** Events of runs that were dropped, which left holes in the places. */
  readonly dropped: PreparedQuery<object, Count>
  /** Payloads that belong to no event. */
  readonly strayPayloads: PreparedQuery<object, Count>
  /** Facts of a run, by its place. */
  readonly facts: PreparedQuery<{ readonly run: number }, { readonly number: number }>
  /** Facts that belong to no run. */
  readonly strayFacts: PreparedQuery<object, Count>
  /** Inbox entries of no run, or taken at an event that their run has not got. */
  readonly strayEntries: PreparedQuery<object, Count>
  readonly schema: PreparedQuery<object, SchemaObject>
}

/** Prepares the queries of an audit. */
export function auditQueries(database: Database, ledgerTables: Kysely<LedgerTables>): AuditQueries {
  const tables = ledgerTables.$extendTables<Omit<SqliteTables, keyof LedgerTables>>()
  return {
    extent: prepareFor<OfRun>(database)((parameter) =>
      tables
        .selectFrom('event')
        .select(({ fn }) => [eventsInRows.as('events'), fn.max<number | null>('seq').as('lastSeq')])
        .where('run_id', '=', parameter('runId')),
    ),
    orphans: prepareFor<{ limit: number }>(database)((parameter) =>
      tables
        .selectFrom('event')
        .select('run_id')
        .distinct()
        .where('run_id', 'not in', tables.selectFrom('run').select('run_id'))
        .limit(parameter('limit')),
    ),
    placesGiven: prepareFor<object>(database)(() =>
      tables.selectFrom('sqlite_sequence').select('seq').where('name', '=', 'event'),
    ),
    events: prepareFor<object>(database)(() => tables.selectFrom('event').select(eventsInRows.as('count'))),
    eventsUpTo: prepareFor<{ pos: number }>(database)((parameter) =>
      tables
        .selectFrom('event')
        .select(eventsInRows.as('count'))
        .where('pos', '>=', 1)
        .where('pos', '<=', parameter('pos')),
    ),
    dropped: prepareFor<object>(database)(() =>
      tables
        .selectFrom('removal')
        .select(({ fn }) => fn.coalesce(fn.sum<number>('to_seq'), sql<number>`0`).as('count'))
        .where('kind', '=', 'dropped'),
    ),
    strayPayloads: prepareFor<object>(database)(() =>
      tables
        .selectFrom('payload')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('pos', 'not in', tables.selectFrom('event').select('pos')),
    ),
    facts: prepareFor<{ run: number }>(database)((parameter) =>
      tables.selectFrom('fact').select('number').where('run', '=', parameter('run')),
    ),
    strayFacts: prepareFor<object>(database)(() =>
      tables
        .selectFrom('fact')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('run', 'not in', tables.selectFrom('run').select('pos')),
    ),
    strayEntries: prepareFor<object>(database)(() =>
      tables
        .selectFrom('inbox')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where((is) =>
          is.not(
            is.exists(
              is
                .selectFrom('run')
                .select('run.pos')
                .whereRef('run.run_id', '=', 'inbox.run_id')
                .where(sql<boolean>`coalesce(inbox.taken_seq, 1) between 1 and run.head_seq`),
            ),
          ),
        ),
    ),
    schema: prepareFor<object>(database)(() =>
      tables.selectFrom('sqlite_schema').select(['type', 'name', 'sql']).where('sql', 'is not', null),
    ),
  }
}

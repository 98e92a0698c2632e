import type { InsertQueryBuilder, InsertResult } from 'kysely'
import { perform, type Queries, type Schema, type Steps, type StoreDatabase } from '../store/database.ts'
import { amountColumns } from './run-accumulator.ts'
import type { StoredRunRow, TotalsChange } from './stored-run.ts'
import { projectionVersion, type ProjectionState } from './tables.ts'

/** Rows that come in the place of others, and what that does to the totals. */
export interface ProjectionChange {
  readonly runs: readonly StoredRunRow[]
  /** Runs that are no longer there. */
  readonly gone: readonly string[]
  readonly totals: TotalsChange
  /** Events up to here are in the projections then. */
  readonly cursor: string
}

/** Makes a change, unless another process has made one since `state` was read, as another code's dropping is too. */
export function changeProjections(
  database: StoreDatabase,
  { revision }: ProjectionState,
  { runs, gone, totals, cursor }: ProjectionChange,
): Promise<boolean> {
  return database.change(function* (queries) {
    const { db } = queries
    const moved = yield* perform(
      queries,
      db
        .updateTable('projection')
        .set({ revision: revision + 1, cursor })
        .where('name', '=', 'runs')
        .where('revision', '=', revision)
        .returning('revision'),
    )
    if (moved.length === 0) return false
    const columns = ['seq', 'head_hash', 'status', 'session_id', 'started_at', 'last_at'] as const
    const texts = ['agents', 'shares', 'summary', 'notes'] as const
    yield* upsert(queries, 'run_summary', runs, ['run_id'], [...columns, ...texts], [])
    yield* perform(queries, db.deleteFrom('run_summary').where('run_id', 'in', gone))
    const counts = ['runs', 'turns', 'tool_calls', ...amountColumns]
    yield* upsert(
      queries,
      'session_summary',
      totals.sessions,
      ['session_id'],
      ['started_at', 'last_at'],
      counts,
    )
    const names = ['hour', 'agent', 'provider', 'api', 'model_id']
    yield* upsert(queries, 'spending', totals.spending, names, [], ['calls', ...amountColumns])
    return true
  })
}

/** Rows of one statement: a database takes a limited number of values. */
const rowsPerInsert = 128

/** Inserts rows. Where one is there already, it gets the new values of some columns, and others grow by what they bring. */
function* upsert<Table extends 'run_summary' | 'session_summary' | 'spending'>(
  queries: Queries,
  table: Table,
  rows: readonly Schema[Table][],
  keys: readonly string[],
  replaced: readonly string[],
  added: readonly string[],
): Steps<void> {
  const { db, sql } = queries
  const columns = [...keys, ...(table === 'run_summary' ? ['pos'] : []), ...replaced, ...added]
  for (let from = 0; from < rows.length; from += rowsPerInsert) {
    const values = rows
      .slice(from, from + rowsPerInsert)
      .map((row) => Object.fromEntries(columns.map((name) => [name, row[name as keyof typeof row]])))
    // Names of columns are data here, so they are not typed.
    const insert = db.insertInto(table).values(values as never) as unknown as InsertQueryBuilder<
      Record<string, Record<string, unknown>>,
      string,
      InsertResult
    >
    const news = replaced.map((name) => [name, sql`excluded.${sql.ref(name)}`])
    const sums = added.map((name) => [
      name,
      sql`${sql.ref(table)}.${sql.ref(name)} + excluded.${sql.ref(name)}`,
    ])
    yield* perform(
      queries,
      insert.onConflict((on) => on.columns(keys).doUpdateSet(Object.fromEntries([...news, ...sums]))),
    )
  }
}

/** Rows that are dropped at once: few, so that other writers hardly wait. */
const rowsPerChange = 512

/** The version of projections that are being dropped: no process reads or extends them. */
const dropping = 'dropping'

/** The tables of projections, each with what names a row of it. */
const keysOfTables = {
  run_summary: ['run_id'],
  session_summary: ['session_id'],
  spending: ['hour', 'agent', 'provider', 'api', 'model_id'],
  snapshot: ['run_id', 'reducer', 'seq'],
} as const

/**
 * Drops every projection, in short transactions, and leaves the tables as in a new ledger. No process reads them from
 * the first transaction on; concurrent calls help.
 */
export async function dropProjections(database: StoreDatabase): Promise<void> {
  await database.change(function* (queries) {
    const { db } = queries
    // Its revision tells a fold that content was removed since it began.
    const mark = { name: 'snapshots', version: '', revision: 0, cursor: '' }
    yield* perform(
      queries,
      db
        .insertInto('projection')
        .values(mark)
        .onConflict((on) => on.column('name').doNothing()),
    )
    yield* setVersion(queries, dropping)
  })
  await dropRows(database, 'run_summary')
  await dropRows(database, 'session_summary')
  await dropRows(database, 'spending')
  await database.change((queries) => setVersion(queries, projectionVersion, dropping))
}

/** Drops every snapshot, in short transactions. */
export function dropSnapshots(database: StoreDatabase): Promise<void> {
  return dropRows(database, 'snapshot')
}

function* setVersion(queries: Queries, version: string, from?: string): Steps<void> {
  const { db, sql } = queries
  const row = { name: 'runs', version, revision: 1, cursor: '' }
  yield* perform(
    queries,
    db
      .insertInto('projection')
      .values(row)
      .onConflict((on) => {
        const revision = sql<number>`projection.revision + 1`
        const updated = on.column('name').doUpdateSet({ version, revision, cursor: '' })
        return from === undefined ? updated : updated.where('projection.version', '=', from)
      }),
  )
}

/** Another process may have finished dropping projections, and may be adding rows already: those stay. */
async function dropRows(database: StoreDatabase, table: keyof typeof keysOfTables): Promise<void> {
  let dropped: readonly unknown[]
  do {
    dropped = await database.change(function* (queries) {
      const { db, sql } = queries
      const keys = sql.join(keysOfTables[table].map((name) => sql.ref(name)))
      const some = sql`select ${keys} from ${sql.table(table)} limit ${rowsPerChange}`
      const rows = db.deleteFrom(table).where(sql<boolean>`(${keys}) in (${some})`)
      const due =
        table === 'snapshot'
          ? rows
          : rows.where((of) =>
              of.exists(of.selectFrom('projection').select('revision').where('version', '=', dropping)),
            )
      return yield* perform(queries, due.returning(sql<number>`1`.as('dropped')))
    })
  } while (dropped.length > 0)
}

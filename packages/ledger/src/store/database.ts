import type { CompiledQuery, Kysely, Sql } from 'kysely'
import type { AppendOptions } from '@tallystick/core/vocabulary'
import type { RemovalRow, RunCell } from '../format/chain.ts'
import { eventColumns, type EventRow } from '../format/event-row.ts'
import type { HistoryRow } from '../format/history.ts'
import type { StoredRunRow } from '../projection/projections.ts'

/** The row of a run beside its lease and when it is due. */
export type RunRow = RunCell & { readonly seal: string }

/** An entry of an inbox, with its command as canonical JSON. */
export interface InboxRow {
  readonly key: string
  readonly at: number
  readonly command: string
}

/** The tables, which have the same names and columns in both databases. */
export interface Schema {
  readonly event: EventRow
  readonly run: RunRow & {
    readonly lease_holder: string | null
    readonly lease_until: number | null
    readonly due_at: number | null
  }
  readonly history: HistoryRow
  readonly inbox: InboxRow & {
    readonly pos: number
    readonly run_id: string
    readonly taken_seq: number | null
  }
  readonly removal: RemovalRow
  readonly snapshot: {
    readonly run_id: string
    readonly reducer: string
    readonly seq: number
    readonly state: string
    readonly head_hash: string
    readonly seal: string
  }
  readonly run_summary: StoredRunRow
  readonly run_term: { readonly term: string; readonly pos: number }
  readonly projection: {
    readonly name: string
    readonly version: string
    readonly revision: number
    /** Up to where the rows of runs cover every event; null if some may be missing. */
    readonly covered: string | null
  }
}

/** The builders of queries, and the database that runs them. */
export interface Queries {
  readonly db: Kysely<Schema>
  readonly sql: Sql
  readonly isPostgres: boolean
}

/** A query of kysely, or a text of its `sql`. */
export interface Query<Row> {
  compile(db: Kysely<Schema>): CompiledQuery<Row>
}

export type Build<Row> = (queries: Queries) => Query<Row>

/**
 * Queries that one transaction carries out, one by one; the rows of each come back into the generator. SQLite carries them
 * out at once, Postgres over a connection.
 */
export type Steps<T> = Generator<CompiledQuery, T, readonly unknown[]>

/** Runs a query in a transaction. */
export function* perform<Row>(queries: Queries, query: Query<Row>): Steps<readonly Row[]> {
  return (yield query.compile(queries.db)) as readonly Row[]
}

/** Loads what builds queries: who only appends, reads and commands runs needs none of it. */
export async function loadQueries(schema?: string): Promise<Queries> {
  const kysely = await import('kysely')
  const isPostgres = schema !== undefined
  class SqliteCompiler extends kysely.SqliteQueryCompiler {
    protected override getCurrentParameterPlaceholder(): string {
      return `$${this.numParameters}`
    }
  }
  const db = new kysely.Kysely<Schema>({
    dialect: {
      createAdapter: () => (isPostgres ? new kysely.PostgresAdapter() : new kysely.SqliteAdapter()),
      createDriver: () => new kysely.DummyDriver(),
      createIntrospector: (of) => new kysely.PostgresIntrospector(of),
      createQueryCompiler: () => (isPostgres ? new kysely.PostgresQueryCompiler() : new SqliteCompiler()),
    },
  })
  const { HandleEmptyInListsPlugin, replaceWithNoncontingentExpression, sql } = kysely
  const plugin = new HandleEmptyInListsPlugin({ strategy: replaceWithNoncontingentExpression })
  const safe = db.withPlugin(plugin)
  return { db: isPostgres ? safe.withSchema(schema) : safe, sql, isPostgres }
}

/** The database of a store, for statements that both databases understand. Members reject with a `TallystickError`. */
export interface StoreDatabase {
  readonly isWritable: boolean
  /** A search looks at this many events in one statement, so that a search for what is rare gives others their turn. */
  readonly maxScanned: number
  /** Throws if the ledger was closed. */
  readonly requireOpen: () => void
  /** Returns the rows of a query. With `patiently` it may go through all there is. */
  readonly query: <Row>(
    build: Build<Row>,
    options?: { readonly patiently?: boolean },
  ) => Promise<readonly Row[]>
  /** Changes rows, all of it or nothing, in a transaction that keeps no writer waiting and syncs nothing. */
  readonly change: <T>(steps: (queries: Queries) => Steps<T>) => Promise<T>
  /** A statement that is prepared once: `@.` precedes names of tables; `$1`, `$2` … are values. */
  readonly ask: <Row>(text: string, values?: readonly unknown[]) => Promise<readonly Row[]>
  /** The same for the first rows of events, as many as a batch holds; `order` names columns of `event`. */
  readonly askBatch: <Row extends EventRow>(
    text: string,
    order: readonly string[],
    values: readonly unknown[],
  ) => Promise<readonly Row[]>
  /** The time of the machine that holds the database, in milliseconds since 1970 UTC, as an expression. */
  readonly now: string
}

export type Durability = AppendOptions['durability']

/** A batch holds at most this many rows, and ends with the first that takes its bodies over this many bytes. */
export const rowsPerBatch = 512
export const bytesPerBatch: number = 1024 * 1024

/** A full batch may have ended before the query did. */
export function isFull(rows: readonly EventRow[]): boolean {
  // A character is three bytes of UTF-8 at most.
  const characters = rows.reduce((sum, { body }) => sum + body.length, 0)
  return rows.length >= rowsPerBatch || 3 * characters >= bytesPerBatch
}

/** `$1, $2` …, a parameter for each value. */
export function listParameters(values: readonly unknown[]): string {
  return values.map((_, index) => `$${index + 1}`).join(', ')
}

/** The columns of a run's row that are part of the record, in the order in which they are inserted. */
export const runColumns: readonly (keyof RunRow)[] = [
  ...(['pos', 'run_id', 'head_seq', 'head_hash', 'epoch', 'session_id', 'session_place'] as const),
  ...(['ended_at', 'history', 'seal'] as const),
]
export const runColumnsText: string = runColumns.join(', ')

/** The columns of events, each with the name of its table. */
export const eventRefs: readonly `event.${keyof EventRow}`[] = eventColumns.map(
  (column) => `event.${column}` as const,
)
export const eventColumnsText: string = eventRefs.join(', ')

/** An event with the link that it is chained to; nulls where the event before it is not there. */
export interface FoundRow extends EventRow {
  readonly previous_pos: number | null
  readonly previous_epoch: number | null
  readonly previous_hash: string | null
}

/** Selects events that fulfil a condition, each with the link that it is chained to. */
export function selectLinked(condition: string, columns: string = eventColumnsText): string {
  return `select ${columns}, previous.pos as previous_pos, previous.epoch as previous_epoch, previous.hash as previous_hash
    from @.event as event
    left join @.event as previous on previous.run_id = event.run_id and previous.seq = event.seq - 1
    where ${condition}`
}

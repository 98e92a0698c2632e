import type { Tool } from '@tallystick/core'
import { postgresQuery } from './postgres-query.ts'
import type { SqlQueryOptions } from './query-options.ts'
import { sqliteQuery } from './sqlite-query.ts'

export type {
  PostgresQueryOptions,
  QueryOptions,
  SqliteQueryOptions,
  SqlQueryOptions,
} from './query-options.ts'

/**
 * A tool that runs one read-only SQL statement on a SQLite file (`path`) or a Postgres database (`connectionString`)
 * and returns `{ columns, rows, note? }` as JSON. Needs the package better-sqlite3 or pg. In SQLite each statement runs
 * in a process of its own, which is killed when its time is over, when the call is cancelled and when this process
 * dies: SQLite cannot be interrupted from a worker thread. A process whose statement has ended waits half a minute for
 * the next one, and keeps no host alive meanwhile. In Postgres each statement has a connection of its own, in a
 * read-only transaction that is rolled back. The server stops it when its time is over and when the call is cancelled.
 */
export function sqlQuery(options: SqlQueryOptions): Tool {
  const isPostgres = typeof options === 'object' && options !== null && 'connectionString' in options
  return isPostgres ? postgresQuery(options) : sqliteQuery(options)
}

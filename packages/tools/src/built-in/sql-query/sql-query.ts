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
 * A tool that runs one read-only SQL statement on a SQLite file (`path`) or a Postgres database (`connectionString`) and
 * answers `{ columns, rows, note? }` as JSON. Needs the package better-sqlite3 or pg.
 *
 * In SQLite a statement has a process to itself, which is killed when its time is over, when the call is cancelled and when
 * this process dies: SQLite cannot be interrupted from a worker thread, which would run on until it is done. A process
 * whose statement ended waits half a minute for the next one, and keeps no host alive meanwhile.
 *
 * In Postgres a statement has a connection to itself, in a transaction that only reads and is undone. It is stopped on the
 * server when its time is over and when the call is cancelled.
 */
export function sqlQuery(options: SqlQueryOptions): Tool {
  const isPostgres = typeof options === 'object' && options !== null && 'connectionString' in options
  return isPostgres ? postgresQuery(options) : sqliteQuery(options)
}

import { option } from '@tallystick/core/kit'
import type { Timers } from '../timers.ts'
import type { StatementBounds } from './answer/statement.ts'

/** How a query tool is called, and how much of its data one call may show. */
export interface QueryOptions {
  /** Default `sql_query`. */
  readonly name?: string | undefined
  /** The description that the model reads instead of the default: say what the data is about. */
  readonly description?: string | undefined
  /** Rows shown of one result. Default 200. */
  readonly maxRows?: number | undefined
  /** Bytes of JSON shown of one result. Default 50 000. */
  readonly maxBytes?: number | undefined
  /** Milliseconds that one statement may run, from its own start. Default 5 000. */
  readonly timeoutMs?: number | undefined
  /**
   * Milliseconds that a statement waits for a lock of another one. SQLite waits before the statement starts, by default
   * as long as `timeoutMs`. In Postgres the wait is part of `timeoutMs` and may not be longer; by default it is four
   * fifths of that, so that the model can read that a lock was the reason.
   */
  readonly lockTimeoutMs?: number | undefined
  /** The clock that `timeoutMs` is measured by. Default: the host's. */
  readonly timers?: Timers | undefined
}

/** A SQLite file. */
export interface SqliteQueryOptions extends QueryOptions {
  /** Path of the SQLite file. It is opened read-only, at each call. */
  readonly path: string
}

/** A Postgres database. */
export interface PostgresQueryOptions extends QueryOptions {
  /**
   * As `pg` takes it: `postgres://user:password@host:port/database`. Give the user no more rights than to read what the
   * model may see. Never recorded, and in no error.
   */
  readonly connectionString: string
  /** Connections at a time; further calls wait. Default 4. */
  readonly maxConnections?: number | undefined
  /**
   * Allows a role that may do more than read the database, such as a superuser, whose SELECT can read and write files
   * of the server. Default false: such a role is refused.
   */
  readonly allowPowerfulRole?: boolean | undefined
}

/** Where the data is, and how much of it one call may show. */
export type SqlQueryOptions = SqliteQueryOptions | PostgresQueryOptions

const { anyObject, fields, filledText, maybe, milliseconds, numberFrom, trueOrFalse } = option

const wholeFrom1 = maybe(numberFrom(1, { whole: true }))
const shared = {
  name: maybe(filledText),
  description: maybe(filledText),
  maxRows: wholeFrom1,
  maxBytes: wholeFrom1,
  timeoutMs: maybe(milliseconds),
  lockTimeoutMs: maybe(milliseconds),
  timers: maybe(anyObject),
}
const otherNames = { limit: 'maxRows', timeout: 'timeoutMs', busyTimeoutMs: 'lockTimeoutMs' }

/** The check of options that name a file. */
export const sqliteQueryOptions: option.OptionCheck = fields<SqliteQueryOptions>(
  { path: filledText, ...shared },
  { file: 'path', database: 'path', url: 'connectionString', ...otherNames },
)

/** The check of options that name a server. */
export const postgresQueryOptions: option.OptionCheck = fields<PostgresQueryOptions>(
  {
    connectionString: filledText,
    maxConnections: wholeFrom1,
    allowPowerfulRole: maybe(trueOrFalse),
    ...shared,
  },
  { ...otherNames },
)

/** The bounds of a statement, as they are given or by default. A wait for a lock is by default this share of the time. */
export function boundsOf(options: QueryOptions, lockShare: number): StatementBounds {
  const { maxRows = 200, maxBytes = 50_000, timeoutMs = 5_000 } = options
  const { lockTimeoutMs = Math.ceil(timeoutMs * lockShare) } = options
  return { maxRows, maxBytes, timeoutMs, lockTimeoutMs }
}

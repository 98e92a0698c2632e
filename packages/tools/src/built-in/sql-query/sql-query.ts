import { resolve } from 'node:path'
import { ConfigurationError, type Tool } from '@tallystick/core'
import { option, type Schema, requireOptions, requireNativeInterface } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { defineTool } from '../../define/define-tool.ts'
import { ToolError } from '../../define/outcome.ts'
import { hostTimers, scheduleLimit, type Timers, unheldTimers } from '../../host.ts'
import { loadInCall, pgPackage, requireConnectionString, requirePackage } from '../../packages.ts'
import { type ParameterValue, type StatementBounds, type StatementRequest, toAnswer } from './answer.ts'
import { ConnectionGate, maxConnectMs, maxStopMs, runOverConnection } from './postgres.ts'
import { keepProcesses, maxStartMs } from './sqlite-host.ts'

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

/**
 * A tool that runs one read-only SQL statement on a SQLite file (`path`) or a Postgres database (`connectionString`)
 * and returns `{ columns, rows, note? }` as JSON. Needs the package better-sqlite3 or pg. In SQLite each statement runs
 * in a process of its own, which is killed when its time is over, when the call is cancelled and when this process
 * dies: SQLite cannot be interrupted from a worker thread. A process whose statement has ended waits half a minute for
 * the next one, and keeps no host alive between them. In Postgres each statement has a connection of its own, in a
 * read-only transaction that is rolled back. The server stops it when its time is over and when the call is cancelled.
 */
export function sqlQuery(options: SqlQueryOptions): Tool {
  const isPostgres = typeof options === 'object' && options !== null && 'connectionString' in options
  return isPostgres ? createPostgresQuery(options) : createSqliteQuery(options)
}

const parameterValue: JsonObject = { type: ['string', 'number', 'boolean', 'null'] }

function describeInput(sqlDescription: string, parameters: JsonObject): JsonObject {
  return {
    type: 'object',
    required: ['sql'],
    additionalProperties: false,
    properties: {
      sql: { type: 'string', minLength: 1, maxLength: 20_000, description: sqlDescription },
      parameters,
    },
  }
}

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
const sqliteQueryOptions: Schema = fields<SqliteQueryOptions>(
  { path: filledText, ...shared },
  { file: 'path', database: 'path', url: 'connectionString', ...otherNames },
)

/** The check of options that name a server. */
const postgresQueryOptions: Schema = fields<PostgresQueryOptions>(
  {
    connectionString: filledText,
    maxConnections: wholeFrom1,
    allowPowerfulRole: maybe(trueOrFalse),
    ...shared,
  },
  { ...otherNames },
)

/** The bounds of a statement, as they are given or by default. A wait for a lock is by default this share of the time. */
function readBounds(options: QueryOptions, lockShare: number): StatementBounds {
  const { maxRows = 200, maxBytes = 50_000, timeoutMs = 5_000 } = options
  const { lockTimeoutMs = Math.ceil(timeoutMs * lockShare) } = options
  return { maxRows, maxBytes, timeoutMs, lockTimeoutMs }
}

/** A tool that queries a Postgres database. */
function createPostgresQuery(options: PostgresQueryOptions): Tool {
  requireOptions('sqlQuery', postgresQueryOptions, options)
  const { connectionString, name = 'sql_query', timers = hostTimers, maxConnections = 4 } = options
  // If both times end at once, Postgres reports the statement, not the lock.
  const bounds = readBounds(options, 0.8)
  requireConnectionString(`The tool ${name}`, connectionString)
  // The server counts the wait for a lock to the time of the statement.
  if (bounds.lockTimeoutMs > bounds.timeoutMs) {
    throw new ConfigurationError(
      `The tool ${name} would never wait for a lock as long as its lockTimeoutMs says (${bounds.lockTimeoutMs}): Postgres stops the whole statement after its timeoutMs (${bounds.timeoutMs}). Give a lockTimeoutMs up to that, or raise timeoutMs.`,
    )
  }
  pgPackage.require(`The tool ${name}`)
  const gate = new ConnectionGate(maxConnections)
  /** How long a call with a connection takes at most, and how long one waits for a connection. */
  const maxCallMs = maxConnectMs + 2 * maxStopMs + bounds.timeoutMs
  const crowded = `no connection was free for it within ${maxCallMs} ms, since other calls used all of them`
  return defineTool({
    name,
    description:
      options.description ??
      'Runs one read-only SQL statement on a PostgreSQL database and answers { columns, rows } as JSON. ' +
        'Use it to look things up and to count and sum them. To see which tables there are, query information_schema.columns ' +
        `(SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'). ` +
        `At most ${bounds.maxRows} rows are shown, so aggregate and filter in SQL.`,
    input: postgresInput,
    effect: 'read',
    // The limits of its parts are reached first; this one is for a host that hangs.
    timeoutMs: 2 * maxCallMs,
    async execute(given, { signal }) {
      // The schema has been checked.
      const { sql, parameters = [] } = given as { sql: string; parameters?: readonly ParameterValue[] }
      if (sql.includes('\0')) throw new ToolError('The statement holds a NUL character. Nothing was run.')
      const driver = await loadInCall(pgPackage, name)
      const place = { driver, connectionString, isTrusted: options.allowPowerfulRole ?? false }
      const late = new AbortController()
      const cancelTimer = scheduleLimit(timers, maxCallMs, () => late.abort())
      const leave = await gate.enter(AbortSignal.any([signal, late.signal]))
      cancelTimer()
      if (leave === undefined) {
        signal.throwIfAborted()
        return toAnswer({ kind: 'not_started', why: crowded }, bounds)
      }
      try {
        const request = { ...bounds, sql, parameters }
        return toAnswer(await runOverConnection(place, request, signal, timers), bounds)
      } finally {
        leave()
      }
    },
  })
}

const postgresInput: JsonObject = describeInput(
  'One SELECT, WITH … SELECT, VALUES, TABLE or EXPLAIN statement in the SQL of PostgreSQL.',
  {
    type: 'array',
    items: parameterValue,
    description: 'Values for $1, $2 … in order. Cast a parameter whose type is unclear: $1::int.',
  },
)

/** The longest time that a timer takes. */
const maxTimerMs = 2_147_483_647

/** How long a process that was killed may take until it is gone. */
const maxEndMs = 5_000

/** A tool that queries a SQLite file. */
function createSqliteQuery(options: SqliteQueryOptions): Tool {
  requireOptions('sqlQuery', sqliteQueryOptions, options)
  const { path, name = 'sql_query', timers = hostTimers } = options
  const bounds = readBounds(options, 1)
  // These are databases of the process that opens them, which is another one here.
  if (path.startsWith(':memory:') || path.startsWith('file:')) {
    throw new ConfigurationError(
      `The tool ${name} has no database: its path is ${JSON.stringify(path)}. Give the path of a SQLite file.`,
    )
  }
  requireNativeInterface(`The tool ${name}`, process)
  requirePackage(`The tool ${name}`, 'better-sqlite3')
  const database = resolve(path)
  const processes = keepProcesses(timers, options.timers ?? unheldTimers)
  return defineTool({
    name,
    description:
      options.description ??
      'Runs one read-only SQL statement on a SQLite database and answers { columns, rows } as JSON. ' +
        'Use it to look things up and to count and sum them. To see which tables there are, query sqlite_schema ' +
        `(SELECT name, sql FROM sqlite_schema). At most ${bounds.maxRows} rows are shown, so aggregate and filter in SQL.`,
    input: sqliteInput,
    effect: 'read',
    // The statement's own limits are reached first; this one is for a host that hangs.
    timeoutMs: Math.min(maxStartMs + bounds.lockTimeoutMs + bounds.timeoutMs + maxEndMs, maxTimerMs),
    async execute(given, { signal }) {
      // The schema has been checked.
      const { sql, parameters = [] } = given as {
        sql: string
        parameters?: StatementRequest['parameters']
      }
      const reply = await processes.run({ path: database, ...bounds, sql, parameters }, signal)
      return toAnswer(reply, bounds)
    },
  })
}

const sqliteInput: JsonObject = describeInput(
  'One SELECT, WITH … SELECT, VALUES or EXPLAIN QUERY PLAN statement in the SQL of SQLite.',
  {
    anyOf: [
      { type: 'array', items: parameterValue },
      { type: 'object', additionalProperties: parameterValue },
    ],
    description: 'Values for ? in order as an array, or for :name, @name and $name as an object.',
  },
)

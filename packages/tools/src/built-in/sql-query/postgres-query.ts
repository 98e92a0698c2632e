import { ConfigurationError, type Tool } from '@tallystick/core'
import { requireOptions } from '@tallystick/core/kit'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { defineTool } from '../../definition/define-tool.ts'
import { ToolError } from '../../execution/tool-error.ts'
import { hostTimers, scheduleLimit } from '../timers.ts'
import type { ParameterValue, StatementBounds } from './answer/statement.ts'
import { toolAnswer } from './answer/tool-answer.ts'
import { ConnectionGate } from './postgres/connection-gate.ts'
import { pgPackage } from './postgres/pg-package.ts'
import { maxConnectMs, maxStopMs, runOverConnection } from './postgres/postgres-connection.ts'
import { parameterValue, queryInput } from './query-input.ts'
import { boundsOf, type PostgresQueryOptions, postgresQueryOptions } from './query-options.ts'

/** A tool that queries a Postgres database. */
export function postgresQuery(options: PostgresQueryOptions): Tool {
  requireOptions('sqlQuery', postgresQueryOptions, options)
  const { connectionString, name = 'sql_query', timers = hostTimers, maxConnections = 4 } = options
  // Where both times end at once, Postgres tells of the statement, not of the lock.
  const bounds = boundsOf(options, 0.8)
  assertReadable(name, connectionString)
  assertLockTimeout(name, bounds)
  pgPackage.require(`The tool ${name}`)
  const gate = new ConnectionGate(maxConnections)
  /** How long a call with a connection takes at most, and how long one waits for a connection. */
  const maxCallMs = maxConnectMs + 2 * maxStopMs + bounds.timeoutMs
  const crowded = `no connection was free for it within ${maxCallMs} ms, since other calls used all of them`
  return defineTool({
    name,
    description: options.description ?? descriptionOf(bounds.maxRows),
    input,
    effect: 'read',
    // The limits of its parts are reached first; this one is for a host that hangs.
    timeoutMs: 2 * maxCallMs,
    async execute(given, { signal }) {
      // The schema has been checked.
      const { sql, parameters = [] } = given as { sql: string; parameters?: readonly ParameterValue[] }
      if (sql.includes('\0')) throw new ToolError('The statement holds a NUL character. Nothing was run.')
      const driver = await pgPackage.loadInCall(name)
      const place = { driver, connectionString, isTrusted: options.allowPowerfulRole ?? false }
      const late = new AbortController()
      const cancelTimer = scheduleLimit(timers, maxCallMs, () => late.abort())
      const leave = await gate.enter(AbortSignal.any([signal, late.signal]))
      cancelTimer()
      if (leave === undefined) {
        signal.throwIfAborted()
        return toolAnswer({ kind: 'not_started', why: crowded }, bounds)
      }
      try {
        const request = { ...bounds, sql, parameters }
        return toolAnswer(await runOverConnection(place, request, signal, timers), bounds)
      } finally {
        leave()
      }
    },
  })
}

/** Its message must not repeat the string, and with it the password. */
function assertReadable(name: string, connectionString: string): void {
  if (/^postgres(?:ql)?:\/\//.test(connectionString) && URL.canParse(connectionString)) return
  throw new ConfigurationError(
    `The tool ${name} has no database: its connectionString cannot be read. Give one such as postgres://user@host:5432/database, with special characters of the password percent-encoded.`,
  )
}

/** The server counts the wait for a lock to the time of the statement. */
function assertLockTimeout(name: string, { timeoutMs, lockTimeoutMs }: StatementBounds): void {
  if (lockTimeoutMs <= timeoutMs) return
  throw new ConfigurationError(
    `The tool ${name} would never wait for a lock as long as its lockTimeoutMs says (${lockTimeoutMs}): Postgres stops the whole statement after its timeoutMs (${timeoutMs}). Give a lockTimeoutMs up to that, or raise timeoutMs.`,
  )
}

function descriptionOf(maxRows: number): string {
  return (
    'Runs one read-only SQL statement on a PostgreSQL database and answers { columns, rows } as JSON. ' +
    'Use it to look things up and to count and sum them. To see which tables there are, query information_schema.columns ' +
    `(SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'). ` +
    `At most ${maxRows} rows are shown, so aggregate and filter in SQL.`
  )
}

const input: JsonObject = queryInput(
  'One SELECT, WITH … SELECT, VALUES, TABLE or EXPLAIN statement in the SQL of PostgreSQL.',
  {
    type: 'array',
    items: parameterValue,
    description: 'Values for $1, $2 … in order. Cast a parameter whose type is unclear: $1::int.',
  },
)

import { resolve } from 'node:path'
import { ConfigurationError, type Tool } from '@tallystick/core'
import { requireOptions } from '@tallystick/core/kit'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { defineTool } from '../../definition/define-tool.ts'
import { requirePackage } from '../optional-package.ts'
import { hostTimers, unheldTimers } from '../timers.ts'
import { toolAnswer } from './answer/tool-answer.ts'
import { parameterValue, queryInput } from './query-input.ts'
import { boundsOf, type SqliteQueryOptions, sqliteQueryOptions } from './query-options.ts'
import { keptProcesses } from './sqlite/kept-processes.ts'
import { requireNativeInterface } from './sqlite/native-interface.ts'
import { maxStartMs } from './sqlite/own-process.ts'
import type { StatementRequest } from './sqlite/protocol.ts'

/** The longest time that a timer takes. */
const maxTimerMs = 2_147_483_647

/** How long a process that was killed may take until it is gone. */
const maxEndMs = 5_000

/** A tool that queries a SQLite file. */
export function sqliteQuery(options: SqliteQueryOptions): Tool {
  requireOptions('sqlQuery', sqliteQueryOptions, options)
  const { path, name = 'sql_query', timers = hostTimers } = options
  const bounds = boundsOf(options, 1)
  assertUsable(name, path)
  const database = resolve(path)
  const processes = keptProcesses(timers, options.timers ?? unheldTimers)
  return defineTool({
    name,
    description: options.description ?? descriptionOf(bounds.maxRows),
    input,
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
      return toolAnswer(reply, bounds)
    },
  })
}

function assertUsable(name: string, path: string): void {
  // These are databases of the process that opens them, which is another one here.
  if (path.startsWith(':memory:') || path.startsWith('file:')) {
    throw new ConfigurationError(
      `The tool ${name} has no database: its path is ${JSON.stringify(path)}. Give the path of a SQLite file.`,
    )
  }
  requireNativeInterface(`The tool ${name}`)
  requirePackage(`The tool ${name}`, 'better-sqlite3')
}

function descriptionOf(maxRows: number): string {
  return (
    'Runs one read-only SQL statement on a SQLite database and answers { columns, rows } as JSON. ' +
    'Use it to look things up and to count and sum them. To see which tables there are, query sqlite_schema ' +
    `(SELECT name, sql FROM sqlite_schema). At most ${maxRows} rows are shown, so aggregate and filter in SQL.`
  )
}

const input: JsonObject = queryInput(
  'One SELECT, WITH … SELECT, VALUES or EXPLAIN QUERY PLAN statement in the SQL of SQLite.',
  {
    anyOf: [
      { type: 'array', items: parameterValue },
      { type: 'object', additionalProperties: parameterValue },
    ],
    description: 'Values for ? in order as an array, or for :name, @name and $name as an object.',
  },
)

import { resolve } from 'node:path'
import { ConfigurationError, type Tool } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import { type Json, type JsonObject } from '@tallystick/core/vocabulary'
import { defineTool } from '../../definition/define-tool.ts'
import type { ToolContext } from '../../execution/executor.ts'
import { ToolError } from '../../execution/tool-error.ts'
import { requirePackage } from '../optional-package.ts'
import { hostTimers, type Timers, unheldTimers } from '../timers.ts'
import { keptProcesses, type StatementProcesses } from './sqlite/kept-processes.ts'
import { requireNativeInterface } from './sqlite/native-interface.ts'
import { maxStartMs } from './sqlite/own-process.ts'
import type { Cut, StatementReply, StatementRequest } from './sqlite/protocol.ts'

/** Where the data is, and how much of it one call may show. */
export interface SqlQueryOptions {
  /** Path of the SQLite file. It is opened read-only, at each call. */
  readonly path: string
  /** Default `sql_query`. */
  readonly name?: string | undefined
  /** The description that the model reads instead of the default: say what the data is about. */
  readonly description?: string | undefined
  /** Rows shown of one result. Default 200. */
  readonly maxRows?: number | undefined
  /** Bytes of JSON shown of one result. Default 50 000. */
  readonly maxBytes?: number | undefined
  /** Milliseconds that one statement may run. Default 5 000. */
  readonly timeoutMs?: number | undefined
  /** The clock that `timeoutMs` is measured by. Default: the host's. */
  readonly timers?: Timers | undefined
}

/**
 * A tool that runs one read-only SQL statement on a SQLite file and answers `{ columns, rows, note? }` as JSON. Needs
 * the package better-sqlite3.
 *
 * A statement has a process to itself, which is killed when its time is over, when the call is cancelled and when this
 * process dies: SQLite cannot be interrupted from a worker thread, which would run on until it is done. A process whose
 * statement ended waits half a minute for the next one, and keeps no host alive meanwhile.
 */
export function sqlQuery(options: SqlQueryOptions): Tool {
  requireOptions('sqlQuery', sqlQueryOptions, options)
  const { path, name = 'sql_query', timers = hostTimers } = options
  const limits = {
    maxRows: options.maxRows ?? 200,
    maxBytes: options.maxBytes ?? 50_000,
    timeoutMs: options.timeoutMs ?? 5_000,
  }
  assertUsable(name, path)
  const database = resolve(path)
  const processes = keptProcesses(timers, options.timers ?? unheldTimers)
  return defineTool({
    name,
    description: options.description ?? descriptionOf(limits.maxRows),
    input,
    effect: 'read',
    // The statement's own limit is reached first; this one is for a host that hangs.
    timeoutMs: maxStartMs + limits.timeoutMs + 1_000,
    execute: (given, context) =>
      query({ path: database, ...limits, ...statementOf(given) }, context, processes),
  })
}

const { anyObject, fields, filledText, maybe, milliseconds, numberFrom } = option

const sqlQueryOptions = fields<SqlQueryOptions>(
  {
    path: filledText,
    name: maybe(filledText),
    description: maybe(filledText),
    maxRows: maybe(numberFrom(1, { whole: true })),
    maxBytes: maybe(numberFrom(1, { whole: true })),
    timeoutMs: maybe(milliseconds),
    timers: maybe(anyObject),
  },
  { file: 'path', database: 'path', limit: 'maxRows', timeout: 'timeoutMs' },
)

async function query(
  request: StatementRequest,
  { signal }: ToolContext,
  processes: StatementProcesses,
): Promise<Json> {
  const reply = await processes.run(request, signal)
  if (reply.kind === 'rows') return shown(reply, request)
  if (reply.kind === 'failed') throw new ToolError(failureText(reply))
  if (reply.kind === 'timed_out') {
    throw new ToolError(
      `The statement was stopped: it had not finished after ${request.timeoutMs} ms. ` +
        'Make it cheaper: filter earlier, join on indexed columns, end every recursion.',
      { outcome: 'timed_out' },
    )
  }
  throw new ToolError(
    'The statement was stopped: it needed too much memory. Select fewer or smaller values, or aggregate them.',
  )
}

function shown(
  { columns, rows, cut }: Extract<StatementReply, { kind: 'rows' }>,
  request: StatementRequest,
): Json {
  return cut === undefined ? { columns, rows } : { columns, rows, note: noteOf(cut, rows.length, request) }
}

function noteOf(cut: Cut, rowsShown: number, { maxRows, maxBytes }: StatementRequest): string {
  if (cut === 'rows') {
    return `Only the first ${maxRows} rows are shown, there are more. Aggregate, filter, or page with ORDER BY, LIMIT and OFFSET.`
  }
  const start =
    rowsShown === 0 ? 'No row is shown: the first alone' : `Only the first ${rowsShown} rows are shown: more`
  return `${start} would be over ${maxBytes} bytes. Select fewer columns or rows, or parts of long values with substr().`
}

function failureText({ message, schema }: Extract<StatementReply, { kind: 'failed' }>): string {
  return schema === undefined ? message : `${message}\nThe tables and views are:\n${schema}`
}

function statementOf(given: JsonObject): Pick<StatementRequest, 'sql' | 'parameters'> {
  // The schema has been checked.
  const { sql, parameters = [] } = given as { sql: string; parameters?: StatementRequest['parameters'] }
  return { sql, parameters }
}

function assertUsable(name: string, path: string): void {
  if (path.startsWith(':memory:') || path.startsWith('file:')) {
    throw new ConfigurationError(
      `The tool ${name} has no database: its path is ${JSON.stringify(path)}. Give the path of a SQLite file.`,
    )
  }
  requireNativeInterface(`The tool ${name}`)
  requirePackage(name, 'better-sqlite3')
}

function descriptionOf(maxRows: number): string {
  return (
    'Runs one read-only SQL statement on a SQLite database and answers { columns, rows } as JSON. ' +
    'Use it to look things up and to count and sum them. To see which tables there are, query sqlite_schema ' +
    `(SELECT name, sql FROM sqlite_schema). At most ${maxRows} rows are shown, so aggregate and filter in SQL.`
  )
}

const value: JsonObject = { type: ['string', 'number', 'boolean', 'null'] }

const input: JsonObject = {
  type: 'object',
  required: ['sql'],
  additionalProperties: false,
  properties: {
    sql: {
      type: 'string',
      minLength: 1,
      maxLength: 20_000,
      description: 'One SELECT, WITH … SELECT, VALUES or EXPLAIN QUERY PLAN statement in the SQL of SQLite.',
    },
    parameters: {
      anyOf: [
        { type: 'array', items: value },
        { type: 'object', additionalProperties: value },
      ],
      description: 'Values for ? in order as an array, or for :name, @name and $name as an object.',
    },
  },
}

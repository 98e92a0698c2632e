import type { Duplex } from 'node:stream'
import type { Json } from '@tallystick/core/vocabulary'
import type * as pg from 'pg'
import type { ClientBase, QueryArrayConfig, QueryArrayResult } from 'pg'
import { boundText } from '../../define/text.ts'
import { scheduleLimit, type Timers } from '../../host.ts'
import {
  type ParameterValue,
  ShownRows,
  type StatementBounds,
  type StatementEnding,
  type StatementReply,
} from './answer.ts'

/** How long it may take to connect, and to begin the transaction of the statement. */
export const maxConnectMs = 10_000
/** How long a server may take to stop what it was asked to stop. */
export const maxStopMs = 3_000
const noTimeoutMs = 0
/** Bytes that a server may send for one statement, beside twice what may be shown: rows come whole, however large. */
const maxReceivedBytes = 16 * 1024 * 1024

/** With the parts of a client of pg that its types leave out. */
type PgClient = pg.Client & {
  readonly connection: { readonly stream: Duplex }
  readonly processID: number | null
}

/** How a connection is made, and whether its role may do more than read. */
export interface PostgresPlace {
  readonly driver: typeof pg
  readonly connectionString: string
  readonly isTrusted: boolean
}

/**
 * Runs a statement over a connection of its own, which is gone when this settles, and on the server what ran there. Rejects
 * with the signal's reason when that aborts.
 */
export async function runOverConnection(
  place: PostgresPlace,
  request: PostgresRequest,
  signal: AbortSignal,
  timers: Timers,
): Promise<StatementReply> {
  signal.throwIfAborted()
  // The timer below ends it: by the timeout of the client, a late server could not be told from a lost one.
  const client = createClient(place, noTimeoutMs)
  const stopped = Promise.withResolvers<StatementReply>()
  const stop = (reply: StatementReply) => (): void => stopped.resolve(reply)
  const abort = (): void => stopped.reject(signal.reason as Error)
  let hasStarted = false
  let cancelTimer = scheduleLimit(
    timers,
    maxConnectMs,
    stop(refuseStart(`the database was not ready for it within ${maxConnectMs} ms`)),
  )
  signal.addEventListener('abort', abort)
  stopped.promise.catch(() => {})

  let isDone = false
  let isOver = false
  const work = async (): Promise<StatementReply> => {
    try {
      await client.connect()
      // Pieces that come after it are not kept.
      let left = maxReceivedBytes + 2 * request.maxBytes
      const { stream } = client.connection
      stream.on('data', (piece: Buffer) => {
        left -= piece.length
        if (left >= 0) return
        stream.pause()
        stopped.resolve(tooMuch)
      })
      // The server stops the query that it runs when it is asked to, which may be one before the statement: none may follow.
      const send: SendQuery = (query) => {
        if (isOver) throw new Error('the call is over')
        return client.query(query)
      }
      return await runInPostgres(send, request, place.isTrusted, () => {
        hasStarted = true
        cancelTimer()
        if (!isOver) cancelTimer = scheduleLimit(timers, request.timeoutMs, stop({ kind: 'timed_out' }))
      })
    } catch (error) {
      const { reply, asksForTables } = readFailure(error)
      if (reply.kind === 'timed_out' && !hasStarted) return refuseStart('the database was too slow to begin')
      if (reply.kind !== 'failed' || !asksForTables) return reply
      const schema = await listTables(client)
      return { ...reply, ...(schema !== undefined && { schema }) }
    } finally {
      isDone = true
    }
  }
  const working = work()
  try {
    return await Promise.race([working, stopped.promise])
  } finally {
    isOver = true
    cancelTimer()
    signal.removeEventListener('abort', abort)
    if (!isDone) await cancelStatement(place, client)
    client.connection.stream.destroy()
    await working
  }
}

/** The refusal of a text that is not a statement that reads. */
const onlyPostgresReads: string =
  'Only one statement that reads can be run: SELECT, WITH … SELECT, VALUES, TABLE, or EXPLAIN [ANALYZE] [VERBOSE] of these.'

/** An error of Postgres, or of the connection to it. */
export interface PostgresFailure {
  readonly reply: Exclude<StatementReply, { kind: 'rows' }>
  /** The model may not know the tables. */
  readonly asksForTables: boolean
}

/** Stopped, by the server's own limit. */
const stopped: ReadonlySet<string> = new Set(['57014', '25P03', '25P04'])
/** A lock was not available in time. Postgres takes the locks of a statement before it runs. */
const lockHeld = '55P03'
const locked = 'what it reads was locked for too long by another one'
/** A syntax error; what only reads refuses; what no cursor takes; several statements. */
const notReading: ReadonlySet<string> = new Set(['42601', '25006', '0A000', '42P11', '42P03'])
/** No such table, column, function, or type; a syntax error. */
const unknownNames: ReadonlySet<string> = new Set(['42P01', '42703', '42883', '42704', '42601'])

/** Why a statement has no answer. Names no host and no user: the model reads it. */
export function readFailure(error: unknown): PostgresFailure {
  const { code = '', message = String(error), hint, severity } = error as Partial<Record<string, string>>
  const failed = (text: string, asksForTables = false): PostgresFailure => ({
    reply: { kind: 'failed', message: text },
    asksForTables,
  })
  if (severity === undefined) {
    const why = /^E[A-Z_]+$/.test(code) ? ` (${code})` : ''
    return failed(`The database cannot be reached, or the connection to it was lost${why}.`)
  }
  if (code === lockHeld) return { reply: { kind: 'not_started', why: locked }, asksForTables: false }
  if (stopped.has(code)) return { reply: { kind: 'timed_out' }, asksForTables: false }
  if (/^(28|3D)/.test(code)) return failed(`The database does not let this tool in (${code}).`)
  if (/^(53|57P)/.test(code)) return failed(`The database cannot be used now (${code}).`)
  const parts = [
    `Postgres says: ${message}.`,
    hint,
    notReading.has(code) ? `${onlyPostgresReads} Nothing was changed.` : undefined,
  ]
  return failed(parts.filter((part) => part !== undefined).join(' '), unknownNames.has(code))
}

const maxTables = 50
const maxCharacters = 4_000

/** The tables and views that are found without a schema, as many as are shown and one more. */
const query = `
  select c.relname || '(' || coalesce((
    select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum)
    from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  ), '') || ')'
  from pg_class c
  where c.relkind in ('r', 'v', 'm', 'f', 'p') and pg_table_is_visible(c.oid) and has_table_privilege(c.oid, 'select')
    and c.relnamespace not in (select oid from pg_namespace where nspname in ('pg_catalog', 'information_schema'))
  order by c.relname limit ${maxTables + 1}`

/** Tables and views with their columns, one a line, as in `orders(id integer, total numeric)`. */
async function listTables(client: ClientBase): Promise<string | undefined> {
  try {
    await client.query('rollback; begin transaction read only')
    const { rows } = await client.query<[string]>({ text: query, rowMode: 'array' })
    const lines = rows.slice(0, maxTables).map(([line]) => line)
    if (rows.length > maxTables) lines.push('… and more')
    return lines.length === 0 ? 'none' : boundText(lines.join('\n'), maxCharacters)
  } catch {
    return undefined
  }
}

interface PostgresRequest extends StatementBounds {
  readonly sql: string
  readonly parameters: readonly ParameterValue[]
}

/** Roles that a function call of a SELECT lets do more than read the database. */
const dangerous = `rolsuper or rolname in
  ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend')`

const roleQuery = `select exists (
  select from pg_roles where pg_has_role(current_user, oid, 'member') and (${dangerous})
) or exists (
  select from pg_roles where pg_has_role(session_user, oid, 'member') and (${dangerous})
) as dangerous`

/** How many rows are fetched at first, and how many times as many each time after. */
const firstFetch = 8
const fetchGrowth = 8

/** Sends a query whose rows are arrays. Throws where the call is over. */
type SendQuery = (
  query: QueryArrayConfig & { readonly queryMode?: 'extended' },
) => Promise<QueryArrayResult<Json[]>>

/**
 * Runs one statement in a transaction that only reads, which its end of the connection undoes. A cursor takes nothing but
 * one SELECT, WITH or VALUES that changes nothing: Postgres judges that, by its own grammar. Rejects with what Postgres says.
 * Calls `onStart` when only the statement is left.
 */
async function runInPostgres(
  send: SendQuery,
  request: PostgresRequest,
  isTrusted: boolean,
  onStart: () => void,
): Promise<StatementEnding> {
  const { sql, timeoutMs, lockTimeoutMs } = request
  // The time of the statement is neither that of the question before it nor that in which this process is busy.
  const beginning = `begin transaction read only;
    ${roleQuery};
    set local statement_timeout = ${timeoutMs};
    set local lock_timeout = ${lockTimeoutMs};
    set local idle_in_transaction_session_timeout = ${Math.max(timeoutMs, maxConnectMs)};
    set local datestyle = 'ISO';
    set local intervalstyle = 'postgres';
    set local bytea_output = 'hex';
    set local extra_float_digits = 1;
    set local client_min_messages = 'error'`
  // Several statements have several results, which the types of pg do not tell.
  const results = (await send({ text: beginning, rowMode: 'array' })) as unknown as readonly {
    readonly rows: readonly (readonly unknown[])[]
  }[]
  const [role] = results.flatMap(({ rows }) => rows)
  if (!isTrusted && role?.[0] !== false) {
    const message =
      'The role that this tool connects as may do more than read: it is a superuser, or may read or write files of the server, run programs there, or end the work of others, all of which a SELECT can do. Nothing was run.'
    return { kind: 'failed', message }
  }
  onStart()
  const values = [...request.parameters]
  const asArrays = { rowMode: 'array', queryMode: 'extended' } as const
  // No cursor takes an EXPLAIN. Of anything else Postgres says that it is not a statement.
  if (/^\s*explain\s+(?:analyze\s+)?(?:verbose\s+)?(?:select|with|values|table)\b/i.test(sql)) {
    const { fields, rows } = await send({ text: sql, values, ...asArrays })
    const shown = readRows(fields, request)
    for (const row of rows) if (!addRow(shown, row)) break
    return shown.ending()
  }
  await send({ text: `declare shown no scroll cursor for ${sql}`, values, ...asArrays })
  let shown: ShownRows | undefined
  for (let count = firstFetch; ; count *= fetchGrowth) {
    const text = `fetch ${count} from shown`
    const { fields, rows } = await send({ text, rowMode: 'array' })
    shown ??= readRows(fields, request)
    for (const row of rows) if (!addRow(shown, row)) return shown.ending()
    if (rows.length < count) return shown.ending()
  }
}

function readRows(fields: readonly { readonly name: string }[], bounds: StatementBounds): ShownRows {
  return new ShownRows(
    fields.map(({ name }) => name),
    bounds,
  )
}

function addRow(shown: ShownRows, row: readonly Json[]): boolean {
  const atLeast = row.reduce((sum: number, value) => sum + (typeof value === 'string' ? value.length : 1), 0)
  return shown.add(atLeast, () => row)
}

const types = { boolean: 16, bytes: 17, int8: 20, int2: 21, int4: 23, oid: 26, float4: 700, float8: 701 }
const numbers: ReadonlySet<number> = new Set([
  types.int2,
  types.int4,
  types.int8,
  types.oid,
  types.float4,
  types.float8,
])

/**
 * How the text of a value is read, by the number of its type: integers beyond 2^53 stay digits, infinities text, and bytes
 * are `{ base64, bytes }`. All else, `numeric`, times and JSON included, is shown as Postgres writes it, so that nothing is
 * rounded.
 */
export function toJsonValue(type: number): (text: string) => Json {
  if (type === types.boolean) return (text) => text === 't'
  if (type === types.bytes)
    return (text) => {
      const bytes = Buffer.from(text.slice('\\x'.length), 'hex')
      return { base64: bytes.toString('base64'), bytes: bytes.length }
    }
  return numbers.has(type) ? toJsonNumber : (text) => text
}

function toJsonNumber(text: string): Json {
  const number = Number(text)
  if (!Number.isFinite(number)) return text
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? text : number
}

const refuseStart = (why: string): StatementReply => ({ kind: 'not_started', why })
const tooMuch: StatementReply = {
  kind: 'failed',
  message:
    'The statement was stopped: its rows are far too large. Select fewer columns, or parts of long values with substr().',
}

function createClient(
  { driver, connectionString }: PostgresPlace,
  connectionTimeoutMillis: number,
): PgClient {
  const client = new driver.Client({
    connectionString,
    fallback_application_name: 'tallystick sql_query',
    connectionTimeoutMillis,
    types: { getTypeParser: toJsonValue as never },
  })
  // A lost connection rejects what runs on it; without a listener the process would end.
  client.on('error', () => {})
  return client as PgClient
}

/** Asks the server over another connection to stop what it runs: a connection that is closed does not stop it. */
async function cancelStatement(place: PostgresPlace, client: PgClient): Promise<void> {
  const { processID } = client
  if (processID === null) return
  const other = createClient(place, maxStopMs)
  const query = { text: 'select pg_cancel_backend($1)', values: [processID], query_timeout: maxStopMs }
  try {
    await other.connect()
    await other.query(query)
  } catch {
    // A server that does not stop it has the statement's own limit.
  }
  other.connection.stream.destroy()
}

/** Lets so many through at a time; the others wait in their order. */
export class ConnectionGate {
  #free: number
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>()

  constructor(places: number) {
    this.#free = places
  }

  /** Resolves when a place is free and taken, with the function that gives it back; `undefined` if `signal` aborts first. */
  enter(signal: AbortSignal): Promise<(() => void) | undefined> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve(undefined)
      const leave = (): void => {
        this.#waiting.delete(admit)
        resolve(undefined)
      }
      const admit = (): void => {
        signal.removeEventListener('abort', leave)
        resolve(() => this.#release())
      }
      if (this.#free > 0) {
        this.#free--
        return admit()
      }
      signal.addEventListener('abort', leave)
      this.#waiting.add(admit)
    })
  }

  #release(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#free++
      return
    }
    this.#waiting.delete(next)
    next()
  }
}

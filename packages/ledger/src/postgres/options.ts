import { parse } from 'pg-connection-string'
import { ConfigurationError } from '@tallystick/core'
import { option, type Schema } from '@tallystick/core/internal'
import { keyring, type Keyring } from '../format/keyring.ts'
import { deltaDelay } from '../store/open-ledger.ts'

/** A connection of `pg`, as far as a ledger uses one that is not its own. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** A pool of `pg`, as far as a ledger uses it. */
export interface PostgresPool {
  readonly options: object
  connect(): Promise<PostgresClient>
}

/** How to reach the database of a ledger, and how to use it. */
export interface PostgresLedgerOptions {
  /** As `pg` takes it: `postgres://user:password@host:port/database`, with `sslmode` and the like as parameters. */
  readonly connectionString?: string | undefined
  /**
   * A pool of `pg` that the application has, instead of a connection string. `close` leaves it open. Statements borrow a
   * connection of it for one transaction, keep nothing on it, and have its time limits. One connection of the ledger's own,
   * made with the options of the pool, listens for changes, unless `pooled` says that they name a pooler; so do work that may take
   * long, such as `verify`, and making the schema.
   */
  readonly pool?: PostgresPool | undefined
  /** Schema of the ledger's tables; created if missing. `tallystick` if not given. */
  readonly schema?: string | undefined
  /**
   * Keys that encrypt the content of runs with a subject. Without them the ledger writes such runs in the clear, and
   * reads encrypted runs without their content; these cannot be continued.
   */
  readonly keys?: Keyring | undefined
  /** Only reads: the ledger has to exist, and a role that may only read is enough. */
  readonly readOnly?: boolean | undefined
  /**
   * The connection string names a pooler in transaction mode, such as PgBouncer: nothing is kept on a
   * connection between statements, and `changes` polls for events that other processes wrote.
   */
  readonly pooled?: boolean | undefined
  /** The most connections at a time, beside the one that listens. 10 unless given. */
  readonly maxConnections?: number | undefined
  /** How long the server may take to accept a connection, in milliseconds. 10000 unless given. */
  readonly connectTimeoutMs?: number | undefined
  /** How long a statement may take before it is given up, in milliseconds. 30000 unless given. */
  readonly statementTimeoutMs?: number | undefined
  /**
   * How often `changes` polls for writes of other processes, in milliseconds: 250 with a pooler; otherwise 1000,
   * since it receives notifications and polls only to be sure.
   */
  readonly pollIntervalMs?: number | undefined
  /**
   * How long deltas of a reply may wait for further ones, in milliseconds, so that one event records them: 200 unless
   * given; with 0 each is recorded, and shown, as soon as it arrives. The first delta of a reply never waits.
   */
  readonly deltaDelayMs?: number | undefined
}

const { anyText, fields, maybe, trueOrFalse, valueThat } = option

function wholeTo(max: number): Schema {
  return valueThat(
    `a whole number from 1 to ${max}`,
    (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max,
  )
}

const pool = valueThat('a pool of pg, such as new Pool() makes', (value) => {
  const { connect, options } = Object(value) as Partial<PostgresPool>
  return typeof connect === 'function' && typeof options === 'object'
})

const client = valueThat('a client of pg, such as pool.connect() returns', (value) => {
  return typeof (Object(value) as Partial<PostgresClient>).query === 'function'
})

export const putOptions: Schema = fields<{ readonly within?: PostgresClient | undefined }>({
  within: maybe(client),
})

export const postgresLedgerOptions: Schema = fields<PostgresLedgerOptions>(
  {
    connectionString: maybe(anyText),
    pool: maybe(pool),
    schema: maybe(anyText),
    keys: maybe(keyring),
    readOnly: maybe(trueOrFalse),
    pooled: maybe(trueOrFalse),
    maxConnections: maybe(wholeTo(10_000)),
    connectTimeoutMs: maybe(wholeTo(0x7fffffff)),
    statementTimeoutMs: maybe(wholeTo(0x7ffffbff)),
    pollIntervalMs: maybe(wholeTo(0x7fffffff)),
    deltaDelayMs: maybe(deltaDelay),
  },
  {
    url: 'connectionString',
    connection: 'connectionString',
    host: 'connectionString',
    max: 'maxConnections',
    poolSize: 'maxConnections',
    keyring: 'keys',
    readonly: 'readOnly',
  },
)

/** Which ledger is meant. */
export interface DatabasePlace {
  readonly schema: string
  /** The quoted name of the schema, for statements. */
  readonly quotedSchema: string
  /** Host, port, database and schema, for messages; no user and no password. */
  readonly description: string
}

const maxIdentifierBytes = 63

/** Reads the options that say where a ledger is. Throws a `ConfigurationError`, which repeats no secret. */
export function parseDatabasePlace(options: PostgresLedgerOptions): DatabasePlace {
  const { pool, schema = 'tallystick' } = options
  requireSchemaName(schema)
  if (pool) requirePoolAlone(options)
  const { connectionString } = pool ? (pool.options as PoolPlace) : options
  if (!pool && (typeof connectionString !== 'string' || connectionString.trim() === '')) {
    throw new ConfigurationError(
      'postgresLedger needs a connectionString, and without one it would have to guess the database. ' +
        'Give one such as postgres://user@host:5432/database.',
    )
  }
  try {
    const { host, port, database } =
      connectionString === undefined ? fillEndpoint(pool?.options ?? {}) : parseEndpoint(connectionString)
    const description = `${host}:${port}/${database ?? ''}, schema ${schema}`
    return { schema, quotedSchema: `"${schema.replaceAll('"', '""')}"`, description }
  } catch {
    throw createConnectionStringError()
  }
}

/** The refusal of a connection string. What the error of its reader says would repeat it, and with it the password. */
export function createConnectionStringError(): ConfigurationError {
  return new ConfigurationError(
    'postgresLedger got a connectionString that cannot be read, so no database is named. ' +
      'Give one such as postgres://user@host:5432/database, with special characters of the password percent-encoded.',
  )
}

/** The place of a ledger, as the options of a pool name it. */
interface PoolPlace {
  readonly connectionString?: string
  readonly host?: string | null | undefined
  readonly port?: string | number | null | undefined
  readonly database?: string | null | undefined
  readonly user?: string | undefined
}

function requirePoolAlone(options: PostgresLedgerOptions): void {
  const ofPool = ['connectionString', 'maxConnections', 'connectTimeoutMs', 'statementTimeoutMs'] as const
  const given = ofPool.find((name) => options[name] !== undefined)
  if (given === undefined) return
  throw new ConfigurationError(
    `postgresLedger got a pool and ${given}, and only one of them can hold: a pool has its own connections and time limits. ` +
      'Leave out one of the two.',
  )
}

function requireSchemaName(schema: string): void {
  const sound =
    schema !== '' &&
    schema.isWellFormed() &&
    !schema.includes('\0') &&
    !schema.startsWith('pg_') &&
    Buffer.byteLength(schema) <= maxIdentifierBytes
  if (sound) return
  throw new ConfigurationError(
    `postgresLedger got a schema name that Postgres would refuse or cut short. Give one of 1 to ${maxIdentifierBytes} ` +
      'bytes that does not begin with pg_.',
  )
}

/** The address of a server and a database. */
export interface Endpoint {
  readonly host: string
  readonly port: number
  readonly database: string | undefined
}

/**
 * The endpoint that a connection string names, read as pg reads it, with the same variables of the environment for what it
 * leaves out; so it is known before pg is loaded. Throws if the string cannot be read; the error may repeat it.
 */
export function parseEndpoint(connectionString: string): Endpoint {
  const { host, port, database, user } = parse(connectionString)
  return fillEndpoint({ host, port, database, user })
}

/** Fills in what a place leaves out. */
function fillEndpoint(named: PoolPlace): Endpoint {
  const { PGHOST, PGPORT, PGDATABASE, PGUSER, USER, USERNAME } = process.env
  const user = named.user || PGUSER || (process.platform === 'win32' ? USERNAME : USER)
  return {
    host: named.host || PGHOST || 'localhost',
    port: Number.parseInt(String(named.port || PGPORT || '5432'), 10),
    database: named.database || PGDATABASE || user,
  }
}

/** A transaction that is under way somewhere on the server, in any of its databases. */
export interface OpenTransaction {
  /** Its server process, as `pg_terminate_backend` takes it; absent if it was prepared and waits for its second phase. */
  readonly pid?: number
  readonly database: string
  /** The name that its client gave itself; that of the transaction if it was prepared. */
  readonly applicationName: string
  /**
   * Such as `idle in transaction`, when its client runs no statement, or `prepared`. Absent, like `ageMs`, if the
   * role of this ledger may not see it: `pg_read_all_stats` allows it.
   */
  readonly state?: string
  /** How long it has been under way, in milliseconds, by the clock of the server. */
  readonly ageMs?: number
}

/** How far tails over all runs are delayed, and by which transaction. */
export interface TailHorizon {
  /** Committed events that no tail yields yet, since the oldest transaction may put others in front of them. */
  readonly waitingEvents: number
  /** The oldest transaction that has written; absent if none has. */
  readonly oldest?: OpenTransaction
}

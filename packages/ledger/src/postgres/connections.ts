import { ConfigurationError } from '@tallystick/core'
import type { ClientBase, ClientConfig, Pool, PoolClient } from 'pg'
import type { driver } from './driver-types.ts'
import { isConnectionLost, isContention, isUnanswered } from './failure.ts'
import { unreadableConnectionString, type PostgresLedgerOptions } from './options.ts'

/** The driver of Postgres, as far as it is used. */
export type Pg = Pick<typeof driver, 'Client' | 'Pool' | 'types'>

let loading: Promise<Pg> | undefined

/** Throws a `ConfigurationError`, with the line that installs the driver, where the host can tell at once that it is missing. */
export function requirePg(): void {
  try {
    if (resolvesPackages()) import.meta.resolve('pg')
  } catch (error) {
    // Other hosts refuse names that they cannot resolve by other errors: there only loading tells.
    if (isMissing(error)) throw missingPg(error)
  }
}

/** Loads the driver once, by its literal name, so that bundlers see it. Rejects with a `ConfigurationError`. */
export async function loadPg(): Promise<Pg> {
  loading ??= import('pg')
  try {
    return await loading
  } catch (error) {
    loading = undefined
    throw missingPg(error)
  }
}

/** A bundle holds this module where not even its own package has a name: there only loading tells whether another is missing. */
function resolvesPackages(): boolean {
  try {
    import.meta.resolve('@tallystick/ledger/package.json')
    return true
  } catch {
    return false
  }
}

function missingPg(cause: unknown): ConfigurationError {
  const what = isMissing(cause) ? 'is not installed' : 'could not be loaded'
  return new ConfigurationError(
    `postgresLedger() needs the package pg, which ${what}. Add it: npm install pg.`,
    {
      cause,
    },
  )
}

function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
}

/** What every connection of a ledger has in common. Times and places are whole numbers far below 2^53. */
export function connectionConfig(options: PostgresLedgerOptions, { types }: Pg): ClientConfig {
  return {
    connectionString: options.connectionString,
    fallback_application_name: 'tallystick',
    keepAlive: true,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 10_000,
    // What is no whole number of 8 bytes is read as pg reads it.
    types: { getTypeParser: (type) => (type === types.builtins.INT8 ? Number : types.getTypeParser(type)) },
  }
}

/** A statement and its values. One with a name is parsed once a connection, where connections keep that. */
export interface Statement {
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
}

/** What a statement answered. */
export interface Answer<Row> {
  readonly rows: readonly Row[]
  /** Whether it was sent twice, since the first connection was lost: the first one may have been carried out. */
  readonly wasResent: boolean
}

/** How often a statement is sent that Postgres undid for the sake of others. */
const maxContentions = 20

/** How much longer than the server this process waits for the end of a statement. */
const graceMs = 1_000

/**
 * Every statement of a ledger finds its rows by an index. Plans are kept as long as a connection, so one that was made
 * while the tables were small would read them whole when they are large.
 */
function settings(statementTimeoutMs: number): string {
  return `set statement_timeout = ${statementTimeoutMs}; set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off`
}

/** A hook for new connections. The pool waits for what it answers, which its types do not tell. */
function settle(statement: string): (client: ClientBase) => void {
  return ((client: ClientBase) => client.query(statement)) as (client: ClientBase) => void
}

/** The connections of one ledger. Statements are whole transactions, and each of ours may be sent again. */
export class Connections {
  readonly pg: Pg
  readonly #options: PostgresLedgerOptions
  readonly #pool: Pool
  readonly #keepsStatements: boolean
  #ended: Promise<void> | undefined

  /** Throws a `ConfigurationError` where the driver cannot read the connection string. */
  constructor(options: PostgresLedgerOptions, pg: Pg) {
    const { statementTimeoutMs = 30_000, maxConnections = 10, pooled = false } = options
    requireReadable(options, pg)
    this.pg = pg
    this.#options = options
    this.#keepsStatements = !pooled
    this.#pool = new pg.Pool({
      ...connectionConfig(options, pg),
      max: maxConnections,
      // With a pooler it would be the connection of other clients.
      ...(!pooled && { onConnect: settle(settings(statementTimeoutMs)) }),
      query_timeout: statementTimeoutMs + graceMs,
      allowExitOnIdle: true,
    })
    // The next use of a lost connection rejects; without listeners the process would end.
    this.#pool.on('error', () => undefined)
    this.#pool.on('connect', (client) => void client.on('error', () => undefined))
  }

  /**
   * Sends a statement, once more where the connection was lost on the way, and again where others were in the way:
   * appends and take-overs carry what they expect, so that carried out twice they do no more than once.
   */
  async send<Row>(statement: Statement): Promise<Answer<Row>> {
    let wasResent = false
    for (let contentions = 0; ;) {
      try {
        return { rows: await this.#sendOnce<Row>(statement), wasResent }
      } catch (error) {
        if (isContention(error) && ++contentions < maxContentions) continue
        if (wasResent || !isConnectionLost(error)) throw error
        wasResent = true
      }
    }
  }

  /** The rows that a statement answers. */
  async rows<Row>(statement: Statement): Promise<readonly Row[]> {
    return (await this.send<Row>(statement)).rows
  }

  /** A connection of its own, which its user opens and ends. */
  ownClient(): driver.Client {
    const client = new this.pg.Client(connectionConfig(this.#options, this.pg))
    client.on('error', () => undefined)
    return client
  }

  /** The rows of a statement that has all the time it takes, over a connection of its own. */
  async patiently<Row>({ text, values }: Statement): Promise<readonly Row[]> {
    const client = this.ownClient()
    try {
      await client.connect()
      return (await client.query(text, [...values])).rows as readonly Row[]
    } finally {
      await client.end().catch(() => undefined)
    }
  }

  /** Ends every connection, once those in use are free. */
  end(): Promise<void> {
    this.#ended ??= this.#pool.end()
    return this.#ended
  }

  async #sendOnce<Row>({ name, text, values }: Statement): Promise<readonly Row[]> {
    const client: PoolClient = await this.#pool.connect()
    let isSpent = true
    try {
      const { rows } = await client.query({
        text,
        values: [...values],
        ...(name !== undefined && this.#keepsStatements && { name }),
      })
      isSpent = false
      return rows as readonly Row[]
    } catch (error) {
      // Where Postgres itself refused, the connection is as good as before.
      isSpent = isConnectionLost(error) || isUnanswered(error)
      throw error
    } finally {
      client.release(isSpent)
    }
  }
}

/** The driver reads more of the string than the place of the database, such as the files of certificates. */
function requireReadable({ connectionString }: PostgresLedgerOptions, { Client }: Pg): void {
  try {
    void new Client({ connectionString })
  } catch {
    throw unreadableConnectionString()
  }
}

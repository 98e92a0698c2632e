import { LedgerDamagedError, LedgerUnavailableError, TallystickError } from '@tallystick/core'
import type { Client, ClientBase, ClientConfig, Pool } from 'pg'
import { omitUndefined, declarePackage, type OptionalPackage } from '@tallystick/core/internal'
import { toMisreadError } from '../format/event-row.ts'
import type { driver } from './driver-types.ts'
import { type PostgresLedgerOptions, createConnectionStringError } from './options.ts'

/** The code of a failure: Postgres's own, such as `23505`, or the system's, such as `ECONNREFUSED`. */
function findCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  if ('code' in error && typeof error.code === 'string') return error.code
  return error instanceof AggregateError ? findCode(error.errors[0]) : undefined
}

/** The name of the constraint or index that refused, if one did. */
export function findConstraint(error: unknown): string | undefined {
  if (findCode(error) !== '23505' || !(error instanceof Error)) return undefined
  return 'constraint' in error && typeof error.constraint === 'string' ? error.constraint : undefined
}

export function isMissingReference(error: unknown): boolean {
  return findCode(error) === '23503'
}

/** Codes that the triggers of the schema raise. */
export const refusalCode = 'TL001'
/** A run would end with entries in its inbox; an entry came after a run's end. */
export const unreadCode = 'TL002'
export const endedCode = 'TL003'
/** A run that was dropped would begin again. */
export const droppedCode = 'TL004'

export function isDropped(error: unknown): boolean {
  return findCode(error) === droppedCode
}

/** A savepoint was asked for where no transaction is open. */
export function isOutsideTransaction(error: unknown): boolean {
  return findCode(error) === '25P01'
}

/** A schema or a table is not there. */
export function isMissingTable(error: unknown): boolean {
  return /^(3F000|42P01)$/.test(findCode(error) ?? '')
}

export function isUnread(error: unknown): boolean {
  return findCode(error) === unreadCode
}

export function isAfterEnd(error: unknown): boolean {
  return findCode(error) === endedCode
}

const lostMessage = /^(Connection terminated|Client has encountered a connection error|Connection ended)/
const lostCode = /^(08|57P0[12]|ECONNRESET$|EPIPE$|ERR_STREAM_)/

/** If the connection was lost, it is unknown whether the statement was carried out. */
function isConnectionLost(error: unknown): boolean {
  const code = findCode(error)
  if (code !== undefined) return lostCode.test(code)
  // A connection that could not be made in time was never there.
  return error instanceof Error && lostMessage.test(error.message) && !/timeout/.test(error.message)
}

/** Postgres undid the statement because of concurrent ones, and it may be sent again. */
export function isContention(error: unknown): boolean {
  return /^(40001|40P01)$/.test(findCode(error) ?? '')
}

/** pg gave up waiting for an answer, and the connection is still busy with the question. */
function isUnanswered(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout'
}

/**
 * Codes that say that the database is not what was written: broken batches; a schema that lacks what our statements
 * name; a trigger that stops an append which the run's own head allows; a number that no column holds, which came from a
 * row, since what callers give is checked.
 */
const damage = /^(XX00[012]$|22003$|23|42P01|42703|42883|3F000)/

const remedies: readonly (readonly [RegExp, string])[] = [
  [
    /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOENT|57P03)/,
    'The server cannot be reached. Start it, or look at the connection string and the network; then resume the run.',
  ],
  [
    /^28/,
    'The server does not let this user in. Look at the user and the password of the connection string.',
  ],
  [/^3D000/, 'There is no such database. Make it, or name another in the connection string.'],
  [
    /^53300/,
    'The server has no connection left. Lower maxConnections, or raise max_connections of the server.',
  ],
  [/^53/, 'The server has run out of disk or memory. Make room, then resume the run.'],
  [
    /^57014/,
    'The statement took too long, and nothing of it was written. Look for what holds the server up, or raise statementTimeoutMs.',
  ],
  [/^55P03/, 'Another session holds a lock for too long. End that session, then resume the run.'],
  [
    /^25006/,
    'The server only reads: it is a standby. Name the primary in the connection string, or open with readOnly.',
  ],
  [
    /^42501/,
    'The role may not do this. Grant it what the README lists, or open with readOnly where it is only to read.',
  ],
  [
    /^(26000|42P05|08P01)/,
    'Statements do not stay on their connection, as behind a pooler in transaction mode. Open with pooled: true.',
  ],
  [/^40/, 'Others wrote the same rows at the same time, again and again. Resume the run.'],
]

/** Converts any error: to damage, or to a store that is not available. A `TallystickError` stays as it is. */
export function toLedgerError(error: unknown, description: string): TallystickError {
  if (error instanceof TallystickError) return error
  const misread = toMisreadError(error, `The ledger at ${description}`)
  if (misread) return misread
  const code = findCode(error)
  const reason = describeReason(error)
  if (code !== undefined && (code === refusalCode || damage.test(code))) {
    return new LedgerDamagedError(
      `The ledger at ${description} is damaged: ${reason}. What it says cannot be trusted. Run verify on it, and restore a copy.`,
      { cause: error },
    )
  }
  const codeText = code === undefined || reason.includes(code) ? '' : ` (${code})`
  return new LedgerUnavailableError(
    `The ledger at ${description} is not available: ${reason}${codeText}. ${findRemedy(error, code)}`,
    { cause: error },
  )
}

function findRemedy(error: unknown, code: string | undefined): string {
  if (isConnectionLost(error) || isUnanswered(error)) {
    return (
      'Whether the last statement was carried out is not known; what was acknowledged is not lost. ' +
      'Resume the run when the server answers: an append that was committed already is recognised.'
    )
  }
  if (/timeout/.test(describeReason(error)) && code === undefined) {
    return 'No connection came free or was accepted in time. Look at the server, or raise connectTimeoutMs or maxConnections.'
  }
  return remedies.find(([codes]) => codes.test(code ?? ''))?.[1] ?? 'Nothing was written.'
}

/** The first line, since an AggregateError has none of its own. */
function describeReason(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return describeReason(error.errors[0])
  return error instanceof Error ? error.message : String(error)
}

/** The parts of the driver that are used. */
export type Pg = Pick<typeof driver, 'Client' | 'Pool' | 'types'>

const pgPackage: OptionalPackage<Pg> = declarePackage(
  { name: '@tallystick/ledger', resolve: (name) => import.meta.resolve(name) },
  'pg',
  () => import('pg'),
)

/** Throws a `ConfigurationError`, with the line that installs the driver, if the host can tell at once that it is missing. */
export function requirePg(): void {
  pgPackage.require('postgresLedger()')
}

/** Rejects with a `ConfigurationError` if the driver is missing. */
export function loadPg(): Promise<Pg> {
  return pgPackage.load('postgresLedger()')
}

/** Reads times and places as numbers: they are whole, and far below 2^53. All other types are read as pg reads them. */
function chooseTypes({ types }: Pg): Pick<Pg['types'], 'getTypeParser'> {
  return { getTypeParser: (type) => (type === types.builtins.INT8 ? Number : types.getTypeParser(type)) }
}

/** A connection of a ledger's own, which is not made yet. The options of a pool are passed on as they are: some are hidden. */
export function createClient(options: PostgresLedgerOptions, pg: Pg): Client {
  const client = new pg.Client(options.pool?.options ?? toConnectionConfig(options))
  client.on('error', ignore)
  return client
}

function ignore(): void {}

/** Options of every connection that a ledger makes by a connection string. */
function toConnectionConfig(options: PostgresLedgerOptions): ClientConfig {
  return {
    ...omitUndefined({ connectionString: options.connectionString }),
    fallback_application_name: 'tallystick',
    keepAlive: true,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 10_000,
  }
}

/** A statement and its values. One with a name is parsed once a connection, where connections keep that. */
export interface Statement {
  readonly name?: string
  readonly text: string
  readonly values: readonly unknown[]
}

export interface Answer<Row> {
  readonly rows: readonly Row[]
  /** Set if it was sent twice because a connection was lost: the first one may have been carried out. */
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
function formatSettings(statementTimeoutMs: number): string {
  return `set statement_timeout = ${statementTimeoutMs}; set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off`
}

/** A hook for new connections. The pool waits for what it answers, which its types do not tell. */
function settle(statement: string): (client: ClientBase) => void {
  return ((client: ClientBase) => client.query(statement)) as (client: ClientBase) => void
}

/** A connection until it is released; spent, it is used no more. */
interface Lent {
  readonly client: ClientBase
  readonly release: (isSpent?: boolean) => Promise<void>
}

/** The connections of one ledger. Statements are whole transactions, and each of ours may be sent again. */
export class Connections {
  readonly pg: Pg
  readonly #options: PostgresLedgerOptions
  readonly #pool: Pool
  readonly #keepsStatements: boolean
  readonly #isOwn: boolean
  readonly #types: ReturnType<typeof chooseTypes>
  #ended: Promise<void> | undefined

  /** Throws a `ConfigurationError` if the driver cannot read the connection string. */
  constructor(options: PostgresLedgerOptions, pg: Pg) {
    const { statementTimeoutMs = 30_000, maxConnections = 10, pooled = false } = options
    this.pg = pg
    this.#types = chooseTypes(pg)
    this.#options = options
    this.#isOwn = options.pool === undefined
    // Plans that stay on connections of others would be made without our settings.
    this.#keepsStatements = this.#isOwn && !pooled
    if (options.pool) {
      this.#pool = options.pool as Pool
      return
    }
    requireReadable(options, pg)
    this.#pool = new pg.Pool({
      ...toConnectionConfig(options),
      max: maxConnections,
      // With a pooler it would be the connection of other clients.
      ...(!pooled && { onConnect: settle(formatSettings(statementTimeoutMs)) }),
      query_timeout: statementTimeoutMs + graceMs,
      allowExitOnIdle: true,
    })
    // The next use of a lost connection rejects; without listeners the process would end.
    this.#pool.on('error', ignore)
    this.#pool.on('connect', (client) => void client.on('error', ignore))
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

  async rows<Row>(statement: Statement): Promise<readonly Row[]> {
    return (await this.send<Row>(statement)).rows
  }

  /**
   * Does work in a transaction, again where others were in the way of it, and once more where the connection of the pool was
   * lost: carried out twice it has to do no more than once. With `patiently` it has all the time it takes, over a connection of
   * its own.
   */
  async transact<T>(
    work: (query: (statement: Statement) => Promise<readonly unknown[]>) => Promise<T>,
    { patiently = false }: { readonly patiently?: boolean } = {},
  ): Promise<T> {
    let isAgain = patiently
    for (let contentions = 0; ;) {
      const { client, release } = await (patiently ? this.#connectAlone() : this.#borrow())
      let isSpent = true
      try {
        await client.query('begin')
        const result = await work(({ text, values }) => this.#ask(client, { text, values }))
        await client.query('commit')
        isSpent = false
        return result
      } catch (error) {
        isSpent = await client.query('rollback').then(
          () => false,
          () => true,
        )
        if (isContention(error) && ++contentions < maxContentions) continue
        if (isAgain || !isConnectionLost(error)) throw error
        isAgain = true
      } finally {
        await release(isSpent)
      }
    }
  }

  /** The rows of a statement that has all the time it takes, over a connection of its own. */
  async patiently<Row>({ text, values }: Statement): Promise<readonly Row[]> {
    const { client, release } = await this.#connectAlone()
    try {
      return await this.#ask<Row>(client, { text, values })
    } finally {
      await release()
    }
  }

  async #borrow(): Promise<Lent> {
    const client = await this.#pool.connect()
    // The next use of a lost connection rejects; without a listener the process would end.
    client.on('error', ignore)
    const release = async (isSpent?: boolean): Promise<void> => {
      client.off('error', ignore)
      client.release(isSpent)
    }
    return { client, release }
  }

  async #connectAlone(): Promise<Lent> {
    const client = createClient(this.#options, this.pg)
    const release = (): Promise<void> => client.end().catch(() => undefined)
    try {
      await client.connect()
    } catch (error) {
      await release()
      throw error
    }
    return { client, release }
  }

  /** Ends every connection that it made, once those in use are free. */
  end(): Promise<void> {
    this.#ended ??= this.#isOwn ? this.#pool.end() : Promise.resolve()
    return this.#ended
  }

  async #ask<Row>(client: ClientBase, { name, text, values }: Statement): Promise<readonly Row[]> {
    const { rows } = await client.query({
      ...{ text, values: [...values], types: this.#types },
      ...(name !== undefined && this.#keepsStatements && { name }),
    })
    return rows as readonly Row[]
  }

  async #sendOnce<Row>(statement: Statement): Promise<readonly Row[]> {
    const { client, release } = await this.#borrow()
    let isSpent = true
    try {
      const rows = await this.#ask<Row>(client, statement)
      isSpent = false
      return rows
    } catch (error) {
      // Where Postgres itself refused, the connection is as good as before.
      isSpent = isConnectionLost(error) || isUnanswered(error)
      throw error
    } finally {
      await release(isSpent)
    }
  }
}

/** The driver reads more of the string than the place of the database, such as the files of certificates. */
function requireReadable({ connectionString }: PostgresLedgerOptions, { Client }: Pg): void {
  try {
    void new Client({ connectionString })
  } catch {
    throw createConnectionStringError()
  }
}

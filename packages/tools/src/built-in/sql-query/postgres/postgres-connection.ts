import type * as pg from 'pg'
import type { Duplex } from 'node:stream'
import { scheduleLimit, type Timers } from '../../timers.ts'
import type { StatementReply } from '../answer/statement.ts'
import { postgresFailure } from './postgres-failure.ts'
import { postgresTables } from './postgres-tables.ts'
import { type PostgresRequest, runInPostgres } from './run-in-postgres.ts'
import { valueJson } from './value-json.ts'

/** How long it may take to connect, and to begin the transaction of the statement. */
export const maxConnectMs = 10_000
/** How long a server may take to stop what it was asked to stop. */
export const maxStopMs = 3_000
const noTimeoutMs = 0
/** Bytes that a server may send for one statement, beside twice what may be shown: rows come whole, however large. */
const maxReceivedBytes = 16 * 1024 * 1024

/** The parts of a client of pg that its types leave out. */
interface Wired {
  readonly connection: { readonly stream: Duplex }
  readonly processID: number | null
}

type PgClient = pg.Client & Wired

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
  // The timer below ends it: that of the client tells a late server from a lost one by nothing.
  const client = newClient(place, noTimeoutMs)
  const stopped = Promise.withResolvers<StatementReply>()
  const stop = (reply: StatementReply) => (): void => stopped.resolve(reply)
  const abort = (): void => stopped.reject(signal.reason as Error)
  let hasStarted = false
  let cancelTimer = scheduleLimit(
    timers,
    maxConnectMs,
    stop(notStarted(`the database was not ready for it within ${maxConnectMs} ms`)),
  )
  signal.addEventListener('abort', abort)
  stopped.promise.catch(() => {})

  let isDone = false
  const work = async (): Promise<StatementReply> => {
    try {
      await client.connect()
      limitReceived(client, maxReceivedBytes + 2 * request.maxBytes, stop(tooMuch))
      return await runInPostgres(client, request, place.isTrusted, () => {
        hasStarted = true
        cancelTimer()
        cancelTimer = scheduleLimit(timers, request.timeoutMs, stop({ kind: 'timed_out' }))
      })
    } catch (error) {
      const { reply, asksForTables } = postgresFailure(error)
      if (reply.kind === 'timed_out' && !hasStarted) return notStarted('the database was too slow to begin')
      if (reply.kind !== 'failed' || !asksForTables) return reply
      const schema = await postgresTables(client)
      return { ...reply, ...(schema !== undefined && { schema }) }
    } finally {
      isDone = true
    }
  }
  const working = work()
  try {
    return await Promise.race([working, stopped.promise])
  } finally {
    cancelTimer()
    signal.removeEventListener('abort', abort)
    if (!isDone) await cancelStatement(place, client)
    client.connection.stream.destroy()
    await working
  }
}

const notStarted = (why: string): StatementReply => ({ kind: 'not_started', why })
const tooMuch: StatementReply = {
  kind: 'failed',
  message:
    'The statement was stopped: its rows are far too large. Select fewer columns, or parts of long values with substr().',
}

function newClient({ driver, connectionString }: PostgresPlace, connectionTimeoutMillis: number): PgClient {
  const client = new driver.Client({
    connectionString,
    fallback_application_name: 'tallystick sql_query',
    connectionTimeoutMillis,
    types: { getTypeParser: valueJson as never },
  })
  // A lost connection rejects what runs on it; without a listener the process would end.
  client.on('error', () => {})
  return client as PgClient
}

/** Calls `exceed` when the server has sent more than so many bytes. Pieces that come after it are not kept. */
function limitReceived(client: PgClient, maxBytes: number, exceed: () => void): void {
  let received = 0
  const { stream } = client.connection
  stream.on('data', (piece: Buffer) => {
    received += piece.length
    if (received <= maxBytes) return
    stream.pause()
    exceed()
  })
}

/** Asks the server over another connection to stop what it runs: a connection that is closed does not stop it. */
async function cancelStatement(place: PostgresPlace, client: PgClient): Promise<void> {
  const { processID } = client
  if (processID === null) return
  const other = newClient(place, maxStopMs)
  const canceled = async (): Promise<void> => {
    await other.connect()
    const query = {
      text: 'select pg_cancel_backend($1)',
      values: [processID],
      query_timeout: maxStopMs,
    }
    await other.query(query)
  }
  // A server that does not stop it has the statement's own limit.
  await canceled().catch(() => {})
  other.connection.stream.destroy()
}

import { postgresLedger, type PostgresLedger, type PostgresLedgerOptions } from '@tallystick/ledger/postgres'
import { Client, type QueryResultRow } from 'pg'
import { inject, onTestFinished } from 'vitest'

const server = inject('postgres')

/** Whether this machine has a server. Where it has none, the test run says why. */
export const hasPostgres: boolean = 'connectionString' in server

/** The server that all tests share. */
export const connectionString: string = 'connectionString' in server ? server.connectionString : ''

let schemas = 0

/** The name of a schema that is not there yet. */
export function freshSchema(): string {
  return `test_${process.pid}_${++schemas}`
}

/** A ledger that is closed when the test ends. */
export function openLedger(schema: string, options: Partial<PostgresLedgerOptions> = {}): PostgresLedger {
  const ledger = postgresLedger({ connectionString, schema, ...options })
  onTestFinished(() => ledger.close().catch(() => undefined))
  return ledger
}

/** Works on the database with a connection of its own, as any SQL tool would. */
export async function withClient<T>(
  work: (client: Client) => Promise<T>,
  url: string = connectionString,
): Promise<T> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** The rows that a statement answers. */
export function rowsOf<Row extends QueryResultRow>(
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  return withClient(async (client) => (await client.query<Row>(text, [...values])).rows)
}

import type { ClientConfig } from 'pg'
import type { Pg } from './pg-package.ts'
import type { PostgresLedgerOptions } from './postgres-ledger-options.ts'

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

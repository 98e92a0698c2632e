import { types, type ClientConfig } from 'pg'
import type { PostgresLedgerOptions } from './postgres-ledger-options.ts'

/** What every connection of a ledger has in common. Times and places are whole numbers far below 2^53. */
export function connectionConfig(options: PostgresLedgerOptions): ClientConfig {
  return {
    connectionString: options.connectionString,
    fallback_application_name: 'tallystick',
    keepAlive: true,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 10_000,
    types: { getTypeParser: parserOf },
  }
}

/** How the text of a value is read; what is no whole number of 8 bytes as pg reads it. */
function parserOf(type: Parameters<typeof types.setTypeParser>[0]): (text: string) => unknown {
  return type === types.builtins.INT8 ? Number : types.getTypeParser(type)
}

import { ConfigurationError } from '@tallystick/core'
import { endpointOf } from './endpoint.ts'
import type { PostgresLedgerOptions } from './postgres-ledger-options.ts'

/** Which ledger is meant. */
export interface DatabasePlace {
  /** The schema as it is called. */
  readonly schema: string
  /** The quoted name of the schema, for statements. */
  readonly quotedSchema: string
  /** Host, port, database and schema, for messages; no user and no password. */
  readonly description: string
}

const maxIdentifierBytes = 63

/** Reads the options that say where a ledger is. Throws a `ConfigurationError`, which repeats no secret. */
export function databasePlace({
  connectionString,
  schema = 'tallystick',
}: PostgresLedgerOptions): DatabasePlace {
  requireSchemaName(schema)
  if (typeof connectionString !== 'string' || connectionString.trim() === '') {
    throw new ConfigurationError(
      'postgresLedger needs a connectionString, and without one it would guess which database to write to. ' +
        'Give one such as postgres://user@host:5432/database.',
    )
  }
  try {
    const { host, port, database } = endpointOf(connectionString)
    const description = `${host}:${port}/${database ?? ''}, schema ${schema}`
    return { schema, quotedSchema: `"${schema.replaceAll('"', '""')}"`, description }
  } catch {
    throw unreadableConnectionString()
  }
}

/** The refusal of a connection string. What the error of its reader says would repeat it, and with it the password. */
export function unreadableConnectionString(): ConfigurationError {
  return new ConfigurationError(
    'postgresLedger got a connectionString that cannot be read, so no database is named. ' +
      'Give one such as postgres://user@host:5432/database, with special characters of the password percent-encoded.',
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

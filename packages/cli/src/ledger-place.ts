import { resolve } from 'node:path'
import { ConfigurationError } from '@tallystick/core'

/** How to reach a ledger in Postgres, as `postgresLedger` takes it. */
export interface PostgresPlace {
  readonly connectionString: string
  readonly schema?: string
  readonly pooled?: boolean
}

/** Whether what stands for a ledger on the command line is a connection string, and no file. */
export function isPostgres(ledger: string): boolean {
  return /^postgres(ql)?:\/\//i.test(ledger)
}

/** Parameters that keep a secret. */
const secretParameters = ['password', 'sslpassword']

/**
 * The ledger as it may be shown: without its password. A command that is made of it finds the password where libpq
 * looks too, in `PGPASSWORD` or in `~/.pgpass`.
 */
export function shownLedger(ledger: string): string {
  if (!isPostgres(ledger)) return ledger
  const url = URL.parse(ledger)
  // What cannot be read may have its password anywhere.
  if (url === null) return `${ledger.slice(0, ledger.indexOf('://'))}://…`
  url.password = ''
  for (const name of secretParameters) url.searchParams.delete(name)
  return url.href
}

/** Where a ledger is, for code that is told: the absolute path of its file, or its connection string as it may be shown. */
export function ledgerSource(ledger: string, workingDirectory: string): string {
  return isPostgres(ledger) ? shownLedger(ledger) : resolve(workingDirectory, ledger)
}

/**
 * Reads a connection string: `schema` and `pooled` among its parameters are ours, the rest is for the driver. Throws a
 * `ConfigurationError` for a value that means nothing.
 */
export function postgresPlace(connectionString: string): PostgresPlace {
  const url = URL.parse(connectionString)
  if (url === null) return { connectionString }
  const { searchParams } = url
  const [schema, pooled] = [searchParams.get('schema'), searchParams.get('pooled')]
  if (schema === null && pooled === null) return { connectionString }
  if (pooled !== null && pooled !== 'true' && pooled !== 'false') {
    throw new ConfigurationError(
      `The parameter pooled of the connection string is ${pooled}, which is neither true nor false. Write ?pooled=true behind a pooler in transaction mode, such as PgBouncer.`,
    )
  }
  searchParams.delete('schema')
  searchParams.delete('pooled')
  return {
    connectionString: url.href,
    ...(schema !== null && { schema }),
    ...(pooled !== null && { pooled: pooled === 'true' }),
  }
}

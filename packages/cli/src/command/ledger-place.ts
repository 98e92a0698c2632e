import { resolve } from 'node:path'
import { ConfigurationError } from '@tallystick/core'

/** How to reach a ledger in Postgres, as `postgresLedger` takes it. */
export interface PostgresPlace {
  readonly connectionString: string
  readonly schema?: string
  readonly pooled?: boolean
}

/** Returns whether the ledger argument of the command line is a connection string, not a file. */
export function isPostgres(ledger: string): boolean {
  return /^\s*postgres(ql)?:\/\//i.test(ledger)
}

/** Whether it is an address of any kind, which may hold a password, and no file. */
export function isAddress(ledger: string): boolean {
  return /^\s*[a-z][a-z0-9+.-]+:\/\//i.test(ledger)
}

/** Parameters that keep a secret. */
const secretParameter = /password|passwd|pwd|secret|token|api[-_]?key|^key$/i

/**
 * The ledger as it may be shown: without its password, whatever kind of address it is. A command that is made of it finds
 * the password where libpq looks too, in `PGPASSWORD` or in `~/.pgpass`.
 */
export function shownLedger(ledger: string): string {
  if (!isAddress(ledger)) return ledger
  const address = ledger.trim()
  const url = URL.parse(address)
  // What cannot be read may have its password anywhere.
  if (url === null) return `${address.slice(0, address.indexOf('://'))}://…`
  url.password = ''
  for (const name of [...url.searchParams.keys()])
    if (secretParameter.test(name)) url.searchParams.delete(name)
  return url.href
}

/**
 * Returns where a ledger is, for code of the configuration: the absolute path of its file, or its connection string
 * without secrets.
 */
export function ledgerSource(ledger: string, workingDirectory: string): string {
  return isAddress(ledger) ? shownLedger(ledger) : resolve(workingDirectory, ledger)
}

/**
 * Reads a connection string: `schema` and `pooled` among its parameters are ours, the rest is for the driver. Throws a
 * `ConfigurationError` for a value that means nothing.
 */
export function postgresPlace(given: string): PostgresPlace {
  const connectionString = given.trim()
  const url = URL.parse(connectionString)
  if (url === null) return { connectionString }
  const { searchParams } = url
  const [schema, pooled] = [searchParams.get('schema'), searchParams.get('pooled')]
  if (schema === null && pooled === null) return { connectionString }
  if (pooled !== null && pooled !== 'true' && pooled !== 'false') {
    throw new ConfigurationError(
      `The parameter pooled of the connection string is ${pooled}, which is neither true nor false. Write ?pooled=true for a pooler in transaction mode, such as PgBouncer.`,
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

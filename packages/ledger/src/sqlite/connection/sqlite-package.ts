import { createRequire } from 'node:module'
import { ConfigurationError } from '@tallystick/core'
import type BetterSqlite3 from 'better-sqlite3'
import { nativeFailure } from '../schema/native-failure.ts'

let Constructor: typeof BetterSqlite3 | undefined

/**
 * Opens a SQLite file. The first call loads better-sqlite3: users of Postgres, or of the ledger in memory, need no native
 * code. Throws a `ConfigurationError`, with the line that installs the package, where it is missing.
 */
export function openSqlite(path: string, options?: BetterSqlite3.Options): BetterSqlite3.Database {
  Constructor ??= load()
  return new Constructor(path, options)
}

function load(): typeof BetterSqlite3 {
  try {
    return createRequire(import.meta.url)('better-sqlite3') as typeof BetterSqlite3
  } catch (error) {
    if (!isMissing(error)) throw nativeFailure(error) ?? error
    throw new ConfigurationError(
      'A SQLite file needs the package better-sqlite3, which is not installed. Add it: npm install better-sqlite3.',
      { cause: error },
    )
  }
}

/** Whether the package itself is missing, and not a part of it. */
function isMissing(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ERR_MODULE_NOT_FOUND') return true
  return code === 'MODULE_NOT_FOUND' && String(error).includes(`'better-sqlite3'`)
}

import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Database } from 'better-sqlite3'
import { ConfigurationError, LedgerUnavailableError } from '@tallystick/core'
import { ledgerFailure, sqliteCode } from './sqlite-failure.ts'
import { openSqlite } from '../connection/sqlite-package.ts'

/** The `application_id` of a ledger file: the letters TLSK. */
export const applicationId: number = 0x544c534b

/** The smallest page that SQLite knows. */
const pageBytesMin = 512

/** What is at a path: nothing yet, a file without content, or a ledger of some schema version. */
export type Found =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'blank' }
  | { readonly kind: 'ledger'; readonly version: number }

/**
 * Reads the file at the path without changing it, and refuses what can be no ledger: a folder, a folder that is
 * not there, a file that is no database, a database of something else. Throws `LedgerUnavailableError`.
 */
export function inspectFile(path: string): Found {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return requireFolder(path)
  if (!stats.isFile()) {
    throw new LedgerUnavailableError(
      `${path} is ${stats.isDirectory() ? 'a folder' : 'no regular file'}, and a ledger is one file. Name the file.`,
    )
  }
  if (stats.size === 0) return { kind: 'blank' }
  // SQLite takes a file shorter than a page for one without content, and would write over it.
  if (stats.size < pageBytesMin) throw foreign(path, 'no SQLite database')
  return identify(path)
}

/** Refuses what is no path, and paths that SQLite takes for something else than a file. Throws `ConfigurationError`. */
export function requireFilePath(path: unknown, subject: string): asserts path is string {
  const what = otherThanPath(path)
  if (what !== undefined) throw new ConfigurationError(`${subject} needs the path of a file, ${what}`)
}

function otherThanPath(path: unknown): string | undefined {
  if (path instanceof URL) return 'and was given a URL. Pass fileURLToPath(url).'
  if (typeof path !== 'string') return "and was given none. Name a file, as in 'runs.db'."
  const text = path.trim()
  if (/^postgres(ql)?:/i.test(text)) {
    return 'and was given the address of a Postgres database. Use postgresLedger({ connectionString }) of @tallystick/ledger/postgres.'
  }
  if (/^file:/i.test(text)) {
    return "and was given a file: URL, which would make a file of that name. Pass the path alone, as in 'runs.db'."
  }
  if (text !== '' && text !== ':memory:') return undefined
  return (
    'since a ledger that ends with its process cannot be resumed. ' +
    'Name a file, or use memoryLedger() where that is what you want.'
  )
}

function requireFolder(path: string): Found {
  const folder = statSync(dirname(path), { throwIfNoEntry: false })
  if (folder?.isDirectory()) return { kind: 'nothing' }
  throw new LedgerUnavailableError(
    `The folder of the ledger ${path} is not there, so the file cannot be made. Make the folder first.`,
  )
}

/**
 * Reads what the file says about itself through SQLite, since opening it in any other way would drop the locks of
 * this process. A connection that may write takes away the files it puts beside a database in WAL mode; where such
 * files exist already, only one that cannot write is sure to leave them as they are.
 */
function identify(path: string): Found {
  let database: Database | undefined
  try {
    database = openSqlite(path, { fileMustExist: true, readonly: existsSync(`${path}-wal`) })
    const { id, version, count } = database.prepare<[], FileHeader>(header).get() as FileHeader
    if (id === applicationId) return { kind: 'ledger', version }
    if (id === 0 && version === 0 && count === 0) return { kind: 'blank' }
  } catch (error) {
    if (sqliteCode(error) === 'SQLITE_NOTADB') throw foreign(path, 'no SQLite database', error)
    throw ledgerFailure(error, path)
  } finally {
    database?.close()
  }
  throw foreign(path, 'a database of another application')
}

interface FileHeader {
  readonly id: number
  readonly version: number
  readonly count: number
}

/** All of it in one statement, and so at one moment: another process may be making the ledger. */
const header = `select (select application_id from pragma_application_id) as id,
  (select user_version from pragma_user_version) as version, (select count(*) from sqlite_schema) as count`

function foreign(path: string, what: string, cause?: unknown): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `${path} is ${what}, and no Tallystick ledger. It was left as it is. Name another file; one that does not exist is created.`,
    { cause },
  )
}

import { dirname, resolve } from 'node:path'
import type { Database } from 'better-sqlite3'
import { LedgerUnavailableError } from '@tallystick/core'
import { requireOptions } from '@tallystick/core/kit'
import { inspectFile, requireFilePath, type Found } from '../schema/inspect-file.ts'
import { maxWalBytesUnlessGiven } from './wal-checkpointer.ts'
import { schemaVersion } from '../schema/migrate.ts'
import { requireNativeInterface } from './native-interface.ts'
import { networkFileSystem } from './network-file-system.ts'
import { sqliteLedgerOptions } from './option-check.ts'
import { ledgerFailure } from '../schema/sqlite-failure.ts'
import type { SqliteLedgerOptions } from './sqlite-ledger-options.ts'
import { openSqlite } from './sqlite-package.ts'

/** A connection to a ledger file, whose schema may still have to be brought up to date. */
export interface OpenedDatabase {
  readonly database: Database
  /** Absolute. */
  readonly path: string
  readonly isCurrent: boolean
}

/**
 * Opens the file, or makes it. Whatever is refused is refused before anything is written or made. Throws
 * `LedgerUnavailableError`, `LedgerDamagedError` or `ConfigurationError`.
 */
export function openDatabase(name: string, options: SqliteLedgerOptions): OpenedDatabase {
  requireFilePath(name, 'sqliteLedger')
  requireOptions('sqliteLedger', sqliteLedgerOptions, options)
  requireNativeInterface('sqliteLedger')
  const path = resolve(name.trim())
  const { readOnly = false, busyTimeoutMs = 5000 } = options
  let database: Database | undefined
  try {
    const found = inspectFile(path)
    requireUsable(path, found, readOnly)
    if (!readOnly) requireLocal(path)
    const fileMustExist = found.kind !== 'nothing'
    database = openSqlite(path, { readonly: readOnly, fileMustExist, timeout: busyTimeoutMs })
    database.pragma('trusted_schema = off')
    // What is taken away is written over, and pages leave no copies of it where rows are moved.
    database.pragma('secure_delete = on')
    if (!readOnly) prepareForWriting(database, path, options.maxWalBytes ?? maxWalBytesUnlessGiven)
    return { database, path, isCurrent: found.kind === 'ledger' && found.version === schemaVersion }
  } catch (error) {
    database?.close()
    throw ledgerFailure(error, path)
  }
}

function requireUsable(path: string, found: Found, readOnly: boolean): void {
  if (found.kind === 'ledger' && found.version > schemaVersion) {
    throw new LedgerUnavailableError(
      `The ledger ${path} has schema version ${found.version}, and this library knows versions up to ${schemaVersion}. ` +
        'Writing to it could lose what the newer version keeps. Update @tallystick/ledger.',
    )
  }
  if (!readOnly) return
  if (found.kind !== 'ledger') {
    const [what, hint] =
      found.kind === 'nothing'
        ? ['is not there', '']
        : ['is empty', ', and copy an open ledger together with its -wal file']
    throw new LedgerUnavailableError(
      `The ledger ${path} ${what}, and readOnly creates none. Look at the path${hint}.`,
      { reason: 'absent' },
    )
  }
  if (found.version < schemaVersion) {
    throw new LedgerUnavailableError(
      `The ledger ${path} has the older schema version ${found.version}, and readOnly upgrades nothing. ` +
        'Open it once without readOnly.',
      { reason: 'older_schema' },
    )
  }
}

/** The write-ahead log lives in memory that processes share, which machines do not. */
function requireLocal(path: string): void {
  const network = networkFileSystem(dirname(path))
  if (network === undefined) return
  throw new LedgerUnavailableError(
    `The ledger ${path} lies on a network file system (${network}), where SQLite's log would be corrupted as soon as ` +
      'two machines use it. Keep the file on a local disk; opening it with readOnly is allowed.',
  )
}

function prepareForWriting(database: Database, path: string, maxWalBytes: number): void {
  const mode = database.pragma('journal_mode = wal', { simple: true })
  if (mode !== 'wal') {
    throw new LedgerUnavailableError(
      `The ledger ${path} cannot use a write-ahead log (its journal mode stays ${String(mode)}), without which a crash ` +
        'could lose what was acknowledged. Keep the file on a local disk, not on a network file system.',
    )
  }
  database.pragma('synchronous = full')
  // Where it exists (macOS), only this makes the drive itself write.
  database.pragma('fullfsync = on')
  database.pragma('checkpoint_fullfsync = on')
  // A log that is begun anew is cut back to this size; a long burst would leave it large for ever.
  database.pragma(`journal_size_limit = ${maxWalBytes}`)
}

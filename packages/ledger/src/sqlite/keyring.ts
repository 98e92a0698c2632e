import { requireNativeInterface } from '@tallystick/core/internal'
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import type { Database } from 'better-sqlite3'
import { ConfigurationError } from '@tallystick/core'
import type { Keyring } from '../format/keyring.ts'
import { toLedgerError, openSqlite, requireFilePath, readSqliteCode } from './open-database.ts'

const keyBytes = 32

/** A keyring in a file, and the way to release it, by `close` or by `using`. */
export interface SqliteKeyring extends Keyring {
  close(): void
  [Symbol.dispose](): void
}

/**
 * Keys of subjects in a SQLite file of their own, created if missing, for several processes of one machine. Keep it
 * apart from the ledger and its backups: with both, everything can be read. Only its owner may read the file. A
 * destroyed key is overwritten in the file; destroying copies of the file is up to you.
 *
 * Throws `ConfigurationError` if the file holds something else, and `LedgerUnavailableError` if it cannot be opened.
 */
export function sqliteKeyring(path: string): SqliteKeyring {
  requireFilePath(path, 'sqliteKeyring')
  requireNativeInterface('sqliteKeyring', process)
  const database = openKeys(path)
  const make = database.prepare(
    'insert into subject_key (id, subject, bytes) values (?, ?, ?) on conflict do nothing',
  )
  const ofSubject = database.prepare<[string], { id: string; bytes: Buffer }>(
    'select id, bytes from subject_key where subject = ?',
  )
  const byId = database.prepare<[string], Buffer>('select bytes from subject_key where id = ?').pluck()
  const destroy = database
    .prepare<[string], string>('delete from subject_key where subject = ? returning id')
    .pluck()
  const speaking = async <T>(work: () => T): Promise<T> => {
    try {
      return work()
    } catch (error) {
      throw toLedgerError(error, path)
    }
  }
  const close = (): void => void database.close()
  return {
    keyOf(subject) {
      requireSubject(subject)
      return speaking(() => {
        // Of several processes that make one at once, the first does.
        if (ofSubject.get(subject) === undefined) make.run(randomUUID(), subject, randomBytes(keyBytes))
        const key = ofSubject.get(subject)
        if (key === undefined) throw new Error('a key that was made is gone')
        return key
      })
    },
    key: (id) => speaking(() => byId.get(id)),
    destroy: (subject) => speaking(() => destroy.all(subject)),
    close,
    [Symbol.dispose]: close,
  }
}

function openKeys(path: string): Database {
  let database: Database | undefined
  try {
    makeForOwner(path)
    database = openSqlite(path)
    requireOnlyKeys(database, path)
    // No write-ahead log, in which a key would live on; each commit is synced, so that an erased key is gone.
    database.pragma('journal_mode = delete')
    database.pragma('synchronous = full')
    database.pragma('secure_delete = on')
    database.exec(
      `create table if not exists subject_key (
        id text primary key not null, subject text unique not null, bytes blob not null
      ) strict`,
    )
    return database
  } catch (error) {
    database?.close()
    throw readSqliteCode(error) === 'SQLITE_NOTADB'
      ? createForeignFileError(path, 'not a SQLite database', error)
      : toLedgerError(error, path)
  }
}

/** A ledger file must hold no keys: its copies would carry them, and the journal that keys need is not that of a ledger. */
function requireOnlyKeys(database: Database, path: string): void {
  const other = database.prepare(`select 1 from sqlite_schema where tbl_name <> 'subject_key' limit 1`)
  if (other.get() !== undefined)
    throw createForeignFileError(path, 'a database of something else, such as a ledger')
}

function createForeignFileError(path: string, what: string, cause?: unknown): ConfigurationError {
  return new ConfigurationError(
    `${path} is ${what}, not a file of keys. It was left as it is. Name another file; one that does not exist is created.`,
    { cause },
  )
}

/** SQLite fills a file that is empty, and leaves its permissions as they are. */
function makeForOwner(path: string): void {
  if (!existsSync(path)) writeFileSync(path, '', { flag: 'a', mode: 0o600 })
}

function requireSubject(subject: string): void {
  if (subject !== '' && subject.isWellFormed() && !subject.includes('\0')) return
  throw new ConfigurationError(
    'A subject needs a name: a text that is not empty, such as the id of a customer. Nothing was written.',
  )
}

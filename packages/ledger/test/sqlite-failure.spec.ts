import { LedgerConflictError, LedgerDamagedError, LedgerUnavailableError } from '@tallystick/core'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { toLedgerError, readSqliteCode } from '../src/sqlite/open-database.ts'

const path = '/runs.db'
const failed = (code: string): Error => new BetterSqlite3.SqliteError('it failed', code)

describe('a failure of SQLite', () => {
  it.each([
    'SQLITE_CORRUPT',
    'SQLITE_CORRUPT_INDEX',
    'SQLITE_NOTADB',
    'SQLITE_IOERR_SHORT_READ',
    'SQLITE_IOERR_CORRUPTFS',
    'SQLITE_IOERR_DATA',
    'SQLITE_FORMAT',
    'SQLITE_ERROR',
    'SQLITE_CONSTRAINT_TRIGGER',
  ])('is damage where its code is %s', (code) => {
    const cause = failed(code)
    const error = toLedgerError(cause, path)
    expect(error).toBeInstanceOf(LedgerDamagedError)
    expect(error.message).toBe(
      'The ledger /runs.db is damaged: it failed. What it says cannot be trusted. Run verify on it, and restore a copy.',
    )
    expect(error.cause).toBe(cause)
  })

  it.each([
    ['SQLITE_BUSY', 'Another process has held it for too long. Stop that process, or raise busyTimeoutMs.'],
    ['SQLITE_BUSY_SNAPSHOT', 'Another process has held it for too long.'],
    ['SQLITE_FULL', 'The disk is full. Make room, then resume the run.'],
    ['SQLITE_READONLY_DIRECTORY', 'It was left in the middle of work and its folder cannot be written. Copy'],
    ['SQLITE_READONLY', 'It cannot be written. Open it with readOnly, or allow writing.'],
    ['SQLITE_READONLY_DBMOVED', 'It cannot be written. Open it with readOnly, or allow writing.'],
    ['SQLITE_CANTOPEN', 'It cannot be opened. Look at its path and permissions.'],
    ['SQLITE_PERM', 'It cannot be opened. Look at its path and permissions.'],
    ['SQLITE_AUTH', 'It cannot be opened. Look at its path and permissions.'],
    ['SQLITE_IOERR_WRITE', 'The disk reports an error. Look at the disk, then resume the run.'],
    ['SQLITE_ERROR_SNAPSHOT', 'Nothing was written.'],
    ['SQLITE_NOMEM', 'Nothing was written.'],
  ])('is a ledger that is not available where its code is %s, and says what to do', (code, remedy) => {
    const cause = failed(code)
    const error = toLedgerError(cause, path)
    expect(error).toBeInstanceOf(LedgerUnavailableError)
    expect(error.message).toContain(`The ledger /runs.db is not available: it failed (${code}). ${remedy}`)
    expect(error.cause).toBe(cause)
  })

  it.each([
    'selec 1',
    'select (',
    'select \\',
    `select 1 in (${Array(40_000).fill('?').join()})`,
    `select ${Array(2_000).fill('1').join('+')}`,
  ])('is no damage where the statement is at fault: %.30s', (statement) => {
    const database = new BetterSqlite3(':memory:')
    onTestFinished(() => void database.close())
    const prepare = (): unknown => {
      try {
        return database.prepare(statement)
      } catch (error) {
        return toLedgerError(error, path)
      }
    }
    const error = prepare()
    expect(error).toBeInstanceOf(LedgerUnavailableError)
    expect(String(error)).toMatch(
      /\(SQLITE_ERROR\)\. A statement of @tallystick\/ledger is at fault, and not the file/,
    )
  })

  it('has a code only where SQLite has thrown it', () => {
    expect(readSqliteCode(failed('SQLITE_BUSY'))).toBe('SQLITE_BUSY')
    const named = (name: string, code?: unknown): Error =>
      Object.assign(new Error('it failed'), { name, ...(code !== undefined && { code }) })
    expect(readSqliteCode(named('Error', 'SQLITE_BUSY'))).toBeUndefined()
    expect(readSqliteCode(named('SqliteError'))).toBeUndefined()
    expect(readSqliteCode(named('SqliteError', 5))).toBeUndefined()
    expect(readSqliteCode({ name: 'SqliteError', code: 'SQLITE_BUSY' })).toBeUndefined()
    expect(readSqliteCode(undefined)).toBeUndefined()
  })
})

describe('anything else that is thrown', () => {
  it('passes where it is an error of Tallystick', () => {
    const error = new LedgerConflictError('seq', 'a reason')
    expect(toLedgerError(error, path)).toBe(error)
  })

  it.each<readonly [unknown, string]>([
    [new Error('no entry'), 'no entry'],
    ['a text', 'a text'],
    [undefined, 'undefined'],
  ])('makes the ledger unavailable, and is named: %s', (thrown, reason) => {
    const error = toLedgerError(thrown, path)
    expect(error).toBeInstanceOf(LedgerUnavailableError)
    expect(error.message).toBe(`The ledger /runs.db is not available: ${reason}. Nothing was written.`)
  })
})

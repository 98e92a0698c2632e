import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { ConfigurationError } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { filesOpen, listsFilesOpen } from './support/files-open.ts'
import { filesBeside, withRaw } from './support/raw-database.ts'
import { refusalOf } from './support/refusal.ts'
import { temporaryFile, temporaryFolder } from './support/temporary-folder.ts'

describe('opening what is not a ledger', () => {
  /** What opening says, for writing and for reading; throws where a byte beside or within the file has changed. */
  function refusals(path: string, files?: readonly string[]): readonly string[] {
    const state = (): unknown => [filesBeside(path, files), readdirSync(dirname(path))]
    const before = state()
    return [false, true].map((readOnly) => {
      const refusal = refusalOf(() => sqliteLedger(path, { readOnly }))
      if (!isDeepStrictEqual(state(), before)) throw new Error('Opening has changed what was there.')
      if (!refusal.message.includes(path)) throw new Error('The refusal does not name the file.')
      return String(refusal)
    })
  }
  const twice = (said: RegExp): readonly unknown[] => {
    const refusal: unknown = expect.stringMatching(new RegExp(`^LedgerUnavailableError: .*${said.source}`))
    return [refusal, refusal]
  }

  it('refuses a file that is not a database', () => {
    const path = temporaryFile('notes.txt')
    writeFileSync(path, 'Milk, eggs, bread. '.repeat(1000))
    expect(refusals(path)).toEqual(twice(/not a SQLite database/))
  })

  it('refuses a file that is shorter than a header', () => {
    const path = temporaryFile()
    writeFileSync(path, 'x')
    expect(refusals(path)).toEqual(twice(/not a SQLite database/))
  })

  it('takes the smallest database there is for one, and nothing smaller', async () => {
    const path = temporaryFile()
    withRaw(path, (database) => {
      database.pragma('page_size = 512')
      database.exec('create table t (a); drop table t; vacuum')
    })
    const smallest = readFileSync(path)
    expect(smallest.length).toBe(512)
    writeFileSync(path, smallest.subarray(0, 511))
    expect(refusals(path)).toEqual(twice(/is not a SQLite database, and not a Tallystick ledger/))
    writeFileSync(path, smallest)
    await sqliteLedger(path).close()
  })

  // Windows has no such file.
  it.skipIf(process.platform === 'win32')('refuses what is neither a file nor a folder', () => {
    expect(String(refusalOf(() => sqliteLedger('/dev/null')))).toBe(
      'LedgerUnavailableError: /dev/null is not a regular file, and a ledger is one file. Name the file.',
    )
  })

  it.each(['delete', 'wal'])('refuses a database of something else in journal mode %s', (mode) => {
    const path = temporaryFile()
    withRaw(path, (database) => {
      database.pragma(`journal_mode = ${mode}`)
      database.exec('create table customer (name text); insert into customer values (1)')
    })
    expect(refusals(path)).toEqual(twice(/another application/))
  })

  it('refuses a database of something else that has a version but no tables', () => {
    const path = temporaryFile()
    withRaw(path, (database) => database.pragma('user_version = 3'))
    expect(refusals(path)).toEqual(twice(/another application/))
  })

  it('refuses a database of something else that its process left in the middle of work', () => {
    const [path, left] = [temporaryFile(), temporaryFile()]
    const database = new BetterSqlite3(path)
    database.pragma('journal_mode = wal')
    database.exec('create table customer (name text); insert into customer values (1)')
    for (const end of ['', '-wal', '-shm']) copyFileSync(path + end, left + end)
    database.close()
    // Each reader rebuilds the index of the log; it holds nothing of its own.
    expect(refusals(left, ['runs.db', 'runs.db-wal'])).toEqual(twice(/another application/))
  })

  it('refuses a ledger of a newer version', async () => {
    const path = temporaryFile()
    await sqliteLedger(path).close()
    withRaw(path, (database) => database.pragma('user_version = 99'))
    expect(refusals(path)).toEqual(twice(/version 99.*Update/))
  })

  it('refuses a folder', () => {
    const folder = join(temporaryFolder(), 'runs.db')
    mkdirSync(folder)
    expect(refusals(folder, [])).toEqual(twice(/is a folder, and a ledger is one file/))
    expect(readdirSync(folder)).toEqual([])
  })

  it('refuses a file in a folder that is not there, and one below a file', () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'file'), '')
    for (const missing of ['missing', 'file']) {
      const path = join(folder, missing, 'runs.db')
      expect(String(refusalOf(() => sqliteLedger(path)))).toBe(
        `LedgerUnavailableError: The folder of the ledger ${path} does not exist, so the file cannot be created. Create the folder first.`,
      )
    }
    expect(readdirSync(folder)).toEqual(['file'])
  })

  it.each(['', '  ', ':memory:', ' :memory: '])('refuses %j, which names no file', (path) => {
    expect(refusalOf(() => sqliteLedger(path))).toBeInstanceOf(ConfigurationError)
  })

  // Only Linux lists them.
  it.skipIf(!listsFilesOpen)('keeps no file open', async () => {
    const path = temporaryFile()
    let made = 0
    const refused = async (make: (name: string) => unknown): Promise<void> => {
      const name = `${path}-${++made}`
      await make(name)
      refusalOf(() => sqliteLedger(name))
      refusalOf(() => sqliteLedger(name, { readOnly: true }))
    }
    await refused((name) => writeFileSync(name, 'x'.repeat(5_000)))
    await refused((name) => withRaw(name, (database) => database.exec('create table customer (name text)')))
    await refused(async (name) => {
      await sqliteLedger(name).close()
      withRaw(name, (database) => database.pragma('user_version = 99'))
    })
    expect(filesOpen(path)).toBe(0)
    const ledger = sqliteLedger(path)
    await Array.fromAsync(ledger.runs())
    expect(filesOpen(path)).toBeGreaterThan(0)
    await ledger.close()
    expect(filesOpen(path)).toBe(0)
  })
})

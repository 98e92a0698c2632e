import { copyFileSync, renameSync, rmSync } from 'node:fs'
import { LedgerUnavailableError } from '@tallystick/core'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { OpenFiles } from '../src/sqlite/log.ts'
import { temporaryFile } from './support/temporary-folder.ts'

/** A database that writes ahead, with or without a log so far, and its files as they are now. */
function opened({ hasLog }: { readonly hasLog: boolean }) {
  const path = temporaryFile()
  const database = new BetterSqlite3(path)
  onTestFinished(() => void database.close())
  database.exec('create table t (a integer) strict')
  const write = (): unknown => database.exec('insert into t values (1)')
  if (hasLog) {
    database.pragma('journal_mode = wal')
    write()
  }
  return { path, log: `${path}-wal`, database, write, files: new OpenFiles(database, path) }
}

const gone = (path: string): string =>
  `The file ${path} was removed, moved or replaced while the ledger was open. What is written now would be lost`

const changes: readonly (readonly [string, 'path' | 'log', (path: string) => void])[] = [
  ['moved', 'path', (path) => renameSync(path, `${path}-moved`)],
  ['removed', 'path', (path) => rmSync(path)],
  ['moved', 'log', (path) => renameSync(path, `${path}-moved`)],
  [
    'replaced by a copy',
    'path',
    (path) => {
      renameSync(path, `${path}-moved`)
      copyFileSync(`${path}-moved`, path)
    },
  ],
  [
    'replaced by a copy',
    'log',
    (path) => {
      renameSync(path, `${path}-moved`)
      copyFileSync(`${path}-moved`, path)
    },
  ],
]

describe('the files of an open ledger', () => {
  it('may get a log after they were opened, which is theirs from then on', () => {
    const { log, database, write, files } = opened({ hasLog: false })
    files.requireSame()
    database.pragma('journal_mode = wal')
    write()
    files.requireSame()
    rmSync(log)
    expect(() => files.requireSame()).toThrow(gone(log))
  })

  it('have their own log until they are moved, and another begins in its place', () => {
    const { path, log, database, write, files } = opened({ hasLog: false })
    expect(files.hasOwnLog).toBe(true)
    database.pragma('journal_mode = wal')
    write()
    expect(files.hasOwnLog).toBe(true)
    renameSync(path, `${path}-moved`)
    expect(files.hasOwnLog).toBe(false)
    renameSync(`${path}-moved`, path)
    files.requireSame()
    renameSync(path, `${path}-moved`)
    expect(files.hasOwnLog).toBe(true)
    renameSync(log, `${path}-moved-wal`)
    copyFileSync(`${path}-moved-wal`, log)
    expect(files.hasOwnLog).toBe(false)
  })

  it.each(changes)('are missed where one was %s: %s', (_how, which, change) => {
    const bed = opened({ hasLog: true })
    change(bed[which])
    expect(() => bed.files.requireSame()).toThrow(LedgerUnavailableError)
    expect(() => bed.files.requireSame()).toThrow(gone(bed[which]))
  })

  it('hold what was acknowledged where the log is gone', () => {
    const { path, log, files } = opened({ hasLog: true })
    renameSync(log, `${log}-moved`)
    expect(() => files.requireSame()).toThrow(gone(log))
    copyFileSync(path, `${path}-copy`)
    const copy = new BetterSqlite3(`${path}-copy`)
    expect(copy.prepare('select a from t').pluck().all()).toEqual([1])
    copy.close()
  })
})

import { copyFileSync, rmSync, writeFileSync } from 'node:fs'
import { LedgerUnavailableError } from '@tallystick/core'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WriterFile } from '../src/sqlite/connection/writer-file.ts'
import { filesBeside } from './support/raw-database.ts'
import { temporaryFile } from './support/temporary-folder.ts'

/** Does something before each commit of a statement until the test ends. */
function beforeCommits(work: (database: Database) => void): void {
  const prototype = BetterSqlite3.prototype as unknown as Pick<Database, 'exec'>
  const { exec } = prototype
  prototype.exec = function (this: Database, source) {
    if (source === 'commit') work(this)
    return exec.call(this, source)
  }
  onTestFinished(() => void (prototype.exec = exec))
}

function fileOfLedger(): WriterFile & { readonly other: WriterFile } {
  const path = temporaryFile()
  writeFileSync(path, '')
  const [file, other] = [new WriterFile(path), new WriterFile(path)]
  onTestFinished(() => [file, other].forEach((each) => each.close()))
  return Object.assign(file, { other })
}

describe('the file beside a ledger that says who writes it', () => {
  it('is signed again where another process took the journal of the signature away', () => {
    const file = fileOfLedger()
    let commits = 0
    beforeCommits(({ name }) => {
      if (++commits <= 2) rmSync(`${name}-journal`)
    })
    expect(file.lock()).toBe(true)
    expect(commits).toBe(3)
    expect(file.writer()).toMatchObject({ pid: process.pid })
  })

  it('reports a journal that is taken away each of ten times', () => {
    const file = fileOfLedger()
    let commits = 0
    beforeCommits(({ name }) => {
      commits++
      rmSync(`${name}-journal`)
    })
    expect(() => file.lock()).toThrow(LedgerUnavailableError)
    expect(commits).toBe(10)
    expect(() => file.lock()).toThrow(/SQLITE_IOERR_DELETE_NOENT/)
  })

  it('is left as it is by one who only reads the name, also where its process died while it signed', () => {
    const file = fileOfLedger()
    const left = temporaryFile()
    writeFileSync(left, '')
    beforeCommits(({ name }) => {
      for (const end of ['', '-journal']) copyFileSync(name + end, `${left}-writer${end}`)
    })
    expect(file.lock()).toBe(true)
    const before = filesBeside(left)
    expect(Object.keys(before).toSorted()).toEqual(['runs.db', 'runs.db-writer', 'runs.db-writer-journal'])
    expect(new WriterFile(left).writer()).toBeUndefined()
    expect(filesBeside(left)).toEqual(before)
  })

  it('is made anew where another process removes it while it is signed', () => {
    const file = fileOfLedger()
    let commits = 0
    beforeCommits(({ name }) => {
      if (++commits === 1) rmSync(name)
    })
    expect(file.lock()).toBe(true)
    expect(file.writer()).toMatchObject({ pid: process.pid })
    expect(commits).toBe(2)
    // And others see the lock.
    expect(file.other.isLocked()).toBe(true)
  })
})

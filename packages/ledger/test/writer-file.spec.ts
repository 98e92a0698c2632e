import fs, { chownSync, copyFileSync, existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { LedgerUnavailableError } from '@tallystick/core'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { WriterFile } from '../src/sqlite/connection/writer-file.ts'
import { filesOpen, listsFilesOpen } from './support/files-open.ts'
import { filesBeside, withRaw } from './support/raw-database.ts'
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

/** Does something after each commit of a statement until the test ends. */
function afterCommits(work: (database: Database) => void): void {
  const prototype = BetterSqlite3.prototype as unknown as Pick<Database, 'exec'>
  const { exec } = prototype
  prototype.exec = function (this: Database, source) {
    const result = exec.call(this, source)
    if (source === 'commit') work(this)
    return result
  }
  onTestFinished(() => void (prototype.exec = exec))
}

interface Asked {
  readonly ledger: string
  readonly path: string
  readonly other: WriterFile
}

function fileOfLedger(): WriterFile & Asked {
  const ledger = temporaryFile()
  writeFileSync(ledger, '')
  const [file, other] = [new WriterFile(ledger), new WriterFile(ledger)]
  onTestFinished(() => [file, other].forEach((each) => each.close()))
  return Object.assign(file, { other, ledger, path: `${ledger}-writer` })
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

  it('is signed once for a process that takes the role again, and anew after another one has had it', () => {
    const file = fileOfLedger()
    const commits: string[] = []
    beforeCommits(({ name }) => void commits.push(name))
    expect(file.lock()).toBe(true)
    const first = file.writer()
    file.unlock()
    expect(file.lock()).toBe(true)
    expect(file.other.lock()).toBe(false)
    expect([commits.length, file.writer()]).toEqual([1, first])
    file.unlock()
    withRaw(file.path, (database) => database.exec('update writer set pid = pid + 1'))
    expect(file.lock()).toBe(true)
    expect([commits.length, file.writer()?.pid]).toEqual([2, process.pid])
    file.unlock()
    file.close()
    rmSync(file.path)
    expect(file.lock()).toBe(true)
    expect([commits.length, file.writer()?.pid]).toEqual([3, process.pid])
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

  it('is signed without a sync, with some patience for those who read it, and then without any', () => {
    const file = fileOfLedger()
    const settings = (database: Database): unknown =>
      ['synchronous', 'busy_timeout'].map((name) => database.pragma(name, { simple: true }))
    const seen: unknown[] = []
    let signing: Database | undefined
    beforeCommits((database) => {
      signing = database
      seen.push(settings(database))
    })
    expect(file.lock()).toBe(true)
    expect([...seen, signing && settings(signing)]).toEqual([
      [0, 100],
      [0, 0],
    ])
  })

  it.each(['pid = 1', 'since = 1'])(
    'is signed again where another has signed it in between: %s',
    (change) => {
      const file = fileOfLedger()
      let commits = 0
      afterCommits(({ name }) => {
        if (++commits === 1) withRaw(name, (other) => void other.exec(`update writer set ${change}`))
      })
      expect(file.lock()).toBe(true)
      expect(commits).toBe(2)
      expect(file.writer()).toMatchObject({ pid: process.pid, since: expect.any(Number) as number })
      expect(file.writer()?.since).not.toBe(1)
    },
  )

  it('names one process, however often it was signed', () => {
    const file = fileOfLedger()
    for (let times = 0; times < 3; times++) {
      expect(file.lock()).toBe(true)
      file.unlock()
    }
    expect(
      withRaw(file.path, (database) => database.prepare('select count(*) from writer').pluck().get()),
    ).toBe(1)
  })

  it('is locked by one at a time, and asking changes nothing of that', () => {
    const file = fileOfLedger()
    expect([file.isLocked(), file.writer()]).toEqual([undefined, undefined])
    expect(file.lock()).toBe(true)
    expect([file.other.isLocked(), file.other.lock()]).toEqual([true, false])
    file.unlock()
    expect([file.other.isLocked(), file.isLocked()]).toEqual([false, false])
    expect(file.other.lock()).toBe(true)
    expect([file.isLocked(), file.lock()]).toEqual([true, false])
    file.other.close()
    expect(file.lock()).toBe(true)
  })

  it('is removed unless it is locked, by one who may', () => {
    const file = fileOfLedger()
    expect(file.lock()).toBe(true)
    file.other.remove()
    expect(existsSync(file.path)).toBe(true)
    file.unlock()
    file.other.remove()
    expect(existsSync(file.path)).toBe(false)
    file.other.remove()
    expect(file.lock()).toBe(true)
    expect(existsSync(file.path)).toBe(true)
  })

  it('is taken as another process makes it at the same moment, and what keeps it from being made is reported', () => {
    const [file, write] = [fileOfLedger(), fs.writeFileSync]
    const making = vi.spyOn(fs, 'writeFileSync')
    syncBuiltinESMExports()
    onTestFinished(() => {
      making.mockRestore()
      syncBuiltinESMExports()
    })
    making.mockImplementationOnce(() => {
      throw Object.assign(new Error('permission denied'), { code: 'EACCES' })
    })
    expect(() => file.lock()).toThrow(/is not available: permission denied\. Nothing was written\.$/)
    making.mockImplementationOnce((path, ...rest) => {
      write(path, '')
      write(path, ...rest)
    })
    expect(file.lock()).toBe(true)
  })

  // Only Linux lists them, and only the administrator may give a file away.
  it.skipIf(!listsFilesOpen || process.getuid?.() !== 0)(
    'belongs to the owner of the ledger, and is kept open by none who has closed it',
    () => {
      const file = fileOfLedger()
      chownSync(file.ledger, 1234, 4321)
      expect(file.lock()).toBe(true)
      expect(statSync(file.path)).toMatchObject({ uid: 1234, gid: 4321 })
      file.close()
      const before = filesOpen(file.path)
      for (const ask of [() => file.writer(), () => file.isLocked(), () => file.remove(), () => file.close()])
        ask()
      expect([before, filesOpen(file.path)]).toEqual([0, 0])
      writeFileSync(file.path, 'x'.repeat(4_000))
      expect(() => file.lock()).toThrow(LedgerUnavailableError)
      expect(() => file.writer()).toThrow(LedgerUnavailableError)
      file.remove()
      expect(filesOpen(file.path)).toBe(0)
    },
  )
})

import fs, {
  copyFileSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { LedgerUnavailableError } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { OpenFiles } from '../src/sqlite/log.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const run = sampleRunId(1)

/** A time before all files: by it the times of a folder are those of now, and tell nothing. */
const before: () => number = () => 0

/** A time by which the times of a folder are old. */
const after: () => number = () => Number.MAX_SAFE_INTEGER

/** A database that writes ahead, with or without a log so far, and its files as they are now. */
function opened({ hasLog, now = before }: { readonly hasLog: boolean; readonly now?: () => number }) {
  const path = temporaryFile()
  const database = new BetterSqlite3(path)
  onTestFinished(() => void database.close())
  database.exec('create table t (a integer) strict')
  const write = (): unknown => database.exec('insert into t values (1)')
  if (hasLog) {
    database.pragma('journal_mode = wal')
    write()
  }
  return { path, log: `${path}-wal`, database, write, files: new OpenFiles(database, path, now) }
}

/** Returns when the clock of files has ticked: whatever changes a folder from now on gives it another time. */
function untilTick(path: string): void {
  const probe = temporaryFile()
  do writeFileSync(probe, '')
  while (statSync(probe).ctimeMs <= statSync(dirname(path)).ctimeMs)
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
  it('have a log of so many bytes', () => {
    const { log, write, files } = opened({ hasLog: true })
    const before = statSync(log).size
    expect(before).toBeGreaterThan(0)
    expect(files.requireSame()).toBe(before)
    write()
    expect(files.requireSame()).toBe(statSync(log).size)
    expect(statSync(log).size).toBeGreaterThan(before)
  })

  it('may get a log after they were opened, which is theirs from then on', () => {
    const { log, database, write, files } = opened({ hasLog: false })
    expect(files.requireSame()).toBe(0)
    database.pragma('journal_mode = wal')
    write()
    expect(files.requireSame()).toBe(statSync(log).size)
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

  it.each(changes)(
    'are missed where the folder told that they were there, and then one was %s: %s',
    (_how, which, change) => {
      const bed = opened({ hasLog: true, now: after })
      expect(bed.files.requireSame()).toBe(statSync(bed.log).size)
      bed.write()
      expect(bed.files.requireSame()).toBeUndefined()
      untilTick(bed.path)
      change(bed[which])
      expect(() => bed.files.requireSame()).toThrow(gone(bed[which]))
      expect(() => bed.files.requireSame()).toThrow(gone(bed[which]))
    },
  )

  it('are missed where the folder told that they were there, and then it was moved', () => {
    const folder = mkdtempSync(join(dirname(temporaryFile()), 'folder-'))
    const database = new BetterSqlite3(join(folder, 'runs.db'))
    onTestFinished(() => void database.close())
    const files = new OpenFiles(database, join(folder, 'runs.db'), after)
    files.requireSame()
    expect(files.requireSame()).toBeUndefined()
    renameSync(folder, `${folder}-moved`)
    expect(() => files.requireSame()).toThrow(gone(join(folder, 'runs.db')))
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

describe('a ledger', () => {
  it('looks at its folder alone before and after a barrier, as long as nothing in it changes', async () => {
    const path = temporaryFile()
    // By this time the folder has not changed for long.
    vi.useFakeTimers({ toFake: ['Date'], now: new Date('2100-01-01') })
    onTestFinished(() => void vi.useRealTimers())
    const ledger = sqliteLedger(path, {})
    onTestFinished(() => ledger.close())
    const facts = sampleFacts(run)
    const append = (seq: number, durability: 'barrier' | 'lazy'): Promise<unknown> => {
      const events = stampFacts(run, [seq === 0 ? facts.run_started : facts.cancel_requested], {
        afterSeq: seq,
      })
      return ledger.append(run, { expectedSeq: seq, epoch: 1 }, events, { durability })
    }
    await append(0, 'barrier')
    const looks = looksAt(path)
    await append(1, 'lazy')
    await append(2, 'barrier')
    expect(looks()).toEqual(['.', '.'])
    untilTick(path)
    writeFileSync(`${path}-other`, '')
    looks()
    await append(3, 'barrier')
    expect(looks()).toEqual(['.', '', '-wal', '.'])
  })
})

/** The files beside a path that were looked at since the answer was called last: what follows the path, or `.` for its folder. */
function looksAt(path: string): () => readonly string[] {
  const real = realpathSync(path)
  const looks: string[] = []
  const { statSync: original } = fs
  const replaceWith = (statSync: typeof original): void => {
    Object.assign(fs, { statSync })
    syncBuiltinESMExports()
  }
  onTestFinished(() => replaceWith(original))
  replaceWith(((...asked: Parameters<typeof original>) => {
    const at = String(asked[0])
    looks.push(at === dirname(real) ? '.' : at.slice(real.length))
    return original(...asked)
  }) as typeof original)
  return () => looks.splice(0)
}

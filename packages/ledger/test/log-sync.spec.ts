import { execFileSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { sampleFacts, manualClock, sampleRunId, stampFacts } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { LogSync } from '../src/sqlite/log.ts'
import { emptyLedgerFile, temporaryFile } from './support/temporary-folder.ts'

/** A log whose syncs the test ends, on a clock that stands still. */
function watched() {
  const path = temporaryFile()
  new BetterSqlite3(path).close()
  const clock = manualClock()
  const begun: { readonly at: number; readonly end: PromiseWithResolvers<void> }[] = []
  const start = clock.now()
  let hasUnsynced = false
  const log = new LogSync({
    path,
    clock,
    hasUnsynced: () => hasUnsynced,
    sync() {
      const end = Promise.withResolvers<void>()
      begun.push({ at: clock.now() - start, end })
      return end.promise
    },
  })
  const lazy = (): void => {
    hasUnsynced = true
    log.committed('lazy')
  }
  const barrier = (hardens = true): void => {
    if (hardens) hasUnsynced = false
    log.committed('barrier')
  }
  const end = async (index: number, error?: Error): Promise<void> => {
    if (error) begun[index]?.end.reject(error)
    else begun[index]?.end.resolve()
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
  return { log, clock, lazy, barrier, end, syncs: () => begun.map(({ at }) => at) }
}

describe('the log, between barriers', () => {
  it('is synced a fifth of a second after the first lazy commit, once for all', () => {
    const { clock, lazy, syncs } = watched()
    lazy()
    clock.advance(150)
    lazy()
    clock.advance(49)
    expect(syncs()).toEqual([])
    clock.advance(1)
    expect([syncs(), clock.pending]).toEqual([[200], 0])
  })

  it('is not synced where barriers follow, and one timer serves any number of commits', () => {
    const { clock, lazy, barrier, syncs } = watched()
    for (let turn = 0; turn < 1_000; turn++) {
      lazy()
      expect(clock.pending).toBe(1)
      clock.advance(1)
      barrier()
    }
    clock.advance(200)
    expect([syncs(), clock.pending]).toEqual([[], 0])
  })

  it('is synced in time for the first lazy commit after the last barrier', () => {
    const { clock, lazy, barrier, syncs } = watched()
    lazy()
    clock.advance(50)
    barrier()
    clock.advance(100)
    lazy()
    clock.advance(199)
    expect(syncs()).toEqual([])
    clock.advance(1)
    expect([syncs(), clock.pending]).toEqual([[350], 0])
  })

  it('is synced after a barrier that hardened nothing', () => {
    const { clock, lazy, barrier, syncs } = watched()
    lazy()
    clock.advance(100)
    barrier(false)
    clock.advance(100)
    expect(syncs()).toEqual([200])
  })

  it('is synced again for what was committed while a sync was under way, and never twice at once', async () => {
    const { clock, lazy, end, syncs } = watched()
    lazy()
    clock.advance(200)
    lazy()
    clock.advance(200)
    expect(syncs()).toEqual([200])
    await end(0)
    clock.advance(200)
    expect([syncs(), clock.pending]).toEqual([[200, 600], 0])
  })

  it('is left to the next barrier where it cannot be synced', async () => {
    const { clock, lazy, end, syncs } = watched()
    lazy()
    clock.advance(200)
    await end(0, new Error('EIO'))
    expect(clock.pending).toBe(0)
    lazy()
    clock.advance(200)
    expect(syncs()).toEqual([200, 400])
  })

  it('is let go when the ledger closes, after a sync that is under way', async () => {
    const { log, clock, lazy, end, syncs } = watched()
    lazy()
    clock.advance(200)
    lazy()
    let isClosed = false
    const closing = log.close().then(() => (isClosed = true))
    await end(-1)
    expect([isClosed, clock.pending]).toEqual([false, 0])
    await end(0)
    await closing
    expect(syncs()).toEqual([200])
  })
})

function connection(path: string): Database {
  const database = new BetterSqlite3(path)
  onTestFinished(() => void database.close())
  return database
}

/** Whether another process may write a database. */
function canBeWritten(path: string): boolean {
  const script = `
    const Database = require('better-sqlite3')
    const database = new Database(process.argv[1], { timeout: 0 })
    try { database.exec('begin immediate'); console.log('free') } catch { console.log('locked') }`
  const cwd = import.meta.dirname
  return execFileSync(process.execPath, ['-e', script, path], { cwd, encoding: 'utf8' }).includes('free')
}

describe('syncing the log of an open database', () => {
  it('drops no lock that SQLite holds', async () => {
    const path = temporaryFile()
    const database = connection(path)
    database.pragma('journal_mode = wal')
    database.exec('create table t (a integer) strict')
    const clock = manualClock()
    const log = new LogSync({ path, clock, hasUnsynced: () => true })
    database.exec('begin immediate; insert into t values (1)')
    expect(canBeWritten(path)).toBe(false)
    log.committed('lazy')
    clock.advance(200)
    await log.close()
    expect(canBeWritten(path)).toBe(false)
    database.exec('commit')
    expect(canBeWritten(path)).toBe(true)
  })

  // Windows has other locks.
  it.skipIf(process.platform === 'win32')('is not like opening the other files, which does', () => {
    const path = temporaryFile()
    const database = connection(path)
    database.pragma('journal_mode = wal')
    database.exec('create table t (a integer) strict; begin immediate; insert into t values (1)')
    closeSync(openSync(`${path}-shm`, 'r'))
    expect(canBeWritten(path)).toBe(true)
  })

  it('passes over a log that is not there', async () => {
    const path = temporaryFile()
    new BetterSqlite3(path).close()
    const clock = manualClock()
    const log = new LogSync({ path, clock, hasUnsynced: () => true })
    log.committed('lazy')
    clock.advance(200)
    await expect(log.close()).resolves.toBeUndefined()
  })
})

describe('a ledger in a file', () => {
  afterEach(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
  })

  it('syncs what was appended lazily, where no barrier follows', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const synced = Promise.withResolvers<void>()
    const probe = await open(temporaryFile(), 'w')
    const handles = Object.getPrototypeOf(probe) as FileHandle
    await probe.close()
    // oxlint-disable-next-line typescript/unbound-method -- called with its handle
    const { datasync } = handles
    const sync = vi.spyOn(handles, 'datasync').mockImplementation(async function (this: FileHandle) {
      await datasync.call(this)
      synced.resolve()
    })
    const ledger = sqliteLedger(emptyLedgerFile())
    onTestFinished(() => ledger.close())
    const run = sampleRunId(1)
    const start = stampFacts(run, [sampleFacts(run).run_started])
    const next = stampFacts(run, [sampleFacts(run).cancel_requested], { afterSeq: 1 })
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    await ledger.append(run, { expectedSeq: 1, epoch: 1 }, next, { durability: 'barrier' })
    vi.advanceTimersByTime(200)
    expect(sync).not.toHaveBeenCalled()
    const last = stampFacts(run, [sampleFacts(run).cancel_requested], { afterSeq: 2 })
    await ledger.append(run, { expectedSeq: 2, epoch: 1 }, last, { durability: 'lazy' })
    vi.advanceTimersByTime(200)
    await synced.promise
    expect(sync).toHaveBeenCalledTimes(1)
  })
})

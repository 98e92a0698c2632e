import { readHead } from '../src/store/records.ts'
import { copyFileSync, statSync } from 'node:fs'
import { manualClock, sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { redact, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { openStore } from './support/open-store.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const run = sampleRunId(1)
const facts = sampleFacts(run)
const maxBytes = 256 * 1024

const logBytes = (path: string): number => statSync(`${path}-wal`).size

function connection(path: string): Database {
  const database = new BetterSqlite3(path)
  onTestFinished(() => void database.close())
  return database
}

/** A store whose log is kept by a clock that stands still, and a writer of events of 16 KiB. */
async function kept() {
  const clock = manualClock()
  const {
    path,
    database,
    store,
    append: appendTo,
  } = openStore(temporaryFile(), { maxWalBytes: maxBytes }, clock)
  database.pragma('wal_checkpoint(truncate)')
  let seq = 0
  const append = async (count: number): Promise<void> => {
    for (let left = count; left > 0; left--) {
      const fact = seq === 0 ? facts.run_started : { ...facts.cancel_requested, reason: 'x'.repeat(16_384) }
      const events = stampFacts(run, [fact], { afterSeq: seq })
      await appendTo(run, { expectedSeq: seq, epoch: 1 }, events, { durability: 'lazy' })
      seq++
    }
  }
  return { path, database, clock, store, append, written: () => seq }
}

/** Counts the events that the file holds without its log. */
function copiedEvents(path: string): () => number {
  return () => {
    const copy = temporaryFile()
    copyFileSync(path, copy)
    const count = connection(copy).prepare<[], number>('select count(*) from event').pluck().get()
    return count ?? 0
  }
}

/** Another connection that reads the file as it is now, until the answer is called. */
function reading(path: string): () => void {
  const reader = connection(path)
  reader.exec('begin')
  reader.prepare('select count(*) from event').get()
  return () => void reader.exec('rollback')
}

/** How long appends had to wait for the log to be cut, in milliseconds, each time. */
function waitsForCuts(database: Database): () => readonly number[] {
  const pragma = vi.spyOn(database, 'pragma')
  return () => {
    const asked = pragma.mock.calls.map(([source]) => source)
    return asked.flatMap((source, index) => {
      const [, wait = 0] = /^busy_timeout = (\d+)$/.exec(asked[index - 1] ?? '') ?? []
      return source.startsWith('wal_checkpoint') ? Number(wait) : []
    })
  }
}

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('the log of a ledger', () => {
  it('is copied into the file when nothing was written for a minute, and then written over from its start', async () => {
    const { path, clock, append } = await kept()
    const copied = copiedEvents(path)
    await append(3)
    expect(copied()).toBe(0)
    clock.advance(59_999)
    expect(copied()).toBe(0)
    await append(1)
    // The minute begins anew with each commit.
    clock.advance(59_999)
    expect(copied()).toBe(0)
    const bytes = logBytes(path)
    clock.advance(1)
    expect([copied(), logBytes(path)]).toEqual([4, bytes])
    await append(2)
    expect([copied(), logBytes(path)]).toEqual([4, bytes])
    clock.advance(60_000)
    expect([copied(), logBytes(path)]).toEqual([6, bytes])
  })

  it('is cut a second after a command was blanked, of which it still holds a copy', async () => {
    const { path, clock, store, append } = await kept()
    await append(1)
    await store.put(run, { key: 'k', at: 1, command: '{}' })
    await store.append({
      ...{ runId: run, expected: { expectedSeq: 1, epoch: 1 }, events: [] },
      ...({ durability: 'lazy', takes: ['k'], isSealed: true } as const),
    })
    clock.advance(999)
    expect(logBytes(path)).toBeGreaterThan(0)
    clock.advance(1)
    expect(logBytes(path)).toBe(0)
  })

  it('is cut when it has grown too long, under a writer that never rests', async () => {
    const { path, append } = await kept()
    let longest = 0
    for (let round = 0; round < 200; round++) {
      await append(1)
      longest = Math.max(longest, logBytes(path))
    }
    expect(longest).toBeGreaterThan(maxBytes / 2)
    expect(longest).toBeLessThan(maxBytes + 65_536)
  })

  it('stays bounded while readers come and go', async () => {
    const { path, append, written, store } = await kept()
    let longest = 0
    for (let round = 0; round < 20; round++) {
      const ends = [reading(path)]
      await append(2)
      ends.push(reading(path))
      await append(2)
      for (const end of ends) end()
      await append(1)
      longest = Math.max(longest, logBytes(path))
    }
    expect(written() * 16_384).toBeGreaterThan(6 * maxBytes)
    expect(longest).toBeLessThan(3 * maxBytes)
    expect((await readHead(store.database, run))?.seq).toBe(written())
  })

  it('grows on under a process that reads for long, keeps appends waiting no more than a tenth of a second now and then, and is cut when they are done', async () => {
    const { path, database, clock, append } = await kept()
    await append(1)
    const end = reading(path)
    const waits = waitsForCuts(database)
    await append(30)
    const longest = logBytes(path)
    expect(longest).toBeGreaterThan(3 * maxBytes)
    const endured = waits().filter((ms) => ms > 0)
    expect(new Set(endured)).toEqual(new Set([100]))
    expect(endured.length).toBeLessThanOrEqual(longest / (maxBytes / 4))
    vi.restoreAllMocks()
    // A minute without writes keeps no caller waiting, and comes again.
    clock.advance(180_000)
    expect(logBytes(path)).toBe(longest)
    end()
    clock.advance(60_000)
    expect([logBytes(path), clock.pending]).toEqual([0, 0])
  })

  it('loses nothing to being cut, whichever process reads meanwhile', async () => {
    const { path, append, written, store } = await kept()
    const end = reading(path)
    await append(40)
    end()
    await append(40)
    const { store: other } = openStore(path)
    expect(await readHead(other.database, run)).toEqual(await readHead(store.database, run))
    expect((await readHead(other.database, run))?.seq).toBe(written())
  })

  it('is left alone within a transaction of another process, and begun anew at the next moment of rest', async () => {
    const { path, clock, append } = await kept()
    await append(2)
    const other = connection(path)
    other.exec('begin immediate')
    clock.advance(60_000)
    expect(clock.pending).toBe(1)
    other.exec('rollback')
    clock.advance(60_000)
    expect([copiedEvents(path)(), clock.pending]).toEqual([2, 0])
  })
})

describe('sqliteLedger', () => {
  it('keeps its log within maxWalBytes, and copies it when it rests', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const path = temporaryFile()
    const ledger = sqliteLedger(path, { maxWalBytes: maxBytes })
    onTestFinished(() => ledger.close())
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, stampFacts(run, [facts.run_started]), {
      durability: 'barrier',
    })
    let longest = 0
    for (let seq = 1; seq <= 40; seq++) {
      const fact = { ...facts.cancel_requested, reason: `${seq}`.padEnd(16_384) }
      const events = stampFacts(run, [fact], { afterSeq: seq })
      await ledger.append(run, { expectedSeq: seq, epoch: 1 }, events, { durability: 'lazy' })
      longest = Math.max(longest, logBytes(path))
    }
    expect(longest).toBeLessThan(maxBytes + 131_072)
    const copied = copiedEvents(path)
    expect(copied()).toBeLessThan(41)
    vi.advanceTimersByTime(60_000)
    expect(copied()).toBe(41)
    expect((await Array.fromAsync(ledger.read(run))).length).toBe(41)
    const [verdict] = await Array.fromAsync(verifyLedger(ledger))
    expect(verdict?.events).toBeGreaterThan(0)
  })

  it('cuts a log that a reader held while content was taken away within a second after that reader', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const path = temporaryFile()
    const ledger = sqliteLedger(path, { busyTimeoutMs: 1 })
    onTestFinished(() => ledger.close())
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, stampFacts(run, [facts.run_started]), {
      durability: 'barrier',
    })
    const end = reading(path)
    expect(await redact(ledger, run, 'all', { by: 'ada', reason: 'asked for' })).toBe(1)
    vi.advanceTimersByTime(1_000)
    expect(logBytes(path)).toBeGreaterThan(0)
    end()
    vi.advanceTimersByTime(1_000)
    expect(logBytes(path)).toBe(0)
  })

  it.each([0, -1, 0.5, Number.NaN])('refuses maxWalBytes: %d', (maxWalBytes) => {
    expect(() => sqliteLedger(temporaryFile(), { maxWalBytes })).toThrow(/maxWalBytes.*whole number of bytes/)
  })
})

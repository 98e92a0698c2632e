import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { ConfigurationError, LedgerUnavailableError } from '@tallystick/core'
import { sampleFacts, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, onTestFinished } from 'vitest'
import { nameNetworkType } from '../src/sqlite/open-database.ts'
import { refusalOf } from './support/refusal.ts'
import { filesBeside, withRaw } from './support/raw-database.ts'
import { schemaVersion } from '../src/sqlite/schema.ts'
import { temporaryFile, temporaryFolder } from './support/temporary-folder.ts'

const run = sampleRunId(1)
const start = stampFacts(run, [sampleFacts(run).run_started])

async function smallLedger(path: string): Promise<void> {
  const ledger = sqliteLedger(path)
  await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' })
  await ledger.close()
}

describe('opening with options', () => {
  it.each([
    { busyTimeoutMs: -1 },
    { busyTimeoutMs: Number.NaN },
    { busyTimeoutMs: 2.5 },
    { pollIntervalMs: 0 },
    { pollIntervalMs: Infinity },
  ])('refuses %j, and makes no file', (options) => {
    const path = temporaryFile()
    const refusal = refusalOf(() => sqliteLedger(path, options))
    expect(refusal).toBeInstanceOf(ConfigurationError)
    expect(refusal.message).toContain(Object.keys(options)[0])
    expect(readdirSync(dirname(path))).toEqual([])
  })

  it.each([
    [0x6969, 'NFS'],
    [0x517b, 'SMB'],
    [0x73757245, 'Coda'],
    [0x5346414f, 'AFS'],
    [0xff534d42, 'SMB'],
    [0xff534d42 | 0, 'SMB'],
    [0xfe534d42 | 0, 'SMB'],
    [0xef53, undefined],
    [0x01021994, undefined],
    [0x794c7630, undefined],
    [0x58465342, undefined],
    [0x9123683e | 0, undefined],
  ])('tells network file systems from local ones: type %i is %s', (type, name) => {
    expect(nameNetworkType(type)).toBe(name)
  })

  it('waits for another writer as long as it was told, then says what is in the way', async () => {
    const path = temporaryFile()
    await smallLedger(path)
    const ledger = sqliteLedger(path, { busyTimeoutMs: 0 })
    const other = new BetterSqlite3(path)
    other.exec('begin immediate')
    const next = stampFacts(run, [sampleFacts(run).cancel_requested], { afterSeq: 1 })
    const append = (): Promise<unknown> =>
      ledger.append(run, { expectedSeq: 1, epoch: 1 }, next, { durability: 'barrier' })
    await expect(append()).rejects.toThrow(LedgerUnavailableError)
    await expect(append()).rejects.toThrow(/locked \(SQLITE_BUSY\)\. Another process/)
    expect(await Array.fromAsync(ledger.read(run))).toEqual(start)
    other.exec('rollback')
    other.close()
    expect(await append()).toEqual({ seq: 2, epoch: 1 })
    await ledger.close()
  })
})

describe('opening to write', () => {
  it('makes a file that says what it is', async () => {
    const path = temporaryFile()
    await smallLedger(path)
    withRaw(path, (database) => {
      expect(database.pragma('application_id', { simple: true })).toBe(0x544c534b)
      expect(Buffer.from('TLSK').readUInt32BE()).toBe(0x544c534b)
      expect(database.pragma('user_version', { simple: true })).toBe(schemaVersion)
    })
  })

  it('takes a file without content for a new one', async () => {
    const path = temporaryFile()
    writeFileSync(path, '')
    await smallLedger(path)
    const ledger = sqliteLedger(path)
    expect(await ledger.head(run)).toEqual({ seq: 1, epoch: 1 })
    await ledger.close()
  })

  it('writes ahead into a log while it is open, and leaves one file when it is closed', async () => {
    const path = temporaryFile()
    const ledger = sqliteLedger(path)
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' })
    expect(withRaw(path, (database) => database.pragma('journal_mode', { simple: true }))).toBe('wal')
    await ledger.close()
    expect(readdirSync(dirname(path))).toEqual(['runs.db'])
  })

  it('keeps the log while another ledger has the file open', async () => {
    const path = temporaryFile()
    const [one, other] = [sqliteLedger(path), sqliteLedger(path)]
    await one.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    await one.close()
    expect(existsSync(`${path}-wal`)).toBe(true)
    expect(await other.head(run)).toEqual({ seq: 1, epoch: 1 })
    await other.close()
    expect(readdirSync(dirname(path))).toEqual(['runs.db'])
  })

  it('makes one schema when several ledgers make the file at once', async () => {
    const path = temporaryFile()
    const ledgers = [sqliteLedger(path), sqliteLedger(path), sqliteLedger(path)]
    const heads = await Promise.allSettled(
      ledgers.map((ledger) =>
        ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' }),
      ),
    )
    expect(heads.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    for (const ledger of ledgers) await ledger.close()
    expect(withRaw(path, (database) => database.pragma('user_version', { simple: true }))).toBe(1)
  })

  it('recovers a ledger that its process left in the middle of work', async () => {
    const [path, left] = [temporaryFile(), temporaryFile()]
    const ledger = sqliteLedger(path)
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' })
    for (const end of ['', '-wal', '-shm']) copyFileSync(path + end, left + end)
    await ledger.close()
    const reopened = sqliteLedger(left)
    expect(await Array.fromAsync(reopened.read(run))).toEqual(start)
    await reopened.close()
    expect(readdirSync(dirname(left))).toEqual(['runs.db'])
  })

  it('resolves a relative path once, so that a later change of folder moves nothing', async () => {
    const folder = temporaryFolder()
    const before = process.cwd()
    try {
      process.chdir(folder)
      mkdirSync('elsewhere')
      const ledger = sqliteLedger('runs.db')
      process.chdir('elsewhere')
      await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' })
      await ledger.close()
    } finally {
      process.chdir(before)
    }
    expect(readdirSync(folder).toSorted()).toEqual(['elsewhere', 'runs.db'])
  })
})

describe('opening to read', () => {
  it('makes no file where the file is missing', () => {
    const path = temporaryFile()
    const refusal = refusalOf(() => sqliteLedger(path, { readOnly: true }))
    expect(refusal).toBeInstanceOf(LedgerUnavailableError)
    expect(refusal.message).toContain('is not there')
    expect(refusal).toMatchObject({ reason: 'absent' })
    expect(readdirSync(dirname(path))).toEqual([])
  })

  it('takes no file without content for a ledger', () => {
    const path = temporaryFile()
    writeFileSync(path, '')
    expect(refusalOf(() => sqliteLedger(path, { readOnly: true })).message).toContain('is empty')
    expect(filesBeside(path)).toEqual({ 'runs.db': expect.any(String) })
  })

  it('says what is missing beside a copy of a ledger that was open', async () => {
    const [path, copy] = [temporaryFile(), temporaryFile()]
    const ledger = sqliteLedger(path)
    onTestFinished(() => ledger.close())
    await ledger.head(run)
    copyFileSync(path, copy)
    const refusal = refusalOf(() => sqliteLedger(copy, { readOnly: true }))
    expect(refusal.message).toContain('copy an open ledger together with its -wal file')
  })

  it('reads a ledger at rest and leaves no trace', async () => {
    const path = temporaryFile()
    await smallLedger(path)
    const before = filesBeside(path)
    const ledger = sqliteLedger(path, { readOnly: true })
    expect(await Array.fromAsync(ledger.read(run))).toEqual(start)
    expect(await Array.fromAsync(ledger.runs())).toMatchObject([{ runId: run, head: { seq: 1, epoch: 1 } }])
    await ledger.close()
    expect(filesBeside(path)).toEqual(before)
  })

  it('refuses to write, and says what to do', async () => {
    const path = temporaryFile()
    await smallLedger(path)
    const before = filesBeside(path)
    const ledger = sqliteLedger(path, { readOnly: true })
    const entry = {
      key: 'k1',
      command: { type: 'steer', message: sampleMessage('x'), receipt: 'r' },
      at: 1,
    } as const
    const next = stampFacts(run, [sampleFacts(run).cancel_requested], { afterSeq: 1 })
    const refused = [
      ledger.append(run, { expectedSeq: 1, epoch: 1 }, next, { durability: 'lazy' }),
      ledger.acquire(run),
      ledger.put(run, entry),
    ]
    for (const attempt of refused) {
      await expect(attempt).rejects.toThrow(LedgerUnavailableError)
      await expect(attempt).rejects.toThrow(/readOnly/)
    }
    await ledger.close()
    expect(filesBeside(path)).toEqual(before)
  })

  it('sees what a writer appends while both have the file open', async () => {
    const path = temporaryFile()
    await smallLedger(path)
    const reader = sqliteLedger(path, { readOnly: true })
    expect(await reader.head(run)).toEqual({ seq: 1, epoch: 1 })
    const writer = sqliteLedger(path)
    const next = stampFacts(run, [sampleFacts(run).cancel_requested], { afterSeq: 1 })
    await writer.append(run, { expectedSeq: 1, epoch: 1 }, next, { durability: 'lazy' })
    expect(await Array.fromAsync(reader.read(run))).toEqual([...start, ...next])
    await writer.close()
    expect(await Array.fromAsync(reader.read(run))).toEqual([...start, ...next])
    await reader.close()
  })
})

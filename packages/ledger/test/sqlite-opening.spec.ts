import fs, { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname } from 'node:path'
import { ConfigurationError, LedgerUnavailableError, memoryLedger, type Ledger } from '@tallystick/core'
import type { OpenLedger } from '@tallystick/core/store-kit'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteLedger, type SqliteLedgerOptions, sqliteKeyring } from '@tallystick/ledger/sqlite'
import { sampleFacts, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it, onTestFinished, afterEach, beforeEach, vi } from 'vitest'
import { nameNetworkType, openDatabase, findNetworkFileSystem } from '../src/sqlite/open-database.ts'
import { schemaVersion } from '../src/sqlite/schema.ts'
import { openStore } from './support/open-store.ts'
import { filesBeside, withRaw } from './support/raw-database.ts'
import { refusalOf } from './support/refusal.ts'
import { temporaryFile, temporaryFolder, emptyLedgerFile } from './support/temporary-folder.ts'

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

/** The settings of a connection to a ledger file. */
async function settings(options: SqliteLedgerOptions) {
  const path = temporaryFile()
  await sqliteLedger(path).close()
  const { database } = openDatabase(path, options)
  onTestFinished(() => void database.close())
  const setting = (name: string): unknown => database.pragma(name, { simple: true })
  return { setting, database }
}

describe('the connection to a ledger file', () => {
  it('writes ahead, syncs each commit, erases what it deletes, and trusts no schema', async () => {
    const { setting, database } = await settings({})
    expect(database.readonly).toBe(false)
    expect(
      ['journal_mode', 'synchronous', 'fullfsync', 'checkpoint_fullfsync'].map((name) => setting(name)),
    ).toEqual(['wal', 2, 1, 1])
    expect(['secure_delete', 'trusted_schema', 'busy_timeout'].map((name) => setting(name))).toEqual([
      ...[1, 0, 5_000],
    ])
    expect(setting('journal_size_limit')).toBe(64 * 1024 * 1024)
  })

  it('waits as long, and keeps a log as large, as it is asked to', async () => {
    const { setting } = await settings({ busyTimeoutMs: 7, maxWalBytes: 12_345 })
    expect([setting('busy_timeout'), setting('journal_size_limit')]).toEqual([7, 12_345])
  })

  it('cannot write where it was opened to read, and trusts no schema either', async () => {
    const { setting, database } = await settings({ readOnly: true })
    expect([database.readonly, setting('trusted_schema')]).toEqual([true, 0])
    expect(setting('journal_mode')).toBe('delete')
  })
})

describe('a ledger file that holds more than a read takes at once', () => {
  it('is searched by turn, wherever one turn ends and the next begins', async () => {
    const ledger = sqliteLedger(temporaryFile())
    onTestFinished(() => ledger.close())
    const length = 9
    for (let first = 1; first <= length; first++) {
      const runId = sampleRunId(first)
      const { run_started: begun, cancel_requested: cancel } = sampleFacts(runId)
      const { sessionId: _session, sessionPlace: _place, ...alone } = begun
      const facts = [alone, ...Array.from({ length: length - 1 }, () => cancel)]
      const events = stampFacts(runId, facts).map((event) => ({ ...event, turn: event.seq <= first ? 1 : 3 }))
      await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
      for (const turn of [0, 1, 2, 3, 4]) {
        const found = await Array.fromAsync(ledger.find({ runId, turn }))
        expect([first, turn, found]).toEqual([first, turn, events.filter((event) => event.turn === turn)])
      }
    }
  })

  it('is read, found and followed row by row', async () => {
    const ledger = sqliteLedger(temporaryFile())
    onTestFinished(() => ledger.close())
    const mebibyte = { ...sampleFacts(run).tool_progress, data: Array<string>(80_000).fill('said again') }
    const events = [...start, ...stampFacts(run, [mebibyte, mebibyte], { afterSeq: 1 })]
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    const seqsOf = (found: readonly { readonly seq: number }[]): readonly number[] =>
      found.map(({ seq }) => seq)
    expect(seqsOf(await Array.fromAsync(ledger.read(run)))).toEqual([1, 2, 3])
    for (const query of [{}, { runId: run }, { turn: 0 }, { types: ['tool_progress'] as const }]) {
      const all = await Array.fromAsync(ledger.find({}))
      const due = all.filter(
        ({ type, turn }) => (query.types?.includes(type as never) ?? true) && turn === (query.turn ?? turn),
      )
      expect(seqsOf(await Array.fromAsync(ledger.find(query)))).toEqual(seqsOf(due))
    }
    expect((await Array.fromAsync(ledger.tail())).map(({ event }) => event.seq)).toEqual([1, 2, 3])
  })
})

describe('a tail of a ledger file', () => {
  it('ends where the file ended when it began, also where it held nothing', async () => {
    const { store, append } = openStore()
    const first = { xid: '0', pos: 0, runId: '' }
    const begun = await store.beginTail(first)
    await append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    expect(await begun.batch(first)).toEqual({ rows: [], isLast: true })
    const again = await store.beginTail(first)
    expect((await again.batch(first)).rows.map(({ seq, xid }) => [seq, xid])).toEqual([[1, '0']])
  })
})

const platform = Object.getOwnPropertyDescriptor(process, 'platform') as PropertyDescriptor
const onPlatform = (value: string): void =>
  void Object.defineProperty(process, 'platform', { ...platform, value })

describe('a folder on another machine', () => {
  let type: () => number
  beforeEach(() => {
    onPlatform('linux')
    type = () => 0x6969
    vi.spyOn(fs, 'statfsSync').mockImplementation(() => ({ type: type() }) as never)
    syncBuiltinESMExports()
  })
  afterEach(() => {
    vi.restoreAllMocks()
    syncBuiltinESMExports()
    Object.defineProperty(process, 'platform', platform)
  })

  it('is named by its file system where the host knows it', () => {
    expect(findNetworkFileSystem('/runs')).toBe('NFS')
    expect(vi.mocked(fs.statfsSync)).toHaveBeenCalledWith('/runs')
    type = () => 0xef53
    expect(findNetworkFileSystem('/runs')).toBeUndefined()
    type = () => {
      throw new Error('no such folder')
    }
    expect(findNetworkFileSystem('/runs')).toBeUndefined()
    type = () => 0x6969
    onPlatform('darwin')
    expect(findNetworkFileSystem('/runs')).toBeUndefined()
  })

  it('holds no ledger that is written, and is left as it is; one that is only read is opened', async () => {
    const path = temporaryFile()
    const refusal = refusalOf(() => sqliteLedger(path))
    expect(refusal).toBeInstanceOf(LedgerUnavailableError)
    expect(refusal.message).toContain(
      `The ledger ${path} lies on a network file system (NFS), where SQLite's log would be corrupted`,
    )
    expect(fs.readdirSync(dirname(path))).toEqual([])
    const ledger = sqliteLedger(emptyLedgerFile(), { readOnly: true })
    expect(await Array.fromAsync(ledger.runs())).toEqual([])
    await ledger.close()
  })
})

const stores: Readonly<Record<string, () => OpenLedger>> = {
  memory: memoryLedger,
  SQLite: () => sqliteLedger(emptyLedgerFile()),
  // It connects at its first use.
  Postgres: () => postgresLedger({ connectionString: 'postgres://nobody@localhost:1/none' }),
}

describe.each(Object.entries(stores))('a ledger in %s', (_name, open) => {
  it('is closed at the end of the block that declares it with `await using`', async () => {
    let kept: Ledger
    {
      await using ledger = open()
      kept = ledger
    }
    await expect(kept.head(sampleRunId(1))).rejects.toMatchObject({
      code: 'ledger_unavailable',
      message: expect.stringContaining('closed'),
    })
  })

  it('is closed by the `close` of a copy that has its own', async () => {
    const closed = vi.fn<Ledger['close']>(async () => {})
    {
      await using copy: OpenLedger = { ...open(), close: closed }
      expect(typeof copy.head).toBe('function')
    }
    expect(closed).toHaveBeenCalledTimes(1)
  })
})

it('a ledger is as it is where a host knows no `Symbol.asyncDispose`', () => {
  const older: unknown = Object.create(Symbol, { asyncDispose: { value: undefined } })
  onTestFinished(() => void vi.unstubAllGlobals())
  vi.stubGlobal('Symbol', older)
  expect(Reflect.ownKeys(memoryLedger()).map(String)).toEqual(expect.not.arrayContaining(['undefined']))
})

it('a keyring is closed at the end of the block that declares it with `using`', async () => {
  let kept
  {
    using keys = sqliteKeyring(temporaryFile('keys.db'))
    kept = keys
  }
  await expect(kept.keyOf('ada')).rejects.toMatchObject({ code: 'ledger_unavailable' })
})

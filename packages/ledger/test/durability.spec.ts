import BetterSqlite3, { type Database } from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { everyFact, sampleMessage, sampleRunId, stamped } from '@tallystick/core/testing'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Transactions } from '../src/sqlite/write/transactions.ts'
import { migrate } from '../src/sqlite/schema/migrate.ts'
import { SqliteStore } from '../src/sqlite/sqlite-store.ts'
import type { LedgerTables } from '../src/sqlite/schema/tables.ts'
import { withRaw } from './support/raw-database.ts'
import { schemaVersion } from '../src/sqlite/schema/migrate.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const [normal, full] = [1, 2]

function database(): Database {
  const opened = new BetterSqlite3(temporaryFile())
  onTestFinished(() => void opened.close())
  opened.pragma('journal_mode = wal')
  opened.pragma('synchronous = full')
  return opened
}

async function store(opened: Database): Promise<SqliteStore> {
  const tables = new Kysely<LedgerTables>({ dialect: new SqliteDialect({ database: opened }) })
  await migrate(opened, tables)
  return new SqliteStore(opened, tables)
}

describe('a commit', () => {
  it('is synced at a barrier and not when it is lazy, whatever came before', () => {
    const opened = database()
    const transactions = new Transactions(opened)
    const level = (): unknown => opened.pragma('synchronous', { simple: true })
    const seen = (['lazy', 'lazy', 'barrier', 'barrier', 'lazy', 'barrier'] as const).map((durability) =>
      transactions.transact(durability, level),
    )
    expect(seen).toEqual([normal, normal, full, full, normal, full])
  })

  it('holds the write lock from its start, so that nothing it has read can change', () => {
    const opened = database()
    const other = new BetterSqlite3(opened.name, { timeout: 0 })
    onTestFinished(() => void other.close())
    new Transactions(opened).transact('lazy', () => {
      expect(() => other.exec('begin immediate')).toThrow(/locked/)
    })
    other.exec('begin immediate; rollback')
  })

  it('is undone whole when its work throws, and the next one is free', () => {
    const opened = database()
    opened.exec('create table t (a integer) strict')
    const transactions = new Transactions(opened)
    const insert = opened.prepare('insert into t values (1)')
    const failing = (): never => {
      insert.run()
      throw new Error('half-way')
    }
    expect(() => transactions.transact('barrier', failing)).toThrow('half-way')
    expect(opened.inTransaction).toBe(false)
    transactions.transact('barrier', () => insert.run())
    expect(opened.prepare('select count(*) from t').pluck().get()).toBe(1)
  })

  it('may be unsynced until a barrier that writes something follows', () => {
    const opened = database()
    opened.exec('create table t (a integer) strict')
    const transactions = new Transactions(opened)
    const insert = opened.prepare('insert into t values (1)')
    const nothing = (): undefined => undefined
    const write = (): unknown => insert.run()
    const steps = [
      ['lazy', nothing],
      ['lazy', write],
      ['barrier', nothing],
      ['barrier', write],
      ['lazy', write],
      ['lazy', nothing],
    ] as const
    const states = steps.map(([durability, work]) => {
      transactions.transact(durability, work)
      return transactions.hasUnsynced
    })
    expect(states).toEqual([true, true, true, false, true, true])
  })
})

const run = sampleRunId(1)
const start = stamped(run, [everyFact(run).run_started])

describe('what others act upon', () => {
  it('is synced when it is answered: a take-over and a put harden what came before', async () => {
    const ledger = await store(database())
    const command = { type: 'steer', message: sampleMessage('x'), receipt: 'r' } as const
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    expect(ledger.transactions.hasUnsynced).toBe(true)
    await ledger.acquire(run)
    expect(ledger.transactions.hasUnsynced).toBe(false)
    const next = stamped(run, [everyFact(run).cancel_requested], { afterSeq: 1, epoch: 2 })
    await ledger.append(run, { expectedSeq: 1, epoch: 2 }, next, { durability: 'lazy' })
    await ledger.put(run, { key: 'k1', command, at: 1 })
    expect(ledger.transactions.hasUnsynced).toBe(false)
  })

  it('is synced when the ledger is closed', async () => {
    const path = temporaryFile()
    const ledger = sqliteLedger(path)
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    await ledger.close()
    expect(withRaw(path, (opened) => opened.prepare('select count from barrier').pluck().get())).toBe(1)
  })
})

describe('bringing a file to the newest schema', () => {
  it('holds the write lock from its start, so that two processes do not do it both', async () => {
    const opened = database()
    const other = new BetterSqlite3(opened.name, { timeout: 0 })
    onTestFinished(() => void other.close())
    const migration = migrate(opened, new Kysely({ dialect: new SqliteDialect({ database: opened }) }))
    while (!opened.inTransaction) await Promise.resolve()
    expect(() => other.exec('begin immediate')).toThrow(/locked/)
    await migration
    expect(other.pragma('user_version', { simple: true })).toBe(schemaVersion)
  })
})

describe('a barrier that has nothing to write', () => {
  const barriers = (opened: Database): unknown => opened.prepare('select count from barrier').pluck().get()

  it('writes all the same, since a commit without a page syncs nothing', async () => {
    const opened = database()
    const ledger = await store(opened)
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    expect([barriers(opened), ledger.transactions.hasUnsynced]).toEqual([0, true])
    await ledger.append(run, { expectedSeq: 1, epoch: 1 }, [], { durability: 'barrier' })
    expect([barriers(opened), ledger.transactions.hasUnsynced]).toEqual([1, false])
    await ledger.append(run, { expectedSeq: 1, epoch: 1 }, [], { durability: 'lazy' })
    expect(barriers(opened)).toBe(1)
  })

  it('hardens what a lost acknowledgement was about', async () => {
    const opened = database()
    const ledger = await store(opened)
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' })
    expect([barriers(opened), ledger.transactions.hasUnsynced]).toEqual([1, false])
  })

  it('lasts after closing, where lazy appends are left', async () => {
    const opened = database()
    const ledger = await store(opened)
    ledger.harden()
    expect(barriers(opened)).toBe(0)
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    ledger.harden()
    expect([barriers(opened), ledger.transactions.hasUnsynced]).toEqual([1, false])
  })

  it('is still owed after a put that finds its key known', async () => {
    const opened = database()
    const ledger = await store(opened)
    const entry = {
      key: 'k1',
      command: { type: 'steer', message: sampleMessage('x'), receipt: 'r' },
      at: 1,
    } as const
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' })
    expect(await ledger.put(run, entry)).toBe(true)
    const next = stamped(run, [everyFact(run).cancel_requested], { afterSeq: 1 })
    await ledger.append(run, { expectedSeq: 1, epoch: 1 }, next, { durability: 'lazy' })
    expect(await ledger.put(run, entry)).toBe(false)
    expect(ledger.transactions.hasUnsynced).toBe(true)
    ledger.harden()
    expect([barriers(opened), ledger.transactions.hasUnsynced]).toEqual([1, false])
  })

  it('refused for its head writes nothing', async () => {
    const opened = database()
    const ledger = await store(opened)
    const refused = ledger.append(run, { expectedSeq: 3, epoch: 1 }, [], { durability: 'barrier' })
    await expect(refused).rejects.toThrow(/ends at seq 0/)
    expect(barriers(opened)).toBe(0)
  })
})

import BetterSqlite3, { type Database } from 'better-sqlite3'
import { sampleFacts, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Transactions } from '../src/sqlite/commit.ts'
import { commitsInLog } from './support/wal-commits.ts'
import { openStore } from './support/open-store.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const [normal, full] = [1, 2]

function database(): Database {
  const opened = new BetterSqlite3(temporaryFile())
  onTestFinished(() => void opened.close())
  opened.pragma('journal_mode = wal')
  opened.pragma('synchronous = full')
  return opened
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

  it('may be unsynced until a barrier follows, whether that writes or not', () => {
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
    expect(states).toEqual([true, true, false, false, true, true])
  })
})

const run = sampleRunId(1)
const start = stampFacts(run, [sampleFacts(run).run_started])

const command = JSON.stringify({ type: 'steer', message: sampleMessage('x'), receipt: 'r' })
const next = stampFacts(run, [sampleFacts(run).cancel_requested], { afterSeq: 1 })

describe('what others act upon', () => {
  it('is synced when it is answered: a take-over and a put harden what came before', async () => {
    const { store, append } = openStore()
    await append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    expect(store.transactions.hasUnsynced).toBe(true)
    await store.acquire(run)
    expect(store.transactions.hasUnsynced).toBe(false)
    const later = stampFacts(run, [sampleFacts(run).cancel_requested], { afterSeq: 1, epoch: 2 })
    await append(run, { expectedSeq: 1, epoch: 2 }, later, { durability: 'lazy' })
    await store.put(run, { key: 'k1', command, at: 1 })
    expect(store.transactions.hasUnsynced).toBe(false)
  })

  it('is synced when the ledger is closed', async () => {
    const { store, append } = openStore()
    await append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    await store.close()
    expect(store.transactions.hasUnsynced).toBe(false)
  })
})

describe('a barrier that has nothing to write', () => {
  it('writes all the same, since a commit without a page syncs nothing', async () => {
    const { path, store, append } = openStore()
    await append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    const before = commitsInLog(path)
    await append(run, { expectedSeq: 1, epoch: 1 }, [], { durability: 'barrier' })
    expect([commitsInLog(path) - before, store.transactions.hasUnsynced]).toEqual([1, false])
    await append(run, { expectedSeq: 1, epoch: 1 }, [], { durability: 'lazy' })
    expect(commitsInLog(path) - before).toBe(1)
  })

  it('hardens what a lost acknowledgement was about, and what a key that is known was put with', async () => {
    const { path, store, append } = openStore()
    await append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'lazy' })
    const before = commitsInLog(path)
    await append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' })
    expect([commitsInLog(path) - before, store.transactions.hasUnsynced]).toEqual([1, false])
    expect(await store.put(run, { key: 'k1', command, at: 1 })).toBe(true)
    await append(run, { expectedSeq: 1, epoch: 1 }, next, { durability: 'lazy' })
    expect(await store.put(run, { key: 'k1', command, at: 1 })).toBe(false)
    expect(store.transactions.hasUnsynced).toBe(false)
  })

  it('refused for its head leaves nothing behind', async () => {
    const { path, append } = openStore()
    const before = commitsInLog(path)
    const refused = append(run, { expectedSeq: 3, epoch: 1 }, [], { durability: 'barrier' })
    await expect(refused).rejects.toThrow(/ends at seq 0/)
    expect(commitsInLog(path)).toBe(before)
  })
})

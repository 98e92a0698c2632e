import { sampleRunId, sampleFacts, stampFacts } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3, { type Database } from 'better-sqlite3'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ChangeFeed } from '../src/sqlite/changes.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const [run, otherRun] = [sampleRunId(1), sampleRunId(2)]
const intervalMs = 250

function twoConnections(): readonly [Database, Database] {
  const path = emptyLedgerFile()
  const connections = [new BetterSqlite3(path), new BetterSqlite3(path)] as const
  onTestFinished(() => connections.forEach((connection) => void connection.close()))
  connections[0].exec('create table t (a integer) strict')
  return connections
}

/** What a transaction of a connection finds: another number where another connection has committed. */
describe('a change feed', () => {
  it('looks for what others wrote only while it has a subscriber', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const [mine] = twoConnections()
    const feed = new ChangeFeed(mine, intervalMs)
    expect(vi.getTimerCount()).toBe(0)
    const [first, second] = [feed.of(run).subscribe(), feed.of(otherRun).subscribe()]
    expect(vi.getTimerCount()).toBe(1)
    first.unsubscribe()
    expect(vi.getTimerCount()).toBe(1)
    second.unsubscribe()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('hints at a commit of another connection at the next look, once, to everybody', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const [mine, theirs] = twoConnections()
    const feed = new ChangeFeed(mine, intervalMs)
    const received = [0, 0]
    const subscriptions = [run, otherRun].map((runId, index) => {
      return feed.of(runId).subscribe(() => (received[index] = (received[index] ?? 0) + 1))
    })
    theirs.exec('insert into t values (1); insert into t values (2)')
    expect(received).toEqual([0, 0])
    vi.advanceTimersByTime(intervalMs)
    expect(received).toEqual([1, 1])
    vi.advanceTimersByTime(10 * intervalMs)
    expect(received).toEqual([1, 1])
    theirs.exec('insert into t values (3)')
    vi.advanceTimersByTime(intervalMs)
    expect(received).toEqual([2, 2])
    subscriptions.forEach((subscription) => subscription.unsubscribe())
  })

  it('hints at once at what others wrote before a write of this ledger, and at the next look not again', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const [mine, theirs] = twoConnections()
    const feed = new ChangeFeed(mine, intervalMs)
    let received = 0
    const subscription = feed.of(otherRun).subscribe(() => received++)
    theirs.exec('insert into t values (1)')
    feed.notify(run, false)
    expect(received).toBe(1)
    feed.notify(run, true)
    expect(received).toBe(1)
    vi.advanceTimersByTime(intervalMs)
    expect(received).toBe(1)
    subscription.unsubscribe()
  })

  it('looks at nothing where it has appended and has no subscriber', () => {
    const [mine] = twoConnections()
    const feed = new ChangeFeed(mine, intervalMs)
    const looks = vi.spyOn(mine, 'prepare')
    onTestFinished(() => looks.mockRestore())
    feed.notify(run, false)
    expect(looks).not.toHaveBeenCalled()
    feed.of(run).subscribe().unsubscribe()
    expect(looks).toHaveBeenCalledTimes(1)
  })

  it('takes nothing of its own connection for a change by others', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const [mine] = twoConnections()
    const feed = new ChangeFeed(mine, intervalMs)
    let received = 0
    const subscription = feed.of(run).subscribe(() => received++)
    mine.exec('insert into t values (1)')
    vi.advanceTimersByTime(intervalMs)
    expect(received).toBe(0)
    feed.notify(otherRun)
    expect(received).toBe(0)
    feed.notify(run)
    expect(received).toBe(1)
    subscription.unsubscribe()
  })

  it('hints those who follow inboxes at no append of its own, but at once at what others wrote before it', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const [mine, theirs] = twoConnections()
    const feed = new ChangeFeed(mine, intervalMs)
    let [all, inbox] = [0, 0]
    const subscriptions = [
      feed.of(run).subscribe(() => all++),
      feed.of(run, 'inbox').subscribe(() => inbox++),
    ]
    mine.exec('insert into t values (1)')
    feed.notify(run, false)
    expect([all, inbox]).toEqual([1, 0])
    theirs.exec('insert into t values (2)')
    feed.notify(run, false)
    expect([all, inbox]).toEqual([3, 1])
    feed.notify(run)
    expect([all, inbox]).toEqual([4, 2])
    subscriptions.forEach((subscription) => subscription.unsubscribe())
    theirs.exec('insert into t values (3)')
    feed.notify(run, false)
    expect([all, inbox]).toEqual([4, 2])
  })

  it('completes for its listeners when it is closed, and stops looking', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const [mine] = twoConnections()
    const feed = new ChangeFeed(mine, intervalMs)
    let completed = 0
    feed.of(run).subscribe({ complete: () => completed++ })
    feed.close()
    expect([completed, vi.getTimerCount()]).toEqual([1, 0])
    feed.of(run).subscribe({ complete: () => completed++ })
    expect([completed, vi.getTimerCount()]).toEqual([2, 0])
  })

  it('hints when it can no longer look, so that the listener meets the error', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const [mine] = twoConnections()
    const feed = new ChangeFeed(mine, intervalMs)
    let received = 0
    const subscription = feed.of(run).subscribe(() => received++)
    mine.close()
    vi.advanceTimersByTime(intervalMs)
    expect(received).toBe(1)
    subscription.unsubscribe()
  })
})

describe('a subscriber that throws', () => {
  it('keeps neither the append nor other subscribers from what they want', async () => {
    const ledger = sqliteLedger(emptyLedgerFile())
    const reported: unknown[] = []
    const listener = (error: unknown): void => void reported.push(error)
    const before = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException').on('uncaughtException', listener)
    onTestFinished(() => {
      process.removeAllListeners('uncaughtException')
      before.forEach((each) => process.on('uncaughtException', each))
    })
    let received = 0
    ledger.changes(run).subscribe(() => {
      throw new Error('mine')
    })
    ledger.changes(run).subscribe(() => received++)
    const start = stampFacts(run, [sampleFacts(run).run_started])
    expect(await ledger.append(run, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' })).toEqual({
      seq: 1,
      epoch: 1,
    })
    expect(received).toBe(1)
    while (reported.length === 0) await new Promise((resolve) => setImmediate(resolve))
    expect(reported.map(String)).toEqual(['Error: mine'])
    await ledger.close()
  })
})

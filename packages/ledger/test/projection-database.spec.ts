import { LedgerDamagedError, LedgerUnavailableError } from '@tallystick/core'
import { sampleRunId } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { getDatabase } from '../src/store/store.ts'
import { perform, type Queries, type Steps, type StoreDatabase } from '../src/store/database.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

async function opened() {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close())
  await ledger.head(sampleRunId(1))
  return { path, ledger, database: getDatabase(ledger) as StoreDatabase }
}

/** Adds numbers to a revision, one by one, and returns their sum. */
const revised = (counts: readonly number[], last?: string) =>
  function* (queries: Queries): Steps<number> {
    const { sql } = queries
    for (const count of counts)
      yield* perform(queries, sql`update projection set revision = revision + ${count} where name = 'runs'`)
    if (last !== undefined) yield* perform(queries, sql.raw(last))
    return counts.reduce((sum, count) => sum + count)
  }
const revisions = `select revision from projection where name = 'runs'`

describe('a change of projections', () => {
  it('is made whole, or not at all', async () => {
    const { database } = await opened()
    const revision = async (): Promise<number> => {
      const [row] = await database.ask<{ readonly revision: number }>(revisions)
      return row?.revision ?? Number.NaN
    }
    const before = await revision()
    expect(await database.change(revised([1, 10]))).toBe(11)
    expect(await revision()).toBe(before + 11)
    await expect(database.change(revised([1], 'update nowhere set a = 1'))).rejects.toThrow(
      LedgerDamagedError,
    )
    expect(await revision()).toBe(before + 11)
  })
})

describe('a change of projections beside another process that writes', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  async function occupied() {
    const { path, database } = await opened()
    const other = new BetterSqlite3(path)
    onTestFinished(() => void other.close())
    other.exec('begin immediate')
    let ending: unknown = 'waits'
    database.change(revised([1])).then(
      (isDone) => (ending = isDone),
      (error: unknown) => (ending = error),
    )
    return { other, ending: () => ending }
  }

  it('is tried forty times in a second, and then refused', async () => {
    const { ending } = await occupied()
    await vi.advanceTimersByTimeAsync(974)
    expect(ending()).toBe('waits')
    await vi.advanceTimersByTimeAsync(1)
    expect(ending()).toBeInstanceOf(LedgerUnavailableError)
    expect(String(ending())).toContain('SQLITE_BUSY')
  })

  it('is made when that process is done', async () => {
    const { other, ending } = await occupied()
    await vi.advanceTimersByTimeAsync(30)
    other.exec('rollback')
    await vi.advanceTimersByTimeAsync(19)
    expect(ending()).toBe('waits')
    await vi.advanceTimersByTimeAsync(1)
    expect(ending()).toBe(1)
  })
})

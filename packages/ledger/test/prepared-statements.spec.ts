import { everyFact, sampleMessage, sampleRunId, stamped } from '@tallystick/core/testing'
import BetterSqlite3 from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { expect, it, onTestFinished, vi } from 'vitest'
import { migrate } from '../src/sqlite/schema/migrate.ts'
import type { LedgerTables } from '../src/sqlite/schema/tables.ts'
import { SqliteStore } from '../src/sqlite/sqlite-store.ts'
import { temporaryFile } from './support/temporary-folder.ts'

it('a store prepares its statements when they are first needed, and never again', async () => {
  const database = new BetterSqlite3(temporaryFile())
  onTestFinished(() => void database.close())
  const tables = new Kysely<LedgerTables>({ dialect: new SqliteDialect({ database }) })
  await migrate(database, tables)
  const store = new SqliteStore(database, tables)
  const prepare = vi.spyOn(database, 'prepare')
  onTestFinished(() => prepare.mockRestore())
  /** How many statements are prepared where a run is written and read. */
  const preparedFor = async (ordinal: number): Promise<number> => {
    prepare.mockClear()
    const runId = sampleRunId(ordinal)
    const command = { type: 'steer', message: sampleMessage('x'), receipt: 'r' } as const
    const start = stamped(runId, [everyFact(runId).run_started])
    await store.append(runId, { expectedSeq: 0, epoch: 1 }, start, { durability: 'barrier' })
    await store.put(runId, { key: 'k', command, at: 1 })
    await store.acquire(runId)
    store.inbox(runId)
    store.firstRow(runId)
    expect(store.search.rowAt(ordinal)).toBeDefined()
    expect(store.removals.batch(0)).toEqual([])
    expect(await store.leases.take(runId, 'me', 1_000)).toBe(true)
    await store.leases.renew('me', 2_000)
    await store.leases.giveBack(runId, 'me')
    expect(store.leases.expired()).toEqual([])
    expect(store.projections).toBe(store.projections)
    expect(store.audits).toBe(store.audits)
    return prepare.mock.calls.length
  }
  expect(await preparedFor(1)).toBeGreaterThan(0)
  expect(await preparedFor(2)).toBe(0)
})

import type { RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleMessage, sampleRunId, stamped } from '@tallystick/core/testing'
import BetterSqlite3 from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { expect, it, onTestFinished, vi } from 'vitest'
import { migrate } from '../src/sqlite/schema/migrate.ts'
import type { LedgerTables } from '../src/sqlite/schema/tables.ts'
import { SqliteStore } from '../src/sqlite/sqlite-store.ts'
import { temporaryFile } from './support/temporary-folder.ts'

/** An open store, and the statements that it has prepared since it was opened. */
async function openStore() {
  const database = new BetterSqlite3(temporaryFile())
  onTestFinished(() => void database.close())
  const tables = new Kysely<LedgerTables>({ dialect: new SqliteDialect({ database }) })
  await migrate(database, tables)
  const store = new SqliteStore(database, tables)
  const prepare = vi.spyOn(database, 'prepare')
  onTestFinished(() => prepare.mockRestore())
  return { store, prepare }
}

it('a store prepares its statements when they are first needed, and never again', async () => {
  const { store, prepare } = await openStore()
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
    await store.acquire(runId, { holder: 'me', forMs: 1_000 })
    expect(await store.renew([runId], { holder: 'me', forMs: 2_000 })).toEqual([runId])
    await store.release(runId, 'me')
    expect(store.leases.of(runId)).toBeUndefined()
    expect(store.projections).toBe(store.projections)
    expect(store.audits).toBe(store.audits)
    return prepare.mock.calls.length
  }
  expect(await preparedFor(1)).toBeGreaterThan(0)
  expect(await preparedFor(2)).toBe(0)
})

it('a large text has those statements prepared that keep it, and none of what takes content away', async () => {
  const { store, prepare } = await openStore()
  const runId = sampleRunId(1)
  const facts = everyFact(runId)
  const input = { ...facts.input_received, message: sampleMessage('x'.repeat(100_000)) }
  const [start, received] = stamped(runId, [facts.run_started, input])
  const append = (event: RuntimeEvent | undefined, expectedSeq: number) =>
    store.append(runId, { expectedSeq, epoch: 1 }, event ? [event] : [], { durability: 'barrier' })
  await append(start, 0)
  prepare.mockClear()
  await append(received, 1)
  const found = prepare.mock.calls.map(([text]) => text.split(' ').slice(0, 3).join(' '))
  expect(found).toEqual(['select body from', 'insert into content', 'insert into content_use'])
})

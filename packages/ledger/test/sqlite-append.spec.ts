import { LedgerConflictError, type RunId, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleCallId, sampleRunId, stamped } from '@tallystick/core/testing'
import type { Fact } from '@tallystick/core/vocabulary'
import BetterSqlite3 from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { storedBody } from '../src/content/event/stored-body.ts'
import { migrate } from '../src/sqlite/schema/migrate.ts'
import type { LedgerTables } from '../src/sqlite/schema/tables.ts'
import { SqliteStore } from '../src/sqlite/sqlite-store.ts'
import { append } from '../src/sqlite/write/append.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const run = sampleRunId(1)
const facts = everyFact(run)
const lazy = { durability: 'lazy' } as const
const atStart = { expectedSeq: 0, epoch: 1 }

async function opened(): Promise<SqliteStore> {
  const database = new BetterSqlite3(temporaryFile())
  onTestFinished(() => void database.close())
  const tables = new Kysely<LedgerTables>({ dialect: new SqliteDialect({ database }) })
  await migrate(database, tables)
  return new SqliteStore(database, tables)
}

function started(runId: RunId, sessionPlace?: number): readonly RuntimeEvent[] {
  const { sessionId: _session, sessionPlace: _place, ...fact } = everyFact(runId).run_started
  return stamped(runId, [sessionPlace === undefined ? fact : { ...fact, sessionId: 's', sessionPlace }])
}

describe('an append to a SQLite store', () => {
  it('tells a group how many events and bytes it adds', async () => {
    const store = await opened()
    const events = stamped(run, [facts.run_started, facts.cancel_requested, facts.run_finished])
    const write = append(store, { runId: run, expected: atStart, events }, lazy)
    const bytes = events.map((event) => storedBody(event, undefined).bytes.length)
    expect(write).toMatchObject({ ...lazy, events: 3, bytes: bytes.reduce((sum, count) => sum + count) })
    expect(bytes.every((count) => count > 0)).toBe(true)
    const none = append(store, { runId: run, expected: atStart, events: [] }, lazy)
    expect(none).toMatchObject({ events: 0, bytes: 0 })
  })

  it('reads events back only where its own may be on record', async () => {
    const store = await opened()
    const iterate = vi.spyOn(store.reads.events, 'iterate')
    await store.append(run, atStart, started(run), lazy)
    const next = stamped(run, [facts.cancel_requested], { afterSeq: 1 })
    await store.append(run, { expectedSeq: 1, epoch: 1 }, next, lazy)
    expect(iterate).not.toHaveBeenCalled()
    expect(await store.append(run, atStart, started(run), lazy)).toEqual({ seq: 1, epoch: 1 })
    expect(iterate).toHaveBeenCalledOnce()
  })

  it('of no event is refused where the run has gone on, as any other is', async () => {
    const store = await opened()
    await store.append(run, atStart, started(run), lazy)
    await expect(store.append(run, atStart, [], lazy)).rejects.toThrow(/ends at seq 1/)
    expect(await store.append(run, { expectedSeq: 1, epoch: 1 }, [], lazy)).toEqual({ seq: 1, epoch: 1 })
    const other = started(run).map((event) => ({ ...event, at: event.at + 1 }))
    await expect(store.append(run, atStart, other, lazy)).rejects.toThrow(/ends at seq 1/)
  })

  it('takes a place of a session once, whatever comes after it', async () => {
    const store = await opened()
    const ids = [2, 3, 4, 5].map(sampleRunId) as [RunId, RunId, RunId, RunId]
    await store.append(ids[0], atStart, started(ids[0], 1), lazy)
    await store.append(ids[1], atStart, started(ids[1], 2), lazy)
    for (const place of [1, 2]) {
      await expect(store.append(ids[2], atStart, started(ids[2], place), lazy)).rejects.toThrow(
        `cannot have place ${place} of session s`,
      )
    }
    await store.append(ids[2], atStart, started(ids[2], 4), lazy)
    await store.append(ids[3], atStart, started(ids[3], 3), lazy)
    expect([...store.runs({ sessionId: 's' })].map(({ runId }) => runId)).toEqual([
      ...[ids[2], ids[3], ids[1], ids[0]],
    ])
  })

  it('names the fact that is on record already, unless something else went wrong', async () => {
    const store = await opened()
    await store.append(
      run,
      atStart,
      [...started(run), ...stamped(run, [facts.tool_started], { afterSeq: 1 })],
      lazy,
    )
    const twice = stamped(run, [facts.cancel_requested, facts.tool_started], { afterSeq: 2 })
    const again = (): Promise<unknown> => store.append(run, { expectedSeq: 2, epoch: 1 }, twice, lazy)
    await expect(again()).rejects.toThrow(/has tool_started .* on record already/)
    const insert = vi.spyOn(store.writes.insertEvents, 'run').mockImplementation(() => {
      throw new BetterSqlite3.SqliteError('database or disk is full', 'SQLITE_FULL')
    })
    await expect(again()).rejects.toThrow('database or disk is full')
    insert.mockImplementation(() => {
      throw new BetterSqlite3.SqliteError('of a column', 'SQLITE_CONSTRAINT_UNIQUE')
    })
    const other = stamped(run, [facts.cancel_requested], { afterSeq: 2 })
    await expect(store.append(run, { expectedSeq: 2, epoch: 1 }, other, lazy)).rejects.toThrow('of a column')
  })

  it('passes on what else fails where a run begins', async () => {
    const store = await opened()
    const insert = vi.spyOn(store.writes.insertRun, 'run').mockImplementation(() => {
      throw new BetterSqlite3.SqliteError('database or disk is full', 'SQLITE_FULL')
    })
    await expect(store.append(run, atStart, started(run), lazy)).rejects.toThrow('database or disk is full')
    insert.mockRestore()
    expect(await store.append(run, atStart, started(run), lazy)).toEqual({ seq: 1, epoch: 1 })
  })

  it('names the fact that is stated again, and none beside it, in rows of their own or with others', async () => {
    const store = await opened()
    const call = (ordinal: number): object => ({ toolCallId: sampleCallId(run, ordinal) })
    const result = (ordinal: number): Fact => ({ ...facts.tool_result, ...call(ordinal) })
    // A large one has a row of its own.
    const large = (ordinal: number): Fact =>
      ({ ...result(ordinal), content: [{ type: 'text', text: 'x'.repeat(20_000) }] }) as Fact
    const events = (afterSeq: number, ...said: readonly Fact[]): readonly RuntimeEvent[] =>
      stamped(run, said, { afterSeq }).map((event) => ({ ...event, turn: 1 }))
    const usage = facts.usage_updated
    await store.append(run, atStart, [...started(run), ...events(1, large(1), usage, result(2))], lazy)
    const again = (...said: readonly Fact[]): Promise<unknown> =>
      store.append(run, { expectedSeq: 4, epoch: 1 }, events(4, ...said), lazy)
    const named = (ordinal: number): string =>
      `has tool_result ${sampleCallId(run, ordinal)} on record already`
    await expect(again(usage, result(3), large(1))).rejects.toThrow(named(1))
    await expect(again(large(4), usage, result(2))).rejects.toThrow(named(2))
    await expect(again(large(1), usage, result(2))).rejects.toThrow(named(2))
    await expect(again(usage, result(3), result(3))).rejects.toThrow(named(3))
    expect(await again(usage, result(3), large(4))).toEqual({ seq: 7, epoch: 1 })
  })

  it('of no event is refused to a writer that was relieved, wherever it thinks the run ends', async () => {
    const store = await opened()
    await store.append(run, atStart, started(run), lazy)
    await store.acquire(run)
    for (const expectedSeq of [0, 1]) {
      await expect(store.append(run, { expectedSeq, epoch: 1 }, [], lazy)).rejects.toThrow(
        LedgerConflictError,
      )
    }
  })

  it('counts places from 1, one for each event, and a run has that of its first', async () => {
    const store = await opened()
    const delta = facts.assistant_text_delta
    await store.append(
      run,
      atStart,
      [...started(run), ...stamped(run, [delta, delta], { afterSeq: 1 })],
      lazy,
    )
    const other = sampleRunId(2)
    await store.append(other, atStart, started(other), lazy)
    const next = stamped(run, [facts.cancel_requested], { afterSeq: 3 })
    await store.append(run, { expectedSeq: 3, epoch: 1 }, next, lazy)
    const places = [run, other].map((runId) =>
      [...store.reads.events.iterate({ runId, fromSeq: 1, toSeq: 9 })].map(({ pos, seq }) => [pos, seq]),
    )
    expect(places).toEqual([
      [
        [1, 1],
        [3, 3],
        [5, 4],
      ],
      [[4, 1]],
    ])
    expect([run, other].map((runId) => store.reads.run.get({ runId })?.pos)).toEqual([1, 4])
  })
})

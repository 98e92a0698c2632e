import { LedgerDamagedError, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findEvents } from '../src/read/find-events.ts'
import type { FoundBatch, SearchedStore } from '../src/read/event-search.ts'
import { searchQueries } from '../src/sqlite/rows/search-queries.ts'
import type { LedgerTables } from '../src/sqlite/schema/tables.ts'
import { tamper } from './support/raw-database.ts'
import { driveLookingRun } from './support/looking-run.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const [first, second] = [1, 2].map(sampleRunId) as [RunId, RunId]

function openFile(path: string): Ledger {
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close())
  return ledger
}

async function fill(ledger: Ledger, runId: RunId, events = 3): Promise<readonly RuntimeEvent[]> {
  const facts = everyFact(runId)
  const filling = Array.from({ length: events - 2 }, () => facts.usage_updated)
  const all = stamped(runId, [facts.run_started, ...filling, facts.run_finished])
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, all, { durability: 'lazy' })
  return all
}

/** How SQLite carries out each query of a search. */
async function plans(): Promise<ReadonlyMap<string, string>> {
  const path = emptyLedgerFile()
  const ledger = sqliteLedger(path)
  await fill(ledger, first)
  await ledger.close()
  const database = new BetterSqlite3(path)
  onTestFinished(() => void database.close())
  const texts: string[] = []
  const watched = new Proxy(database, {
    get: (target, name) => {
      if (name !== 'prepare') return Reflect.get(target, name) as unknown
      return (text: string) => (texts.push(text), target.prepare(text))
    },
  })
  const tables = new Kysely<LedgerTables>({ dialect: new SqliteDialect({ database }) })
  const names = Object.keys(searchQueries(watched, tables))
  const planOf = (text: string): string =>
    database
      .prepare<unknown[], { detail: string }>(`explain query plan ${text}`)
      .all(...Array.from(text.matchAll(/\?/g), () => 1))
      .map(({ detail }) => detail)
      .join('; ')
  return new Map(names.map((name, index) => [name, planOf(texts[index] ?? '')]))
}

describe('a search in SQLite', () => {
  it('finds events by the index of what it was asked for, and sorts nothing', async () => {
    const found = await plans()
    const seq = /sqlite_autoindex_event_1 \(run_id=\? AND seq>\? AND seq<\?\)/
    expect(found.get('run')).toMatch(seq)
    expect(found.get('turnAt')).toMatch(
      /^SEARCH event USING INDEX sqlite_autoindex_event_1 \(run_id=\? AND seq>\?\)$/,
    )
    expect(found.get('type')).toMatch(
      /^SEARCH event USING INDEX event_rare_type \(run_id=\? AND type=\? AND seq>\? AND seq<\?\)/,
    )
    expect(found.get('call')).toMatch(
      /^SEARCH event USING INDEX event_tool_call \(tool_call_id=\? AND seq>\? AND seq<\?\)/,
    )
    expect(found.get('place')).toMatch(/^SEARCH event USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/)
    for (const by of ['run', 'type', 'call', 'place']) {
      const plan = found.get(by)
      expect(plan).toMatch(/SEARCH payload USING INTEGER PRIMARY KEY/)
      expect(plan).toMatch(/SEARCH previous USING INDEX sqlite_autoindex_event_1 \(run_id=\? AND seq=\?\)/)
      expect(plan).not.toMatch(/TEMP B-TREE FOR ORDER BY|SCAN (event|payload|previous)/)
    }
    expect(found.get('runsOfCall')).toMatch(/SEARCH event USING INDEX event_tool_call/)
    expect(found.get('places')).not.toMatch(/SCAN event/)
    expect(found.get('placesAt')).toMatch(/^SEARCH event USING COVERING INDEX event_at/)
  })

  it('finds what lies within a time that others are far from, whatever the order of times', async () => {
    const ledger = openFile(emptyLedgerFile())
    const events: RuntimeEvent[] = []
    for (const [ordinal, at] of [5_000, 1_000, 9_000, 1_001, 4_999].entries()) {
      const runId = sampleRunId(ordinal + 1)
      const batch = stamped(runId, [everyFact(runId).run_started]).map((event) => ({ ...event, at }))
      const unplaced = batch.map((event) => ({ ...event, sessionId: `s${ordinal}` }))
      await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, unplaced, { durability: 'lazy' })
      events.push(...unplaced)
    }
    const within = await Array.fromAsync(ledger.find({ fromAt: 1_000, toAt: 1_500 }))
    expect(within).toEqual([events[1], events[3]])
    expect(await Array.fromAsync(ledger.find({ fromAt: 9_001 }))).toEqual([])
  })

  it.each([
    ['a body', `update payload set body = x'7b7d' where pos = 2`, { types: ['usage_updated'] }],
    ['a time', `update event set at = 7 where seq = 2 and pos = 2`, { toAt: 7 }],
    ['a type', `update event set type = 'tool_progress' where pos = 2`, { types: ['tool_progress'] }],
    ['an event in front', `delete from event where pos = 2`, { types: ['run_finished'] }],
    ['a payload that is gone', `delete from payload where pos = 2`, { turn: 1 }],
  ] as const)('stops at a row that has changed: %s', async (_name, change, query) => {
    const path = emptyLedgerFile()
    const ledger = sqliteLedger(path)
    await fill(ledger, first)
    await ledger.close()
    tamper(path, (database) => database.exec(change))
    await expect(Array.fromAsync(openFile(path).find(query))).rejects.toThrow(LedgerDamagedError)
  })

  it('finds what is rare after thousands that are not asked for', async () => {
    const ledger = openFile(emptyLedgerFile())
    const events = await fill(ledger, first, 20_000)
    const [last] = events.slice(-1)
    expect(await Array.fromAsync(ledger.find({ types: ['run_finished'] }))).toEqual([last])
    expect(await Array.fromAsync(ledger.find({ runId: first, fromAt: last?.at ?? 0 }))).toEqual([last])
  })

  it('finds the events of each turn, of frequent types and of rare ones, as a walk through all of them does', async () => {
    const ledger = openFile(emptyLedgerFile())
    const pause = (): Promise<void> => Promise.resolve()
    const runId = await driveLookingRun({ ledger, turns: 9, seed: 8, pause })
    await driveLookingRun({ ledger, turns: 4, seed: 9, pause })
    const all = await Array.fromAsync(ledger.read(runId))
    const seqs = (events: readonly RuntimeEvent[]): readonly number[] => events.map(({ seq }) => seq)
    const typesAsked = [
      undefined,
      ['tool_result'],
      ['run_finished'],
      ['run_started', 'tool_result', 'assistant_text_delta', 'run_finished'],
    ] as const
    for (const turn of [undefined, 0, 1, 2, 5, 9, 10, 99]) {
      for (const types of typesAsked) {
        const query = { runId, ...(turn !== undefined && { turn }), ...(types && { types }) }
        const due = all.filter(
          (event) =>
            (turn === undefined || event.turn === turn) &&
            (types === undefined || (types as readonly string[]).includes(event.type)),
        )
        expect([query, seqs(await Array.fromAsync(ledger.find(query)))]).toEqual([query, seqs(due)])
      }
    }
  })

  it('reads no further than it is asked to', async () => {
    const path = emptyLedgerFile()
    const ledger = sqliteLedger(path)
    await fill(ledger, first, 2_000)
    await ledger.close()
    tamper(path, (database) =>
      database.exec(`update payload set body = x'7b7d' where pos >= 1900 and pos = (
      select min(pos) from payload where pos >= 1900)`),
    )
    const again = openFile(path)
    const seqs: number[] = []
    for await (const { seq } of again.find()) if (seqs.push(seq) === 1_000) break
    expect(seqs.at(-1)).toBe(1_000)
    await expect(Array.fromAsync(again.find())).rejects.toThrow(/damaged at seq 1[89]\d\d/)
  })
})

/** A store that answers these pages, one after the other. */
function storeOf(batches: readonly FoundBatch[]): SearchedStore {
  const left = [...batches]
  return {
    runs: async () => [],
    places: async () => ({ fromPos: 1, toPos: 100 }),
    hasIndexOf: () => true,
    requireOpen: () => {},
    batch: async () => left.shift() ?? { rows: [] },
  }
}

describe('a search over any store', () => {
  it('continues after pages in which nothing was found', async () => {
    const next = { pos: 9, seq: 0 }
    expect(
      await Array.fromAsync(
        findEvents(
          storeOf([
            { rows: [], next },
            { rows: [], next },
          ]),
        ),
      ),
    ).toEqual([])
  })

  it('is stopped by an index that is out of order, and never runs for ever', async () => {
    const path = emptyLedgerFile()
    const ledger = openFile(path)
    await fill(ledger, first)
    await fill(ledger, second)
    const row = { pos: 3, seq: 3, run_id: first } as unknown as FoundBatch['rows'][number]
    const batches = [{ rows: [{ ...row, pos: 4 }, row] }]
    await expect(Array.fromAsync(findEvents(storeOf(batches)))).rejects.toThrow(/come out of order/)
  })
})

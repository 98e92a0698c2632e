import { LedgerDamagedError, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { sampleFacts, sampleCallId, sampleRunId, stampFacts } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  everyEvent,
  findEvents,
  findPlaces,
  findRuns,
  type FoundBatch,
  searchBatch,
  type SearchedRun,
} from '../src/store/find-events.ts'
import { RowReader } from '../src/store/read-events.ts'
import type { StoreDatabase } from '../src/store/database.ts'
import { openStore } from './support/open-store.ts'
import { tamper } from './support/raw-database.ts'
import { driveLookingRun } from './support/looking-run.ts'
import { emptyLedgerFile } from './support/temporary-folder.ts'

const first = sampleRunId(1)
const lazy = { durability: 'lazy' } as const

function openFile(path: string): Ledger {
  const ledger = sqliteLedger(path)
  onTestFinished(() => ledger.close())
  return ledger
}

async function fill(ledger: Ledger, runId: RunId, events = 3): Promise<readonly RuntimeEvent[]> {
  const facts = sampleFacts(runId)
  const filling = Array.from({ length: events - 2 }, () => facts.usage_updated)
  const all = stampFacts(runId, [facts.run_started, ...filling, facts.run_finished])
  await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, all, { durability: 'lazy' })
  return all
}

/** How SQLite carries out what a search of each kind asks. */
async function plans(): Promise<ReadonlyMap<string, readonly string[]>> {
  const { database, store, append } = openStore()
  const call = { ...sampleFacts(first).tool_result, toolCallId: sampleCallId(first) }
  await append(
    first,
    { expectedSeq: 0, epoch: 1 },
    stampFacts(first, [sampleFacts(first).run_started, call]),
    lazy,
  )
  const texts: string[] = []
  const prepare = database.prepare.bind(database)
  vi.spyOn(database, 'prepare').mockImplementation((text) => (texts.push(text), prepare(text)) as never)
  const run: SearchedRun = { runId: first, pos: 1, headSeq: 2 }
  const asked = { ...everyEvent, toolCallId: call.toolCallId }
  const kinds: Readonly<Record<string, () => Promise<unknown>>> = {
    run: () => searchBatch(store.database, everyEvent, { by: 'run', run }, { pos: 0, seq: 0 }),
    turn: () =>
      searchBatch(store.database, { ...everyEvent, turn: 1 }, { by: 'run', run }, { pos: 0, seq: 0 }),
    call: () => searchBatch(store.database, asked, { by: 'call', run }, { pos: 0, seq: 0 }),
    place: () =>
      searchBatch(store.database, everyEvent, { by: 'place', fromPos: 1, toPos: 2 }, { pos: 0, seq: 0 }),
    runsOfCall: () => findRuns(store.database, asked),
    places: () => findPlaces(store.database, everyEvent),
    placesAt: () => findPlaces(store.database, { ...everyEvent, fromAt: 1 }),
  }
  const planOf = (text: string): string =>
    (
      prepare(`explain query plan ${text}`).all(
        Object.fromEntries(Array.from(text.matchAll(/\$(\d+)/g), ([, name]) => [name, 1])),
      ) as {
        detail: string
      }[]
    )
      .map(({ detail }) => detail)
      .join('; ')
  const found = new Map<string, readonly string[]>()
  for (const [kind, search] of Object.entries(kinds)) {
    texts.length = 0
    await search()
    found.set(kind, texts.map(planOf))
  }
  return found
}

describe('a search in SQLite', () => {
  it('finds events by the index of what it was asked for, and sorts nothing', async () => {
    const found = await plans()
    const plan = (kind: string): string => found.get(kind)?.at(-1) ?? ''
    const seq = /^SEARCH event USING INDEX sqlite_autoindex_event_1 \(run_id=\? AND seq>\? AND seq<\?\)/
    expect(plan('run')).toMatch(seq)
    expect(plan('turn')).toMatch(seq)
    expect(plan('call')).toMatch(/^SEARCH event USING INDEX event_call \(tool_call_id=\?\)/)
    expect(plan('place')).toMatch(/^SEARCH event USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)/)
    for (const kind of ['run', 'turn', 'call', 'place']) {
      expect(plan(kind)).toMatch(
        /SEARCH previous USING INDEX sqlite_autoindex_event_1 \(run_id=\? AND seq=\?\)/,
      )
      expect(plan(kind)).not.toMatch(/SCAN (event|previous)/)
    }
    // The events of one call are few, and may be sorted.
    for (const kind of ['run', 'turn', 'place']) {
      expect(plan(kind)).not.toMatch(/TEMP B-TREE FOR ORDER BY/)
    }
    expect(found.get('runsOfCall')?.[0]).toMatch(/SEARCH event USING COVERING INDEX event_call/)
    expect(plan('places')).not.toMatch(/SCAN event/)
    expect(plan('placesAt')).toMatch(/^SEARCH event USING COVERING INDEX event_at/)
  })

  it('prepares its statements once, however often it is asked and however many runs it reads', async () => {
    const { database, store, append } = openStore()
    const search = (runId: RunId): Promise<readonly RuntimeEvent[]> =>
      Array.fromAsync(
        findEvents(store.database, new RowReader(store.database, undefined), {
          runId,
          types: ['run_started'],
        }),
      )
    const runIds = [first, sampleRunId(2), sampleRunId(3)]
    for (const runId of runIds) {
      await append(
        runId,
        { expectedSeq: 0, epoch: 1 },
        stampFacts(runId, [sampleFacts(runId).run_started]),
        lazy,
      )
    }
    const prepare = vi.spyOn(database, 'prepare')
    for (const runId of runIds) expect(await search(runId)).toHaveLength(1)
    // One finds the run, and one its events.
    expect(prepare).toHaveBeenCalledTimes(2)
  })

  it('finds what lies within a time that others are far from, whatever the order of times', async () => {
    const ledger = openFile(emptyLedgerFile())
    const events: RuntimeEvent[] = []
    for (const [ordinal, at] of [5_000, 1_000, 9_000, 1_001, 4_999].entries()) {
      const runId = sampleRunId(ordinal + 1)
      const batch = stampFacts(runId, [sampleFacts(runId).run_started]).map((event) => ({ ...event, at }))
      const unplaced = batch.map((event) => ({ ...event, sessionId: `s${ordinal}` }))
      await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, unplaced, { durability: 'lazy' })
      events.push(...unplaced)
    }
    const within = await Array.fromAsync(ledger.find({ fromAt: 1_000, toAt: 1_500 }))
    expect(within).toEqual([events[1], events[3]])
    expect(await Array.fromAsync(ledger.find({ fromAt: 9_001 }))).toEqual([])
  })

  it.each([
    ['a body', `update event set body = '{}' where pos = 2`, { types: ['usage_updated'] }],
    ['a time', `update event set at = 7 where seq = 2 and pos = 2`, { toAt: 7 }],
    ['a type', `update event set type = 'tool_progress' where pos = 2`, { types: ['tool_progress'] }],
    ['an event in front', `delete from event where pos = 2`, { types: ['run_finished'] }],
    ['content that is gone', `update event set salt = null, body = '{}' where pos = 2`, { turn: 1 }],
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
    tamper(path, (database) => database.exec(`update event set body = '{}' where pos = 1900`))
    const again = openFile(path)
    const seqs: number[] = []
    for await (const { seq } of again.find()) if (seqs.push(seq) === 1_000) break
    expect(seqs.at(-1)).toBe(1_000)
    await expect(Array.fromAsync(again.find())).rejects.toThrow(/damaged at seq 1[89]\d\d/)
  })
})

/** Searches a database of a hundred events that answers these rows, one batch after the other. */
function searched(batches: readonly FoundBatch['rows'][]): Promise<readonly RuntimeEvent[]> {
  const left = [...batches]
  const database = {
    maxScanned: 40,
    requireOpen: () => {},
    ask: async () => [{ first: 1, last: 100 }],
    askBatch: async () => left.shift() ?? [],
  } as unknown as StoreDatabase
  return Array.fromAsync(findEvents(database, new RowReader(database, undefined)))
}

describe('a search over any store', () => {
  it('continues after pages in which nothing was found', async () => {
    expect(await searched([[], [], []])).toEqual([])
  })

  it('is stopped by an index that is out of order, and never runs for ever', async () => {
    const row = { pos: 3, seq: 3, run_id: first, body: '{}' } as unknown as FoundBatch['rows'][number]
    await expect(searched([[], [{ ...row, pos: 4 }, row]])).rejects.toThrow(/come out of order/)
  })
})

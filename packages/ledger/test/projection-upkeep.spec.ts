// In which steps projections follow the events.
import { memoryLedger } from '@tallystick/core'
import {
  applyRetention,
  ledgerStats,
  projectionLag,
  rebuildProjections,
  runSummaries,
} from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { ProjectionTables } from '../src/projection/tables.ts'
import { databaseOf } from '../src/store/store.ts'
import type { StoreDatabase } from '../src/store/database.ts'
import { isRunId } from '../src/format/event-row.ts'
import { GrownLedger } from './support/grown-ledger.ts'
import { longRun } from './support/long-run.ts'
import { differing, everything, recordSome, statsOf } from './support/projection-bed.ts'
import { withRaw } from './support/raw-database.ts'
import { recordRun } from './support/record-run.ts'
import {
  addStale,
  begin,
  openedProjections as opened,
  stepsIn,
  watched,
} from './support/watched-projections.ts'

const staleRows = 'select run_id from run_summary where summary is null'

describe('projections follow the events', () => {
  it('64 runs at a time, and the place up to which they tell of events moves with the last', async () => {
    const { ledger, database, refresh } = opened()
    await begin(ledger, 1, 65)
    const first = watched(database)
    await refresh()
    expect(stepsIn(first)).toEqual([
      [64, 0, ''],
      [1, 0, '130'],
    ])
    await begin(ledger, 66, 129)
    const second = watched(database)
    await refresh()
    expect(stepsIn(second)).toEqual([[64, 0, '258']])
    // There are no sessions that would have to be looked at.
    expect(second.asked.filter(({ text }) => text.includes('session_summary'))).toEqual([])
    expect((await statsOf(ledger)).counts).toMatchObject({ unfinished: 129 })
  })

  it('also where content of many runs was removed, 64 at a time', async () => {
    const { path, ledger, database, refresh, rows } = opened()
    await begin(ledger, 1, 1)
    await refresh()
    addStale(path, 2, 66)
    const seen = watched(database)
    await refresh()
    expect(stepsIn(seen)).toEqual([
      [0, 64, '2'],
      [0, 1, '2'],
    ])
    expect(rows(staleRows)).toEqual([])
    addStale(path, 2, 2)
    await refresh()
    expect(rows(staleRows)).toEqual([])
  })

  it('by what is new of each run, which is heard', async () => {
    const { ledger, received, refresh } = opened()
    const elsewhere = memoryLedger()
    const events = await Array.fromAsync(elsewhere.read(await recordRun(elsewhere)))
    const grown = new GrownLedger([events])
    await grown.grow(ledger, 0, 10)
    await refresh()
    await grown.grow(ledger, 0, 7)
    await refresh()
    expect(received).toEqual([10, 7])
    await grown.grow(ledger, 0, 3)
    const reported: number[] = []
    await ledgerStats(ledger, everything, { onProgress: (more) => reported.push(more) })
    expect(reported).toEqual([3])
    // Without projections all events are read each time.
    const summed: number[] = []
    await ledgerStats(elsewhere, everything, { onProgress: (more) => summed.push(more) })
    expect(summed).toEqual([events.length])
  })

  it('and a look at those that are up to date changes nothing, and looks for new events once', async () => {
    const { ledger, database, reader, refresh } = opened()
    await recordSome(ledger, 2)
    await refresh()
    const seen = watched(database)
    await ledgerStats(ledger, everything)
    expect(seen).toMatchObject({ made: [], looks: 1 })
    await recordRun(ledger, 3)
    const asked = watched(database)
    await ledgerStats(ledger, everything, { refresh: false })
    expect(asked).toMatchObject({ made: [], looks: 1 })
    expect(await projectionLag(ledger)).toBeGreaterThan(0)
    const other = reader()
    const read = watched(databaseOf(other) as StoreDatabase)
    expect((await ledgerStats(other, everything)).counts.done).toBe(3)
    expect(read).toMatchObject({ made: [], looks: 1 })
  })

  it('and nothing is folded again where they tell of more events than their place says', async () => {
    const { ledger, received, refresh, tamper: change } = opened()
    await recordSome(ledger, 2)
    await refresh()
    received.length = 0
    change(`update projection set cursor = '' where name = 'runs'`)
    await refresh()
    expect(received).toEqual([])
    expect(await projectionLag(ledger)).toBe(0)
  })

  it('of other code not at all: every event is still to be told of', async () => {
    const { ledger, refresh, tamper: change } = opened()
    await recordSome(ledger, 2)
    await refresh()
    change(`update projection set version = 'other'`)
    const events = await Array.fromAsync(ledger.find())
    expect(await projectionLag(ledger)).toBe(events.length)
  })
})

describe('projections of up to 2000 runs that lag', () => {
  it('are made in memory, 64 at a time; where more lag, every run is folded', async () => {
    const { path, ledger, refresh, reader } = opened()
    await recordRun(ledger, 1)
    await refresh()
    const other = reader()
    const lists: string[] = []
    const runs = other.runs.bind(other)
    other.runs = (filter) => {
      lists.push('runs')
      return runs(filter)
    }
    const database = databaseOf(other) as StoreDatabase
    addStale(path, 1, 2000)
    const seen = watched(database)
    expect((await ledgerStats(other, everything)).counts).toMatchObject({ done: 1, unreadable: 0 })
    expect(lists).toEqual([])
    const sizes = seen.asked.map(({ values }) => values.filter(isRunId).length)
    expect(Math.max(...sizes)).toBe(64)
    addStale(path, 2001, 2001)
    expect((await ledgerStats(other, everything)).counts).toMatchObject({ done: 1, unreadable: 0 })
    expect(lists).toEqual(['runs'])
  })
})

describe('a session whose runs were all dropped', () => {
  it('begins with its next run', async () => {
    const { ledger, refresh, rows } = opened()
    const now = Date.UTC(2027, 0, 1)
    await longRun(ledger, 1, { sessionId: 'bob' })
    await refresh()
    await applyRetention(ledger, { factsMs: 60_000 }, { now })
    await refresh()
    const sessions = 'select runs, started_at, last_at from session_summary'
    expect(rows(sessions)).toMatchObject([{ runs: 0 }])
    expect((await statsOf(ledger)).sessions).toEqual([])
    await longRun(ledger, 1, { seed: 2, sessionId: 'bob', at: now })
    await refresh()
    expect(rows(sessions)).toEqual([{ runs: 1, started_at: now, last_at: now }])
    const later = now + 3_600_000
    await longRun(ledger, 1, { seed: 3, sessionId: 'bob', at: later })
    await refresh()
    expect(rows(sessions)).toEqual([{ runs: 2, started_at: now, last_at: later }])
    expect(await differing(ledger)).toEqual([])
  })
})

describe('a change of projections', () => {
  it('drops 512 rows at most', async () => {
    const { ledger, database, refresh, tamper: change } = opened()
    await begin(ledger, 1, 1)
    await refresh()
    const many = 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 513)'
    change(`${many} insert into snapshot select 'run ' || i, 'code', i, '', '', '' from n`)
    const { made } = watched(database)
    await rebuildProjections(ledger)
    const drops = made
      .filter(({ steps: [step] }) => step?.sql.startsWith('delete from "snapshot"'))
      .map(({ result }) => (result as readonly unknown[]).length)
    expect(drops).toEqual([512, 1, 0])
  })
})

describe('rows of runs', () => {
  it('are found by the index that fits what is asked', async () => {
    const { path, database } = opened()
    const tables = new ProjectionTables(database)
    const { asked } = watched(database)
    const page = { beforePos: 1000, limit: 10 }
    await tables.batch({ ...page, since: 1 })
    await tables.batch({ ...page, status: 'failed', since: 1 })
    await tables.batch({ ...page, agent: 'assistant', since: 1 })
    await tables.batch(page)
    const plans = asked.map(({ text, values }) =>
      withRaw(path, (file) => {
        const numbered = Object.fromEntries(values.map((value, index) => [index + 1, value]))
        const steps = file.prepare<[object], { detail: string }>(`explain query plan ${text}`).all(numbered)
        return steps.map(({ detail }) => detail).join('\n')
      }),
    )
    expect(plans[0]).toContain('run_summary_last')
    expect(plans[1]).toContain('run_summary_status')
    expect(plans[2]).toContain('run_summary_last')
    expect(plans[3]).toContain('INTEGER PRIMARY KEY (rowid<?)')
  })

  it('recorded under a text that is not a run id are not listed', async () => {
    const { ledger, refresh, tamper: change } = opened()
    await recordSome(ledger, 2)
    await refresh()
    change(`update run_summary set run_id = 'nobody' where pos = 1`)
    expect(await Array.fromAsync(runSummaries(ledger, { since: 0 }))).toHaveLength(1)
  })
})

// In which steps projections follow the events.
import { memoryLedger } from '@tallystick/core'
import {
  applyRetention,
  readLedgerStats,
  countProjectionLag,
  rebuildProjections,
  readRunSummaries,
} from '@tallystick/ledger'
import { describe, expect, it } from 'vitest'
import { ProjectionTables } from '../src/projection/projections.ts'
import { getDatabase } from '../src/store/store.ts'
import type { StoreDatabase } from '../src/store/database.ts'
import { GrownLedger } from './support/grown-ledger.ts'
import { longRun } from './support/long-run.ts'
import { differing, everything, recordSome, statsOf } from './support/projection-bed.ts'
import { withRaw } from './support/raw-database.ts'
import { recordRun } from './support/record-run.ts'
import { begin, openedProjections as opened, writesIn, watched } from './support/watched-projections.ts'

describe('projections follow the events', () => {
  it('64 runs at a time', async () => {
    const { ledger, database, refresh } = opened()
    await begin(ledger, 1, 65)
    const first = watched(database)
    await refresh()
    expect(writesIn(first)).toEqual([64, 1])
    await begin(ledger, 66, 129)
    const second = watched(database)
    await refresh()
    expect(writesIn(second)).toEqual([64])
    expect((await statsOf(ledger)).counts).toMatchObject({ unfinished: 129 })
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
    await readLedgerStats(ledger, everything, { onProgress: (more) => reported.push(more) })
    expect(reported).toEqual([3])
    // Without projections all events are read each time.
    const summed: number[] = []
    await readLedgerStats(elsewhere, everything, { onProgress: (more) => summed.push(more) })
    expect(summed).toEqual([events.length])
  })

  it('and a look at those that are up to date changes nothing', async () => {
    const { ledger, database, reader, refresh } = opened()
    await recordSome(ledger, 2)
    await refresh()
    const seen = watched(database)
    await readLedgerStats(ledger, everything)
    expect(seen).toMatchObject({ made: [] })
    await recordRun(ledger, 3)
    const asked = watched(database)
    await readLedgerStats(ledger, everything, { refresh: false })
    expect(asked).toMatchObject({ made: [] })
    expect(await countProjectionLag(ledger)).toBeGreaterThan(0)
    const other = reader()
    const read = watched(getDatabase(other) as StoreDatabase)
    expect((await readLedgerStats(other, everything)).counts.done).toBe(3)
    expect(read).toMatchObject({ made: [] })
  })

  it('of other code not at all: every event is still to be told of', async () => {
    const { ledger, refresh, tamper: change } = opened()
    await recordSome(ledger, 2)
    await refresh()
    change(`update projection set version = 'other'`)
    const events = await Array.fromAsync(ledger.find())
    expect(await countProjectionLag(ledger)).toBe(events.length)
  })
})

describe('projections of up to 2000 runs that lag', () => {
  it('are made in memory; where more lag, every run is folded', async () => {
    const { ledger, refresh, reader } = opened()
    await recordRun(ledger, 1)
    await refresh()
    const other = reader()
    const lists: string[] = []
    const runs = other.runs.bind(other)
    other.runs = (filter) => {
      lists.push('runs')
      return runs(filter)
    }
    await begin(ledger, 2, 2001)
    expect((await readLedgerStats(other, everything)).counts).toMatchObject({ done: 1, unfinished: 2000 })
    expect(lists).toEqual([])
    await begin(ledger, 2002, 2002)
    expect((await readLedgerStats(other, everything)).counts).toMatchObject({ done: 1, unfinished: 2001 })
    expect(lists).toEqual(['runs'])
  })
})

describe('a session whose runs were all dropped', () => {
  it('begins with its next run', async () => {
    const { ledger, refresh } = opened()
    const now = Date.UTC(2027, 0, 1)
    await longRun(ledger, 1, { sessionId: 'bob' })
    await refresh()
    await applyRetention(ledger, { factsMs: 60_000 }, { now })
    await refresh()
    const sessions = async () => (await statsOf(ledger)).sessions
    expect(await sessions()).toEqual([])
    await longRun(ledger, 1, { seed: 2, sessionId: 'bob', at: now })
    await refresh()
    expect(await sessions()).toMatchObject([{ runs: 1, startedAt: now, lastAt: now }])
    const later = now + 3_600_000
    await longRun(ledger, 1, { seed: 3, sessionId: 'bob', at: later })
    await refresh()
    expect(await sessions()).toMatchObject([{ runs: 2, startedAt: now, lastAt: later }])
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
    await tables.find({ since: 1 })
    await tables.find({ statuses: ['failed'], since: 1 })
    await tables.findPage({ agent: 'assistant', roots: true }, 1000, 10)
    await tables.findPage({}, 1000, 10)
    await tables.findPage({ roots: true }, 1000, 10)
    // Few runs are of that time, which is asked first.
    await tables.findPage({ startedSince: 1, startedUntil: 2, roots: true }, 1000, 10)
    const plans = asked.map(({ text, values }) =>
      withRaw(path, (file) => {
        const numbered = Object.fromEntries(values.map((value, index) => [index + 1, value]))
        const steps = file.prepare<[object], { detail: string }>(`explain query plan ${text}`).all(numbered)
        return steps.map(({ detail }) => detail).join('\n')
      }),
    )
    expect(plans[0]).toContain('run_summary_last')
    expect(plans[1]).toContain('run_summary_status')
    expect(plans[2]).toContain('own USING PRIMARY KEY (term=? AND pos<?)')
    expect(plans[3]).toContain('COVERING INDEX run_summary_walk (pos<?)')
    expect(plans[4]).toContain('COVERING INDEX run_summary_walk (pos<?)')
    for (const plan of plans.slice(5)) {
      expect(plan).toContain('COVERING INDEX run_summary_stats (started_at>? AND started_at<?)')
    }
    expect(plans).toHaveLength(7)
  })

  it('under a text that is not a run id are not listed: their runs are', async () => {
    const { ledger, refresh, tamper: change } = opened()
    await recordSome(ledger, 2)
    await refresh()
    change(`update run_summary set run_id = 'nobody' where pos = 1`)
    const [one, two] = await Array.fromAsync(ledger.runs(), ({ runId }) => runId)
    expect(await Array.fromAsync(readRunSummaries(ledger, { since: 0 }))).toMatchObject([
      { runId: one },
      { runId: two },
    ])
  })
})

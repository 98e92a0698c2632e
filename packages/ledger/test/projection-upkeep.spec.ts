import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryLedger, type Ledger, LedgerUnavailableError } from '@tallystick/core'
import {
  applyRetention,
  readLedgerStats,
  countProjectionLag,
  rebuildProjections,
  readRunSummaries,
  foldTo,
} from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, beforeAll } from 'vitest'
import { ProjectionTables } from '../src/projection/projections.ts'
import type { StoreDatabase } from '../src/store/database.ts'
import { getDatabase } from '../src/store/store.ts'
import { refreshed } from './support/compare-projections.ts'
import { GrownLedger } from './support/grown-ledger.ts'
import { rewrite } from './support/kept-ledger.ts'
import { longRun } from './support/long-run.ts'
import { differing, everything, recordSome, statsOf } from './support/projection-bed.ts'
import { withRaw, tamper } from './support/raw-database.ts'
import { recordRun } from './support/record-run.ts'
import { begin, openedProjections as opened, writesIn, watched } from './support/watched-projections.ts'

// In which steps projections follow the events.

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

describe('verify', () => {
  // What verify finds in tables that follow from the events: every column, one change at a time.

  let path: string
  let ledger: Ledger

  /** Two runs of one session, with what follows from them: one of them has a snapshot. */
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tallystick-audit-'))
    path = join(folder, 'runs.db')
    ledger = sqliteLedger(path)
    await longRun(ledger, 1, { sessionId: 'ann' })
    await foldTo(ledger, await longRun(ledger, 25, { seed: 2, sessionId: 'ann' }))
    await refreshed(ledger)
    return async () => {
      await ledger.close()
      rmSync(folder, { recursive: true })
    }
  })

  /** What verify finds to differ after a change, which is taken back. */
  async function foundAfter(table: string, change: string): Promise<readonly string[]> {
    tamper(path, (file) => file.exec(`create table before as select * from ${table}; ${change}`))
    const found = await differing(ledger)
    tamper(path, (file) =>
      file.exec(`delete from ${table}; insert into ${table} select * from before; drop table before`),
    )
    return found
  }

  it('finds nothing in projections and snapshots that are as their events say', async () => {
    expect(await differing(ledger)).toEqual([])
    const again = `update run_summary set summary = replace(summary, '{"runId"', '{ "runId"')`
    expect(await foundAfter('run_summary', again)).toEqual([])
    // A row that is missing is made anew.
    expect(await foundAfter('run_summary', 'delete from run_summary')).toEqual([])
  })

  const last = 'where pos = (select max(pos) from run_summary)'
  it.each([
    ['place', `update run_summary set pos = pos + 1000 ${last}`],
    ['event that is later', `update run_summary set seq = seq + 1 ${last}`],
    ['event that is earlier', `update run_summary set seq = seq - 1 ${last}`],
    ['hash', `update run_summary set head_hash = 'another' ${last}`],
    ['status', `update run_summary set status = 'failed' ${last}`],
    ['beginning', `update run_summary set started_at = started_at + 1 ${last}`],
    ['end', `update run_summary set last_at = last_at - 1 ${last}`],
    ['summary', `update run_summary set summary = replace(summary, 'answered', 'stopped') ${last}`],
    ['summary, cut off', `update run_summary set summary = '{' ${last}`],
    ['note', `update run_summary set notes = replace(notes, 'looker', 'somebody') ${last}`],
    ['session', `update run_summary set session_id = 'bob' ${last}`],
  ])('finds another %s of a run', async (_what, change) => {
    expect(await foundAfter('run_summary', change)).toContain('projection')
  })

  it.each([
    ['another agent', `update run_summary set agent = 'somebody' ${last}`],
    ['another term', `update run_summary set terms = replace(terms, 'looker', 'somebody') ${last}`],
    ['one term more', `update run_summary set terms = json_insert(terms, '$[#]', 'a somebody') ${last}`],
    ['one term less', `update run_summary set terms = json_remove(terms, '$[0]') ${last}`],
  ])('finds %s of a run', async (_what, change) => {
    expect(await foundAfter('run_summary', change)).toEqual(['projection'])
  })

  it('finds a run that its terms do not find', async () => {
    expect(await foundAfter('run_term', `delete from run_term where term like 'a %'`)).toContain('projection')
  })

  it('finds rows of runs that are not there', async () => {
    const gone = `update run_summary set run_id = 'nobody' ${last}`
    expect(await foundAfter('run_summary', gone)).toContain('projections of runs that are not there')
  })

  it.each([
    ['state', 'update snapshot set state = seal'],
    ['seal', 'update snapshot set seal = head_hash'],
    ['hash', 'update snapshot set head_hash = seal'],
    ['event that is earlier', 'update snapshot set seq = seq - 1'],
  ])('finds another %s of a snapshot', async (_what, change) => {
    expect(await foundAfter('snapshot', change)).toEqual([expect.stringMatching(/^snapshot at event \d+$/)])
  })

  it('finds a snapshot after the last event', async () => {
    expect(await foundAfter('snapshot', 'update snapshot set seq = seq + 1')).toEqual(['snapshot'])
  })
})

// What becomes of rows of projections that are not as they were written, and of a refresh that others are in the way of.

describe('rows of projections that are not as they were written', () => {
  it.each([
    ['whose run has another end', `update run_summary set head_hash = 'another'`],
    ['that tell of fewer events', `update run_summary set seq = seq - 1`],
  ])('%s are made anew', async (_which, statement) => {
    const { ledger, refresh, tamper: change } = opened()
    await recordSome(ledger, 2)
    await refresh()
    const sound = await statsOf(ledger)
    change(statement)
    expect(await differing(ledger)).toContain('projection')
    await refresh()
    expect(await differing(ledger)).toEqual([])
    expect(await statsOf(ledger)).toEqual(sound)
  })

  it('that cannot be read tell nothing: their runs do', async () => {
    const { ledger, refresh, reader, tamper: change } = opened()
    await recordSome(ledger, 3)
    await refresh()
    const sound = await statsOf(ledger)
    change(`update run_summary set summary = '{' where pos = 1`)
    expect(await readLedgerStats(reader(), everything)).toEqual(sound)
    expect(await differing(ledger)).toEqual(['projection'])
    await rebuildProjections(ledger)
    expect(await statsOf(ledger)).toEqual(sound)
    expect(await differing(ledger)).toEqual([])
  })

  it('of a run that was rewritten, chain and all, are made anew from its first event', async () => {
    const { path, ledger, refresh } = opened()
    const runId = await recordRun(ledger)
    await refresh()
    rewrite(path, runId, (body) => body.replaceAll('"outputTokens":17', '"outputTokens":18'))
    await refresh()
    expect((await statsOf(ledger)).spending).toMatchObject([{ calls: 2, usage: { outputTokens: 36 } }])
  })

  it('that were all deleted come back, with what lets folds leave snapshots', async () => {
    const { ledger, refresh, rows, tamper: change } = opened()
    const runId = await longRun(ledger, 25)
    await refresh()
    const sound = await statsOf(ledger)
    change(`delete from projection; delete from snapshot`)
    expect((await foldTo(ledger, runId)).phase).toBe('done')
    expect(rows('select seq from snapshot')).toEqual([])
    expect(await countProjectionLag(ledger)).toBe((await ledger.head(runId))?.seq)
    expect(await statsOf(ledger)).toEqual(sound)
    await refresh()
    expect(await countProjectionLag(ledger)).toBe(0)
    expect(await statsOf(ledger)).toEqual(sound)
    await foldTo(ledger, runId)
    expect(rows('select seq from snapshot')).toHaveLength(1)
  })
})

describe('projections beside other processes', () => {
  it('are read again where another one was quicker, and given up after fifty times', async () => {
    const { ledger, database, refresh } = opened()
    await recordSome(ledger, 1)
    await refresh()
    await recordRun(ledger, 2)
    const change = database.change.bind(database)
    let tries = 0
    Object.assign(database, {
      change: (...given: Parameters<typeof change>) =>
        tries++ === 0 ? Promise.resolve(false) : change(...given),
    })
    await refresh()
    expect(tries).toBe(3)
    expect((await statsOf(ledger)).counts.done).toBe(2)
    expect(await countProjectionLag(ledger)).toBe(0)
    await recordRun(ledger, 3)
    tries = 0
    Object.assign(database, { change: () => Promise.resolve(++tries < 0) })
    await expect(refresh()).rejects.toThrow(LedgerUnavailableError)
    await expect(refresh()).rejects.toThrow('other processes change them again and again')
    expect(tries).toBe(100)
  })

  it('stay as they are where the new events cannot be read', async () => {
    const { ledger, database, refresh } = opened()
    await recordSome(ledger, 1)
    await refresh()
    const { made } = watched(database)
    Object.assign(database, { query: () => Promise.reject(new LedgerUnavailableError('out of reach')) })
    await expect(refresh()).rejects.toThrow('out of reach')
    expect(made).toEqual([])
  })
})

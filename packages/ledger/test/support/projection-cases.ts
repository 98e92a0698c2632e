import { memoryLedger, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import {
  applyRetention,
  foldTo,
  ledgerStats,
  projectionLag,
  rebuildProjections,
  redact,
  runSummaries,
  verifyLedger,
  type LedgerStats,
} from '@tallystick/ledger'
import { expect } from 'vitest'
import { expectTold, refreshed } from './compare-projections.ts'
import { projectionDatabaseOf } from '../../src/projection/tables/projection-database.ts'
import { ProjectionTables } from '../../src/projection/refresh/projection-tables.ts'
import { GrownLedger } from './grown-ledger.ts'
import { longRun } from './long-run.ts'
import { recordRun } from './record-run.ts'

/** A store of its own for a test, opened as often as it likes. */
export interface ProjectionBed {
  readonly open: (options?: { readonly readOnly?: boolean }) => Ledger
  /** Changes rows as whoever owns the store can. */
  readonly tamper: (statement: string) => Promise<void>
  readonly rows: (query: string) => Promise<readonly Readonly<Record<string, unknown>>[]>
  /** Whether a look at all that was derived is quick, so that every column can be changed in turn, and not every table. */
  readonly isQuick: boolean
  /** How the store carries a query out. */
  readonly plan: (text: string, values: readonly unknown[]) => Promise<string>
  /** Starts a process that brings the projections up to date again and again, until it is told to end. */
  readonly refresher: () => Promise<{ readonly end: () => Promise<number> }>
}

/** Long after the runs that are recorded here. */
const now = Date.UTC(2027, 0, 1)

const everything = { since: 0, maxListed: 1000 }
/** What a plan says that goes through a whole table, whatever its size. */
const wholeTable =
  /SCAN (run|run_summary|session|session_summary|run_agent|event)\b(?! USING)|Seq Scan on (?!pg_)/

const tables = ['run_summary', 'run_agent', 'session_summary', 'spending', 'snapshot', 'projection'] as const

/** Which runs a ledger is asked to read while something is done, from which event on. */
async function readsDuring(
  ledger: Ledger,
  work: () => Promise<unknown>,
): Promise<{ readonly reads: readonly (readonly [RunId, number | undefined])[]; readonly lists: number }> {
  // No spies of vitest: it restores them whenever another test of the file starts, and these run at the same time.
  const [read, runs] = [ledger.read.bind(ledger), ledger.runs.bind(ledger)]
  const reads: (readonly [RunId, number | undefined])[] = []
  let lists = 0
  ledger.read = (runId, range) => {
    reads.push([runId, range?.fromSeq])
    return read(runId, range)
  }
  ledger.runs = (filter) => {
    lists++
    return runs(filter)
  }
  await work()
  Object.assign(ledger, { read, runs })
  return { reads, lists }
}

/** Every event of a ledger, run by run, the newest run first. */
async function everyRun(ledger: Ledger): Promise<readonly (readonly RuntimeEvent[])[]> {
  const runs: (readonly RuntimeEvent[])[] = []
  for await (const { runId } of ledger.runs()) runs.push(await Array.fromAsync(ledger.read(runId)))
  return runs
}

async function recordSome(ledger: Ledger, count: number): Promise<readonly RunId[]> {
  const runIds: RunId[] = []
  for (let seed = 1; seed <= count; seed++) runIds.push(await recordRun(ledger, seed))
  return runIds
}

async function contents({ rows }: ProjectionBed): Promise<readonly unknown[]> {
  const found: unknown[] = []
  for (const table of tables) found.push(await rows(`select * from ${table}`))
  return found
}

/** What verifying finds of what was derived; the ledger itself has to be sound. */
async function differing(ledger: Ledger): Promise<readonly string[]> {
  const verdicts = await Array.fromAsync(verifyLedger(ledger))
  expect(verdicts.filter(({ ok }) => !ok)).toEqual([])
  return verdicts.flatMap(({ differs }) => (differs ? [differs.what] : []))
}

async function statsOf(ledger: Ledger): Promise<LedgerStats> {
  return await ledgerStats(ledger, everything, { refresh: false })
}

/** What holds of projections on every store that keeps them, by what it claims. */
export const projectionCases: Readonly<Record<string, (bed: ProjectionBed) => Promise<void>>> = {
  async 'that are up to date answer without a look at any run or event'(bed) {
    const ledger = bed.open()
    const [runId] = await recordSome(ledger, 3)
    await refreshed(ledger)
    const { reads, lists } = await readsDuring(ledger, async () => {
      const { counts, spending } = await ledgerStats(ledger, everything)
      expect(counts).toMatchObject({ done: 3, suspended: 0 })
      expect(spending).toMatchObject([{ agent: 'assistant', calls: 6, usage: { inputTokens: 720 } }])
      for (const filter of [{ statuses: ['done'] as const }, { agent: 'assistant' }, { since: 1 }])
        expect(await Array.fromAsync(runSummaries(ledger, filter))).toHaveLength(3)
    })
    expect({ reads, lists }).toEqual({ reads: [], lists: 0 })
    expect(await Array.fromAsync(runSummaries(ledger, { before: runId!, limit: 5 }))).toEqual([])
  },

  async 'fold what has changed, and nothing else'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 5)
    await refreshed(ledger)
    const added = await recordRun(ledger, 6)
    const behind = await projectionLag(ledger)
    expect(behind).toBe((await ledger.head(added))?.seq)
    const first = await readsDuring(ledger, () => ledgerStats(ledger, everything))
    expect(first.reads).toEqual([[added, 1]])
    await refreshed(ledger)
    expect((await readsDuring(ledger, () => ledgerStats(ledger, everything))).reads).toEqual([])
    await expectTold(ledger, await everyRun(ledger), false)
  },

  async 'of a long run continue from its last snapshot, and from what is known of it'(bed) {
    const ledger = bed.open()
    const elsewhere = memoryLedger()
    const events = await Array.fromAsync(elsewhere.read(await longRun(elsewhere, 30)))
    const grown = new GrownLedger([events])
    await grown.grow(ledger, 0, events.length - 5)
    await refreshed(ledger)
    await grown.grow(ledger, 0, 5)
    const { reads } = await readsDuring(ledger, () => refreshed(ledger))
    expect(reads).toEqual([[events[0]!.runId, events.length - 4]])
    await expectTold(ledger, grown.runs, true)
    expect(await differing(ledger)).toEqual([])
  },

  async 'are left as they are where the ledger was opened to read, and what they lack is told all the same'(
    bed,
  ) {
    const ledger = bed.open()
    await recordSome(ledger, 2)
    await refreshed(ledger)
    await recordRun(ledger, 3)
    const before = await contents(bed)
    const reader = bed.open({ readOnly: true })
    await expectTold(reader, await everyRun(ledger), true)
    expect(await contents(bed)).toEqual(before)
    await expect(rebuildProjections(reader)).rejects.toThrow(
      /opened with readOnly, so its projections were left/,
    )
  },

  async 'of another code count for nothing, and are made anew'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 3)
    await refreshed(ledger)
    const runs = await everyRun(ledger)
    await bed.tamper(`update projection set version = 'other' where name = 'runs'`)
    await bed.tamper(`update run_summary set summary = replace(summary, 'assistant', 'somebody')`)
    await bed.tamper(`update spending set calls = calls + 7`)
    await expectTold(bed.open({ readOnly: true }), runs, true)
    expect(await differing(ledger)).toEqual([])
    await refreshed(ledger)
    await expectTold(ledger, runs, true)
    expect(await differing(ledger)).toEqual([])
  },

  async 'that cannot be read are done without, and nothing is wrong with the ledger'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 3)
    await longRun(ledger, 20)
    await refreshed(ledger)
    const runs = await everyRun(ledger)
    const told = await statsOf(ledger)
    for (const table of tables.toReversed()) {
      await bed.tamper(`drop table ${table}`)
      const reader = bed.open({ readOnly: true })
      expect(await statsOf(reader)).toEqual(told)
      expect(await Array.fromAsync(runSummaries(reader, { statuses: ['done'] }))).toHaveLength(4)
      expect(await differing(reader)).toEqual([])
    }
    await expectTold(bed.open(), runs, true)
  },

  async 'lose runs that are dropped, in every sum, and tell anew of those of which something is taken away'(
    bed,
  ) {
    const ledger = bed.open()
    const old = await longRun(ledger, 20, { sessionId: 'ann' })
    const kept = await longRun(ledger, 20, { seed: 2, sessionId: 'ann', at: now })
    await refreshed(ledger)
    await redact(ledger, kept, [2], { by: 'ann', reason: 'asked for' })
    expect(await bed.rows(`select summary from run_summary where run_id = '${kept}'`)).toEqual([
      { summary: null },
    ])
    expect((await bed.rows('select run_id from snapshot')).map(({ run_id }) => run_id)).toEqual([old])
    await expectTold(ledger, await everyRun(ledger), false)
    await expectTold(ledger, await everyRun(ledger), true)
    expect(await differing(ledger)).toEqual([])

    const { runs } = await applyRetention(ledger, { factsMs: 60_000 }, { now: now + 1_000 })
    expect(runs).toBe(1)
    expect(await bed.rows('select run_id from snapshot')).toEqual([])
    await expectTold(ledger, await everyRun(ledger), false)
    await expectTold(ledger, await everyRun(ledger), true)
    expect(await bed.rows('select run_id from run_summary')).toEqual([{ run_id: kept }])
    expect(await bed.rows('select session_id, runs, started_at from session_summary')).toEqual([
      { session_id: 'ann', runs: 1, started_at: now },
    ])
    expect(await differing(ledger)).toEqual([])
  },

  async 'name a run that cannot be read, which adds nothing to any sum'(bed) {
    const ledger = bed.open()
    const [, damaged] = await recordSome(ledger, 3)
    await bed.tamper(
      `update payload set salt = (select salt from payload order by pos limit 1) where pos = (
        select pos from event where run_id = '${damaged}' and seq = 5)`,
    )
    for (const refresh of [false, true]) {
      const { counts, unreadable, spending } = await ledgerStats(ledger, everything, { refresh })
      expect(counts).toMatchObject({ done: 2, unreadable: 1 })
      expect(unreadable).toEqual([
        {
          runId: damaged,
          status: 'unreadable',
          seq: 34,
          code: 'ledger_damaged',
          message: expect.stringContaining(`Run ${damaged} is damaged at seq 5`) as string,
        },
      ])
      expect(spending).toMatchObject([{ calls: 4 }])
      const listed = await Array.fromAsync(runSummaries(ledger, { statuses: ['unreadable'] }, { refresh }))
      expect(listed).toEqual(unreadable)
    }
  },

  async 'are found by verify wherever they are not what the events say, and mended by a rebuild'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 2)
    await longRun(ledger, 15, { sessionId: 'ann' })
    await longRun(ledger, 15, { seed: 2, sessionId: 'ann' })
    await refreshed(ledger)
    for (const [statement, what] of changesFor(bed)) {
      const before = await statsOf(ledger)
      await bed.tamper(statement)
      const found = await differing(ledger)
      expect(`${statement}: ${found.join(', ')}`).toContain(what)
      await rebuildProjections(ledger)
      for await (const { runId } of ledger.runs()) await foldTo(ledger, runId)
      expect(await statsOf(ledger)).toEqual(before)
    }
    expect(await differing(ledger)).toEqual([])
  },

  async 'are found by their indexes, whatever is asked'(bed) {
    const ledger = bed.open()
    const [runId = ''] = await recordSome(ledger, 2)
    const database = projectionDatabaseOf(ledger)!
    const asked: (readonly [text: string, values: readonly unknown[]])[] = []
    const tables = new ProjectionTables({
      ...database,
      ask: (text, values = []) => {
        asked.push([text, values])
        return database.ask(text, values)
      },
    })
    const page = { beforePos: 1000, limit: 10 }
    await tables.batch(page)
    await tables.batch({ ...page, status: 'failed', since: 1 })
    await tables.batch({ ...page, agent: 'assistant', status: 'done', since: 1 })
    await tables.batch({ ...page, since: 1 })
    await tables.rows([runId])
    await tables.places([runId])
    await tables.stale(10)
    await tables.spending(1)
    await tables.sessionsOf(['ann'])
    await tables.timesOf('ann', [runId])
    for (const [text, values] of asked) expect(await bed.plan(text, values)).not.toMatch(wholeTable)
    expect(asked).toHaveLength(10)
  },

  async 'that claim to tell of more than they do are found too'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 2)
    await refreshed(ledger)
    await recordRun(ledger, 3)
    expect(await differing(ledger)).toEqual([])
    const [{ cursor } = { cursor: '' }] = await bed.rows(`select cursor from projection where name = 'runs'`)
    await refreshed(ledger)
    const [{ cursor: further } = { cursor: '' }] = await bed.rows(
      `select cursor from projection where name = 'runs'`,
    )
    await bed.tamper(`delete from run_summary where pos = (select max(pos) from run_summary)`)
    await bed.tamper(`update projection set cursor = '${String(cursor)}' where name = 'runs'`)
    expect(await differing(ledger)).not.toContain('projection')
    await bed.tamper(`update projection set cursor = '${String(further)}' where name = 'runs'`)
    expect(await differing(ledger)).toContain('projection')
  },

  async 'stay right while processes bring them up to date at once and runs are driven'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 1)
    const refreshers = [await bed.refresher(), await bed.refresher()]
    for (let seed = 2; seed <= 12; seed++) {
      await recordRun(ledger, seed)
      if (seed % 4 === 0) await ledgerStats(ledger, everything)
    }
    const [one, two] = [await refreshers[0]!.end(), await refreshers[1]!.end()]
    expect(Math.min(one, two)).toBeGreaterThan(0)
    await expectTold(ledger, await everyRun(ledger), false)
    await refreshed(ledger)
    await expectTold(ledger, await everyRun(ledger), false)
    expect(await differing(ledger)).toEqual([])
  },
}

/** Changes to try: one for every column, or one for every table and way of changing it. */
function changesFor({ isQuick }: ProjectionBed): readonly (readonly [statement: string, what: string])[] {
  const all = Object.entries(changes)
  if (isQuick) return all
  const kinds = Map.groupBy(all, ([statement]) =>
    statement.split(' ', statement.startsWith('delete') ? 3 : 2).join(' '),
  )
  return [...kinds.values()].map((of) => of[0]!)
}

/** One change for every column, and what verify names. */
const changes: Readonly<Record<string, string>> = {
  [`update run_summary set pos = pos + 1000 where pos = (select max(pos) from run_summary)`]: 'projection',
  [`update run_summary set seq = seq + 1 where pos = (select max(pos) from run_summary)`]: 'projection',
  [`update run_summary set seq = seq - 1 where pos = (select max(pos) from run_summary)`]: 'projection',
  [`update run_summary set head_hash = (select salt from payload limit 1)`]: 'projection',
  [`update run_summary set standing = 'failed' where pos = (select max(pos) from run_summary)`]: 'projection',
  [`update run_summary set session_id = 'bob' where session_id = 'ann'`]: 'projection',
  [`update run_summary set started_at = started_at + 1`]: 'projection',
  [`update run_summary set last_at = last_at - 1`]: 'projection',
  [`update run_summary set shares = replace(shares, '"calls":2', '"calls":3')`]: 'projection',
  [`update run_summary set summary = replace(summary, 'answered', 'stopped')`]: 'projection',
  [`update run_summary set summary = '{'`]: 'projection',
  [`update run_summary set notes = replace(notes, 'assistant', 'somebody')`]: 'projection',
  [`update run_agent set agent = 'somebody' where agent = 'assistant'`]: 'projection',
  [`delete from run_agent where agent = 'assistant'`]: 'projection',
  [`delete from run_summary where pos = (select max(pos) from run_summary)`]: 'projection',
  [`update run_summary set run_id = 'nobody' where pos = (select max(pos) from run_summary)`]:
    'projections of runs that are not there',
  [`update session_summary set runs = runs + 1`]: 'totals of session ann',
  [`update session_summary set cost_nano = cost_nano + 1`]: 'totals of session ann',
  [`update session_summary set last_at = last_at + 1`]: 'totals of session ann',
  [`update session_summary set input_told = 0`]: 'totals of session ann',
  [`delete from session_summary`]: 'sessions of runs',
  [`update session_summary set turns = turns + 1, runs = runs`]: 'totals of session ann',
  [`update spending set calls = calls + 1`]: 'spending of',
  [`update spending set hour = hour + 1`]: 'spending of',
  [`update spending set agent = 'nobody' where agent = 'looker'`]: 'spending of',
  [`update spending set reasoning_tokens = 1`]: 'spending of',
  [`delete from spending`]: 'spending of',
  [`update snapshot set state = seal`]: 'snapshot at event',
  [`update snapshot set seal = head_hash`]: 'snapshot at event',
  [`update snapshot set head_hash = seal`]: 'snapshot at event',
  [`update snapshot set seq = seq - 1`]: 'snapshot at event',
  [`update snapshot set seq = seq + 1`]: 'snapshot',
}

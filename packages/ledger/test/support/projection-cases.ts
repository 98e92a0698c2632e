import { type Asked, watchedDatabase } from './lent-store.ts'
import { memoryLedger, type Ledger, type RunId } from '@tallystick/core'
import {
  applyRetention,
  readLedgerStats,
  countProjectionLag,
  rebuildProjections,
  redact,
  readRunStats,
  readRunSummaries,
  type SummaryFilter,
} from '@tallystick/ledger'
import { expect } from 'vitest'
import { bringUpToDate, ProjectionTables } from '../../src/projection/projections.ts'
import { getDatabase } from '../../src/store/store.ts'
import { expectTold, refreshed } from './compare-projections.ts'
import { endedRunCases } from './ended-run-cases.ts'
import { GrownLedger } from './grown-ledger.ts'
import { longRun } from './long-run.ts'
import { differing, everyRun, everything, recordSome, statsOf, type ProjectionBed } from './projection-bed.ts'
import { projectionDamageCases } from './projection-damage-cases.ts'
import { recordRun } from './record-run.ts'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'

/** Long after the runs that are recorded here. */
const now = Date.UTC(2027, 0, 1)

/** What a plan says that goes through a whole table, whatever its size: only the heads of all runs are compared. */
const wholeTable = /SCAN (run_summary|run_term|event)\b(?! USING)|Seq Scan on (?!pg_|run )/

const tables = ['run_summary', 'run_term', 'snapshot', 'projection'] as const

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

async function contents({ rows }: ProjectionBed): Promise<readonly unknown[]> {
  const found: unknown[] = []
  for (const table of tables) found.push(await rows(`select * from ${table}`))
  return found
}

/** What every store promises of the projections that it keeps, by claim. */
export const projectionCases: Readonly<Record<string, (bed: ProjectionBed) => Promise<void>>> = {
  async 'that are up to date answer without a look at any run or event'(bed) {
    const ledger = bed.open()
    const [runId] = await recordSome(ledger, 3)
    await refreshed(ledger)
    const { reads, lists } = await readsDuring(ledger, async () => {
      const { counts, spending } = await readLedgerStats(ledger, everything)
      expect(counts).toMatchObject({ done: 3, suspended: 0 })
      expect(spending).toMatchObject([{ agent: 'assistant', calls: 6, usage: { inputTokens: 720 } }])
      for (const filter of [{ statuses: ['done'] as const }, { agent: 'assistant' }, { since: 1 }])
        expect(await Array.fromAsync(readRunSummaries(ledger, filter))).toHaveLength(3)
    })
    expect({ reads, lists }).toEqual({ reads: [], lists: 0 })
    expect(await Array.fromAsync(readRunSummaries(ledger, { before: runId!, limit: 5 }))).toEqual([])
  },

  async 'keep the later row of a run, whichever process writes last'(bed) {
    const ledger = bed.open()
    const [runId] = await recordSome(ledger, 1)
    await refreshed(ledger)
    const stored = new ProjectionTables(getDatabase(ledger)!)
    const rows = (): ReturnType<ProjectionTables['rows']> => stored.rows('run_id', [runId!])
    const { revision } = await stored.state()
    const [row] = await rows()
    await stored.write([{ ...row!, seq: 1, head_hash: 'early' }], revision)
    expect(await rows()).toEqual([row])
    // A row of events that the run does not have is no later one.
    const ofAnother = { ...row!, seq: row!.seq + 1, head_hash: 'of another history' }
    await stored.write([ofAnother], revision)
    expect(await rows()).toEqual([ofAnother])
    await stored.write([row!], revision)
    expect(await rows()).toEqual([row])
  },

  async 'list a run whose row goes while they are read, unless the run goes too'(bed) {
    const ledger = bed.open()
    const runIds = await recordSome(ledger, 3)
    const current = await bringUpToDate(ledger, {})
    const places = await current!.find({ statuses: ['done'] })
    const listed = async (): Promise<readonly RunId[]> =>
      (await Array.fromAsync(current!.read(places))).map(({ summary }) => summary.runId)
    await redact(ledger, runIds[1]!, 'all', { by: 'Ada', reason: 'asked for' })
    expect(await listed()).toEqual(runIds.toReversed())
    await applyRetention(ledger, { factsMs: 0 }, { now })
    expect(await listed()).toEqual([])
  },

  async 'fold what has changed, and nothing else'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 5)
    await refreshed(ledger)
    const added = await recordRun(ledger, 6)
    const behind = await countProjectionLag(ledger)
    expect(behind).toBe((await ledger.head(added))?.seq)
    const first = await readsDuring(ledger, () => readLedgerStats(ledger, everything))
    expect(first.reads).toEqual([[added, 1]])
    await refreshed(ledger)
    expect((await readsDuring(ledger, () => readLedgerStats(ledger, everything))).reads).toEqual([])
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
    await expectTold(bed.open({ readOnly: true }), runs, true)
    expect(await differing(ledger)).toEqual([])
    await refreshed(ledger)
    await expectTold(ledger, runs, true)
    expect(await differing(ledger)).toEqual([])
  },

  async 'that cannot be read are done without, and nothing is wrong with the ledger'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 3)
    await longRun(ledger, 25)
    await refreshed(ledger)
    const runs = await everyRun(ledger)
    const reported = await statsOf(ledger)
    for (const table of tables.toReversed()) {
      await bed.tamper(`drop table ${table}`)
      const reader = bed.open({ readOnly: true })
      expect(await statsOf(reader)).toEqual(reported)
      expect(await Array.fromAsync(readRunSummaries(reader, { statuses: ['done'] }))).toHaveLength(4)
      expect(await differing(reader)).toEqual([])
    }
    await expectTold(bed.open(), runs, true)
  },

  async 'lose runs that are dropped, in every sum, and tell anew of those of which something is taken away'(
    bed,
  ) {
    const ledger = bed.open()
    const old = await longRun(ledger, 25, { sessionId: 'ann' })
    const kept = await longRun(ledger, 25, { seed: 2, sessionId: 'ann', at: now })
    await refreshed(ledger)
    await redact(ledger, kept, [2], { by: 'ann', reason: 'asked for' })
    expect(await bed.rows(`select summary from run_summary where run_id = '${kept}'`)).toEqual([])
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
    expect((await readLedgerStats(ledger, everything)).sessions).toMatchObject([
      { sessionId: 'ann', runs: 1, startedAt: now },
    ])
    expect(await differing(ledger)).toEqual([])
  },

  async 'are found by their indexes, whatever is asked'(bed) {
    const ledger = bed.open()
    const [runId = ''] = await recordSome(ledger, 2)
    const database = getDatabase(ledger)!
    const asked: Asked[] = []
    const tables = new ProjectionTables(watchedDatabase(database, (each) => asked.push(each)))
    await tables.find({})
    await tables.find({ statuses: ['failed'], since: 1 })
    await tables.findPage({ agent: 'assistant', statuses: ['done'], since: 1 }, 1000, 10)
    await tables.findPage({ tool: 'look', subjects: ['ann', 'bob'] }, 1000, 10)
    await tables.findPage({}, 1000, 10)
    await tables.findPage({ since: 1 }, 1000, 10)
    await tables.findPage({ startedSince: 1, startedUntil: 2, roots: true }, 1000, 10)
    await tables.findPage({ reason: 'turn_limit', startedSince: 1 }, 1000, 10)
    await tables.findPage({ roots: true }, 1000, 10)
    await tables.find({ since: 1 })
    await tables.find({ sessionIds: new Set(['ann']) })
    await tables.rows('run_id', [runId])
    await tables.rows('pos', [1])
    await tables.findPlace(runId as RunId)
    await tables.lagging(0, 10)
    await tables.lagging(0, 10, [runId])
    await tables.countLag()
    for (const { text, values } of asked) expect(await bed.plan(text, values)).not.toMatch(wholeTable)
    expect(asked).toHaveLength(27)
  },

  async 'find runs by what they did, were about and were tagged with, a page after the other'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 3)
    const tagged: RunId[] = []
    for (let ordinal = 1; ordinal <= 200; ordinal++) {
      const given =
        ordinal % 50 === 0
          ? { subject: 'ann', labels: { tags: ['rare'] } }
          : { labels: { tags: [ordinal % 3 === 0 ? 'third' : 'other'] } }
      const runId = sampleRunId(1_000 + ordinal)
      const { run_started: started, input_received: input } = sampleFacts(runId)
      const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = started
      const events = stampFacts(runId, [{ ...start, ...given }, input])
      await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
      if (ordinal % 50 === 0) tagged.unshift(runId)
    }
    const find = async (filter: SummaryFilter): Promise<readonly RunId[]> =>
      (await Array.fromAsync(readRunSummaries(ledger, filter))).map(({ runId }) => runId)
    expect(await find({ tag: 'rare' })).toEqual(tagged)
    expect(await find({ subjects: ['ann', 'bob'] })).toEqual(tagged)
    expect(await find({ subjects: ['ann'], before: tagged[1], limit: 1 })).toEqual([tagged[2]])
    expect(await find({ subjects: ['ann'], tag: 'third' })).toEqual([])
    expect(await find({ tag: 'third' })).toHaveLength(65)
    expect(await find({ tag: 'third', statuses: ['unfinished', 'done'], since: 0 })).toHaveLength(65)
    expect(await find({ tool: 'get_weather' })).toHaveLength(3)
    expect(await find({ tool: 'get_weather', outcome: 'success', statuses: ['done'] })).toHaveLength(3)
    expect(await find({ tool: 'get_weather', outcome: 'failed' })).toEqual([])
    // No row has a tag of a run about a subject, which has to vanish with the key of that.
    const rows = await bed.rows(`select terms, summary, notes from run_summary where subject = 'ann'`)
    expect(rows).toHaveLength(4)
    expect(JSON.stringify(rows)).not.toContain('rare')
    expect(await bed.rows(`select term from run_term where term like '%rare%'`)).toEqual([])
    await redact(ledger, tagged[0]!, 'all', { by: 'Ada', reason: 'asked for' })
    expect(await find({ tag: 'rare' })).toEqual(tagged.slice(1))
    const third = await find({ tag: 'third' })
    await redact(ledger, third[0]!, 'all', { by: 'Ada', reason: 'asked for' })
    expect(await bed.rows(`select term from run_term where term = 'g third'`)).toHaveLength(64)
    expect(await find({ tag: 'third' })).toEqual(third.slice(1))
    await refreshed(ledger)
    expect(await differing(ledger)).toEqual([])
  },

  async 'count runs that began in each hour alike, written, in memory and folded'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 3)
    await refreshed(ledger)
    await recordRun(ledger, 4)
    const runId = sampleRunId(2_000)
    const { run_started: started, input_received: input } = sampleFacts(runId)
    const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = started
    const events = stampFacts(runId, [start, input])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events.slice(0, 1), { durability: 'lazy' })
    await refreshed(ledger)
    await ledger.append(runId, { expectedSeq: 1, epoch: 1 }, events.slice(1), { durability: 'lazy' })
    const query = { since: 0, until: Number.MAX_SAFE_INTEGER, byMs: 3_600_000 }
    const read = await readRunStats(bed.open({ readOnly: true }), query)
    const [runs, done] = [
      read.reduce((sum, each) => sum + each.runs, 0),
      read.reduce((sum, each) => sum + each.done, 0),
    ]
    expect({ runs, done }).toEqual({ runs: 5, done: 4 })
    expect(await readRunStats(ledger, query)).toEqual(read)
    const copy = memoryLedger()
    for await (const { runId: id } of ledger.runs()) {
      const all = await Array.fromAsync(ledger.read(id))
      await copy.append(id, { expectedSeq: 0, epoch: 1 }, all, { durability: 'lazy' })
    }
    expect(await readRunStats(copy, query)).toEqual(read)
  },

  async 'stay right while processes bring them up to date at once and runs are driven'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 1)
    const refreshers = [await bed.refresher(), await bed.refresher()]
    for (let seed = 2; seed <= 12; seed++) {
      await recordRun(ledger, seed)
      if (seed % 4 === 0) await readLedgerStats(ledger, everything)
    }
    const [one, two] = [await refreshers[0]!.end(), await refreshers[1]!.end()]
    expect(Math.min(one, two)).toBeGreaterThan(0)
    await expectTold(ledger, await everyRun(ledger), false)
    await refreshed(ledger)
    await expectTold(ledger, await everyRun(ledger), false)
    expect(await differing(ledger)).toEqual([])
  },

  ...projectionDamageCases,
  ...endedRunCases,
}

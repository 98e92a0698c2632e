import { foldTo, readLedgerStats, rebuildProjections, readRunSummaries } from '@tallystick/ledger'
import { expect } from 'vitest'
import { refreshed } from './compare-projections.ts'
import { longRun } from './long-run.ts'
import { differing, everything, recordSome, statsOf, type ProjectionBed } from './projection-bed.ts'

/** How damaged runs and changed projections are found, on every store that keeps projections, by claim. */
export const projectionDamageCases: Readonly<Record<string, (bed: ProjectionBed) => Promise<void>>> = {
  async 'name a run that cannot be read, which adds nothing to any sum'(bed) {
    const ledger = bed.open()
    const [, damaged] = await recordSome(ledger, 3)
    await bed.tamper(`update event set salt = hash where run_id = '${damaged}' and seq = 5`)
    for (const refresh of [false, true]) {
      const { counts, unreadable, spending } = await readLedgerStats(ledger, everything, { refresh })
      expect(counts).toMatchObject({ done: 2, unreadable: 1 })
      expect(unreadable).toEqual([
        {
          runId: damaged,
          status: 'unreadable',
          seq: 22,
          code: 'ledger_damaged',
          message: expect.stringMatching(new RegExp(`^Run ${damaged} is damaged at seq 5:`)) as string,
        },
      ])
      expect(spending).toMatchObject([{ calls: 4 }])
      const listed = await Array.fromAsync(
        readRunSummaries(ledger, { statuses: ['unreadable'] }, { refresh }),
      )
      expect(listed).toEqual(unreadable)
    }
  },

  async 'are found by verify wherever they are not what the events say, and mended by a rebuild'(bed) {
    const ledger = bed.open()
    await recordSome(ledger, 2)
    await longRun(ledger, 25, { sessionId: 'ann' })
    await longRun(ledger, 25, { seed: 2, sessionId: 'ann' })
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
  [`update run_summary set head_hash = 'another'`]: 'projection',
  [`update run_summary set status = 'failed' where pos = (select max(pos) from run_summary)`]: 'projection',
  [`update run_summary set session_id = 'bob' where session_id = 'ann'`]: 'projection',
  [`update run_summary set started_at = started_at + 1`]: 'projection',
  [`update run_summary set last_at = last_at - 1`]: 'projection',
  [`update run_summary set summary = replace(summary, 'answered', 'stopped')`]: 'projection',
  [`update run_summary set summary = '{'`]: 'projection',
  [`update run_summary set notes = replace(notes, 'assistant', 'somebody')`]: 'projection',
  [`update run_summary set agent = 'somebody'`]: 'projection',
  [`update run_summary set subject = 'somebody'`]: 'projection',
  [`update run_summary set is_child = 1 - is_child`]: 'projection',
  [`update run_summary set reason = 'none'`]: 'projection',
  [`update run_summary set cost_nano = 1`]: 'projection',
  [`update run_summary set tokens = tokens + 1`]: 'projection',
  [`update run_summary set terms = '["somebody"]'`]: 'projection',
  [`delete from run_term`]: 'projection',
  [`update run_summary set run_id = 'nobody' where pos = (select max(pos) from run_summary)`]:
    'projections of runs that are not there',
  [`update snapshot set state = seal`]: 'snapshot at event',
  [`update snapshot set seal = head_hash`]: 'snapshot at event',
  [`update snapshot set head_hash = seal`]: 'snapshot at event',
  [`update snapshot set seq = seq - 1`]: 'snapshot at event',
  [`update snapshot set seq = seq + 1`]: 'snapshot',
}

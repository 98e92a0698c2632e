import { orElse, type CurrentProjections } from '../refresh/projection-lag.ts'
import type { LedgerStats, StatsQuery } from './stats.ts'
import { GarbledRowError, totalsOf } from '../refresh/projected-runs.ts'
import { hourOf } from '../summary/run-accumulator.ts'
import type { Standing } from '../summary/run-summary.ts'
import { isNoted, StatsGathering } from './stats-accumulator.ts'
import { storedRun } from '../summary/stored-run.ts'

const rowsPerPage = 256

/** Standings of which runs are named. */
const noted = ['suspended', 'unfinished', 'failed', 'unreadable'] as const

/**
 * The same from the projections, and from what comes in the place of those that are behind; `undefined` where they cannot
 * be read.
 */
export function statsOfTables(
  current: CurrentProjections,
  query: StatsQuery,
): Promise<LedgerStats | undefined> {
  return orElse(undefined, async () => {
    const { tables } = current
    const gathering = new StatsGathering(query)
    for (const [standing, runs] of await tables.counts()) gathering.count(standing, runs)
    for (const row of await tables.spending(hourOf(query.since))) gathering.spendDay(row)
    for (const standing of noted) await addNoted(gathering, current, query, standing)
    await addBehind(gathering, current, query)
    return gathering.stats
  })
}

/** As many of a standing as are named, the newest first. */
async function addNoted(
  gathering: StatsGathering,
  { tables, behind }: CurrentProjections,
  { since, listedMax }: StatsQuery,
  standing: Standing,
): Promise<void> {
  const asked = { standing, limit: rowsPerPage, ...(standing === 'failed' && { since }) }
  let [beforePos, named] = [Number.MAX_SAFE_INTEGER, 0]
  for (;;) {
    const page = await tables.page({ ...asked, beforePos })
    for (const row of page) {
      beforePos = row.pos
      if (behind.has(row.run_id)) continue
      const run = storedRun(row)?.summary
      if (run === undefined) throw new GarbledRowError(row.run_id)
      if (isNoted(run, since)) named++
      gathering.note({ pos: row.pos, run })
      if (named === listedMax) return
    }
    if (page.length < rowsPerPage) return
  }
}

/** What comes in the place of rows that are behind, in each of the sums that they are in. */
async function addBehind(
  gathering: StatsGathering,
  { tables, behind }: CurrentProjections,
  { since, listedMax }: StatsQuery,
): Promise<void> {
  const runs = [...behind.values()]
  for (const { before, now } of runs) {
    if (before) gathering.count(before.standing, -1)
    if (now === undefined) continue
    gathering.count(now.record.summary.standing, 1)
    gathering.note({ pos: now.place.pos, run: now.record.summary })
  }
  const { spending, sessions } = await totalsOf(tables, runs)
  for (const line of spending) gathering.spend(line)
  for (const session of sessions) gathering.session(session)
  const touched = new Set(sessions.map(({ session_id }) => session_id))
  for (const row of await tables.sessionsOf([...touched])) gathering.sessionBelow(row)
  for (const row of await tables.sessions(since, listedMax + touched.size))
    if (!touched.has(row.session_id)) gathering.session(row)
}

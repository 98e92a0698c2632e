import { orElse, type CurrentProjections } from '../refresh/projection-lag.ts'
import type { LedgerStats, StatsQuery } from './stats.ts'
import { CorruptRowError, totalsOf } from '../refresh/projected-runs.ts'
import { hourOf } from '../summary/run-accumulator.ts'
import type { RunStatus } from '../summary/run-summary.ts'
import { isNoted, StatsAccumulator } from './stats-accumulator.ts'
import { storedRun } from '../summary/stored-run.ts'

const rowsPerBatch = 256

/** Statuses of which runs are named. */
const noted = ['suspended', 'unfinished', 'failed', 'unreadable'] as const

/**
 * The same from the projections, and from the replacements of those that lag; `undefined` where they cannot
 * be read.
 */
export function statsOfTables(
  current: CurrentProjections,
  query: StatsQuery,
): Promise<LedgerStats | undefined> {
  return orElse(undefined, async () => {
    const { tables } = current
    const accumulator = new StatsAccumulator(query)
    for (const [status, runs] of await tables.counts()) accumulator.count(status, runs)
    for (const row of await tables.spending(hourOf(query.since))) accumulator.spendDay(row)
    for (const status of noted) await addNoted(accumulator, current, query, status)
    await addLagging(accumulator, current, query)
    return accumulator.stats
  })
}

/** As many of a status as are named, the newest first. */
async function addNoted(
  accumulator: StatsAccumulator,
  { tables, lagging }: CurrentProjections,
  { since, maxListed }: StatsQuery,
  status: RunStatus,
): Promise<void> {
  const asked = { status, limit: rowsPerBatch, ...(status === 'failed' && { since }) }
  let [beforePos, named] = [Number.MAX_SAFE_INTEGER, 0]
  for (;;) {
    const batch = await tables.batch({ ...asked, beforePos })
    for (const row of batch) {
      beforePos = row.pos
      if (lagging.has(row.run_id)) continue
      const run = storedRun(row)?.summary
      if (run === undefined) throw new CorruptRowError(row.run_id)
      if (isNoted(run, since)) named++
      accumulator.note({ pos: row.pos, run })
      if (named === maxListed) return
    }
    if (batch.length < rowsPerBatch) return
  }
}

/** The replacements of lagging rows, in each of the sums that include them. */
async function addLagging(
  accumulator: StatsAccumulator,
  { tables, lagging }: CurrentProjections,
  { since, maxListed }: StatsQuery,
): Promise<void> {
  const runs = [...lagging.values()]
  for (const { before, now } of runs) {
    if (before) accumulator.count(before.status, -1)
    if (now === undefined) continue
    accumulator.count(now.record.summary.status, 1)
    accumulator.note({ pos: now.place.pos, run: now.record.summary })
  }
  const { spending, sessions } = await totalsOf(tables, runs)
  for (const line of spending) accumulator.spend(line)
  for (const session of sessions) accumulator.session(session)
  const touched = new Set(sessions.map(({ session_id }) => session_id))
  for (const row of await tables.sessionsOf([...touched])) accumulator.sessionBelow(row)
  for (const row of await tables.sessions(since, maxListed + touched.size))
    if (!touched.has(row.session_id)) accumulator.session(row)
}

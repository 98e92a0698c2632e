import type { Ledger } from '@tallystick/core'
import type { ProjectionOptions } from '../refresh/projection-lag.ts'
import type { LedgerStats, StatsQuery } from './stats.ts'
import { projectRun } from '../summary/project-run.ts'
import { StatsGathering } from './stats-accumulator.ts'
import { timedShares, TotalsGathering } from '../summary/totals-change.ts'

/** The same from the events alone: for ledgers that keep no projections, or none that would be of use. */
export async function statsOfRuns(
  ledger: Ledger,
  query: StatsQuery,
  { onProgress = () => {} }: ProjectionOptions,
): Promise<LedgerStats> {
  const gathering = new StatsGathering(query)
  const totals = new TotalsGathering()
  let pos = 0
  for await (const { runId, head } of ledger.runs()) {
    const record = await projectRun(ledger, runId, head.seq)
    onProgress(head.seq)
    if (record === undefined) continue
    gathering.count(record.summary.standing, 1)
    // The newest comes first.
    gathering.note({ pos: pos--, run: record.summary })
    totals.add(timedShares(record))
  }
  for (const line of totals.change.spending) gathering.spend(line)
  for (const session of totals.change.sessions) gathering.session(session)
  return gathering.stats
}

import type { Ledger } from '@tallystick/core'
import type { ProjectionOptions } from '../refresh/projection-lag.ts'
import type { LedgerStats, StatsQuery } from './stats.ts'
import { projectRun } from '../summary/project-run.ts'
import { StatsAccumulator } from './stats-accumulator.ts'
import { timedShares, TotalsAccumulator } from '../summary/totals-change.ts'

/** The same from the events alone: for ledgers that keep no projections, or none that would be of use. */
export async function statsOfRuns(
  ledger: Ledger,
  query: StatsQuery,
  { onProgress = () => {} }: ProjectionOptions,
): Promise<LedgerStats> {
  const accumulator = new StatsAccumulator(query)
  const totals = new TotalsAccumulator()
  let pos = 0
  for await (const { runId, head } of ledger.runs()) {
    const record = await projectRun(ledger, runId, head.seq)
    onProgress(head.seq)
    if (record === undefined) continue
    accumulator.count(record.summary.status, 1)
    // The newest comes first.
    accumulator.note({ pos: pos--, run: record.summary })
    totals.add(timedShares(record))
  }
  for (const line of totals.change.spending) accumulator.spend(line)
  for (const session of totals.change.sessions) accumulator.session(session)
  return accumulator.stats
}

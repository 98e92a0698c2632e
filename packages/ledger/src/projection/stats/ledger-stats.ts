import { type Ledger } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/kit'
import { currentProjections, projectionOptions, type ProjectionOptions } from '../refresh/projection-lag.ts'
import { beginningOf, hourOf } from '../summary/run-accumulator.ts'
import type { LedgerStats, StatsQuery } from './stats.ts'
import { statsOfTables } from './stats-of-tables.ts'
import { statsOfRuns } from './stats-of-runs.ts'

const statsQuery = option.fields<StatsQuery>(
  {
    since: option.valueThat('a finite number of milliseconds since 1970 UTC', Number.isFinite),
    maxListed: option.numberFrom(0, { whole: true }),
  },
  { limit: 'maxListed', max: 'maxListed', from: 'since' },
)

/**
 * Returns what waits, what failed and what it cost. If the store keeps projections, that takes a few queries, however
 * many runs there are; events that they do not cover yet are folded. Rejects with `ConfigurationError` for a wrong
 * query or wrong options.
 */
export async function ledgerStats(
  ledger: Ledger,
  asked: StatsQuery,
  options: ProjectionOptions = {},
): Promise<LedgerStats> {
  requireLedger('ledgerStats', ledger)
  requireOptions('ledgerStats', statsQuery, asked)
  requireOptions('ledgerStats', projectionOptions, options)
  const { since, maxListed } = asked
  const query = { since: beginningOf(hourOf(since)), maxListed }
  const current = await currentProjections(ledger, options)
  const found = current && (await statsOfTables(current, query))
  return found ?? (await statsOfRuns(ledger, query, options))
}

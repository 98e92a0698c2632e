import type { Ledger, RunId } from '@tallystick/core'
import { knownBefore, projectRun } from '../summary/project-run.ts'
import { namedRun } from '../../format/stored-ids.ts'
import type { ProjectionTables } from './projection-tables.ts'
import { storedRun, type RunPlace, type StoredRun } from '../summary/stored-run.ts'
import type { SummaryRecord } from '../summary/summary-record.ts'
import { timedShares, TotalsAccumulator, type TotalsChange } from '../summary/totals-change.ts'

/** A run whose projection lags, and its new projection. */
export interface ProjectedRun {
  readonly runId: RunId
  /** What the store has. */
  readonly before: StoredRun | undefined
  /** Absent where the run has gone. */
  readonly now?: { readonly place: RunPlace; readonly record: SummaryRecord }
}

/** A row differs from the written one, so its share of the totals is unknown. */
export class CorruptRowError extends Error {
  constructor(runId: string) {
    super(`The projection of run ${namedRun(runId)} is not as it was written.`)
  }
}

/**
 * Returns new projections of those of the runs whose rows lag. `folded` gets the number of events read for each. Throws
 * a `CorruptRowError`.
 */
export async function projectLagging(
  ledger: Ledger,
  tables: ProjectionTables,
  runIds: readonly string[],
  folded: (events: number) => void,
): Promise<readonly ProjectedRun[]> {
  const places = new Map<string, RunPlace>()
  for (const place of await tables.places(runIds)) places.set(place.runId, place)
  const rows = await knownRows(tables, runIds)
  const found: ProjectedRun[] = []
  // Events under a text that is no run id are of no run, and have no place; verify names them.
  for (const runId of new Set(runIds)) {
    const [place, before] = [places.get(runId), rows.get(runId)]
    if (place && before && isCurrent(before, place)) continue
    if (place) {
      const { headSeq } = place
      const now = await projectRun(ledger, place.runId, headSeq, knownBefore(headSeq, before))
      folded(headSeq - (before?.summary ? before.seq : 0))
      if (now) found.push({ runId: place.runId, before, now: { place, record: now } })
    } else if (before) found.push({ runId: before.runId, before })
  }
  return found
}

async function knownRows(
  tables: ProjectionTables,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, StoredRun>> {
  const rows = await tables.rows(runIds)
  return new Map(
    rows.map((row) => {
      const stored = storedRun(row)
      if (stored === undefined) throw new CorruptRowError(row.run_id)
      return [row.run_id, stored]
    }),
  )
}

/** Whether a row tells of a run as it is now. */
function isCurrent({ summary, seq, headHash }: StoredRun, place: RunPlace): boolean {
  return summary !== undefined && seq === place.headSeq && headHash === place.headHash
}

/** What the totals gain and lose by some runs. */
export async function totalsOf(
  tables: ProjectionTables,
  runs: readonly ProjectedRun[],
): Promise<TotalsChange> {
  const totals = new TotalsAccumulator()
  const left = new Set<string>()
  for (const { before, now } of runs) {
    if (before) totals.remove(before)
    if (before?.session !== undefined && now?.record.shares.session === undefined) left.add(before.session)
    if (now) totals.add(timedShares(now.record))
  }
  await addTimes(tables, totals, { left, runIds: runs.map(({ runId }) => runId) })
  return totals.change
}

/** Adds the times of the session's other runs. After a run has left the session, its times are computed anew. */
async function addTimes(
  tables: ProjectionTables,
  totals: TotalsAccumulator,
  { left, runIds }: { readonly left: ReadonlySet<string>; readonly runIds: readonly string[] },
): Promise<void> {
  const keys = totals.sessionKeys
  if (keys.length === 0) return
  for (const row of await tables.sessionsOf(keys.filter((key) => !left.has(key)))) {
    if (row.runs > 0) totals.within(row.session_id, row)
  }
  for (const key of left) {
    const times = await tables.timesOf(key, runIds)
    if (times) totals.within(key, times)
  }
}

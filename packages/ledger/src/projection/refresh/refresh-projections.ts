import { LedgerUnavailableError, type Ledger } from '@tallystick/core'
import { projectionVersion } from '../tables/projection-version.ts'
import type { ProjectionDatabase } from '../tables/projection-database.ts'
import { dropProjections } from './drop-projections.ts'
import { CorruptRowError, projectLagging, totalsOf } from './projected-runs.ts'
import { changeProjections } from './projection-change.ts'
import { ProjectionTables, type ProjectionState } from './projection-tables.ts'
import { writtenRun } from '../summary/stored-run.ts'

/** How many rows are written at once: few, so that a writer who comes meanwhile hardly waits. */
export const runsPerChange = 64

/** How often a change is tried anew that others were quicker with. */
const maxTries = 50

/** Gets how many more events were folded. */
export type OnProgress = (events: number) => void

/**
 * Brings the projections of a ledger up to date: of what has changed, in short transactions. Any number of processes may
 * do it at once. Rejects with a `LedgerUnavailableError` where they cannot be written, or where others are always quicker.
 */
export async function refreshProjections(
  ledger: Ledger,
  database: ProjectionDatabase,
  folded: OnProgress,
): Promise<void> {
  const tables = new ProjectionTables(database)
  for (let tries = 0; tries < maxTries; tries++) {
    try {
      const state = await tables.state()
      if (state.version !== projectionVersion) await dropProjections(database)
      else if (await refreshFrom(ledger, tables, state, folded)) return
    } catch (error) {
      if (!(error instanceof CorruptRowError)) throw error
      await dropProjections(database)
    }
  }
  throw new LedgerUnavailableError(
    'The projections of this ledger could not be updated: other processes update them again and again. ' +
      'Its events are not affected. Try again.',
  )
}

/** Returns whether everything is up to date; `false` if another process has made a change. */
async function refreshFrom(
  ledger: Ledger,
  tables: ProjectionTables,
  from: ProjectionState,
  folded: OnProgress,
): Promise<boolean> {
  let state = from
  for (;;) {
    const { database } = tables
    const stale = await tables.stale(runsPerChange)
    const changed = await database.changedRuns(state.cursor)
    if (changed.isLost) {
      await dropProjections(database)
      return false
    }
    const runIds = [...new Set([...stale, ...changed.runIds])]
    for (let index = 0; index === 0 || index < runIds.length; index += runsPerChange) {
      const some = runIds.slice(index, index + runsPerChange)
      const isAll = index + runsPerChange >= runIds.length
      const cursor = isAll ? changed.cursor : state.cursor
      const projected = await projectLagging(ledger, tables, some, folded)
      if (projected.length === 0 && cursor === state.cursor) continue
      const change = {
        runs: projected.flatMap(({ now }) => (now ? [writtenRun(now.place, now.record)] : [])),
        gone: projected.flatMap(({ runId, now }) => (now ? [] : [runId])),
        totals: await totalsOf(tables, projected),
        cursor,
      }
      if (!(await changeProjections(database, state, change))) return false
      state = { ...state, revision: state.revision + 1, cursor }
    }
    if (changed.isLast && stale.length < runsPerChange) return true
  }
}

import {
  ConfigurationError,
  type Ledger,
  LedgerUnavailableError,
  type RunId,
  TallystickError,
} from '@tallystick/core'
import { option, type OptionCheck, requireLedger, requireOptions } from '@tallystick/core/internal'
import { formatRunId } from '../format/event-row.ts'
import { changeProjections, dropProjections, dropSnapshots } from './change.ts'
import type { StoreDatabase } from '../store/database.ts'
import { databaseOf } from '../store/store.ts'
import type { SummaryRecord } from './run-summary.ts'
import {
  knownBefore,
  projectRun,
  type RunPlace,
  parseRunRow,
  type StoredRun,
  toTimedShares,
  TotalsAccumulator,
  type TotalsChange,
  toRunRow,
} from './stored-run.ts'
import { type ProjectionState, ProjectionTables, projectionVersion } from './tables.ts'

/** A run whose projection lags, and its new projection. */
interface ProjectedRun {
  readonly runId: RunId
  /** The row in the store. */
  readonly before: StoredRun | undefined
  /** Absent where the run has gone. */
  readonly now?: { readonly place: RunPlace; readonly record: SummaryRecord }
}

/** A row differs from the written one, so its share of the totals is unknown. */
export class CorruptRowError extends Error {
  constructor(runId: string) {
    super(`The projection of run ${formatRunId(runId)} is not as it was written.`)
  }
}

/**
 * Returns new projections of those of the runs whose rows lag. `folded` gets the number of events read for each. Throws
 * a `CorruptRowError`.
 */
async function projectLagging(
  ledger: Ledger,
  tables: ProjectionTables,
  runIds: readonly string[],
  folded: (events: number) => void,
): Promise<readonly ProjectedRun[]> {
  const places = new Map<string, RunPlace>()
  for (const place of await tables.places(runIds)) places.set(place.runId, place)
  const rows = await readKnownRows(tables, runIds)
  const found: ProjectedRun[] = []
  // Events under a text that is not a run id are of no run, and have no place; verify names them.
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

async function readKnownRows(
  tables: ProjectionTables,
  runIds: readonly string[],
): Promise<ReadonlyMap<string, StoredRun>> {
  const rows = await tables.rows(runIds)
  return new Map(
    rows.map((row) => {
      const stored = parseRunRow(row)
      if (stored === undefined) throw new CorruptRowError(row.run_id)
      return [row.run_id, stored]
    }),
  )
}

function isCurrent({ summary, seq, headHash }: StoredRun, place: RunPlace): boolean {
  return summary !== undefined && seq === place.headSeq && headHash === place.headHash
}

/** Sums up the change of the totals by some runs. */
export async function sumTotals(
  tables: ProjectionTables,
  runs: readonly ProjectedRun[],
): Promise<TotalsChange> {
  const totals = new TotalsAccumulator()
  const left = new Set<string>()
  for (const { before, now } of runs) {
    if (before) totals.remove(before)
    if (before?.session !== undefined && now?.record.shares.session === undefined) left.add(before.session)
    if (now) totals.add(toTimedShares(now.record))
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

/** Rows that are written at once: few, so that other writers hardly wait. */
const runsPerChange = 64

/** How often a change is tried anew that others were quicker with. */
const maxTries = 50

/** Called with the number of further events that were folded. */
type OnProgress = (events: number) => void

/**
 * Brings the projections of a ledger up to date: of what has changed, in short transactions. Any number of processes may
 * do it at once. Rejects with a `LedgerUnavailableError` where they cannot be written, or where others are always quicker.
 */
export async function refreshProjections(
  ledger: Ledger,
  database: StoreDatabase,
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
        runs: projected.flatMap(({ now }) => (now ? [toRunRow(now.place, now.record)] : [])),
        gone: projected.flatMap(({ runId, now }) => (now ? [] : [runId])),
        totals: await sumTotals(tables, projected),
        cursor,
      }
      if (!(await changeProjections(database, state, change))) return false
      state = { ...state, revision: state.revision + 1, cursor }
    }
    if (changed.isLast && stale.length < runsPerChange) return true
  }
}

/** At most so many lagging runs are projected in memory. If more lag, the whole ledger is folded. */
const maxRunsInMemory = 2_000

/** Current projections, and the replacements of those that lag and could not be written. */
export interface CurrentProjections {
  readonly tables: ProjectionTables
  readonly lagging: ReadonlyMap<string, ProjectedRun>
}

/** How projections are used. */
export interface ProjectionOptions {
  /** Bring them up to date in the store, if it was opened for writing. Default: `true`. */
  readonly refresh?: boolean | undefined
  /** Called with the number of further events that were folded. */
  readonly onProgress?: OnProgress | undefined
}

export const projectionOptions: OptionCheck = option.fields<ProjectionOptions>({
  refresh: option.maybe(option.trueOrFalse),
  onProgress: option.maybe(option.anyFunction),
})

/**
 * Returns the current projections of a ledger; `undefined` if they are missing or unusable: then everything is
 * folded. Faults of projections are ignored, as long as the events can be read.
 */
export async function bringUpToDate(
  ledger: Ledger,
  { refresh = true, onProgress = () => {} }: ProjectionOptions,
): Promise<CurrentProjections | undefined> {
  const database = databaseOf(ledger)
  if (database === undefined) return undefined
  const tables = new ProjectionTables(database)
  if (refresh && database.isWritable) {
    const isDone = await orElse(false, async () => {
      await refreshProjections(ledger, database, onProgress)
      return true
    })
    if (isDone) return { tables, lagging: new Map() }
  }
  return await orElse(undefined, () => projectInMemory(ledger, tables, onProgress))
}

async function projectInMemory(
  ledger: Ledger,
  tables: ProjectionTables,
  folded: OnProgress,
): Promise<CurrentProjections | undefined> {
  const { version, cursor } = await tables.state()
  if (version !== projectionVersion) return undefined
  const runIds = await findLaggingRuns(tables, cursor)
  if (runIds === undefined) return undefined
  const lagging = new Map<string, ProjectedRun>()
  for (let index = 0; index < runIds.length; index += runsPerChange) {
    const some = runIds.slice(index, index + runsPerChange)
    for (const run of await projectLagging(ledger, tables, some, folded)) lagging.set(run.runId, run)
  }
  return { tables, lagging }
}

/** The runs whose projections may lag; `undefined` where they are too many. */
async function findLaggingRuns(
  tables: ProjectionTables,
  from: string,
): Promise<readonly string[] | undefined> {
  const runIds = new Set(await tables.stale(maxRunsInMemory + 1))
  for (let cursor = from; runIds.size <= maxRunsInMemory;) {
    const changed = await tables.database.changedRuns(cursor)
    for (const runId of changed.runIds) runIds.add(runId)
    if (changed.isLost) return undefined
    if (changed.isLast) return [...runIds]
    cursor = changed.cursor
  }
  return undefined
}

/** Returns `otherwise` if projections cannot be read. Errors that show a bug are thrown. */
export async function orElse<T>(otherwise: T, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof TallystickError || error instanceof CorruptRowError) return otherwise
    throw error
  }
}

/**
 * Returns about how many events the projections of a ledger do not cover yet; `undefined` if the ledger keeps none, so
 * that everything is folded each time.
 */
export async function projectionLag(ledger: Ledger): Promise<number | undefined> {
  requireLedger('projectionLag', ledger)
  const database = databaseOf(ledger)
  if (database === undefined) return undefined
  return await orElse(undefined, async () => {
    const { version, cursor } = await new ProjectionTables(database).state()
    return await database.eventsAfter(version === projectionVersion ? cursor : '')
  })
}

/** How much was folded. */
export interface RebuildReport {
  readonly runs: number
  readonly events: number
}

/**
 * Drops everything that a store keeps beside its events, and makes projections of runs, sessions and totals anew from
 * them. Snapshots come back with the next long folds. Writers are not kept waiting.
 *
 * Rejects with a `ConfigurationError` for a ledger that keeps nothing of the kind, and with a `LedgerUnavailableError`
 * where it was opened with `readOnly`.
 */
export async function rebuildProjections(
  ledger: Ledger,
  folded: OnProgress = () => {},
): Promise<RebuildReport> {
  requireLedger('rebuildProjections', ledger)
  requireOptions('rebuildProjections', option.anyFunction, folded, 'what gets the progress')
  const database = requireProjections(ledger)
  await dropSnapshots(database)
  await dropProjections(database)
  let [runs, events] = [0, 0]
  await refreshProjections(ledger, database, (more) => {
    runs++
    events += more
    folded(more)
  })
  return { runs, events }
}

function requireProjections(ledger: Ledger): StoreDatabase {
  const database = databaseOf(ledger)
  if (database === undefined) {
    throw new ConfigurationError(
      'This ledger keeps no projections, so there is nothing to rebuild: only sqliteLedger and postgresLedger do. ' +
        'Hand over the ledger itself, not something wrapped around it.',
    )
  }
  if (database.isWritable) return database
  throw new LedgerUnavailableError(
    'This ledger was opened with readOnly, so its projections were left as they are. Open it without readOnly to rebuild them.',
  )
}

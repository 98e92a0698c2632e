import { TallystickError, type Ledger } from '@tallystick/core'
import { option, type OptionCheck, requireLedger } from '@tallystick/core/kit'
import { projectionVersion } from '../tables/projection-version.ts'
import { projectionDatabaseOf } from '../tables/projection-database.ts'
import { CorruptRowError, projectLagging, type ProjectedRun } from './projected-runs.ts'
import { ProjectionTables } from './projection-tables.ts'
import { refreshProjections, runsPerChange, type OnProgress } from './refresh-projections.ts'

/** At most so many lagging runs are projected in memory. If more lag, the whole ledger is folded. */
const maxRunsInMemory = 2_000

/** Current projections, and the replacements of those that lag and could not be written. */
export interface CurrentProjections {
  readonly tables: ProjectionTables
  readonly lagging: ReadonlyMap<string, ProjectedRun>
}

/** How projections are used. */
export interface ProjectionOptions {
  /** Whether they are brought up to date in the store, where it was opened to write. `true` unless given. */
  readonly refresh?: boolean | undefined
  /** Called with the number of further events that were folded. */
  readonly onProgress?: OnProgress | undefined
}

/** What can be given as `ProjectionOptions`. */
export const projectionOptions: OptionCheck = option.fields<ProjectionOptions>({
  refresh: option.maybe(option.trueOrFalse),
  onProgress: option.maybe(option.anyFunction),
})

/**
 * Returns the current projections of a ledger; `undefined` if they are missing or unusable: then everything is
 * folded. Faults of projections are ignored, as long as the events can be read.
 */
export async function currentProjections(
  ledger: Ledger,
  { refresh = true, onProgress = () => {} }: ProjectionOptions,
): Promise<CurrentProjections | undefined> {
  const database = projectionDatabaseOf(ledger)
  if (database === undefined) return undefined
  const tables = new ProjectionTables(database)
  if (refresh && database.isWritable) {
    const isDone = await orElse(false, async () => {
      await refreshProjections(ledger, database, onProgress)
      return true
    })
    if (isDone) return { tables, lagging: new Map() }
  }
  return await orElse(undefined, () => inMemory(ledger, tables, onProgress))
}

async function inMemory(
  ledger: Ledger,
  tables: ProjectionTables,
  folded: OnProgress,
): Promise<CurrentProjections | undefined> {
  const { version, cursor } = await tables.state()
  if (version !== projectionVersion) return undefined
  const runIds = await laggingRuns(tables, cursor)
  if (runIds === undefined) return undefined
  const lagging = new Map<string, ProjectedRun>()
  for (let index = 0; index < runIds.length; index += runsPerChange) {
    const some = runIds.slice(index, index + runsPerChange)
    for (const run of await projectLagging(ledger, tables, some, folded)) lagging.set(run.runId, run)
  }
  return { tables, lagging }
}

/** The runs whose projections may lag; `undefined` where they are too many. */
async function laggingRuns(tables: ProjectionTables, from: string): Promise<readonly string[] | undefined> {
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

/** What is asked of projections, or something else where they cannot be had. What a bug throws is thrown. */
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
  const database = projectionDatabaseOf(ledger)
  if (database === undefined) return undefined
  return await orElse(undefined, async () => {
    const { version, cursor } = await new ProjectionTables(database).state()
    return await database.eventsAfter(version === projectionVersion ? cursor : '')
  })
}

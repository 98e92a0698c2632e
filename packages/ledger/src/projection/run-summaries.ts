import { type Ledger, type RunId, RunNotFoundError } from '@tallystick/core'
import { option, requireLedger, requireOptions } from '@tallystick/core/internal'
import { type Outcome, outcomes, type RunRecord } from '@tallystick/core/vocabulary'
import { BadRunIdsError, isRunId } from '../format/event-row.ts'
import { databaseOf } from '../store/store.ts'
import { summarizeEndedRuns } from './ended-runs.ts'
import {
  bringUpToDate,
  type CurrentProjections,
  orElse,
  projectionOptions,
  type ProjectionOptions,
} from './refresh.ts'
import { type CallCount, toKey } from './run-accumulator.ts'
import { type ListedRun, type RunStatus, runStatuses } from './run-summary.ts'
import { knownBefore, projectRun, parseRunRow, type StoredRun, type StoredRunRow } from './stored-run.ts'
import { ProjectionTables, type RowQuery } from './tables.ts'

/** How many runs are asked for at once. */
const runsPerBatch = 64

/** Selects runs. All filters must match. */
export interface SummaryFilter {
  /** Runs with one of these statuses. */
  readonly statuses?: readonly RunStatus[] | undefined
  /** Runs in which this agent is or was active. */
  readonly agent?: string | undefined
  /** Runs with an ended call of this tool. */
  readonly tool?: string | undefined
  /** Runs with a call that ended so; of `tool`, if that is given. */
  readonly outcome?: Outcome | undefined
  /** Runs with an event at this time or later, in milliseconds since 1970 UTC. */
  readonly since?: number | undefined
  /** Runs of one session; the last place comes first. */
  readonly sessionId?: string | undefined
  /** Only runs after this one in the list: pass the last run of a batch to get the next batch. */
  readonly before?: RunId | undefined
  /** The most runs to yield. */
  readonly limit?: number | undefined
}

const { anyText, fields, listOf, maybe, oneOf, valueThat } = option
const summaryFilter = fields<SummaryFilter>(
  {
    statuses: maybe(listOf(oneOf(runStatuses))),
    agent: maybe(anyText),
    tool: maybe(anyText),
    outcome: maybe(oneOf(outcomes)),
    since: maybe(valueThat('a finite number of milliseconds since 1970 UTC', Number.isFinite)),
    sessionId: maybe(anyText),
    before: maybe(anyText),
    limit: maybe(
      valueThat(
        'a whole number of runs from 0, or Infinity',
        (value) => value === Infinity || (Number.isSafeInteger(value) && (value as number) >= 0),
      ),
    ),
  },
  {
    standing: 'statuses',
    standings: 'statuses',
    after: 'before',
    max: 'limit',
  },
)

/**
 * Yields summaries of the runs of a ledger, the newest first. If the store keeps projections, a batch costs what it
 * holds: only events that they do not cover yet are folded, and of ended runs only the events about the end are read.
 * Without a filter by status, agent or time only the batch is read. It notices damage to other events if a run has not
 * ended or if `unreadable` is asked for; `verifyRun` always does. Rejects with `RunNotFoundError` for a `before` that
 * is not in the ledger, or not in the session, and with `ConfigurationError` for a wrong filter or wrong options.
 */
export async function* runSummaries(
  ledger: Ledger,
  filter: SummaryFilter = {},
  options: ProjectionOptions = {},
): AsyncGenerator<ListedRun> {
  requireLedger('runSummaries', ledger)
  requireOptions('runSummaries', summaryFilter, filter)
  requireOptions('runSummaries', projectionOptions, options)
  let { limit: left = Infinity } = filter
  if (left <= 0) return
  const current = isSelective(filter) ? await bringUpToDate(ledger, options) : undefined
  const runs = current ? readIndexedRuns(ledger, current, filter) : walkRuns(ledger, filter)
  for await (const run of runs) {
    if (!fits(run, filter)) continue
    yield run
    if (--left <= 0) return
  }
}

/** Returns the summary of one run. Rejects with `RunNotFoundError` if the ledger has no such run. */
export async function runSummary(ledger: Ledger, runId: RunId): Promise<ListedRun> {
  requireLedger('runSummary', ledger)
  const head = await ledger.head(runId)
  if (head === undefined) throw new RunNotFoundError(runId)
  for await (const run of summarizeBatch(ledger, [{ runId, head }])) return run
  throw new RunNotFoundError(runId)
}

/** A selective filter might skip many runs before it finds one. */
function isSelective({ statuses, agent, tool, outcome, since, sessionId }: SummaryFilter): boolean {
  return sessionId === undefined && (statuses ?? agent ?? tool ?? outcome ?? since) !== undefined
}

/**
 * Returns whether a run is among those that a filter asks for, its session aside. Throws a `ConfigurationError` for a wrong
 * filter.
 */
export function fitsFilter(run: ListedRun, filter: SummaryFilter): boolean {
  requireOptions('fitsFilter', summaryFilter, filter)
  return fits(run, filter)
}

function fits(run: ListedRun, { statuses, agent, tool, outcome, since }: SummaryFilter): boolean {
  if (statuses && !statuses.includes(run.status)) return false
  if (run.status === 'unreadable') return (agent ?? tool ?? outcome ?? since) === undefined
  return (
    (agent === undefined || run.agents.includes(agent)) &&
    hasCall(run.calls, tool, outcome) &&
    (since === undefined || run.lastAt >= since)
  )
}

function hasCall(
  calls: readonly CallCount[],
  tool: string | undefined,
  outcome: Outcome | undefined,
): boolean {
  if ((tool ?? outcome) === undefined) return true
  return calls.some((call) => call.name === (tool ?? call.name) && call.outcome === (outcome ?? call.outcome))
}

/** Every run of the ledger or of a session. */
async function* walkRuns(ledger: Ledger, filter: SummaryFilter): AsyncGenerator<ListedRun> {
  const { sessionId, before, statuses } = filter
  // What the end of a run says does not show whether all before it can be read.
  const readsAll = statuses?.includes('unreadable') ?? false
  let batch: RunRecord[] = []
  const asked = { ...(sessionId !== undefined && { sessionId }), ...(before !== undefined && { before }) }
  let badIds: BadRunIdsError | undefined
  try {
    for await (const record of ledger.runs(asked)) {
      batch.push(record)
      if (batch.length < runsPerBatch) continue
      yield* summarizeBatch(ledger, batch, readsAll)
      batch = []
    }
  } catch (error) {
    if (!(error instanceof BadRunIdsError)) throw error
    badIds = error
  }
  yield* summarizeBatch(ledger, batch, readsAll)
  if (badIds) throw badIds
}

async function* summarizeBatch(
  ledger: Ledger,
  batch: readonly Pick<RunRecord, 'runId' | 'head'>[],
  readsAll: boolean = false,
): AsyncGenerator<ListedRun> {
  const rows = await readCurrentRows(
    ledger,
    batch.map(({ runId }) => runId),
  )
  const isCurrent = ({ runId, head }: (typeof batch)[number]): boolean =>
    rows.get(runId)?.summary !== undefined && rows.get(runId)?.seq === head.seq
  const lagging = readsAll ? [] : batch.filter((run) => !isCurrent(run))
  const ended = await summarizeEndedRuns(ledger, lagging)
  for (const { runId, head } of batch) {
    const row = rows.get(runId)
    const summary = row?.seq === head.seq ? row.summary : undefined
    const found = summary ?? ended.get(runId)
    if (found) yield found
    else {
      const record = await projectRun(ledger, runId, head.seq, knownBefore(head.seq, row))
      if (record) yield record.summary
    }
  }
}

/** Rows of some runs; none if the store keeps no projections, or those of other code. */
async function readCurrentRows(
  ledger: Ledger,
  runIds: readonly RunId[],
): Promise<ReadonlyMap<string, StoredRun>> {
  const database = databaseOf(ledger)
  if (database === undefined) return new Map()
  return await orElse(new Map<string, StoredRun>(), async () => {
    const tables = new ProjectionTables(database)
    if ((await tables.cursorOfThisCode()) === undefined) return new Map()
    const rows = (await tables.rows(runIds)).flatMap((row) => parseRunRow(row) ?? [])
    return new Map(rows.map((row) => [row.runId, row]))
  })
}

interface PlacedRun {
  readonly pos: number
  readonly run: ListedRun
}

/** The runs that the indexes of the projections find, with the replacements of lagging ones in their places. */
async function* readIndexedRuns(
  ledger: Ledger,
  { tables, lagging }: CurrentProjections,
  filter: SummaryFilter,
): AsyncGenerator<ListedRun> {
  let beforePos = await findPlaceBefore(tables, filter.before)
  const late = [...lagging.values()]
    .flatMap(({ now }) => (now ? [{ pos: now.place.pos, run: now.record.summary }] : []))
    .filter(({ pos, run }) => pos < beforePos && fits(run, filter))
    .sort((a, b) => b.pos - a.pos)
  let walkedFrom = filter.before
  for (;;) {
    const batch = await orElse(undefined, () => readBatch(tables, filter, beforePos))
    // Without the index, every run is read.
    if (batch === undefined) {
      return yield* walkRuns(ledger, { ...filter, ...(walkedFrom !== undefined && { before: walkedFrom }) })
    }
    const last = batch.at(-1)
    for (const row of batch) {
      while (late[0] && late[0].pos > row.pos) yield (late.shift() as PlacedRun).run
      // A row under a text that is not a run id belongs to no run; verify names it.
      if (!lagging.has(row.run_id) && isRunId(row.run_id)) yield await toListedRun(ledger, row)
    }
    if (batch.length < runsPerBatch || last === undefined) break
    beforePos = last.pos
    walkedFrom = last.run_id as RunId
  }
  for (const { run } of late) yield run
}

async function findPlaceBefore(tables: ProjectionTables, before: RunId | undefined): Promise<number> {
  if (before === undefined) return Number.MAX_SAFE_INTEGER
  const [place] = await tables.places([before])
  if (place === undefined) throw new RunNotFoundError(before)
  return place.pos
}

/** The next rows in the order of places, of all statuses that are asked for. */
async function readBatch(
  tables: ProjectionTables,
  { statuses, agent, since }: SummaryFilter,
  beforePos: number,
): Promise<readonly StoredRunRow[]> {
  const query: RowQuery = {
    beforePos,
    limit: runsPerBatch,
    ...(agent !== undefined && { agent: toKey(agent) }),
    ...(since !== undefined && { since }),
  }
  if (statuses === undefined) return await tables.batch(query)
  const batches: StoredRunRow[] = []
  for (const status of new Set(statuses)) batches.push(...(await tables.batch({ ...query, status })))
  return batches.sort((a, b) => b.pos - a.pos).slice(0, runsPerBatch)
}

/** A row that is not as it was written tells nothing; its run does. */
async function toListedRun(ledger: Ledger, row: StoredRunRow): Promise<ListedRun> {
  const summary = parseRunRow(row)?.summary
  return summary ?? (await runSummary(ledger, row.run_id as RunId))
}

import { type Ledger, type RunId, RunNotFoundError, TallystickError } from '@tallystick/core'
import { option, readStart, requireLedger, requireOptions } from '@tallystick/core/internal'
import {
  type FinishReason,
  finishReasons,
  type Outcome,
  outcomes,
  type RunRecord,
} from '@tallystick/core/vocabulary'
import { BadRunIdsError } from '../format/event-row.ts'
import { getDatabase, orElse } from '../store/store.ts'
import { summarizeEndedRuns } from './ended-runs.ts'
import {
  bringUpToDate,
  type ProjectedRun,
  projectRun,
  parseRunRow,
  type ProjectionOptions,
  projectionOptions,
  ProjectionTables,
} from './projections.ts'
import { type FeedbackFilter, fits, type ListedRun, type RunStatus, runStatuses } from './run-summary.ts'

/** How many runs are asked for at once. */
const runsPerBatch = 64

/** Selects runs. All filters must match. */
export interface SummaryFilter {
  readonly statuses?: readonly RunStatus[] | undefined
  /** Runs in which this agent is or was active. */
  readonly agent?: string | undefined
  /** Runs with an ended call of this tool. */
  readonly tool?: string | undefined
  /** Runs with a call that ended so; of `tool`, if that is given. */
  readonly outcome?: Outcome | undefined
  /** Runs about one of these subjects. */
  readonly subjects?: readonly string[] | undefined
  /** Runs that were started with this tag. */
  readonly tag?: string | undefined
  /** Runs with feedback: from someone, or with a score within bounds. */
  readonly feedback?: FeedbackFilter | undefined
  /** Runs that ended for this reason. */
  readonly reason?: FinishReason | undefined
  /** Runs with an event at this time or later, in milliseconds since 1970 UTC. */
  readonly since?: number | undefined
  /** Runs that began at this time or later. */
  readonly startedSince?: number | undefined
  /** Runs that began before this time. */
  readonly startedUntil?: number | undefined
  /** True leaves out child runs, which do the work of a call of another run. */
  readonly roots?: boolean | undefined
  /** Runs of one session; the last place comes first. */
  readonly sessionId?: string | undefined
  /** Only runs after this one in the list: pass the last run of a batch to get the next batch. */
  readonly before?: RunId | undefined
  /** The most runs to yield. */
  readonly limit?: number | undefined
}

const { anyText, fields, listOf, maybe, oneOf, trueOrFalse, valueThat } = option
const moment = valueThat('a finite number of milliseconds since 1970 UTC', Number.isFinite)
const aScore = valueThat('a finite number', Number.isFinite)
const summaryFilter = fields<SummaryFilter>(
  {
    statuses: maybe(listOf(oneOf(runStatuses))),
    agent: maybe(anyText),
    tool: maybe(anyText),
    outcome: maybe(oneOf(outcomes)),
    subjects: maybe(listOf(anyText)),
    tag: maybe(anyText),
    feedback: maybe(
      fields<FeedbackFilter>({ by: maybe(anyText), minScore: maybe(aScore), maxScore: maybe(aScore) }),
    ),
    reason: maybe(oneOf(finishReasons)),
    since: maybe(moment),
    startedSince: maybe(moment),
    startedUntil: maybe(moment),
    roots: maybe(trueOrFalse),
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
 * Without any filter but a session only the batch is read. It notices damage to other events if a run has not
 * ended or if `unreadable` is asked for; `verifyRun` always does. Rejects with `RunNotFoundError` for a `before` that
 * is not in the ledger, or not in the session, and with `ConfigurationError` for a wrong filter or wrong options.
 */
export async function* readRunSummaries(
  ledger: Ledger,
  filter: SummaryFilter = {},
  options: ProjectionOptions = {},
): AsyncGenerator<ListedRun> {
  requireLedger('readRunSummaries', ledger)
  requireOptions('readRunSummaries', summaryFilter, filter)
  requireOptions('readRunSummaries', projectionOptions, options)
  let { limit: left = Infinity } = filter
  if (left <= 0) return
  const runs = isSelective(filter) ? findRuns(ledger, filter, options) : walkRuns(ledger, filter)
  for await (const run of runs) {
    if (!fits(run, filter) || !(await hasContent(ledger, run, filter))) continue
    yield run
    if (--left <= 0) return
  }
}

/** Returns the summary of one run. Rejects with `RunNotFoundError` if the ledger has no such run. */
export async function readRunSummary(ledger: Ledger, runId: RunId): Promise<ListedRun> {
  requireLedger('readRunSummary', ledger)
  const head = await ledger.head(runId)
  if (head === undefined) throw new RunNotFoundError(runId)
  for await (const run of summarizeBatch(ledger, [{ runId, head }])) return run
  throw new RunNotFoundError(runId)
}

/** A selective filter might skip many runs before it finds one. */
function isSelective(filter: SummaryFilter): boolean {
  const { sessionId, before: _before, limit: _limit, ...asked } = filter
  const isAsked = Object.values(asked).some((each) => each !== undefined)
  return sessionId === undefined && isAsked
}

/** Returns whether a run has what no summary says, since it is content. */
async function hasContent(
  ledger: Ledger,
  run: ListedRun,
  { tag, feedback }: SummaryFilter,
): Promise<boolean> {
  return (
    (await hasTag(ledger, run, tag)) && (feedback === undefined || (await hasFeedback(ledger, run, feedback)))
  )
}

async function hasFeedback(
  ledger: Ledger,
  { runId }: ListedRun,
  { by, minScore = -Infinity, maxScore = Infinity }: FeedbackFilter,
): Promise<boolean> {
  const anyScore = minScore === -Infinity && maxScore === Infinity
  for await (const event of ledger.find({ runId, types: ['feedback_given'] })) {
    if (event.type !== 'feedback_given' || (by !== undefined && event.by !== by)) continue
    const { score } = event
    if (anyScore || (score !== undefined && score >= minScore && score <= maxScore)) return true
  }
  return false
}

/** Returns whether a run was started with a tag, which its first event says: tags are content, and no summary has them. */
async function hasTag(ledger: Ledger, { runId }: ListedRun, tag: string | undefined): Promise<boolean> {
  if (tag === undefined) return true
  const start = await orElse(undefined, () => readStart(ledger, runId))
  return start?.labels?.tags?.includes(tag) ?? false
}

/**
 * Returns whether a run is among those that a filter asks for, its session, tags and who gave feedback aside. Throws a `ConfigurationError` for a wrong
 * filter.
 */
export function fitsFilter(run: ListedRun, filter: SummaryFilter): boolean {
  requireOptions('fitsFilter', summaryFilter, filter)
  return fits(run, filter)
}

async function* walkRuns(ledger: Ledger, filter: SummaryFilter): AsyncGenerator<ListedRun> {
  const { sessionId, before, statuses } = filter
  // The last event of a run does not show whether those before it can be read.
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
  const rows = await readRows(
    ledger,
    batch.map(({ runId }) => runId),
  )
  const isCurrent = ({ runId, head }: (typeof batch)[number]): boolean =>
    rows.get(runId)?.summary.seq === head.seq
  const ended = await summarizeEndedRuns(ledger, readsAll ? [] : batch.filter((run) => !isCurrent(run)))
  for (const run of batch) {
    const { runId, head } = run
    const row = rows.get(runId)
    const found = isCurrent(run) ? row?.summary : ended.get(runId)
    const summary = found ?? (await projectRun(ledger, runId, head.seq, row))?.summary
    if (summary) yield summary
  }
}

/** The rows of some runs; none if the store keeps no projections, or those of other code. */
async function readRows(
  ledger: Ledger,
  runIds: readonly RunId[],
): Promise<ReadonlyMap<string, ProjectedRun>> {
  const database = getDatabase(ledger)
  const none = new Map<string, ProjectedRun>()
  if (database === undefined) return none
  return await orElse(none, async () => {
    const tables = new ProjectionTables(database)
    if (!(await tables.isOfThisCode())) return none
    const rows = await tables.rows('run_id', runIds)
    return new Map(rows.flatMap((row) => parseRunRow(row) ?? []).map((run) => [run.summary.runId, run]))
  })
}

/** The runs that the indexes of the projections find. Where they cannot be read, every run is. */
async function* findRuns(
  ledger: Ledger,
  filter: SummaryFilter,
  options: ProjectionOptions,
): AsyncGenerator<ListedRun> {
  let { before } = filter
  const current = await bringUpToDate(ledger, options, { isQuick: true })
  try {
    for await (const { summary } of current?.list(filter, before) ?? []) {
      yield summary
      before = summary.runId
    }
    if (current) return
  } catch (error) {
    if (!(error instanceof TallystickError)) throw error
  }
  yield* walkRuns(ledger, { ...filter, before })
}

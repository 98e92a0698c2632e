import { type Ledger, type RunId, RunNotFoundError } from '@tallystick/core'
import { isRunDriven, omitUndefined, readDecimal } from '@tallystick/core/internal'
import {
  type FinishReason,
  finishReasons,
  type Outcome,
  outcomes,
  parseRunId,
} from '@tallystick/core/vocabulary'
import type { RowStatus, RunRow } from '@tallystick/inspector'
import {
  type FeedbackFilter,
  findWorst,
  formatContent,
  keepsProjections,
  type ListedRun,
  readBeginnings,
  readRunSummaries,
  type RunSummary,
  type SummaryFilter,
} from '@tallystick/ledger'
import type { HonoRequest } from 'hono'
import type { PlacedList } from '../http/cursors.ts'
import { isVisible, type Principal, requireVisible } from '../http/principal.ts'
import { createMalformedError } from '../http/problem.ts'
import type { Operation, Routes } from '../http/routes.ts'
import { listSubjects, parseNumber, parsePageSize, respondJson, type Served } from '../http/served.ts'

/** What a list is asked for: the statuses of rows, and `unfinished` for those under way and those interrupted. */
const askedStatuses = [
  ...['done', 'failed', 'suspended', 'under_way', 'interrupted', 'unfinished'],
  'unreadable',
] as const
type AskedStatus = RowStatus | 'unfinished'

/** The most runs that one page looks at, for a principal that sees few of them, or a text that few of them begin with. */
const maxLooked = 1_000
/** The runs that are looked at together. */
const maxBatch = 64
const maxFirstWords = 200
const maxTools = 40

/** Adds the list of runs. */
export function addList(routes: Routes): void {
  const { served } = routes
  routes.get(
    '/runs',
    {
      operationId: 'listRuns',
      summary: 'A page of the runs that the caller sees, newest first. The last page has no `before`.',
      parameters: listParameters,
      answers: { 200: 'The page.' },
      fields: ['runs'],
    },
    async ({ principal, req }) => respondJson(await readAskedList(served, principal, req)),
  )
}

export interface AskedRuns {
  readonly statuses?: readonly AskedStatus[]
  readonly agent?: string
  readonly tool?: string
  readonly outcome?: Outcome
  readonly sessionId?: string
  readonly subject?: string
  readonly tag?: string
  readonly reason?: FinishReason
  readonly since?: number
  readonly feedback?: FeedbackFilter
  readonly startedSince?: number
  readonly startedUntil?: number
  readonly roots?: boolean
  /** Part of the first words of a run, in either case. */
  readonly words?: string
}

/** The parameters that say which runs a caller asks for. */
export const runFilters: NonNullable<Operation['parameters']> = [
  ...(['status', 'reason', 'agent', 'tool', 'outcome', 'sessionId', 'subject', 'tag'] as const),
  ...(['feedbackBy', 'minScore', 'maxScore', 'since', 'startedSince', 'startedUntil', 'roots'] as const),
]

/** Those of a page of runs. */
export const listParameters: NonNullable<Operation['parameters']> = [...runFilters, 'q', 'before', 'limit']

/** Reads which runs a caller asks for. */
export function readRunFilters(req: HonoRequest): AskedRuns {
  const statuses = req.queries('status')
  const unknown = statuses?.find((status) => !(askedStatuses as readonly string[]).includes(status))
  if (unknown !== undefined) {
    throw createMalformedError(`status has to be one of ${askedStatuses.join(', ')}.`)
  }
  return omitUndefined({
    statuses: statuses as readonly AskedStatus[] | undefined,
    reason: parseOneOf('reason', finishReasons, req.query('reason')),
    agent: req.query('agent'),
    tool: req.query('tool'),
    outcome: parseOneOf('outcome', outcomes, req.query('outcome')),
    sessionId: req.query('sessionId'),
    subject: req.query('subject'),
    tag: req.query('tag'),
    feedback: readFeedbackFilter(req),
    since: parseNumber('since', req.query('since')),
    startedSince: parseNumber('startedSince', req.query('startedSince')),
    startedUntil: parseNumber('startedUntil', req.query('startedUntil')),
    roots: parseOneOf('roots', ['true', 'false'], req.query('roots')) === 'true' || undefined,
  })
}

/** Reads the filters and the place of a list as a caller asks for them. */
function readAskedPage(req: HonoRequest): AskedRuns & { readonly limit: number; readonly before?: string } {
  const [words, before] = [req.query('q')?.toLowerCase() || undefined, req.query('before')]
  return {
    ...readRunFilters(req),
    limit: parsePageSize(req.query('limit')),
    ...omitUndefined({ words, before }),
  }
}

function readFeedbackFilter(req: HonoRequest): FeedbackFilter | undefined {
  const [by, minScore, maxScore] = [
    req.query('feedbackBy'),
    parseScore(req, 'minScore'),
    parseScore(req, 'maxScore'),
  ]
  if ((by ?? minScore ?? maxScore) === undefined) return undefined
  return omitUndefined({ by, minScore, maxScore })
}

function parseScore(req: HonoRequest, name: 'minScore' | 'maxScore'): number | undefined {
  const text = req.query(name)
  if (text === undefined) return undefined
  const score = readDecimal(text)
  if (Number.isNaN(score)) throw createMalformedError(`${name} has to be a number, such as 0.5.`)
  return score
}

/** Reads a parameter that is one of a few words. */
function parseOneOf<const Word extends string>(
  name: string,
  words: readonly Word[],
  text: string | undefined,
): Word | undefined {
  const word = words.find((each) => each === text)
  if (text === undefined || word !== undefined) return word
  throw createMalformedError(`${name} has to be one of ${words.join(', ')}.`)
}

/** Finds the run after which a page begins: one that the caller sees, or a place from an earlier page. */
export async function findBegin({ ledger, places }: Served, list: PlacedList, text: string): Promise<RunId> {
  // A run id that the caller does not see would say that its run exists.
  if (parseRunId(text) !== undefined) return await requireVisible(ledger, list.principal, text)
  const before = parseRunId((await places.open(text, list)) ?? '')
  if (before !== undefined && (await canContinueAfter(ledger, before, list))) return before
  throw createMalformedError(
    'before has to be a run that you see, or what the last page of this list gave you. Ask for the first page again.',
  )
}

/** Returns true if the ledger can continue after the run of a place: refusing it there would name the run. */
async function canContinueAfter(ledger: Ledger, runId: RunId, { sessionId }: PlacedList): Promise<boolean> {
  try {
    for await (const _ of ledger.runs({ before: runId, limit: 1, ...omitUndefined({ sessionId }) })) break
    return true
  } catch (error) {
    if (error instanceof RunNotFoundError) return false
    throw error
  }
}

/** The filter of a list for summaries, which do not say who drives a run. */
export function toSummaryFilter(
  { ledger }: Pick<Served, 'ledger'>,
  principal: Principal,
  asked: AskedRuns & { readonly begin?: RunId },
): SummaryFilter {
  // Without an index the filter would go through all runs at once, and not only those that a page may look at.
  const subjects = keepsProjections(ledger) ? listSubjects(principal) : undefined
  const { statuses, words: _words, subject, begin, ...filter } = asked
  const own = statuses?.map((status) =>
    status === 'under_way' || status === 'interrupted' ? 'unfinished' : status,
  )
  return {
    ...filter,
    ...omitUndefined({
      before: begin,
      statuses: own && [...new Set(own)],
      subjects: subject === undefined ? subjects : [subject],
    }),
  }
}

/** The page of runs that a caller asks for. */
export async function readAskedList(
  served: Served,
  principal: Principal,
  req: HonoRequest,
): Promise<{ readonly runs: readonly ListRow[]; readonly before?: string }> {
  const { before, limit, ...asked } = readAskedPage(req)
  const list: PlacedList = { of: 'runs', principal, sessionId: asked.sessionId }
  const begin = before === undefined ? undefined : await findBegin(served, list, before)
  return await readListPage(served, list, limit, { ...asked, ...omitUndefined({ begin }) })
}

/** A page of the runs that a principal sees, and where the next page begins. It may hold fewer than asked for, or none. */
async function readListPage(
  served: Served,
  list: PlacedList,
  limit: number,
  asked: AskedRuns & { readonly begin?: RunId },
): Promise<{ readonly runs: readonly ListRow[]; readonly before?: string }> {
  const { ledger, places } = served
  const { principal } = list
  const runs: ListRow[] = []
  let looked = 0
  let batch: ListedRun[] = []
  const takeBatch = async (): Promise<{ readonly before: string } | undefined> => {
    const rows = await readRows(served, list, batch)
    for (const { run, row } of rows) {
      looked++
      if (row && isAskedFor(row, asked)) runs.push(row)
      if (runs.length < limit && looked < maxLooked) continue
      return { before: row ? run.runId : await places.seal(run.runId, list) }
    }
    batch = []
    return undefined
  }
  for await (const run of readRunSummaries(ledger, toSummaryFilter(served, principal, asked))) {
    batch.push(run)
    if (batch.length < Math.min(maxBatch, limit - runs.length)) continue
    const end = await takeBatch()
    if (end) return { runs, ...end }
  }
  const end = await takeBatch()
  return { runs, ...end }
}

/** Returns whether a row has what no summary says: who drives it, and how it begins. */
function isAskedFor({ status, firstWords }: ListRow, { statuses, words }: AskedRuns): boolean {
  return (
    hasAskedStatus(status, statuses) &&
    (words === undefined || (firstWords?.toLowerCase().includes(words) ?? false))
  )
}

export function hasAskedStatus(status: RowStatus, statuses: AskedRuns['statuses']): boolean {
  const isUnfinished = status === 'under_way' || status === 'interrupted'
  return (
    statuses === undefined || statuses.includes(status) || (isUnfinished && statuses.includes('unfinished'))
  )
}

/** A row of the list: what the inspector shows, and more of the summary. */
type ListRow = RunRow &
  Partial<
    Pick<RunSummary, 'agents' | 'sessionPlace' | 'turn' | 'waits' | 'children' | 'usage' | 'childRunIds'>
  >

/** Reads the rows of some runs; none for a run that the principal does not see. */
async function readRows(
  { ledger }: Served,
  { principal }: PlacedList,
  batch: readonly ListedRun[],
): Promise<readonly { readonly run: ListedRun; readonly row: ListRow | undefined }[]> {
  const seen = await Promise.all(
    batch.map(
      async ({ runId }) => principal.sees === 'everything' || (await isVisible(ledger, principal, runId)),
    ),
  )
  const shown = batch.filter((_run, index) => seen[index])
  const beginnings = await readBeginnings(
    ledger,
    shown.map(({ runId }) => runId),
  )
  const rows = await Promise.all(
    shown.map(async (run) => {
      if (run.status === 'unreadable') return toUnreadableRow(run)
      const isDriven = run.status === 'unfinished' && (await isRunDriven(ledger, run.runId))
      const { start, input } = beginnings.get(run.runId) ?? {}
      // What was removed leaves a marker, which is nobody's first word.
      const words = input?.removed === undefined && input ? formatContent(input.message.parts) : ''
      return toListRow(run, { isDriven, words, tags: start?.labels?.tags })
    }),
  )
  const byId = new Map(rows.map((row) => [row.runId, row]))
  return batch.map((run) => ({ run, row: byId.get(run.runId) }))
}

function toUnreadableRow({ runId, seq, message }: ListedRun & { readonly status: 'unreadable' }): ListRow {
  return {
    ...{ runId, status: 'unreadable', agent: '', startedAt: 0, lastAt: 0, seq },
    ...{ turns: 0, toolCalls: 0, tools: [] },
    worst: { what: 'unreadable', text: message },
  } satisfies RunRow
}

interface RowParts {
  readonly isDriven: boolean
  readonly words: string
  readonly tags: readonly string[] | undefined
}

function toListRow(run: RunSummary, { isDriven, words, tags }: RowParts): ListRow {
  const { status: _status, calls, lastCalls, started, ...summary } = run
  const ended = lastCalls.flatMap((place) => calls[place] ?? [])
  const tools = [
    ...ended.map(({ name, outcome }) => ({ name, outcome })),
    ...started.map(({ name }) => ({ name })),
  ]
  const firstWords = words.trim().slice(0, maxFirstWords)
  return {
    ...summary,
    status: toRowStatus(run.status, isDriven),
    tools: tools.slice(-maxTools),
    ...omitUndefined({ worst: toWorst(run), tags, firstWords: firstWords === '' ? undefined : firstWords }),
  } satisfies RunRow
}

export function toRowStatus(status: ListedRun['status'], isDriven: boolean): RowStatus {
  if (status !== 'unfinished') return status
  return isDriven ? 'under_way' : 'interrupted'
}

/** Why a run failed is worse than how its calls ended. */
function toWorst(run: RunSummary): RunRow['worst'] {
  if (run.status === 'failed' && run.reason !== undefined) {
    return { what: run.reason, text: run.reason.replaceAll('_', ' ') }
  }
  const worst = findWorst(run)
  if (worst === undefined) return undefined
  const { outcome, name = 'model call', count } = worst
  const how = outcome === 'model_attempt_failed' ? 'failed' : outcome.replaceAll('_', ' ')
  return { what: outcome, text: `${name} ${how}${count === 1 ? '' : ` ×${count}`}` }
}

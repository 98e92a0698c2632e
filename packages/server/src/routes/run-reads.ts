import { RunNotFoundError, type Ledger } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import { parseRunId, type RunId } from '@tallystick/core/vocabulary'
import { runSummaries, type ListedRun, type SummaryFilter } from '@tallystick/ledger'
import type { Context, Hono } from 'hono'
import { RefusedRequestError } from '../http/problem.ts'
import type { PlacedList, SealedPlaces } from '../access/sealed-places.ts'
import { isVisible, requireVisible } from '../access/visible-run.ts'
import { runView, pastRunView, stateAt, transcriptView } from '../runs/run-view.ts'
import { awaitStop } from '../runs/await-stop.ts'
import { json, numberParameter, pageSize, type RequestScope, type Served } from './served.ts'

/** How many runs one page of a list looks at, for a principal that sees few of them. */
const maxLooked = 1_000
/** The longest wait for a result: proxies give a request up after a minute. */
const maxWaitMs = 50_000

const listed = ['done', 'failed', 'suspended', 'unfinished', 'unreadable'] as const

/** Adds the routes that read runs: the list, and the state, transcript and result of one. */
export function addReads(app: Hono<RequestScope>, served: Served): void {
  const { ledger } = served
  app.get('/runs', async (context) => {
    const { before, limit, ...filter } = askedOf(context)
    const list: PlacedList = {
      of: 'runs',
      principal: context.get('principal'),
      sessionId: filter.sessionId,
    }
    const begin = before === undefined ? undefined : await beginAfter(served, list, before)
    return json(await readListPage(served, list, { limit, filter: { ...filter, ...begin } }))
  })
  app.get('/runs/:run', async (context) => {
    const runId = await requireVisible(ledger, context.get('principal'), context.req.param('run'))
    const at = numberParameter('at', context.req.query('at'))
    const state = await stateAt(ledger, runId, at)
    const isPast = at !== undefined && (await ledger.head(runId))?.seq !== state.seq
    return json(isPast ? pastRunView(state) : await runView(ledger, state))
  })
  app.get('/runs/:run/transcript', async (context) => {
    const runId = await requireVisible(ledger, context.get('principal'), context.req.param('run'))
    const state = await stateAt(ledger, runId, numberParameter('at', context.req.query('at')))
    return json(transcriptView(state))
  })
  app.get('/runs/:run/result', async (context) => {
    const runId = await requireVisible(ledger, context.get('principal'), context.req.param('run'))
    const waitMs = Math.min(maxWaitMs, numberParameter('waitMs', context.req.query('waitMs')) ?? 0)
    const state = await stateAt(ledger, runId)
    const stopped = await awaitStop(served.reads, state, {
      waitMs,
      stream: served.stream,
      signal: context.req.raw.signal,
    })
    const view = await runView(ledger, stopped.state)
    return stopped.isStopped ? json(view) : json(view, 202, { 'retry-after': '1' })
  })
}

/** The filters and the place of a list as a caller asks for them. */
interface AskedPage extends Pick<SummaryFilter, 'statuses' | 'agent' | 'sessionId' | 'since'> {
  readonly limit: number
  readonly before?: string
}

function askedOf({ req }: Context): AskedPage {
  const statuses = req.queries('status')
  const unknown = statuses?.find((status) => !(listed as readonly string[]).includes(status))
  if (unknown !== undefined) {
    throw new RefusedRequestError(400, 'malformed', `status has to be one of ${listed.join(', ')}.`)
  }
  return {
    limit: pageSize(req.query('limit')),
    ...omitUndefined({
      statuses: statuses as SummaryFilter['statuses'],
      agent: req.query('agent'),
      sessionId: req.query('sessionId'),
      since: numberParameter('since', req.query('since')),
      before: req.query('before'),
    }),
  }
}

/** Where a page begins: after a run that the caller sees, or at a place that a page before it gave. */
interface Begin {
  readonly before: RunId
}

async function beginAfter({ ledger, places }: Served, list: PlacedList, text: string): Promise<Begin> {
  // A run id that the caller does not see would say that its run exists.
  if (parseRunId(text) !== undefined) return { before: await requireVisible(ledger, list.principal, text) }
  const before = parseRunId((await places.open(text, list)) ?? '')
  if (before === undefined || !(await isPlaceOf(ledger, before, list))) throw strangePlace()
  return { before }
}

/** Whether the ledger can continue after the run of a place: refusing it there would name the run. */
async function isPlaceOf(ledger: Ledger, runId: RunId, { sessionId }: PlacedList): Promise<boolean> {
  try {
    for await (const _ of ledger.runs({ before: runId, limit: 1, ...omitUndefined({ sessionId }) })) break
    return true
  } catch (error) {
    if (error instanceof RunNotFoundError) return false
    throw error
  }
}

function strangePlace(): RefusedRequestError {
  return new RefusedRequestError(
    400,
    'malformed',
    'before has to be a run that you see, or what the last page of this list gave you. Ask for the first page again.',
  )
}

interface Page {
  readonly runs: readonly ListedRun[]
  readonly before?: string
}

/** A page of the runs that a principal sees, and where the next page begins. It may hold fewer than asked for, or none. */
async function readListPage(
  { ledger, places }: { readonly ledger: Ledger; readonly places: SealedPlaces },
  list: PlacedList,
  { limit, filter }: { readonly limit: number; readonly filter: SummaryFilter },
): Promise<Page> {
  const runs: ListedRun[] = []
  let looked = 0
  for await (const run of runSummaries(ledger, filter)) {
    looked++
    const isSeen = await isVisible(ledger, list.principal, run.runId)
    if (isSeen) runs.push(run)
    if (runs.length < limit && looked < maxLooked) continue
    return { runs, before: isSeen ? run.runId : await places.seal(run.runId, list) }
  }
  return { runs }
}

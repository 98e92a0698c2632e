import type { Ledger } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/kit'
import { parseRunId } from '@tallystick/core/vocabulary'
import { runSummaries, type ListedRun, type SummaryFilter } from '@tallystick/ledger'
import type { Context, Hono } from 'hono'
import { RefusedRequestError, runNotFound } from '../http/problem.ts'
import type { Principal } from '../access/principal.ts'
import { isVisible, requireVisible } from '../access/visible-run.ts'
import { runView, stateAt, transcriptView } from '../runs/run-view.ts'
import { awaitStop } from '../runs/await-stop.ts'
import { json, maxPage, numberParameter, type RequestScope, type Served } from './served.ts'

/** How many runs one page of a list looks at, for a principal that sees few of them. */
const maxLooked = 1_000
/** The longest wait for a result: proxies give a request up after a minute. */
const maxWaitMs = 50_000

const listed = ['done', 'failed', 'suspended', 'unfinished', 'unreadable'] as const

/** Adds the routes that read runs: the list, and the state, transcript and result of one. */
export function addReads(app: Hono<RequestScope>, served: Served): void {
  const { ledger } = served
  app.get('/runs', async (context) => json(await page(ledger, context.get('principal'), filterOf(context))))
  app.get('/runs/:run', async (context) => {
    const runId = await requireVisible(ledger, context.get('principal'), context.req.param('run'))
    const state = await stateAt(ledger, runId, numberParameter('at', context.req.query('at')))
    return json(await runView(ledger, state))
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
    const stopped = await awaitStop(ledger, state, {
      waitMs,
      stream: served.stream,
      signal: context.req.raw.signal,
    })
    const view = await runView(ledger, stopped.state)
    return stopped.isStopped ? json(view) : json(view, 202, { 'retry-after': '1' })
  })
}

function filterOf({ req }: Context): SummaryFilter & { readonly limit: number } {
  const statuses = req.queries('status')
  const unknown = statuses?.find((status) => !(listed as readonly string[]).includes(status))
  if (unknown !== undefined) {
    throw new RefusedRequestError(400, 'malformed', `status has to be one of ${listed.join(', ')}.`)
  }
  const given = req.query('before')
  const before = given === undefined ? undefined : parseRunId(given)
  if (given !== undefined && before === undefined) throw runNotFound(given)
  const limit = numberParameter('limit', req.query('limit')) ?? 50
  if (limit < 1 || limit > maxPage) {
    throw new RefusedRequestError(400, 'malformed', `limit has to be from 1 to ${maxPage}.`)
  }
  return {
    limit,
    ...omitUndefined({
      statuses: statuses as SummaryFilter['statuses'],
      agent: req.query('agent'),
      sessionId: req.query('sessionId'),
      since: numberParameter('since', req.query('since')),
      before,
    }),
  }
}

/** A page of the runs that a principal sees, and the run after which the next page begins. */
async function page(
  ledger: Ledger,
  principal: Principal,
  { limit, ...filter }: SummaryFilter & { readonly limit: number },
): Promise<{ readonly runs: readonly ListedRun[]; readonly before?: string }> {
  // A cursor that the caller does not see would say that its run exists.
  if (filter.before !== undefined) await requireVisible(ledger, principal, filter.before)
  const runs: ListedRun[] = []
  let looked = 0
  for await (const run of runSummaries(ledger, filter)) {
    looked++
    if (await isVisible(ledger, principal, run.runId)) runs.push(run)
    if (runs.length >= limit || looked >= maxLooked) {
      const last = runs.at(-1)
      return { runs, ...(last && { before: last.runId }) }
    }
  }
  return { runs }
}

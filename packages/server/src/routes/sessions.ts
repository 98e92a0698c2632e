import type { Ledger } from '@tallystick/core'
import { transcript } from '@tallystick/core/machine'
import type { RunId } from '@tallystick/core/vocabulary'
import { runSummary, type ListedRun } from '@tallystick/ledger'
import type { Hono } from 'hono'
import { RefusedRequestError } from '../http/problem.ts'
import type { Principal } from '../access/principal.ts'
import { isVisible, requireVisible } from '../access/visible-run.ts'
import { stateAt } from '../runs/run-view.ts'
import { json, pageSize, type RequestScope, type Served } from './served.ts'

/** Adds conversations: pages of the runs of a session, the last first, and the history with which its next run begins. */
export function addSessions(app: Hono<RequestScope>, { ledger }: Served): void {
  app.get('/sessions/:session', async (context) => {
    const [principal, sessionId] = [context.get('principal'), context.req.param('session')]
    const limit = pageSize(context.req.query('limit'))
    const before = context.req.query('before')
    if (before !== undefined) {
      await requireVisible(ledger, principal, before)
      return json({
        sessionId,
        ...(await readSessionPage(ledger, principal, { sessionId, limit, before: before as RunId })),
      })
    }
    const { runs, ...more } = await readSessionPage(ledger, principal, { sessionId, limit })
    const [last] = runs
    if (last === undefined) {
      throw new RefusedRequestError(
        404,
        'session_not_found',
        `There is no session ${sessionId.slice(0, 80)}. GET /runs lists the runs that you see, with their sessions.`,
      )
    }
    const state = await stateAt(ledger, last.runId)
    const history = { runId: state.runId, seq: state.seq, messages: transcript(state) }
    return json({ sessionId, runs, ...more, history })
  })
}

interface SessionPage {
  readonly sessionId: string
  readonly limit: number
  readonly before?: RunId
}

/** A page of the runs of a session, and where the next page begins, if a run that the principal sees is left. */
async function readSessionPage(
  ledger: Ledger,
  principal: Principal,
  { limit, ...place }: SessionPage,
): Promise<{ readonly runs: readonly ListedRun[]; readonly before?: RunId }> {
  const runs: ListedRun[] = []
  for await (const { runId } of ledger.runs({ ...place, limit: limit + 1 })) {
    // The history of a run is that of the runs before it: without the last one, none is shown.
    if (!(await isVisible(ledger, principal, runId))) break
    const last = runs.at(-1)
    if (last && runs.length === limit) return { runs, before: last.runId }
    runs.push(await runSummary(ledger, runId))
  }
  return { runs }
}

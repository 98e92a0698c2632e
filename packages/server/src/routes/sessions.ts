import type { Ledger } from '@tallystick/core'
import { transcript } from '@tallystick/core/machine'
import { runSummary, type ListedRun } from '@tallystick/ledger'
import type { Hono } from 'hono'
import { RefusedRequestError } from '../http/problem.ts'
import type { Principal } from '../access/principal.ts'
import { isVisible } from '../access/visible-run.ts'
import { stateAt } from '../runs/run-view.ts'
import { json, maxPage, type RequestScope, type Served } from './served.ts'

/** Adds conversations: the runs of a session, the last first, and the history with which its next run begins. */
export function addSessions(app: Hono<RequestScope>, { ledger }: Served): void {
  app.get('/sessions/:session', async (context) => {
    const sessionId = context.req.param('session')
    const runs = await visibleRuns(ledger, context.get('principal'), sessionId)
    const [last] = runs
    if (last === undefined) {
      throw new RefusedRequestError(
        404,
        'session_not_found',
        `There is no session ${sessionId.slice(0, 80)}.`,
      )
    }
    const state = await stateAt(ledger, last.runId)
    const history = { runId: state.runId, seq: state.seq, messages: transcript(state) }
    return json({ sessionId, runs, history })
  })
}

async function visibleRuns(
  ledger: Ledger,
  principal: Principal,
  sessionId: string,
): Promise<readonly ListedRun[]> {
  const runs: ListedRun[] = []
  for await (const { runId } of ledger.runs({ sessionId, limit: maxPage })) {
    // The history of a run is that of the runs before it: without the last one, none is shown.
    if (!(await isVisible(ledger, principal, runId))) return runs
    runs.push(await runSummary(ledger, runId))
  }
  return runs
}

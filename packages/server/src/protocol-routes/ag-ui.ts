import type { Hono } from 'hono'
import { runNotFound } from '../http/problem.ts'
import { readBody } from '../http/read-body.ts'
import type { Principal } from '../access/principal.ts'
import { isVisible, lastRunOf } from '../access/visible-run.ts'
import { agUiProtocol, decisionOf, runAgentInput, userInput, type RunAgentInput } from '../protocols/ag-ui.ts'
import { protocolStream, type FollowedRun } from '../protocols/protocol-stream.ts'
import { streamHeaders } from '../stream/sse-frame.ts'
import { sendDecision } from '../routes/decisions.ts'
import { startRun } from '../routes/run-start.ts'
import { startHeaders, type StartHeaders } from '../access/start-headers.ts'
import { requireAgent, requirePermission, type RequestScope, type Served } from '../routes/served.ts'

/** Adds the route for clients of AG-UI: a thread is a session, and an interrupt is what a run waits for. */
export function addAgUi(app: Hono<RequestScope>, served: Served): void {
  app.post('/ag-ui/:agent', async (context) => {
    const principal = context.get('principal')
    const { name } = requireAgent(served, principal, context.req.param('agent'))
    const input = await readBody(context.req.raw, runAgentInput, served.body)
    const run = input.resume?.length
      ? await decide(served, principal, input)
      : await begin(served, principal, { ...startHeaders(context.req.raw, principal), agent: name, input })
    const stream = protocolStream(served, run, agUiProtocol(input), served.stream)
    return new Response(stream, { headers: streamHeaders })
  })
}

async function begin(
  served: Served,
  principal: Principal,
  {
    agent,
    input: { threadId, messages },
    ...headers
  }: StartHeaders & { readonly agent: string; readonly input: RunAgentInput },
): Promise<FollowedRun> {
  requirePermission(principal, 'start')
  const order = { agent, input: userInput(messages), sessionId: threadId }
  const { id } = await startRun(served, principal, order, headers)
  return { runId: id, after: 0 }
}

async function decide(
  served: Served,
  principal: Principal,
  { threadId, resume = [] }: RunAgentInput,
): Promise<FollowedRun> {
  const { ledger } = served
  const runId = await lastRunOf(ledger, threadId)
  // The id of a run of another caller is no answer either.
  if (runId === undefined || !(await isVisible(ledger, principal, runId))) throw runNotFound(threadId)
  const decisions = resume.map(decisionOf)
  const after = (await ledger.head(runId))?.seq ?? 0
  for (const decision of decisions) await sendDecision(served, principal, runId, decision)
  return { runId, after }
}

import type { RunState } from '@tallystick/core'
import { runIdOfKey } from '@tallystick/core/internal'
import type { Hono } from 'hono'
import { callerKey, type Principal, startHeaders, type StartHeaders } from '../http/principal.ts'
import { findMessage, lastVisibleRun } from '../conversation/history.ts'
import { addConversation, runHeader } from '../conversation/routes.ts'
import { say } from '../conversation/say.ts'
import { runNotFound } from '../http/problem.ts'
import { readBody } from '../http/request.ts'
import { type FollowedRun, protocolStream, waitsOf } from '../stream/protocol.ts'
import { sendDecision } from '../runs/commands.ts'
import { requireAgent, requirePermission, type RequestScope, type Served } from '../http/served.ts'
import { streamHeaders } from '../stream/followed-stream.ts'
import { AgUiMessages, interruptsOf } from './map.ts'
import { agUiProtocol, decisionOf, runAgentInput, runKeyOf, userInput, type RunAgentInput } from './schema.ts'

/** Adds the routes for clients of AG-UI: a thread is a session, and an interrupt is what a run waits for. */
export function addAgUi(app: Hono<RequestScope>, served: Served): void {
  app.post('/ag-ui/:agent', async (context) => {
    const principal = context.get('principal')
    const { name } = requireAgent(served, principal, context.req.param('agent'))
    const input = await readBody(context.req.raw, runAgentInput, served.body)
    const run = input.resume?.length
      ? await decide(served, principal, input)
      : await take(served, principal, { ...startHeaders(context.req.raw, principal), agent: name, input })
    const stream = protocolStream(served, run, agUiProtocol(input), served.stream)
    return new Response(stream, { headers: { ...streamHeaders, [runHeader]: run.runId } })
  })
  addConversation(app, served, '/ag-ui', {
    newWriter: () => new AgUiMessages(),
    async besides(state: RunState) {
      const interrupts = interruptsOf(await waitsOf(served.ledger, state))
      return interrupts.length === 0 ? {} : { interrupts }
    },
  })
}

interface TakenInput extends StartHeaders {
  readonly agent: string
  readonly input: RunAgentInput
}

/**
 * Takes the last message of the user. A client that sends one again, in a run of its own, has its answer written anew; the
 * same run of the client takes effect once.
 */
async function take(
  served: Served,
  principal: Principal,
  { agent, input, ...headers }: TakenInput,
): Promise<FollowedRun> {
  requirePermission(principal, 'start')
  const { threadId: sessionId, messages, forwardedProps } = input
  const idempotencyKey = headers.idempotencyKey ?? callerKey(principal, runKeyOf(input)) ?? ''
  const isRepeated = (await served.ledger.head(runIdOfKey(idempotencyKey))) !== undefined
  const said = {
    ...{ agent, sessionId, parts: userInput(messages), whenBusy: forwardedProps?.whenBusy },
    messageId: messages.at(-1)?.id || crypto.randomUUID(),
    isRewritten: !isRepeated && (await isOnRecord(served, principal, input)),
  }
  return await say(served, principal, said, { ...headers, idempotencyKey })
}

/** Whether the last message was sent before. Only if another than the last run is before it, that has to be looked for in all. */
async function isOnRecord(
  { ledger }: Served,
  principal: Principal,
  { threadId, messages }: RunAgentInput,
): Promise<boolean> {
  const last = await lastVisibleRun(ledger, principal, threadId)
  if (last === undefined) return false
  const isNext = messages.at(-2)?.id.startsWith(`${last}.`) ?? false
  const id = messages.at(-1)?.id ?? ''
  return (await findMessage(ledger, principal, threadId, id, isNext ? 1 : undefined)) !== undefined
}

async function decide(
  served: Served,
  principal: Principal,
  { threadId, resume = [] }: RunAgentInput,
): Promise<FollowedRun> {
  const { ledger } = served
  const runId = await lastVisibleRun(ledger, principal, threadId)
  if (runId === undefined) throw runNotFound(threadId)
  const decisions = resume.map(decisionOf)
  const after = (await ledger.head(runId))?.seq ?? 0
  for (const decision of decisions) await sendDecision(served, principal, runId, decision)
  return { runId, after }
}

import type { Hono } from 'hono'
import { omitUndefined } from '@tallystick/core/kit'
import { callerKey } from '../access/caller-key.ts'
import { RefusedRequestError } from '../http/problem.ts'
import { readBody } from '../http/read-body.ts'
import type { Principal } from '../access/principal.ts'
import { isVisible, lastRunOf, requireVisible } from '../access/visible-run.ts'
import { protocolStream, type FollowedRun } from '../protocols/protocol-stream.ts'
import {
  chatBody,
  decisionsOf,
  inputOf,
  messageKeyOf,
  uiMessageHeaders,
  uiMessageProtocol,
  type ChatBody,
} from '../protocols/ui-messages.ts'
import { stateAt, statusOf } from '../runs/run-view.ts'
import { sendDecision } from '../routes/decisions.ts'
import { startRun } from '../routes/run-start.ts'
import { startHeaders, type StartHeaders } from '../access/start-headers.ts'
import { requireAgent, requirePermission, type RequestScope, type Served } from '../routes/served.ts'

/** Adds the routes for `useChat` of the AI SDK: a message starts a run, or decides about its calls. */
export function addChat(app: Hono<RequestScope>, served: Served): void {
  app.post('/chat/:agent', async (context) => {
    const principal = context.get('principal')
    const { name } = requireAgent(served, principal, context.req.param('agent'))
    const body = await readBody(context.req.raw, chatBody, served.body)
    const run =
      body.messages.at(-1)?.role === 'assistant'
        ? await decide(served, principal, body)
        : await begin(served, principal, { ...startHeaders(context.req.raw, principal), agent: name, body })
    return chatStream(served, run)
  })
  app.get('/chat/:agent/:chat/stream', async (context) => {
    const principal = context.get('principal')
    requireAgent(served, principal, context.req.param('agent'))
    const runId = await lastRunOf(served.ledger, context.req.param('chat'))
    if (runId === undefined || !(await isVisible(served.ledger, principal, runId))) return nothing()
    const status = await statusOf(served.ledger, await stateAt(served.ledger, runId))
    return status === 'done' ? nothing() : chatStream(served, { runId, after: 0 })
  })
}

/** The response if the last run has ended: the client has the whole chat. */
function nothing(): Response {
  return new Response(null, { status: 204 })
}

function chatStream(served: Served, run: FollowedRun): Response {
  const stream = protocolStream(served, run, uiMessageProtocol, served.stream)
  return new Response(stream, { headers: uiMessageHeaders })
}

/** Starts the run that answers the last message of the user. */
async function begin(
  served: Served,
  principal: Principal,
  { agent, body, ...headers }: StartHeaders & { readonly agent: string; readonly body: ChatBody },
): Promise<FollowedRun> {
  requirePermission(principal, 'start')
  const last = body.messages.at(-1)
  if (last?.role !== 'user') {
    throw new RefusedRequestError(400, 'malformed', 'The last message has to be one of the user.')
  }
  const again = body.trigger === 'regenerate-message' ? await stepBack(served, principal, body.id) : {}
  const order = { agent, input: inputOf(last), sessionId: body.id, ...again }
  const idempotencyKey = headers.idempotencyKey ?? callerKey(principal, messageKeyOf(body))
  const { id } = await startRun(served, principal, order, {
    ...headers,
    ...omitUndefined({ idempotencyKey }),
  })
  return { runId: id, after: 0 }
}

/** Returns where the session was before its last run, so that the last message is answered again from there. */
async function stepBack(
  { ledger }: Served,
  principal: Principal,
  sessionId: string,
): Promise<{ readonly from?: { readonly runId: string; readonly atSeq: number } }> {
  const runId = await lastRunOf(ledger, sessionId)
  if (runId === undefined || !(await isVisible(ledger, principal, runId))) return {}
  for await (const { type, seq } of ledger.read(runId)) {
    if (type === 'input_received') return { from: { runId, atSeq: seq - 1 } }
  }
  return {}
}

/** Sends the decisions of the last message to its run. */
async function decide(served: Served, principal: Principal, { messages }: ChatBody): Promise<FollowedRun> {
  const { ledger } = served
  const last = messages.at(-1)
  const decisions = last ? decisionsOf(last) : []
  if (last === undefined || decisions.length === 0) {
    throw new RefusedRequestError(
      400,
      'malformed',
      'The last message decides about no call of a tool. Send the message of the assistant with an answer to an approval that waits.',
    )
  }
  const runId = await requireVisible(ledger, principal, last.id)
  const after = (await ledger.head(runId))?.seq ?? 0
  for (const decision of decisions) await sendDecision(served, principal, runId, decision)
  return { runId, after }
}

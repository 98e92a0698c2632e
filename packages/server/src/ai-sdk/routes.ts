import type { RunId } from '@tallystick/core'
import { omitUndefined, readResultWithChildren } from '@tallystick/core/internal'
import type { Hono } from 'hono'
import {
  callerKey,
  type Principal,
  requireVisible,
  startHeaders,
  type StartHeaders,
} from '../http/principal.ts'
import { lastVisibleRun } from '../conversation/history.ts'
import { addConversation, runHeader } from '../conversation/routes.ts'
import { say } from '../conversation/say.ts'
import { malformed } from '../http/problem.ts'
import { readBody } from '../http/request.ts'
import { approvalIdOf, RunMoves, runOfAnswer } from '../stream/run-moves.ts'
import { protocolStream, type FollowedRun } from '../stream/protocol.ts'
import { sendDecision } from '../runs/commands.ts'
import { requireAgent, requirePermission, type RequestScope, type Served } from '../http/served.ts'
import { stateAt, statusOf } from '../runs/view.ts'
import { UiMessages } from './map.ts'
import {
  chatBody,
  decisionsOf,
  inputOf,
  messageKeyOf,
  uiMessageHeaders,
  uiMessageProtocol,
  type ChatBody,
  type ChatDecision,
  type SentMessage,
} from './schema.ts'

/** Adds the routes for `useChat` of the AI SDK: a message starts or joins a run, or decides about its calls. */
export function addChat(app: Hono<RequestScope>, served: Served): void {
  app.post('/chat/:agent', async (context) => {
    const principal = context.get('principal')
    const { name } = requireAgent(served, principal, context.req.param('agent'))
    const body = await readBody(context.req.raw, chatBody, served.body)
    const decided = decidedMessage(body)
    const run = decided
      ? await decide(served, principal, decided)
      : await take(served, principal, { ...startHeaders(context.req.raw, principal), agent: name, body })
    return chatStream(served, run)
  })
  app.get('/chat/:agent/:chat/stream', async (context) => {
    const principal = context.get('principal')
    requireAgent(served, principal, context.req.param('agent'))
    const runId = await lastVisibleRun(served.ledger, principal, context.req.param('chat'))
    if (runId === undefined) return nothing()
    const moves = new RunMoves()
    for await (const event of served.ledger.read(runId)) moves.next(event)
    if (moves.state === undefined || (await statusOf(served.ledger, moves.state)) === 'done') return nothing()
    // The answers before are messages of their own, which the page has.
    return chatStream(served, { runId, ...(moves.answer === 1 ? { after: 0 } : { answer: moves.answer }) })
  })
  addConversation(app, served, '/chat', { newWriter: () => new UiMessages() })
}

/** The response if the last run has ended: the page gets the whole chat elsewhere. */
function nothing(): Response {
  return new Response(null, { status: 204 })
}

function chatStream(served: Served, run: FollowedRun): Response {
  const stream = protocolStream(served, run, uiMessageProtocol, served.stream)
  return new Response(stream, { headers: { ...uiMessageHeaders, [runHeader]: run.runId } })
}

/** The message of an assistant that the request sends for the decisions in it: its last, or the one that it names. */
function decidedMessage({ messages, messageId, trigger }: ChatBody): SentMessage | undefined {
  if (trigger === 'regenerate-message') return undefined
  const named = messages.find(({ id }) => id === messageId)
  const target = named?.role === 'assistant' ? named : messages.at(-1)
  return target?.role === 'assistant' ? target : undefined
}

interface TakenMessage extends StartHeaders {
  readonly agent: string
  readonly body: ChatBody
}

/** Takes the last message of the user, and then the decisions that the page has not sent yet. */
async function take(
  served: Served,
  principal: Principal,
  { agent, body, ...headers }: TakenMessage,
): Promise<FollowedRun> {
  requirePermission(principal, 'start')
  const { id: sessionId, messages, messageId, trigger, whenBusy } = body
  const last = messages.at(-1)
  if (last?.role !== 'user') throw malformed('The last message has to be one of the user.')
  const idempotencyKey = headers.idempotencyKey ?? callerKey(principal, messageKeyOf(body))
  const said = {
    ...{ agent, sessionId, whenBusy, parts: inputOf(last) },
    messageId: last.id === '' ? crypto.randomUUID() : last.id,
    isRewritten: trigger === 'regenerate-message' || messageId === last.id,
  }
  const run = await say(served, principal, said, { ...headers, ...omitUndefined({ idempotencyKey }) })
  if (!said.isRewritten) await decideOpen(served, principal, body)
  return run
}

/** Sends the decisions that stand before the message, and that the run still waits for: a page sends one late if others follow. */
async function decideOpen(served: Served, principal: Principal, { id, messages }: ChatBody): Promise<void> {
  const decisions = messages.flatMap((message) => (message.role === 'assistant' ? decisionsOf(message) : []))
  if (decisions.length === 0) return
  const runId = await lastVisibleRun(served.ledger, principal, id)
  if (runId === undefined) return
  for (const decision of await openOnes(served, runId, decisions)) {
    await sendDecision(served, principal, runId, decision)
  }
}

/** Those of the decisions that a run still waits for. */
async function openOnes(
  { ledger }: Served,
  runId: RunId,
  decisions: readonly ChatDecision[],
): Promise<readonly ChatDecision[]> {
  const { pendingApprovals } = await readResultWithChildren(await stateAt(ledger, runId), ledger)
  const open = new Set(pendingApprovals.map(approvalIdOf))
  return decisions.filter(({ approvalId }) => open.delete(approvalId))
}

/** Sends the decisions of a message to its run. */
async function decide(served: Served, principal: Principal, message: SentMessage): Promise<FollowedRun> {
  const { ledger } = served
  const decisions = decisionsOf(message)
  if (decisions.length === 0) {
    throw malformed(
      'The last message decides about no call of a tool. Send the message of the assistant with an answer to an approval that waits.',
    )
  }
  const runId = await requireVisible(ledger, principal, runOfAnswer(message.id))
  const after = (await ledger.head(runId))?.seq ?? 0
  const open = await openOnes(served, runId, decisions)
  // Earlier decisions of the message have been sent. If all have, the run says what became of them.
  for (const decision of open.length === 0 ? decisions : open) {
    await sendDecision(served, principal, runId, decision)
  }
  return { runId, after }
}

import type { RunId } from '@tallystick/core'
import { omitUndefined, readResultWithChildren } from '@tallystick/core/internal'
import type { Hono } from 'hono'
import {
  toCallerKey,
  type Principal,
  requireVisible,
  readStartHeaders,
  type StartHeaders,
} from '../http/principal.ts'
import { findLastVisibleRun } from '../conversation/history.ts'
import { addConversation, pageOperation, runHeader, stopOperation } from '../conversation/routes.ts'
import { say } from '../conversation/say.ts'
import { malformed } from '../http/problem.ts'
import { readBody } from '../http/request.ts'
import { toApprovalId, RunMoves, parseAnswerId } from '../stream/run-moves.ts'
import { streamProtocol, type FollowedRun } from '../stream/protocol.ts'
import { sendDecision } from '../runs/commands.ts'
import { requireAgent, requirePermission, type RequestScope, type Served } from '../http/served.ts'
import { readState, readStatus } from '../runs/view.ts'
import { UiMessages } from './map.ts'
import {
  chatBody,
  readDecisions,
  readInput,
  toMessageKey,
  uiMessageHeaders,
  uiMessageProtocol,
  type ChatBody,
  type ChatDecision,
  type SentMessage,
} from './schema.ts'
import { type Operations, startParameters } from '../http/openapi.ts'

/** Adds the routes for `useChat` of the AI SDK: a message starts or joins a run, or decides about its calls. */
export function addChat(app: Hono<RequestScope>, served: Served): void {
  app.post('/chat/:agent', async (context) => {
    const principal = context.get('principal')
    const { name } = requireAgent(served, principal, context.req.param('agent'))
    const body = await readBody(context.req.raw, chatBody, served.body)
    const decided = findDecidedMessage(body)
    const run = decided
      ? await decide(served, principal, decided)
      : await take(served, principal, { ...readStartHeaders(context.req.raw, principal), agent: name, body })
    return streamChat(served, run)
  })
  app.get('/chat/:agent/:chat/stream', async (context) => {
    const principal = context.get('principal')
    requireAgent(served, principal, context.req.param('agent'))
    const runId = await findLastVisibleRun(served.ledger, principal, context.req.param('chat'))
    // The page gets a chat whose last run has ended from another route.
    const ended = new Response(null, { status: 204 })
    if (runId === undefined) return ended
    const moves = new RunMoves()
    for await (const event of served.ledger.read(runId)) moves.next(event)
    if (moves.state === undefined || (await readStatus(served.ledger, moves.state)) === 'done') return ended
    // Earlier answers are other messages, which the page has.
    return streamChat(served, { runId, ...(moves.answer === 1 ? { after: 0 } : { answer: moves.answer }) })
  })
  addConversation(app, served, '/chat', { newWriter: () => new UiMessages() })
}

function streamChat(served: Served, run: FollowedRun): Response {
  const stream = streamProtocol(served, run, uiMessageProtocol, served.stream)
  return new Response(stream, { headers: { ...uiMessageHeaders, [runHeader]: run.runId } })
}

/** The assistant message that the request sends for its decisions: the last, or the one that it names. */
function findDecidedMessage({ messages, messageId, trigger }: ChatBody): SentMessage | undefined {
  if (trigger === 'regenerate-message') return undefined
  const named = messages.find(({ id }) => id === messageId)
  const target = named?.role === 'assistant' ? named : messages.at(-1)
  return target?.role === 'assistant' ? target : undefined
}

interface TakenMessage extends StartHeaders {
  readonly agent: string
  readonly body: ChatBody
}

/** Takes the last message of the user, then the decisions that the page has not sent yet. */
async function take(
  served: Served,
  principal: Principal,
  { agent, body, ...headers }: TakenMessage,
): Promise<FollowedRun> {
  requirePermission(principal, 'start')
  const { id: sessionId, messages, messageId, trigger, whenBusy } = body
  const last = messages.at(-1)
  if (last?.role !== 'user') throw malformed('The last message has to be one of the user.')
  const idempotencyKey = headers.idempotencyKey ?? toCallerKey(principal, toMessageKey(body))
  const said = {
    ...{ agent, sessionId, whenBusy, parts: readInput(last) },
    messageId: last.id === '' ? crypto.randomUUID() : last.id,
    isRewritten: trigger === 'regenerate-message' || messageId === last.id,
  }
  const run = await say(served, principal, said, { ...headers, ...omitUndefined({ idempotencyKey }) })
  if (!said.isRewritten) await decideOpen(served, principal, body)
  return run
}

/** Sends the earlier decisions that the run still waits for: a page sends a decision late if a message follows it. */
async function decideOpen(served: Served, principal: Principal, { id, messages }: ChatBody): Promise<void> {
  const decisions = messages.flatMap((message) =>
    message.role === 'assistant' ? readDecisions(message) : [],
  )
  if (decisions.length === 0) return
  const runId = await findLastVisibleRun(served.ledger, principal, id)
  if (runId === undefined) return
  for (const decision of await pickOpen(served, runId, decisions)) {
    await sendDecision(served, principal, runId, decision)
  }
}

/** Picks the decisions that a run still waits for. */
async function pickOpen(
  { ledger }: Served,
  runId: RunId,
  decisions: readonly ChatDecision[],
): Promise<readonly ChatDecision[]> {
  const { pendingApprovals } = await readResultWithChildren(await readState(ledger, runId), ledger)
  const open = new Set(pendingApprovals.map(toApprovalId))
  return decisions.filter(({ approvalId }) => open.delete(approvalId))
}

/** Sends the decisions of a message to its run. */
async function decide(served: Served, principal: Principal, message: SentMessage): Promise<FollowedRun> {
  const { ledger } = served
  const decisions = readDecisions(message)
  if (decisions.length === 0) {
    throw malformed(
      'The last message decides about no call of a tool. Send the message of the assistant with an answer to an approval that waits.',
    )
  }
  const runId = await requireVisible(ledger, principal, parseAnswerId(message.id))
  const after = (await ledger.head(runId))?.seq ?? 0
  const open = await pickOpen(served, runId, decisions)
  // Earlier decisions of the message were sent before. If all were, the run says what became of them.
  for (const decision of open.length === 0 ? decisions : open) {
    await sendDecision(served, principal, runId, decision)
  }
  return { runId, after }
}

/** The routes of `addChat`. */
export const chatOperations: Operations = {
  'POST /chat/:agent': {
    operationId: 'chat',
    summary: 'The chat of `useChat` of the AI SDK.',
    parameters: startParameters,
    body: {
      name: 'Chat',
      schema: chatBody,
      example: {
        id: 'chat-1',
        messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Pay the bill.' }] }],
      },
    },
    answers: { 200: 'The UI message stream of the run.' },
    stream: 'always',
  },
  'GET /chat/:agent/:chat/stream': {
    operationId: 'resumeChat',
    summary: 'The stream of the run of a chat that is under way.',
    answers: { 200: 'The UI message stream of the run.', 204: 'No run is under way.' },
    stream: 'always',
  },
  'GET /chat/:agent/:chat': {
    operationId: 'readChat',
    summary: 'The messages of a chat, as the AI SDK keeps them: the newest, or those before a place.',
    ...pageOperation,
  },
  'POST /chat/:agent/:chat/stop': { operationId: 'stopChat', ...stopOperation },
}

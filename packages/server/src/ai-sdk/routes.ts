import type { RunId } from '@tallystick/core'
import { omitUndefined, readResultWithChildren } from '@tallystick/core/internal'
import {
  toCallerKey,
  type Principal,
  requireVisible,
  readStartHeaders,
  type StartHeaders,
} from '../http/principal.ts'
import { findLastVisibleRun } from '../conversation/history.ts'
import { addConversation, runHeader } from '../conversation/routes.ts'
import { say } from '../conversation/say.ts'
import { malformed } from '../http/problem.ts'
import { toApprovalId, RunMoves, parseAnswerId } from '../stream/run-moves.ts'
import { streamRun, type FollowedRun } from '../stream/protocol.ts'
import { type NamedDecision, sendDecision, sendDecisions } from '../runs/commands.ts'
import { requireAgent, requirePermission, type Served } from '../http/served.ts'
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
  type SentMessage,
} from './schema.ts'
import { type Routes, startParameters } from '../http/routes.ts'

/** Adds the routes for `useChat` of the AI SDK: a message starts or joins a run, or decides about its calls. */
export function addChat(routes: Routes): void {
  const { served } = routes
  const { ledger } = served
  const streamChat = (run: FollowedRun): Response =>
    streamRun(served, run, uiMessageProtocol, { ...uiMessageHeaders, [runHeader]: run.runId })
  routes.post(
    '/chat/:agent',
    {
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
    async ({ principal, req, readBody }) => {
      const { name: agent } = requireAgent(served, principal, req.param('agent'))
      const body = await readBody()
      const decided = findDecidedMessage(body)
      const run = decided
        ? await decide(served, principal, decided)
        : await take(served, principal, { ...readStartHeaders(req.raw, principal), agent, body })
      return streamChat(run)
    },
  )
  routes.get(
    '/chat/:agent/:chat/stream',
    {
      operationId: 'resumeChat',
      summary: 'The stream of the run of a chat that is under way.',
      answers: { 200: 'The UI message stream of the run.', 204: 'No run is under way.' },
      stream: 'always',
    },
    async ({ principal, req }) => {
      requireAgent(served, principal, req.param('agent'))
      const runId = await findLastVisibleRun(ledger, principal, req.param('chat'))
      const moves = new RunMoves()
      if (runId !== undefined) for await (const event of ledger.read(runId)) moves.next(event)
      const { state, answer } = moves
      // The page gets a chat whose last run has ended from another route.
      if (state === undefined || (await readStatus(ledger, state)) === 'done') {
        return new Response(null, { status: 204 })
      }
      // Earlier answers are other messages, which the page has.
      return streamChat({ runId: state.runId, ...(answer === 1 ? { after: 0 } : { answer }) })
    },
  )
  addConversation(routes, {
    root: '/chat',
    read: {
      operationId: 'readChat',
      summary: 'The messages of a chat, as the AI SDK keeps them: the newest, or those before a place.',
    },
    stop: { operationId: 'stopChat' },
    newWriter: () => new UiMessages(),
  })
}

/** The assistant message that the request sends for its decisions: the last, or the one that it names. */
function findDecidedMessage({ messages, messageId, trigger }: ChatBody): SentMessage | undefined {
  if (trigger === 'regenerate-message') return undefined
  const named = messages.find(({ id }) => id === messageId)
  const target = named?.role === 'assistant' ? named : messages.at(-1)
  return target?.role === 'assistant' ? target : undefined
}

/** Takes the last message of the user, then the decisions that the page has not sent yet. */
async function take(
  served: Served,
  principal: Principal,
  { agent, body, ...headers }: StartHeaders & { readonly agent: string; readonly body: ChatBody },
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
  decisions: readonly NamedDecision[],
): Promise<readonly NamedDecision[]> {
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
  const open = await pickOpen(served, runId, decisions)
  // Earlier decisions of the message were sent before. If all were, the run says what became of them.
  return await sendDecisions(served, principal, runId, open.length === 0 ? decisions : open)
}

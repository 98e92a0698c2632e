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
import { say, busyDeliveries } from '../conversation/say.ts'
import { createMalformedError } from '../http/problem.ts'
import { toApprovalId, RunMoves, parseAnswerId } from '../stream/run-moves.ts'
import { streamRun, type FollowedRun, type RunProtocol } from '../stream/protocol.ts'
import { type NamedDecision, sendDecision, sendDecisions } from '../runs/commands.ts'
import { requireAgent, type Served } from '../http/served.ts'
import { readState, readStatus } from '../runs/view.ts'
import { UiMessages, uiMessageTable, type UiMessageChunk } from './map.ts'
import { type Routes, startParameters } from '../http/routes.ts'
import * as z from 'zod'
import { computeDigest, type UserPart } from '@tallystick/core/vocabulary'

/** The AI SDK's UI message stream, version 1. */
const uiMessageProtocol: RunProtocol<UiMessageChunk> = {
  newTable: () => uiMessageTable,
  format: (chunk) => `data: ${JSON.stringify(chunk)}\n\n`,
  ending: 'data: [DONE]\n\n',
}

/** A part of a message. Other fields of it are not read. */
const part = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  state: z.string().optional(),
  mediaType: z.string().optional(),
  filename: z.string().optional(),
  url: z.string().optional(),
  approval: z
    .looseObject({ id: z.string(), approved: z.boolean().optional(), reason: z.string().optional() })
    .optional(),
})

/** The body that `useChat` sends. A client may send further fields of its own. */
const chatBody = z.looseObject({
  /** The id of the chat: the session of its runs. */
  id: z.string().regex(/\S/, 'is empty').max(200),
  messages: z
    .array(z.looseObject({ id: z.string().max(200), role: z.string(), parts: z.array(part) }))
    .min(1),
  trigger: z.enum(['submit-message', 'regenerate-message']).optional(),
  /** The message that is written again, or replaced, or that decides about a call. Its id was sent before. */
  messageId: z.string().nullish(),
  /** If a run is under way, the model reads the message at its next turn (`steer`) or after its answer (`queue`). */
  whenBusy: z.enum(busyDeliveries).optional(),
})
type ChatBody = z.infer<typeof chatBody>
type SentMessage = ChatBody['messages'][number]

/**
 * Returns the key under which the last message takes effect once: a page that repeats a request sends the same id.
 * `undefined` for a message that is written again or replaced, since its id was sent before.
 */
function toMessageKey({ id, messages, trigger, messageId }: ChatBody): string | undefined {
  const last = messages.at(-1)?.id ?? ''
  const isFirst = trigger !== 'regenerate-message' && (messageId ?? undefined) === undefined
  return isFirst && last !== '' ? `chat:${computeDigest(['message of chat', id, last])}` : undefined
}

/** Returns what a user says in a message of the chat. */
function readInput({ parts }: SentMessage): readonly UserPart[] {
  const input = parts.flatMap((each): readonly UserPart[] => {
    if (each.type === 'text' && each.text) return [{ type: 'text', text: each.text }]
    return each.type === 'file' ? [readFilePart(each)] : []
  })
  if (input.length > 0) return input
  throw createMalformedError('The last message has neither a text nor a file. Send one of them.')
}

function readFilePart({ mediaType = '', filename, url = '' }: z.infer<typeof part>): UserPart {
  const [, data] = /^data:[^,]*;base64,([A-Za-z0-9+/=]*)$/.exec(url) ?? []
  if (data === undefined && !/^https?:\/\//.test(url)) {
    throw createMalformedError('A file of the last message has no URL of http, https or data. Give it one.')
  }
  const content = data === undefined ? { mediaType, url } : { mediaType, data }
  if (mediaType.startsWith('image/')) return { type: 'image', ...content }
  return { type: 'file', ...content, ...(filename !== undefined && { name: filename }) }
}

/** Returns the decisions in a message of the chat that the run has not answered yet. */
function readDecisions({ parts }: SentMessage): readonly NamedDecision[] {
  return parts.flatMap(({ state, approval }) =>
    state === 'approval-responded' && approval?.approved !== undefined
      ? [{ approvalId: approval.id, approved: approval.approved, reason: approval.reason ?? 'Denied.' }]
      : [],
  )
}

/** Adds the routes for `useChat` of the AI SDK: a message starts or joins a run, or decides about its calls. */
export function addChat(routes: Routes): void {
  const { served } = routes
  const { ledger } = served
  const streamChat = (run: FollowedRun): Response =>
    streamRun(served, run, uiMessageProtocol, {
      // The header by which the AI SDK knows its stream.
      'x-vercel-ai-ui-message-stream': 'v1',
      [runHeader]: run.runId,
    })
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
  const { id: sessionId, messages, messageId, trigger, whenBusy } = body
  const last = messages.at(-1)
  if (last?.role !== 'user') throw createMalformedError('The last message has to be one of the user.')
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
    throw createMalformedError(
      'The last message decides about no call of a tool. Send the message of the assistant with an answer to an approval that waits.',
    )
  }
  const runId = await requireVisible(ledger, principal, parseAnswerId(message.id))
  const open = await pickOpen(served, runId, decisions)
  // Earlier decisions of the message were sent before. If all were, the run says what became of them.
  return await sendDecisions(served, principal, runId, open.length === 0 ? decisions : open)
}

import { deriveRunId } from '@tallystick/core/internal'
import { toCallerKey, type Principal, readStartHeaders, type StartHeaders } from '../http/principal.ts'
import { findMessage, findLastVisibleRun } from '../conversation/history.ts'
import { addConversation, runHeader } from '../conversation/routes.ts'
import { say, busyDeliveries } from '../conversation/say.ts'
import { createRunNotFoundError, createMalformedError } from '../http/problem.ts'
import { type FollowedRun, streamRun, readWaits } from '../stream/protocol.ts'
import { sendDecisions, type NamedDecision } from '../runs/commands.ts'
import { requireAgent, type Served } from '../http/served.ts'
import { AgUiMessages, toInterrupts, createAgUiTable, type AgUiEvent, type AgUiMessage } from './map.ts'
import { type Routes, startParameters } from '../http/routes.ts'
import * as z from 'zod'
import { computeDigest, type UserPart } from '@tallystick/core/vocabulary'

const id = z.string().regex(/\S/, 'is empty').max(200)

/** The part of a request that a server reads. Tools of the client are not called. */
const runAgentInput = z.looseObject({
  threadId: id,
  runId: id,
  messages: z.array(z.looseObject({ id: z.string(), role: z.string() })),
  resume: z
    .array(
      z.looseObject({
        interruptId: z.string(),
        status: z.enum(['resolved', 'cancelled']),
        payload: z.unknown().optional(),
      }),
    )
    .optional(),
  // If a run is under way, the model reads the message at its next turn (`steer`) or after its answer (`queue`). Whatever else
  // a client forwards is not read.
  forwardedProps: z
    .preprocess(
      (given) => (typeof given === 'object' && given !== null ? given : {}),
      z.looseObject({ whenBusy: z.enum(busyDeliveries).optional() }),
    )
    .optional(),
})

type RunAgentInput = z.infer<typeof runAgentInput>

/** Returns the key under which a run of the client takes effect once. */
function toRunKey({ threadId, runId }: RunAgentInput): string {
  return `ag-ui:${computeDigest(['run of AG-UI', threadId, runId])}`
}

/** Returns what the user says in the last message. */
function readUserInput(messages: readonly AgUiMessage[]): readonly UserPart[] {
  const last = messages.at(-1)
  const content = last?.role === 'user' ? last['content'] : undefined
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const texts = Array.isArray(parts) ? parts.flatMap(readTextPart) : []
  if (texts.length > 0) return texts
  throw createMalformedError('The last message has to be one of the user, with a text.')
}

function readTextPart(part: unknown): readonly UserPart[] {
  const { type, text } = Object(part) as { readonly type?: unknown; readonly text?: unknown }
  return type === 'text' && typeof text === 'string' && text !== '' ? [{ type, text }] : []
}

const payload = z.looseObject({
  approved: z.boolean(),
  reason: z.string().optional(),
  input: z.record(z.string(), z.json()).optional(),
})

/** Returns the decision in an answer to an interrupt. A cancelled interrupt counts as a denial. */
function readDecision({
  interruptId: approvalId,
  status,
  payload: given,
}: NonNullable<RunAgentInput['resume']>[number]): NamedDecision {
  if (status === 'cancelled') return { approvalId, approved: false, reason: 'The question was given up.' }
  const parsed = payload.safeParse(given)
  if (!parsed.success) {
    throw createMalformedError('The payload of a resume entry has to say { approved: true } or false.')
  }
  const { approved, reason = 'Denied.', input } = parsed.data
  return { approvalId, approved, reason, ...(input && { input }) }
}

/** Adds the routes for clients of AG-UI: a thread is a session, and an interrupt is what a run waits for. */
export function addAgUi(routes: Routes): void {
  const { served } = routes
  routes.post(
    '/ag-ui/:agent',
    {
      operationId: 'runAgent',
      summary: 'A run for a client of AG-UI.',
      parameters: startParameters,
      body: {
        name: 'RunAgentInput',
        schema: runAgentInput,
        example: {
          threadId: 'thread-1',
          runId: 'run-1',
          messages: [{ id: 'm1', role: 'user', content: 'Pay the bill.' }],
        },
      },
      answers: { 200: 'The AG-UI events of the run.' },
      stream: 'always',
    },
    async ({ principal, req, readBody }) => {
      const { name: agent } = requireAgent(served, principal, req.param('agent'))
      const input = await readBody()
      const run = input.resume?.length
        ? await decide(served, principal, input)
        : await take(served, principal, { ...readStartHeaders(req.raw, principal), agent, input })
      const protocol = {
        newTable: () => createAgUiTable(input),
        format: (event: AgUiEvent) => `data: ${JSON.stringify(event)}\n\n`,
        ending: '',
      }
      return streamRun(served, run, protocol, { [runHeader]: run.runId })
    },
  )
  addConversation(routes, {
    root: '/ag-ui',
    read: {
      operationId: 'readThread',
      summary:
        'The messages of a thread, as clients of AG-UI keep them: the newest, or those before a place.',
    },
    stop: { operationId: 'stopThread' },
    newWriter: () => new AgUiMessages(),
    async besides(state) {
      const interrupts = toInterrupts(await readWaits(served.ledger, state))
      return interrupts.length === 0 ? {} : { interrupts }
    },
  })
}

/**
 * Takes the last message of the user. A client that sends one again, in a run of its own, has its answer written again; the
 * same run of the client takes effect once.
 */
async function take(
  served: Served,
  principal: Principal,
  { agent, input, ...headers }: StartHeaders & { readonly agent: string; readonly input: RunAgentInput },
): Promise<FollowedRun> {
  const { threadId: sessionId, messages, forwardedProps } = input
  const idempotencyKey = headers.idempotencyKey ?? toCallerKey(principal, toRunKey(input)) ?? ''
  const isRepeated = (await served.ledger.head(deriveRunId(idempotencyKey))) !== undefined
  const said = {
    ...{ agent, sessionId, parts: readUserInput(messages), whenBusy: forwardedProps?.whenBusy },
    messageId: messages.at(-1)?.id || crypto.randomUUID(),
    isRewritten: !isRepeated && (await isOnRecord(served, principal, input)),
  }
  return await say(served, principal, said, { ...headers, idempotencyKey })
}

/** Returns true if the last message was sent before. All runs are searched only if the message does not follow the last run. */
async function isOnRecord(
  { ledger }: Served,
  principal: Principal,
  { threadId, messages }: RunAgentInput,
): Promise<boolean> {
  const last = await findLastVisibleRun(ledger, principal, threadId)
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
  const runId = await findLastVisibleRun(served.ledger, principal, threadId)
  if (runId === undefined) throw createRunNotFoundError(threadId)
  return await sendDecisions(served, principal, runId, resume.map(readDecision))
}

import { runIdOfKey } from '@tallystick/core/internal'
import { toCallerKey, type Principal, readStartHeaders, type StartHeaders } from '../http/principal.ts'
import { findMessage, findLastVisibleRun } from '../conversation/history.ts'
import { addConversation, runHeader } from '../conversation/routes.ts'
import { say } from '../conversation/say.ts'
import { runNotFound } from '../http/problem.ts'
import { type FollowedRun, streamRun, readWaits } from '../stream/protocol.ts'
import { sendDecisions } from '../runs/commands.ts'
import { requireAgent, requirePermission, type Served } from '../http/served.ts'
import { AgUiMessages, toInterrupts } from './map.ts'
import {
  createAgUiProtocol,
  readDecision,
  runAgentInput,
  toRunKey,
  readUserInput,
  type RunAgentInput,
} from './schema.ts'
import { type Routes, startParameters } from '../http/routes.ts'

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
      return streamRun(served, run, createAgUiProtocol(input), { [runHeader]: run.runId })
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
 * Takes the last message of the user. A client that sends one again, in a run of its own, has its answer written anew; the
 * same run of the client takes effect once.
 */
async function take(
  served: Served,
  principal: Principal,
  { agent, input, ...headers }: StartHeaders & { readonly agent: string; readonly input: RunAgentInput },
): Promise<FollowedRun> {
  requirePermission(principal, 'start')
  const { threadId: sessionId, messages, forwardedProps } = input
  const idempotencyKey = headers.idempotencyKey ?? toCallerKey(principal, toRunKey(input)) ?? ''
  const isRepeated = (await served.ledger.head(runIdOfKey(idempotencyKey))) !== undefined
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
  if (runId === undefined) throw runNotFound(threadId)
  return await sendDecisions(served, principal, runId, resume.map(readDecision))
}

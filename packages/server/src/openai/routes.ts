import type { Agent, Ledger, RunId } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { runIdOfCall } from '@tallystick/core/vocabulary'
import {
  isVisible,
  type Principal,
  requireVisible,
  type StartHeaders,
  readStartHeaders,
  readRootStart,
} from '../http/principal.ts'
import { malformed, RefusedRequestError } from '../http/problem.ts'
import { type Routes, startParameters } from '../http/routes.ts'
import { listAgents, respondJson, requireAgent, requirePermission, type Served } from '../http/served.ts'
import { sendCommand, sendDecision } from '../runs/commands.ts'
import { startRun } from '../runs/start.ts'
import { readState } from '../runs/view.ts'
import { type FollowedRun, awaitAnswer, streamRun } from '../stream/protocol.ts'
import { parseApprovalId } from '../stream/run-moves.ts'
import { createAnswerTable, createChunkTable } from './chat.ts'
import { type Answer, listAnswers, type ConversationItem, toRunInput } from './conversation.ts'
import { type ResponseNames, createResponseTable, parseResponseId } from './responses.ts'
import {
  chatRequest,
  type GivenFields,
  type GivenSettings,
  toToolChoice,
  readInput,
  readMessages,
  type NamedTool,
  readToolName,
  responseRequest,
  readSettings,
} from './schema.ts'

/** The fields that the two kinds of request name differently. */
interface OpenAiOrder extends StartHeaders {
  readonly items: readonly ConversationItem[]
  /** The run of the response that this one continues. */
  readonly previous?: RunId | undefined
  readonly sessionId?: string | undefined
  readonly settings: GivenSettings
}

/** Starts the run that answers a request, or delivers the client's answers to the run that waits for them. */
async function startOrAnswer(
  served: Served,
  principal: Principal,
  given: GivenFields,
  order: OpenAiOrder,
): Promise<FollowedRun> {
  const agent = requireAgent(served, principal, given.model)
  requireOwnTools(agent, given.tools ?? [])
  const answers = listAnswers(order.items)
  return answers.length > 0
    ? await sendAnswers(served, principal, agent, order, answers)
    : await startOrder(served, principal, given, order)
}

/** The agent decides which tools its model may call. A client can name them again. */
function requireOwnTools({ name, tools }: Agent<unknown>, given: readonly NamedTool[]): void {
  const strange = given.map(readToolName).find((named) => !tools.some((tool) => tool.name === named))
  if (strange === undefined) return
  throw malformed(
    `The agent ${name} has no tool ${strange.slice(0, 80)}. Tools are given to the agent, not to a request: leave it out.`,
  )
}

async function startOrder(
  served: Served,
  principal: Principal,
  given: GivenFields,
  { items, previous, sessionId, settings, ...headers }: OpenAiOrder,
): Promise<FollowedRun> {
  requirePermission(principal, 'start')
  if (previous !== undefined) await requireEnded(served, principal, previous)
  const order = {
    agent: given.model,
    input: toRunInput(await withRecordedCalls(served, principal, items)),
    ...omitUndefined({
      sessionId,
      from: previous && { runId: previous },
      metadata: given.metadata ?? undefined,
      modelSettings: readSettings(settings),
      toolChoice: toToolChoice(given.tool_choice),
      parallelToolCalls: given.parallel_tool_calls ?? undefined,
    }),
  }
  const { id } = await startRun(served, principal, order, headers)
  return { runId: id, after: 0 }
}

/**
 * Replaces calls and results in a conversation by those that their runs recorded: the model takes them for facts, and a client
 * may have invented them. Refuses calls of runs that the caller does not see.
 */
async function withRecordedCalls(
  { ledger }: Served,
  principal: Principal,
  items: readonly ConversationItem[],
): Promise<readonly ConversationItem[]> {
  const recorded: ConversationItem[] = []
  for (const item of items) {
    if (item.kind !== 'call' && item.kind !== 'result') {
      recorded.push(item)
      continue
    }
    const { toolCallId } = item
    const runId = runIdOfCall(toolCallId)
    if (runId === undefined || !(await isVisible(ledger, principal, runId))) throwUnknownCall(toolCallId)
    recorded.push((await recordedItem(ledger, runId, item)) ?? throwUnknownCall(toolCallId))
  }
  return recorded
}

async function recordedItem(
  ledger: Ledger,
  runId: RunId,
  { kind, toolCallId }: Extract<ConversationItem, { kind: 'call' | 'result' }>,
): Promise<ConversationItem | undefined> {
  for await (const event of ledger.find({
    runId,
    toolCallId,
    types: ['tool_request_ready', 'tool_result'],
  })) {
    if (kind === 'call' && event.type === 'tool_request_ready') {
      return { kind, toolCallId, name: event.name, input: event.input }
    }
    if (kind === 'result' && event.type === 'tool_result') {
      const { outcome, content, projected, shown } = event
      return { kind, toolCallId, outcome, content: shown ?? projected ?? content }
    }
  }
  return undefined
}

function throwUnknownCall(toolCallId: string): never {
  throw malformed(
    `No run that you see has recorded ${toolCallId.slice(0, 80)} so. Calls and their results are taken from the runs of this server: send those that it gave you, or leave them out.`,
  )
}

async function requireEnded(served: Served, principal: Principal, runId: RunId): Promise<void> {
  await requireVisible(served.ledger, principal, runId)
  if ((await readState(served.ledger, runId)).phase === 'done') return
  throw new RefusedRequestError(
    409,
    'run_not_ended',
    `Run ${runId} of the previous response has not ended. Send what it waits for, such as the output of its calls, or wait for its end.`,
  )
}

async function sendAnswers(
  served: Served,
  principal: Principal,
  { name: agent }: Agent<unknown>,
  { previous, idempotencyKey: key }: OpenAiOrder,
  answers: readonly Answer[],
): Promise<FollowedRun> {
  const { ledger } = served
  const runId = await runAnswered(served, principal, answers)
  const first = await readRootStart(ledger, runId)
  if (first?.agent !== agent || (previous !== undefined && previous !== runId)) {
    throw malformed(
      `The answers are for run ${runId} of the agent ${first?.agent}, and the request names another.`,
    )
  }
  const after = (await ledger.head(runId))?.seq ?? 0
  for (const answer of answers) {
    if (answer.kind === 'decision') await sendDecision(served, principal, runId, answer)
    else await settle(served, principal, runId, { ...answer, ...omitUndefined({ key }) })
  }
  return { runId, after }
}

/** Returns the run that waits for all of these answers: the root run if its child runs asked for them. */
async function runAnswered(
  { ledger }: Served,
  principal: Principal,
  answers: readonly Answer[],
): Promise<RunId> {
  const roots = new Set<RunId>()
  for (const answer of answers) {
    const callId =
      answer.kind === 'result' ? answer.toolCallId : parseApprovalId(answer.approvalId)?.toolCallId
    const asking = runIdOfCall(callId ?? '')
    if (asking === undefined) throw malformed('An approval_request_id has to be one that this server gave.')
    await requireVisible(ledger, principal, asking)
    const first = await readRootStart(ledger, asking)
    if (first) roots.add(first.runId)
  }
  const [runId, ...others] = roots
  if (runId !== undefined && others.length === 0) return runId
  throw malformed('The answers at the end are for several runs. Send those of one run at a time.')
}

async function settle(
  served: Served,
  principal: Principal,
  runId: RunId,
  { toolCallId, content, key }: Extract<Answer, { kind: 'result' }> & { readonly key?: string },
): Promise<void> {
  requirePermission(principal, 'settle')
  const command = { type: 'settle', toolCallId, outcome: 'success', content } as const
  await sendCommand(served, runId, command, key && `${key}:${toolCallId}`)
}

/** Adds the routes for clients of OpenAI: a model is an agent, and each request starts a run or continues one. */
export function addOpenAi(routes: Routes): void {
  const { served } = routes
  const errors = 'OpenAiError' as const
  routes.get(
    '/v1/models',
    {
      operationId: 'listModels',
      summary: 'The agents, for clients of OpenAI.',
      answers: { 200: 'The agents.' },
      fields: ['object', 'data'],
      errors,
    },
    ({ principal }) => respondJson({ object: 'list', data: listAgents(served, principal).map(toModel) }),
  )
  routes.get(
    '/v1/models/:model',
    {
      operationId: 'readModel',
      summary: 'One agent, for clients of OpenAI.',
      answers: { 200: 'The agent.' },
      fields: ['id', 'object', 'created', 'owned_by'],
      errors,
    },
    ({ principal, req }) => respondJson(toModel(requireAgent(served, principal, req.param('model')))),
  )
  routes.post(
    '/v1/responses',
    {
      operationId: 'createResponse',
      summary:
        'A run, or the rest of one that waits, as OpenAI’s Responses API answers. `stream` makes it a stream.',
      parameters: startParameters,
      body: {
        name: 'ResponseRequest',
        schema: responseRequest,
        example: { model: 'cashier', input: 'Pay the bill.' },
      },
      answers: { 200: 'The response: the run has ended, or waits for what the response asks.' },
      fields: ['id', 'object', 'status', 'output', 'usage'],
      stream: 'accepted',
      errors,
    },
    async ({ principal, req, readBody }) => {
      const body = await readBody()
      const { model, previous_response_id: previous, conversation, metadata } = body
      const run = await startOrAnswer(served, principal, body, {
        items: readInput(body.input),
        previous: previous == null ? undefined : requireResponse(previous),
        sessionId: typeof conversation === 'string' ? conversation : conversation?.id,
        settings: {
          temperature: body.temperature,
          topP: body.top_p,
          maxOutputTokens: body.max_output_tokens,
          reasoningEffort: body.reasoning?.effort,
        },
        ...readStartHeaders(req.raw, principal),
      })
      const names: ResponseNames = {
        model,
        ...omitUndefined({ previousResponseId: previous ?? undefined, metadata: metadata ?? undefined }),
      }
      if (body.stream) {
        return streamRun(served, run, {
          newTable: () => createResponseTable(names),
          format: (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
          ending: '',
        })
      }
      const last = await awaitAnswer(served, run, createResponseTable(names), req.raw.signal)
      return respondJson(last?.['response'] ?? throwStopping(run))
    },
  )
  routes.post(
    '/v1/chat/completions',
    {
      operationId: 'createChatCompletion',
      summary:
        'A run, or the rest of one that waits, as OpenAI’s Chat Completions answer. `stream` makes it a stream.',
      parameters: startParameters,
      body: {
        name: 'ChatRequest',
        schema: chatRequest,
        example: { model: 'cashier', messages: [{ role: 'user', content: 'Pay the bill.' }] },
      },
      answers: { 200: 'The completion.' },
      fields: ['id', 'object', 'choices', 'usage'],
      stream: 'accepted',
      errors,
    },
    async ({ principal, req, readBody }) => {
      const body = await readBody()
      const { model, stop } = body
      const run = await startOrAnswer(served, principal, body, {
        items: readMessages(body.messages),
        settings: {
          temperature: body.temperature,
          topP: body.top_p,
          stop: typeof stop === 'string' ? [stop] : stop,
          seed: body.seed,
          maxOutputTokens: body.max_completion_tokens ?? body.max_tokens,
          reasoningEffort: body.reasoning_effort,
        },
        ...readStartHeaders(req.raw, principal),
      })
      const names = { model, includesUsage: body.stream_options?.include_usage }
      if (body.stream) {
        return streamRun(served, run, {
          newTable: () => createChunkTable(names),
          format: (chunk) => `data: ${JSON.stringify(chunk)}\n\n`,
          ending: 'data: [DONE]\n\n',
        })
      }
      const answer = await awaitAnswer(served, run, createAnswerTable(names), req.raw.signal)
      if (answer === undefined) return throwStopping(run)
      const headers = answer.status === 200 ? {} : { 'x-should-retry': 'false' }
      return respondJson(answer.body, answer.status, headers)
    },
  )
}

function toModel({ name }: Agent<unknown>): object {
  return { id: name, object: 'model', created: 0, owned_by: 'tallystick' }
}

function requireResponse(id: string): NonNullable<ReturnType<typeof parseResponseId>> {
  const runId = parseResponseId(id)
  if (runId !== undefined) return runId
  throw malformed('previous_response_id is not the id of a response of this server.')
}

/** The server stops while a client waits. The run is on record and continues elsewhere. */
function throwStopping({ runId }: FollowedRun): never {
  throw new RefusedRequestError(
    503,
    'run_continues',
    `This process stops, and run ${runId} continues in another one. GET /runs/${runId}/result there gives its answer.`,
  )
}

import type { Agent, Ledger, RunId, RunOptions } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { type JsonObject, runIdOfCall } from '@tallystick/core/vocabulary'
import type { Hono } from 'hono'
import {
  isIncluded,
  isVisible,
  type Principal,
  requireVisible,
  type StartHeaders,
  readStartHeaders,
  readRootStart,
} from '../http/principal.ts'
import { malformed, RefusedRequestError } from '../http/problem.ts'
import { readBody } from '../http/request.ts'
import {
  respondJson,
  type RequestScope,
  requireAgent,
  requirePermission,
  type Served,
} from '../http/served.ts'
import { sendCommand, sendDecision } from '../runs/commands.ts'
import { startRun } from '../runs/start.ts'
import { readState } from '../runs/view.ts'
import { streamHeaders } from '../stream/followed-stream.ts'
import { type FollowedRun, awaitAnswer, streamProtocol, type RunProtocol } from '../stream/protocol.ts'
import { parseApprovalId } from '../stream/run-moves.ts'
import { createAnswerTable, type ChatChunk, createChunkTable } from './chat.ts'
import { type Answer, listAnswers, type ConversationItem, toRunInput } from './conversation.ts'
import { type ResponseEvent, type ResponseNames, createResponseTable, parseResponseId } from './responses.ts'
import {
  chatRequest,
  toToolChoice,
  type OpenAiSettings,
  type GivenChoice,
  readInput,
  readMessages,
  type NamedTool,
  readToolName,
  responseRequest,
  readSettings,
} from './schema.ts'
import { type Operations, startParameters } from '../http/openapi.ts'

/** A request of a client of OpenAI, as options of a run. */
interface OpenAiOrder extends StartHeaders {
  readonly agent: string
  readonly items: readonly ConversationItem[]
  /** The run of the response that this one continues. */
  readonly previous?: RunId | undefined
  readonly sessionId?: string | undefined
  readonly metadata?: JsonObject | null | undefined
  readonly settings: OpenAiSettings | undefined
  readonly tools?: readonly NamedTool[] | null | undefined
  readonly toolChoice?: GivenChoice | null | undefined
  readonly parallelToolCalls?: boolean | null | undefined
}

/** Starts the run that answers a request, or delivers the client's answers to the run that waits for them. */
async function startOrAnswer(served: Served, principal: Principal, order: OpenAiOrder): Promise<FollowedRun> {
  const agent = requireAgent(served, principal, order.agent)
  requireOwnTools(agent, order.tools ?? [])
  const answers = listAnswers(order.items)
  return answers.length > 0
    ? await sendAnswers(served, principal, order, answers)
    : await startOrder(served, principal, order)
}

/** The agent decides which tools its model may call. A client can name them again. */
function requireOwnTools({ name, tools }: Agent<unknown>, given: readonly NamedTool[]): void {
  const strange = given.map(readToolName).find((named) => !tools.some((tool) => tool.name === named))
  if (strange === undefined) return
  throw malformed(
    `The agent ${name} has no tool ${strange.slice(0, 80)}. Tools are given to the agent, not to a request: leave it out.`,
  )
}

async function startOrder(served: Served, principal: Principal, order: OpenAiOrder): Promise<FollowedRun> {
  requirePermission(principal, 'start')
  const { agent, items, previous, sessionId, settings } = order
  if (previous !== undefined) await requireEnded(served, principal, previous)
  const options: Pick<RunOptions, 'modelSettings' | 'toolChoice' | 'parallelToolCalls'> = omitUndefined({
    modelSettings: settings,
    toolChoice: toToolChoice(order.toolChoice),
    parallelToolCalls: order.parallelToolCalls ?? undefined,
  })
  const from = previous === undefined ? undefined : { runId: previous }
  const metadata = order.metadata ?? undefined
  const input = toRunInput(await withRecordedCalls(served, principal, items))
  const body = { agent, input, ...omitUndefined({ sessionId, from, metadata }) }
  const { id } = await startRun(served, principal, { ...body, ...options }, order)
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
  { agent, previous, idempotencyKey: key }: OpenAiOrder,
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
export function addOpenAi(app: Hono<RequestScope>, served: Served): void {
  app.get('/v1/models', (context) => {
    const { sees } = context.get('principal')
    const isSeen = (name: string): boolean => sees === 'everything' || isIncluded(sees.agents, name)
    const data = [...served.agents.keys()].filter(isSeen).map(toModel)
    return respondJson({ object: 'list', data })
  })
  app.get('/v1/models/:model', (context) => {
    const { name } = requireAgent(served, context.get('principal'), context.req.param('model'))
    return respondJson(toModel(name))
  })
  app.post('/v1/responses', async (context) => {
    const [{ raw: request }, principal] = [context.req, context.get('principal')]
    const body = await readBody(request, responseRequest, served.body)
    const { model, previous_response_id: previous, conversation, metadata } = body
    const run = await startOrAnswer(served, principal, {
      agent: model,
      items: readInput(body.input),
      previous: previous == null ? undefined : requireResponse(previous),
      sessionId: typeof conversation === 'string' ? conversation : conversation?.id,
      metadata,
      settings: readSettings({
        temperature: body.temperature,
        topP: body.top_p,
        maxOutputTokens: body.max_output_tokens,
        reasoningEffort: body.reasoning?.effort,
      }),
      tools: body.tools,
      toolChoice: body.tool_choice,
      parallelToolCalls: body.parallel_tool_calls,
      ...readStartHeaders(request, principal),
    })
    const names: ResponseNames = {
      model,
      ...omitUndefined({ previousResponseId: previous ?? undefined, metadata: metadata ?? undefined }),
    }
    if (body.stream) return streamRun(served, run, createResponseProtocol(names))
    const last = await awaitAnswer(served, run, createResponseTable(names), {
      ...served.stream,
      signal: request.signal,
    })
    return respondJson(last?.['response'] ?? throwStopping(run))
  })
  app.post('/v1/chat/completions', async (context) => {
    const [{ raw: request }, principal] = [context.req, context.get('principal')]
    const body = await readBody(request, chatRequest, served.body)
    const { model, stop } = body
    const run = await startOrAnswer(served, principal, {
      agent: model,
      items: readMessages(body.messages),
      metadata: body.metadata,
      settings: readSettings({
        temperature: body.temperature,
        topP: body.top_p,
        stop: typeof stop === 'string' ? [stop] : stop,
        seed: body.seed,
        maxOutputTokens: body.max_completion_tokens ?? body.max_tokens,
        reasoningEffort: body.reasoning_effort,
      }),
      tools: body.tools,
      toolChoice: body.tool_choice,
      parallelToolCalls: body.parallel_tool_calls,
      ...readStartHeaders(request, principal),
    })
    const names = { model, includesUsage: body.stream_options?.include_usage }
    if (body.stream) return streamRun(served, run, createChatProtocol(names))
    const answer = await awaitAnswer(served, run, createAnswerTable(names), {
      ...served.stream,
      signal: request.signal,
    })
    if (answer === undefined) return throwStopping(run)
    return respondJson(answer.body, answer.status, answer.status === 200 ? {} : { 'x-should-retry': 'false' })
  })
}

function toModel(id: string): object {
  return { id, object: 'model', created: 0, owned_by: 'tallystick' }
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

function streamRun<Out>(served: Served, run: FollowedRun, protocol: RunProtocol<Out>): Response {
  return new Response(streamProtocol(served, run, protocol, served.stream), { headers: streamHeaders })
}

function createResponseProtocol(names: ResponseNames): RunProtocol<ResponseEvent> {
  return {
    newTable: () => createResponseTable(names),
    textOf: (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
    ending: '',
  }
}

function createChatProtocol(names: Parameters<typeof createChunkTable>[0]): RunProtocol<ChatChunk> {
  return {
    newTable: () => createChunkTable(names),
    textOf: (chunk) => `data: ${JSON.stringify(chunk)}\n\n`,
    ending: 'data: [DONE]\n\n',
  }
}

/** All operations for clients of OpenAI answer so. */
const openAi = { stream: 'accepted', errors: 'OpenAiError' } as const

/** The routes of `addOpenAi`. */
export const openAiOperations: Operations = {
  'GET /v1/models': {
    operationId: 'listModels',
    summary: 'The agents, for clients of OpenAI.',
    answers: { 200: 'The agents.' },
    fields: ['object', 'data'],
    errors: 'OpenAiError',
  },
  'GET /v1/models/:model': {
    operationId: 'readModel',
    summary: 'One agent, for clients of OpenAI.',
    answers: { 200: 'The agent.' },
    fields: ['id', 'object', 'created', 'owned_by'],
    errors: 'OpenAiError',
  },
  'POST /v1/responses': {
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
    ...openAi,
  },
  'POST /v1/chat/completions': {
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
    ...openAi,
  },
}

import type { Agent, Ledger, RunId, RunOptions } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { type JsonObject, runIdOfCall } from '@tallystick/core/vocabulary'
import type { Hono } from 'hono'
import {
  includes,
  isVisible,
  type Principal,
  requireVisible,
  type StartHeaders,
  startHeaders,
  startOfRoot,
} from '../http/principal.ts'
import { malformed, RefusedRequestError } from '../http/problem.ts'
import { readBody } from '../http/request.ts'
import { json, type RequestScope, requireAgent, requirePermission, type Served } from '../http/served.ts'
import { sendDecision } from '../runs/commands.ts'
import { startRun } from '../runs/start.ts'
import { stateAt } from '../runs/view.ts'
import { streamHeaders } from '../stream/followed-stream.ts'
import { type FollowedRun, protocolAnswer, protocolStream, type RunProtocol } from '../stream/protocol.ts'
import { questionOf } from '../stream/run-moves.ts'
import { chatAnswerTable, type ChatChunk, chatChunkTable } from './chat.ts'
import { type Answer, answersIn, type ConversationItem, conversationOf } from './conversation.ts'
import { type ResponseEvent, type ResponseNames, responseTable, runOfResponse } from './responses.ts'
import {
  chatRequest,
  choiceOf,
  type FacadeSettings,
  type GivenChoice,
  itemsInInput,
  itemsInMessages,
  type NamedTool,
  nameOf,
  responseRequest,
  settingsFrom,
} from './schema.ts'

/** A request of a client of OpenAI, as options of a run. */
export interface FacadeOrder extends StartHeaders {
  readonly agent: string
  readonly items: readonly ConversationItem[]
  /** The run of the response that this one continues. */
  readonly previous?: RunId | undefined
  readonly sessionId?: string | undefined
  readonly metadata?: JsonObject | null | undefined
  readonly settings: FacadeSettings | undefined
  readonly tools?: readonly NamedTool[] | null | undefined
  readonly toolChoice?: GivenChoice | null | undefined
  readonly parallelToolCalls?: boolean | null | undefined
}

/** Starts the run that answers a request, or delivers the client's answers to the run that waits for them. */
async function orderedRun(served: Served, principal: Principal, order: FacadeOrder): Promise<FollowedRun> {
  const agent = requireAgent(served, principal, order.agent)
  requireOwnTools(agent, order.tools ?? [])
  const answers = answersIn(order.items)
  return answers.length > 0
    ? await answered(served, principal, order, answers)
    : await begun(served, principal, order)
}

/** The agent decides which tools its model may call. A client can repeat tools of the agent, to see their calls. */
function requireOwnTools({ name, tools }: Agent<unknown>, given: readonly NamedTool[]): void {
  const strange = given.map(nameOf).find((named) => !tools.some((tool) => tool.name === named))
  if (strange === undefined) return
  throw malformed(
    `The agent ${name} has no tool ${strange.slice(0, 80)}. Tools are given to the agent, not to a request: leave it out.`,
  )
}

async function begun(served: Served, principal: Principal, order: FacadeOrder): Promise<FollowedRun> {
  requirePermission(principal, 'start')
  const { agent, items, previous, sessionId, settings } = order
  if (previous !== undefined) await requireEnded(served, principal, previous)
  const options: Pick<RunOptions, 'modelSettings' | 'toolChoice' | 'parallelToolCalls'> = omitUndefined({
    modelSettings: settings,
    toolChoice: choiceOf(order.toolChoice),
    parallelToolCalls: order.parallelToolCalls ?? undefined,
  })
  const from = previous === undefined ? undefined : { runId: previous }
  const metadata = order.metadata ?? undefined
  const input = conversationOf(await onRecord(served, principal, items))
  const body = { agent, input, ...omitUndefined({ sessionId, from, metadata }) }
  const { id } = await startRun(served, principal, { ...body, ...options }, order)
  return { runId: id, after: 0 }
}

/**
 * The items of a conversation with what its calls asked for, and how they ended, as their runs recorded it: the model takes
 * a call and its result for facts, and what a client says of them may be invented. Refuses calls of no run that it sees.
 */
async function onRecord(
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
    if (runId === undefined || !(await isVisible(ledger, principal, runId))) unknownCall(toolCallId)
    recorded.push((await recordedItem(ledger, runId, item)) ?? unknownCall(toolCallId))
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

function unknownCall(toolCallId: string): never {
  throw malformed(
    `No run that you see has recorded ${toolCallId.slice(0, 80)} so. Calls and their results are taken from the runs of this server: send those that it gave you, or leave them out.`,
  )
}

async function requireEnded(served: Served, principal: Principal, runId: RunId): Promise<void> {
  await requireVisible(served.ledger, principal, runId)
  if ((await stateAt(served.ledger, runId)).phase === 'done') return
  throw new RefusedRequestError(
    409,
    'run_not_ended',
    `Run ${runId} of the previous response has not ended. Send what it waits for, such as the output of its calls, or wait for its end.`,
  )
}

async function answered(
  served: Served,
  principal: Principal,
  { agent, previous, idempotencyKey: key }: FacadeOrder,
  answers: readonly Answer[],
): Promise<FollowedRun> {
  const { ledger } = served
  const runId = await runAnswered(served, principal, answers)
  const first = await startOfRoot(ledger, runId)
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
    const callId = answer.kind === 'result' ? answer.toolCallId : questionOf(answer.approvalId)?.toolCallId
    const asking = runIdOfCall(callId ?? '')
    if (asking === undefined) throw malformed('An approval_request_id has to be one that this server gave.')
    await requireVisible(ledger, principal, asking)
    const first = await startOfRoot(ledger, asking)
    if (first) roots.add(first.runId)
  }
  const [runId, ...others] = roots
  if (runId !== undefined && others.length === 0) return runId
  throw malformed('The answers at the end are for several runs. Send those of one run at a time.')
}

async function settle(
  { runtime, context }: Served,
  principal: Principal,
  runId: RunId,
  { toolCallId, content, key }: Extract<Answer, { kind: 'result' }> & { readonly key?: string },
): Promise<void> {
  requirePermission(principal, 'settle')
  const command = { type: 'settle', toolCallId, outcome: 'success', content } as const
  const own = { key: key && `${key}:${toolCallId}`, context }
  const answer = await runtime.send(runId, command, own)
  if (!answer.accepted) throw new RefusedRequestError(409, answer.code, answer.message)
}

/** Adds the routes for clients of OpenAI: a model is an agent, and each request starts a run or continues one. */
export function addOpenAi(app: Hono<RequestScope>, served: Served): void {
  app.get('/v1/models', (context) => {
    const { sees } = context.get('principal')
    const isSeen = (name: string): boolean => sees === 'everything' || includes(sees.agents, name)
    const data = [...served.agents.keys()].filter(isSeen).map(modelOf)
    return json({ object: 'list', data })
  })
  app.get('/v1/models/:model', (context) => {
    const { name } = requireAgent(served, context.get('principal'), context.req.param('model'))
    return json(modelOf(name))
  })
  app.post('/v1/responses', async (context) => {
    const [{ raw: request }, principal] = [context.req, context.get('principal')]
    const body = await readBody(request, responseRequest, served.body)
    const { model, previous_response_id: previous, conversation, metadata } = body
    const run = await orderedRun(served, principal, {
      agent: model,
      items: itemsInInput(body.input),
      previous: previous == null ? undefined : requireResponse(previous),
      sessionId: typeof conversation === 'string' ? conversation : conversation?.id,
      metadata,
      settings: settingsFrom({
        temperature: body.temperature,
        topP: body.top_p,
        maxOutputTokens: body.max_output_tokens,
        reasoningEffort: body.reasoning?.effort,
      }),
      tools: body.tools,
      toolChoice: body.tool_choice,
      parallelToolCalls: body.parallel_tool_calls,
      ...startHeaders(request, principal),
    })
    const names: ResponseNames = {
      model,
      ...omitUndefined({ previousResponseId: previous ?? undefined, metadata: metadata ?? undefined }),
    }
    if (body.stream) return streamed(served, run, responseProtocol(names))
    const last = await protocolAnswer(served, run, responseTable(names), {
      ...served.stream,
      signal: request.signal,
    })
    return json(last?.['response'] ?? gone(run))
  })
  app.post('/v1/chat/completions', async (context) => {
    const [{ raw: request }, principal] = [context.req, context.get('principal')]
    const body = await readBody(request, chatRequest, served.body)
    const { model, stop } = body
    const run = await orderedRun(served, principal, {
      agent: model,
      items: itemsInMessages(body.messages),
      metadata: body.metadata,
      settings: settingsFrom({
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
      ...startHeaders(request, principal),
    })
    const names = { model, includesUsage: body.stream_options?.include_usage }
    if (body.stream) return streamed(served, run, chatProtocol(names))
    const answer = await protocolAnswer(served, run, chatAnswerTable(names), {
      ...served.stream,
      signal: request.signal,
    })
    if (answer === undefined) return gone(run)
    return json(answer.body, answer.status, answer.status === 200 ? {} : { 'x-should-retry': 'false' })
  })
}

function modelOf(id: string): object {
  return { id, object: 'model', created: 0, owned_by: 'tallystick' }
}

function requireResponse(id: string): NonNullable<ReturnType<typeof runOfResponse>> {
  const runId = runOfResponse(id)
  if (runId !== undefined) return runId
  throw malformed('previous_response_id is no id of a response of this server.')
}

/** The server stops while a client waits: the run is on record, and continues elsewhere. */
function gone({ runId }: FollowedRun): never {
  throw new RefusedRequestError(
    503,
    'run_continues',
    `This process stops, and run ${runId} continues in another one. GET /runs/${runId}/result there gives its answer.`,
  )
}

function streamed<Out>(served: Served, run: FollowedRun, protocol: RunProtocol<Out>): Response {
  return new Response(protocolStream(served, run, protocol, served.stream), { headers: streamHeaders })
}

function responseProtocol(names: ResponseNames): RunProtocol<ResponseEvent> {
  return {
    newTable: () => responseTable(names),
    textOf: (event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`,
    ending: '',
  }
}

function chatProtocol(names: Parameters<typeof chatChunkTable>[0]): RunProtocol<ChatChunk> {
  return {
    newTable: () => chatChunkTable(names),
    textOf: (chunk) => `data: ${JSON.stringify(chunk)}\n\n`,
    ending: 'data: [DONE]\n\n',
  }
}

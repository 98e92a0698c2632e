import type { Agent, Ledger, RunId, RunOptions } from '@tallystick/core'
import { omitUndefined, reasoningEfforts } from '@tallystick/core/internal'
import { extractRunId, type ReasoningEffort } from '@tallystick/core/vocabulary'
import {
  isVisible,
  type Principal,
  requireVisible,
  type StartHeaders,
  readStartHeaders,
  readRootStart,
} from '../http/principal.ts'
import { createMalformedError, RefusedRequestError } from '../http/problem.ts'
import { type Routes, startParameters } from '../http/routes.ts'
import { listAgents, respondJson, requireAgent, type Served } from '../http/served.ts'
import { sendCommand, sendDecision } from '../runs/commands.ts'
import { startRun } from '../runs/start.ts'
import { readState } from '../runs/view.ts'
import { type FollowedRun, awaitAnswer, streamRun, throwStopping } from '../stream/protocol.ts'
import { parseApprovalId } from '../stream/run-moves.ts'
import { createAnswerTable, createChunkTable } from './chat.ts'
import {
  type Answer,
  listAnswers,
  type ConversationItem,
  toRunInput,
  parseCallId,
  parseCallInput,
  readResultParts,
  readText,
  readUserParts,
} from './conversation.ts'
import { type ResponseNames, createResponseTable, parseResponseId } from './responses.ts'
import * as z from 'zod'

type ModelSettings = NonNullable<RunOptions['modelSettings']>

const why = 'the agent and its server decide that. Leave it out'

/** A field that accepts only its default: any other value would have no effect. */
function acceptOnly<const Value extends string | number | boolean>(
  ...values: readonly [Value, ...Value[]]
): z.ZodType {
  const allowed = values.map((value) => JSON.stringify(value)).join(' or ')
  return z.literal(values, { error: `can only be ${allowed} here: ${why}` }).nullish()
}

const emptyList: z.ZodType = z.array(z.never({ error: `has to be empty: ${why}` })).nullish()
const anything: z.ZodType = z.unknown().optional()

const effort: z.ZodType<ReasoningEffort> = z.enum(reasoningEfforts)
const tokens: z.ZodType<number> = z.int().positive()

/** A tool in a request. A client can only name tools of the agent: the agent decides which tools its model may call. */
const namedTool = z.looseObject({
  type: z.string(),
  name: z.string().optional(),
  function: z.looseObject({ name: z.string() }).optional(),
})

type NamedTool = z.infer<typeof namedTool>

const toolChoice = z.union([z.enum(['auto', 'none', 'required']), namedTool])

/**
 * Fields of both kinds of request without effect: hints for caches, safety and billing, and fields that accept only their
 * default.
 */
const neutralFields = {
  user: anything,
  safety_identifier: anything,
  prompt_cache_key: anything,
  prompt_cache_retention: anything,
  service_tier: acceptOnly('auto', 'default'),
  store: acceptOnly(true),
  top_logprobs: acceptOnly(0),
}

/** Fields of both kinds of request that a run follows. */
const givenFields = {
  /** The agent. */
  model: z.string(),
  stream: z.boolean().nullish(),
  metadata: z.record(z.string(), z.json()).nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  tools: z.array(namedTool).nullish(),
  tool_choice: toolChoice.nullish(),
}

const givenBody = z.object(givenFields)
type GivenFields = z.infer<typeof givenBody>

/** The same for Chat Completions. */
const neutralChatFields = {
  n: acceptOnly(1),
  logprobs: acceptOnly(false),
  frequency_penalty: acceptOnly(0),
  presence_penalty: acceptOnly(0),
  logit_bias: z.strictObject({}, { error: `has to be empty: ${why}` }).nullish(),
  modalities: z.tuple([z.literal('text', { error: `can only be ["text"] here: ${why}` })]).nullish(),
  response_format: z
    .strictObject({ type: z.literal('text', { error: `can only be "text" here: ${why}` }) })
    .nullish(),
}

/** The same for the Responses API. */
const neutralResponseFields = {
  instructions: acceptOnly(''),
  background: acceptOnly(false),
  truncation: acceptOnly('disabled'),
  include: emptyList,
  text: z
    .strictObject({
      format: z
        .strictObject({ type: z.literal('text', { error: `can only be "text" here: ${why}` }) })
        .nullish(),
    })
    .nullish(),
}

/** Returns a choice of tools in the words of a run. */
function toToolChoice(
  given: GivenFields['tool_choice'],
): 'auto' | 'any' | 'none' | { readonly type: 'tool'; readonly name: string } | undefined {
  if (given == null) return undefined
  if (given === 'required') return 'any'
  return typeof given === 'string' ? given : { type: 'tool', name: readToolName(given) }
}

/** Reads the name of a tool from either API. */
function readToolName({ type, name, function: called }: NamedTool): string {
  return name ?? called?.name ?? type
}

/** Refuses fields that would change the answer but that the server would have to ignore. */
const chatRequest = z.strictObject({
  ...givenFields,
  ...neutralFields,
  ...neutralChatFields,
  messages: z
    .array(
      z.looseObject({
        role: z.string(),
        content: z.unknown().optional(),
        tool_call_id: z.unknown().optional(),
        tool_calls: z
          .array(
            z.looseObject({
              id: z.unknown().optional(),
              function: z.looseObject({ name: z.string(), arguments: z.unknown().optional() }).optional(),
            }),
          )
          .nullish(),
      }),
    )
    .min(1),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
  max_tokens: tokens.nullish(),
  max_completion_tokens: tokens.nullish(),
  seed: z.int().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  reasoning_effort: effort.nullish(),
})

type ChatRequest = z.infer<typeof chatRequest>

function readMessages(messages: ChatRequest['messages']): readonly ConversationItem[] {
  return messages.flatMap((message, index) => readMessage(message, `messages.${index}`))
}

function readMessage(
  { role, content, tool_call_id, tool_calls }: ChatRequest['messages'][number],
  place: string,
): readonly ConversationItem[] {
  switch (role) {
    case 'user':
      return [{ kind: 'user', parts: readUserParts(content, `${place}.content`) }]
    case 'assistant': {
      const calls = (tool_calls ?? []).map(({ id, function: called }): ConversationItem => {
        if (called === undefined)
          throw createMalformedError(`${place}.tool_calls has a call without a function.`)
        const input = parseCallInput(called.arguments, `${place}.tool_calls.arguments`)
        return {
          kind: 'call',
          toolCallId: parseCallId(id, `${place}.tool_calls.id`),
          name: called.name,
          input,
        }
      })
      return [{ kind: 'assistant', text: readText(content, `${place}.content`) }, ...calls]
    }
    case 'tool': {
      const toolCallId = parseCallId(tool_call_id, `${place}.tool_call_id`)
      return [{ kind: 'result', toolCallId, content: readResultParts(content, `${place}.content`) }]
    }
    default:
      throw createMalformedError(
        `${place} has the role ${role.slice(0, 40)}. An agent has instructions of its own: send messages of the roles user, assistant and tool.`,
      )
  }
}

const id = z.string().regex(/\S/, 'is empty').max(200)

/** Refuses fields that would change the answer but that the server would have to ignore. */
const responseRequest = z.strictObject({
  ...givenFields,
  ...neutralFields,
  ...neutralResponseFields,
  input: z.union([
    z.string().min(1),
    z.array(z.looseObject({ type: z.string().optional(), role: z.string().optional() })).min(1),
  ]),
  previous_response_id: z.string().nullish(),
  conversation: z.union([id, z.strictObject({ id })]).nullish(),
  stream_options: z.looseObject({}).nullish(),
  max_output_tokens: tokens.nullish(),
  reasoning: z.strictObject({ effort: effort.nullish(), summary: z.unknown().optional() }).nullish(),
})

type ResponseRequest = z.infer<typeof responseRequest>
type GivenItem = Exclude<ResponseRequest['input'], string>[number]

function readInput(input: ResponseRequest['input']): readonly ConversationItem[] {
  if (typeof input === 'string') return [{ kind: 'user', parts: [{ type: 'text', text: input }] }]
  return input.flatMap((item, index) => readItem(item, `input.${index}`))
}

function readItem(item: GivenItem, place: string): readonly ConversationItem[] {
  switch (item.type ?? 'message') {
    case 'message':
      return [readMessageItem(item, place)]
    case 'function_call': {
      const toolCallId = parseCallId(item['call_id'], `${place}.call_id`)
      return [
        {
          kind: 'call',
          toolCallId,
          name: String(item['name']),
          input: parseCallInput(item['arguments'], `${place}.arguments`),
        },
      ]
    }
    case 'function_call_output': {
      const toolCallId = parseCallId(item['call_id'], `${place}.call_id`)
      return [{ kind: 'result', toolCallId, content: readResultParts(item['output'], `${place}.output`) }]
    }
    case 'mcp_approval_response':
      return [readDecision(item, place)]
    // Clients send back the items of a response.
    case 'reasoning':
    case 'mcp_approval_request':
      return []
    default:
      throw createMalformedError(
        `${place} has the type ${String(item.type).slice(0, 40)}, which an agent does not take.`,
      )
  }
}

function readMessageItem({ role, content }: GivenItem, place: string): ConversationItem {
  if (role === 'user') return { kind: 'user', parts: readUserParts(content, `${place}.content`) }
  if (role === 'assistant') return { kind: 'assistant', text: readText(content, `${place}.content`) }
  throw createMalformedError(
    `${place} has the role ${String(role).slice(0, 40)}. An agent has instructions of its own: send messages of the roles user and assistant.`,
  )
}

function readDecision({ approval_request_id, approve, reason }: GivenItem, place: string): ConversationItem {
  if (typeof approval_request_id !== 'string' || typeof approve !== 'boolean') {
    throw createMalformedError(`${place} has to hold approval_request_id, and approve as true or false.`)
  }
  const denial = typeof reason === 'string' ? reason : 'Denied.'
  return { kind: 'decision', approvalId: approval_request_id, approved: approve, reason: denial }
}

/** The fields that the two kinds of request name differently. */
interface OpenAiOrder extends StartHeaders {
  readonly items: readonly ConversationItem[]
  /** The run of the response that this one continues. */
  readonly previous?: RunId | undefined
  readonly sessionId?: string | undefined
  /** The model settings; those that are not given are null or undefined. */
  readonly settings: { readonly [Name in keyof ModelSettings]: ModelSettings[Name] | null }
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
  throw createMalformedError(
    `The agent ${name} has no tool ${strange.slice(0, 80)}. Tools are given to the agent, not to a request: leave it out.`,
  )
}

async function startOrder(
  served: Served,
  principal: Principal,
  given: GivenFields,
  { items, previous, sessionId, settings, ...headers }: OpenAiOrder,
): Promise<FollowedRun> {
  if (previous !== undefined) await requireEnded(served, principal, previous)
  const modelSettings: ModelSettings = Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value != null),
  )
  const order = {
    agent: given.model,
    input: toRunInput(await withRecordedCalls(served, principal, items)),
    ...omitUndefined({
      sessionId,
      from: previous && { runId: previous },
      metadata: given.metadata ?? undefined,
      modelSettings: Object.keys(modelSettings).length > 0 ? modelSettings : undefined,
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
    const runId = extractRunId(toolCallId)
    if (runId === undefined || !(await isVisible(ledger, principal, runId))) throwUnknownCall(toolCallId)
    recorded.push((await readRecordedItem(ledger, runId, item)) ?? throwUnknownCall(toolCallId))
  }
  return recorded
}

async function readRecordedItem(
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
  throw createMalformedError(
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
    throw createMalformedError(
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
    const asking = extractRunId(callId ?? '')
    if (asking === undefined)
      throw createMalformedError('An approval_request_id has to be one that this server gave.')
    await requireVisible(ledger, principal, asking)
    const first = await readRootStart(ledger, asking)
    if (first) roots.add(first.runId)
  }
  const [runId, ...others] = roots
  if (runId !== undefined && others.length === 0) return runId
  throw createMalformedError('The answers at the end are for several runs. Send those of one run at a time.')
}

async function settle(
  served: Served,
  principal: Principal,
  runId: RunId,
  { toolCallId, content, key }: Extract<Answer, { kind: 'result' }> & { readonly key?: string },
): Promise<void> {
  const command = { type: 'settle', toolCallId, outcome: 'success', content } as const
  await sendCommand(served, principal, runId, command, key && `${key}:${toolCallId}`)
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
  throw createMalformedError('previous_response_id is not the id of a response of this server.')
}

import type { JsonObject } from '@tallystick/core/vocabulary'
import type * as z from 'zod'
import { a2aCall } from '../a2a/a2a-request.ts'
import { chatRequest } from '../facade/chat-request.ts'
import { responseRequest } from '../facade/response-request.ts'
import { runAgentInput } from '../ag-ui/schema.ts'
import { chatBody } from '../ai-sdk/schema.ts'
import { stopBody } from '../conversation/routes.ts'
import { forkBody, resumeBody, startBody } from '../runs/bodies.ts'
import { commandKinds, commandNames, type CommandName } from '../runs/command-kinds.ts'

/** The body of a request: its name, its check, and an example that passes it. */
interface DescribedBody {
  readonly name: string
  readonly schema: z.ZodType
  readonly example: JsonObject
}

/** What the document says about a route. */
export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly body?: DescribedBody
  /** Parameters of the query string, and headers, by their names. */
  readonly parameters?: readonly ParameterName[]
  /** The answers to a successful request: what each status means. */
  readonly answers: Readonly<Record<string, string>>
  /** The fields of the JSON answer. Default: any. */
  readonly fields?: readonly string[]
  /** Whether the answer is a stream of server-sent events: always, or if the request asks for that. */
  readonly stream?: 'always' | 'accepted'
  /** The form of errors, if they are not problems of RFC 9457. */
  readonly errors?: 'OpenAiError'
}

/** The parameters of all routes, with what each takes. */
export const parameters = {
  at: ['query', 'integer', 'The event up to which the run is read: its seq.'],
  waitMs: ['query', 'integer', 'How long to wait for the run to stop, in milliseconds: 50,000 at most.'],
  limit: ['query', 'integer', 'How many entries the page holds: 200 at most.'],
  since: ['query', 'integer', 'Runs with an event then or later, in milliseconds since 1970 UTC.'],
  status: ['query', 'array', 'Runs of one of these statuses.'],
  agent: ['query', 'string', 'Runs that this agent had.'],
  sessionId: ['query', 'string', 'Runs of this session.'],
  before: ['query', 'string', 'What the page before gave as `before`, or a run that the caller sees.'],
  version: [
    'query',
    'string',
    'The `version` that the caller has, or nothing: waits until there is more, for the time of a heartbeat.',
  ],
  after: ['query', 'string', 'What the page before gave as `after`.'],
  'Last-Event-ID': ['header', 'string', 'The `id:` of the last frame that the reader has.'],
  'Idempotency-Key': ['header', 'string', 'Under which the request takes effect once.'],
  traceparent: ['header', 'string', 'The trace of the caller, which the run continues.'],
} as const
export type ParameterName = keyof typeof parameters

const conversation = {
  parameters: ['version', 'before', 'limit'],
  answers: { 200: 'The page.', 204: 'There is no more than that version.' },
  fields: ['messages'],
} as const satisfies Partial<Operation>
const stop = {
  summary: 'Stops the run whose answer a page shows.',
  body: { name: 'Stop', schema: stopBody, example: {} },
  answers: { 200: 'Whether a run was stopped.' },
  fields: ['accepted'],
} as const satisfies Partial<Operation>
const call = { toolCallId: 'call_0190a0d204d472fd99e77861fc19641d_1_1_0' }
const commands: Readonly<Record<CommandName, readonly [summary: string, example: JsonObject]>> = {
  approve: ['Approves a call that waits for a person.', call],
  deny: ['Denies a call that waits for a person; the model reads why.', { ...call, reason: 'Too dear.' }],
  cancel: ['Stops a run.', { reason: 'Not needed any more.' }],
  steer: ['Adds a message at the next turn.', { input: 'Pay in euros.' }],
  queue: ['Adds a message after the answer.', { input: 'Then write a receipt.' }],
  raise: ['Raises a limit of a run.', { limit: 'maxTurns', max: 100 }],
  settle: ['Settles a deferred call.', { ...call, result: '5 USD paid' }],
}

/** The headers of a request that starts a run. */
const starting = ['Idempotency-Key', 'traceparent'] as const

/** What all operations for clients of OpenAI share. */
const openAi = { stream: 'accepted', errors: 'OpenAiError' } as const

/** The operations of a server, by method and path as its routes name them. */
export const operations: Readonly<Record<string, Operation>> = {
  'GET /openapi.json': {
    operationId: 'readDocument',
    summary: 'This document.',
    answers: { 200: 'The document.' },
    fields: ['openapi', 'info', 'paths', 'components'],
  },
  'GET /agents': {
    operationId: 'listAgents',
    summary: 'The agents that the caller can start.',
    answers: { 200: 'The agents, with their tools and limits.' },
    fields: ['agents'],
  },
  'GET /agents/:agent': {
    operationId: 'readAgent',
    summary: 'One agent.',
    answers: { 200: 'The agent, with its tools and limits.' },
    fields: ['name', 'tools', 'limits'],
  },
  'POST /runs': {
    operationId: 'startRun',
    summary: 'Starts a run.',
    parameters: starting,
    body: { name: 'Start', schema: startBody, example: { agent: 'cashier', input: 'Pay the bill.' } },
    answers: { 201: 'The run is on record.' },
    fields: ['runId'],
  },
  'GET /runs': {
    operationId: 'listRuns',
    summary: 'A page of the runs that the caller sees, newest first. The last page has no `before`.',
    parameters: ['status', 'agent', 'sessionId', 'since', 'before', 'limit'],
    answers: { 200: 'The page.' },
    fields: ['runs'],
  },
  'GET /runs/:run': {
    operationId: 'readRun',
    summary: 'The status, answer and totals of a run, and what it waits for.',
    parameters: ['at'],
    answers: { 200: 'The run.' },
    fields: ['runId', 'status', 'text', 'seq', 'pendingApprovals'],
  },
  'GET /runs/:run/transcript': {
    operationId: 'readTranscript',
    summary: 'The messages that the model of a run is shown.',
    parameters: ['at'],
    answers: { 200: 'The messages.' },
    fields: ['runId', 'seq', 'messages'],
  },
  'GET /runs/:run/result': {
    operationId: 'awaitResult',
    summary: 'Waits until a run has stopped.',
    parameters: ['waitMs'],
    answers: { 200: 'It has stopped: it is done, or waits for a command.', 202: 'It has not stopped yet.' },
    fields: ['runId', 'status', 'text', 'seq', 'pendingApprovals'],
  },
  'GET /runs/:run/events': {
    operationId: 'followRun',
    summary: 'The events of a run: a page of them, or a stream that follows the run to its end.',
    parameters: ['after', 'limit', 'Last-Event-ID'],
    answers: { 200: 'The events.', 204: 'The run has ended, and the reader of the stream has all of it.' },
    fields: ['events', 'after'],
    stream: 'accepted',
  },
  ...Object.fromEntries(commandNames.map((name) => [`POST /runs/:run/${name}`, commandOperation(name)])),
  'POST /runs/:run/resume': {
    operationId: 'resumeRun',
    summary: 'Takes up an interrupted run.',
    body: { name: 'Resume', schema: resumeBody, example: {} },
    answers: { 202: 'The run is taken up.' },
    fields: ['accepted'],
  },
  'POST /runs/:run/fork': {
    operationId: 'forkRun',
    summary: 'Starts a run that shares the events of another one up to `atSeq`.',
    body: { name: 'Fork', schema: forkBody, example: { atSeq: 2, input: 'Pay half of the bill.' } },
    answers: { 201: 'The new run is on record.' },
    fields: ['runId'],
  },
  'GET /events': {
    operationId: 'followAllRuns',
    summary: 'The events of all runs that the caller sees: a page of them, or a stream.',
    parameters: ['after', 'limit', 'Last-Event-ID'],
    answers: { 200: 'The events, each with its cursor.' },
    fields: ['events'],
    stream: 'accepted',
  },
  'GET /sessions/:session': {
    operationId: 'readSession',
    summary:
      'A page of the runs of a conversation, the last first. The first page has the history with which its next run begins, the last one no `before`.',
    parameters: ['before', 'limit'],
    answers: { 200: 'The page.' },
    fields: ['sessionId', 'runs'],
  },
  'POST /chat/:agent': {
    operationId: 'chat',
    summary: 'The chat of `useChat` of the AI SDK.',
    parameters: starting,
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
    ...conversation,
  },
  'POST /chat/:agent/:chat/stop': { operationId: 'stopChat', ...stop },
  'POST /ag-ui/:agent': {
    operationId: 'runAgent',
    summary: 'A run for a client of AG-UI.',
    parameters: starting,
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
  'GET /ag-ui/:agent/:chat': {
    operationId: 'readThread',
    summary: 'The messages of a thread, as clients of AG-UI keep them: the newest, or those before a place.',
    ...conversation,
  },
  'POST /ag-ui/:agent/:chat/stop': { operationId: 'stopThread', ...stop },
  'GET /a2a/:agent/.well-known/agent-card.json': {
    operationId: 'readAgentCard',
    summary: 'The card of an agent, for clients of A2A.',
    answers: { 200: 'The card.' },
    fields: ['name', 'description', 'supportedInterfaces', 'skills'],
  },
  'POST /a2a/:agent': {
    operationId: 'callAgent',
    summary: 'A call of A2A over JSON-RPC.',
    parameters: ['traceparent'],
    body: {
      name: 'A2aCall',
      schema: a2aCall,
      example: {
        ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
        params: { message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'Pay the bill.' }] } },
      },
    },
    answers: { 200: 'The result, or the error of the call.' },
    fields: ['jsonrpc', 'id'],
    stream: 'accepted',
  },
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
    parameters: starting,
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
    parameters: starting,
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

function commandOperation(name: CommandName): Operation {
  const [summary, example] = commands[name]
  const title = `${name[0]?.toUpperCase()}${name.slice(1)}`
  return {
    operationId: `${name}Run`,
    summary,
    parameters: ['Idempotency-Key'],
    body: { name: title, schema: commandKinds[name].body, example },
    answers: { 200: 'The run has taken the command.' },
    fields: ['accepted'],
  }
}

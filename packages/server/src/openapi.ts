import { TallystickError } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Hono } from 'hono'
import * as z from 'zod'
import { a2aCall } from './a2a/schema.ts'
import { runAgentInput } from './ag-ui/schema.ts'
import { chatBody } from './ai-sdk/schema.ts'
import { stopBody } from './conversation/routes.ts'
import { json, type RequestScope, type Served } from './http/served.ts'
import { chatRequest, responseRequest } from './openai/schema.ts'
import { commandKinds, type CommandName, commandNames } from './runs/commands.ts'
import { forkBody, resumeBody, startBody } from './runs/schema.ts'

/** The body of a request: its name, its check, and an example that passes it. */
interface DescribedBody {
  readonly name: string
  readonly schema: z.ZodType
  readonly example: JsonObject
}

/** What the document says about a route. */
interface Operation {
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
const parameters = {
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
type ParameterName = keyof typeof parameters

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
const operations: Readonly<Record<string, Operation>> = {
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

/** A route as the server has it: its method, and its path with names after colons. */
export interface Route {
  readonly method: string
  readonly path: string
}

/** Describes the routes of a server as OpenAPI 3.1. Throws for a route that the operations do not describe. */
function openApiDocument(routes: readonly Route[], basePath: string): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const { method, path } of routes) {
    const operation = operations[`${method} ${path}`]
    if (operation === undefined) {
      throw new TallystickError('undescribed_route', `${method} ${path} is not among the operations.`)
    }
    const item = (paths[path.replaceAll(/:(\w+)/g, '{$1}')] ??= {})
    item[method.toLowerCase()] = described(operation, path)
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Tallystick',
      version: '1',
      description: 'Runs of agents over HTTP. The server decides what a caller sees and does.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: basePath === '' ? '/' : basePath }],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'The token of the server, or what the application reads from a request instead.',
        },
      },
      schemas: { Problem: problem, OpenAiError: openAiError, ...bodies() },
    },
  }
}

const problem = {
  type: 'object',
  description: 'A problem of RFC 9457. `code` is stable, `detail` is for people.',
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { type: 'string' },
    detail: { type: 'string' },
  },
  required: ['type', 'title', 'status', 'code', 'detail'],
}

const openAiError = {
  type: 'object',
  description: 'An error as clients of OpenAI read it. `code` is stable.',
  properties: {
    error: {
      type: 'object',
      properties: {
        message: { type: 'string' },
        type: { type: 'string' },
        code: { type: 'string' },
        param: { type: 'null' },
      },
      required: ['message', 'type', 'code', 'param'],
    },
  },
  required: ['error'],
}

const schemasAt = '#/components/schemas/'

function described({ operationId, summary, body, parameters: names = [], ...rest }: Operation, path: string) {
  return {
    operationId,
    summary,
    parameters: [...pathParameters(path), ...names.map(parameter)],
    ...(body && {
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: { $ref: `${schemasAt}${body.name}` }, example: body.example },
        },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(rest.answers).map(([status, description]) => [
          status,
          { description, ...(status !== '204' && { content: content(rest) }) },
        ]),
      ),
      default: {
        description: 'The server refused the request, or failed.',
        content: errorContent(rest.errors),
      },
    },
  }
}

function errorContent(errors: Operation['errors']): object {
  return errors
    ? { 'application/json': { schema: { $ref: `${schemasAt}${errors}` } } }
    : { 'application/problem+json': { schema: { $ref: `${schemasAt}Problem` } } }
}

function content({ fields = [], stream }: Pick<Operation, 'fields' | 'stream'>): object {
  const schema = {
    type: 'object',
    properties: Object.fromEntries(fields.map((field) => [field, {}])),
    required: fields,
  }
  return {
    ...(stream !== 'always' && { 'application/json': { schema } }),
    ...(stream && { 'text/event-stream': { schema: { type: 'string' } } }),
  }
}

function pathParameters(path: string): readonly object[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function parameter(name: ParameterName): object {
  const [place, type, description] = parameters[name]
  const schema = type === 'array' ? { type, items: { type: 'string' } } : { type }
  return { name, in: place, description, schema }
}

/** The schemas of the bodies, by their names. What JSON Schema cannot say, such as a depth, the server checks. */
function bodies(): Readonly<Record<string, object>> {
  const described = Object.values(operations).flatMap(({ body }) => body ?? [])
  return Object.fromEntries(
    described.map(({ name, schema }) => {
      const { $schema: _, ...own } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
      return [name, withRefsInto(own, `${schemasAt}${name}`)]
    }),
  )
}

/** A reference within a schema names its place in the document. */
function withRefsInto(schema: object, place: string): object {
  const text = JSON.stringify(schema, (key, value: unknown) =>
    key === '$ref' && typeof value === 'string' ? value.replace(/^#/, place) : value,
  )
  return JSON.parse(text) as object
}

/** Adds the description of all routes, as OpenAPI 3.1. It is the same for every caller. */
export function addOpenApi(app: Hono<RequestScope>, { basePath }: Served): void {
  app.get('/openapi.json', () => {
    const routes = app.routes.flatMap(({ method, path }) =>
      method === 'ALL' ? [] : [{ method, path: path.slice(basePath.length) }],
    )
    return json(openApiDocument(routes, basePath))
  })
}

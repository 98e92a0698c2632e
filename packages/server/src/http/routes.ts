import type { RunId } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Hono, HonoRequest } from 'hono'
import * as z from 'zod'
import { type Permission, type Principal, requireVisible } from './principal.ts'
import { readBody } from './request.ts'
import { requirePermission, respondJson, type RequestScope, type Served } from './served.ts'

/** The body of a request: its name, its check, and an example that passes it. */
interface DescribedBody<Body> {
  readonly name: string
  readonly schema: z.ZodType<Body>
  readonly example: JsonObject
}

/** The description of a route. */
export interface Operation<Body = never> {
  readonly operationId: string
  readonly summary: string
  readonly body?: DescribedBody<Body>
  /** The permission that a caller needs. */
  readonly permission?: Permission
  /** Parameters of the query string, and headers, by their names. */
  readonly parameters?: readonly ParameterName[]
  /** The meaning of each status of success. */
  readonly answers: Readonly<Record<string, string>>
  /** The fields of the JSON answer. Default: any. */
  readonly fields?: readonly string[]
  /** The media types of the answer, if it is not JSON. */
  readonly media?: readonly string[]
  /** Set if the answer is a stream of server-sent events: always, or if the request asks for it. */
  readonly stream?: 'always' | 'accepted'
  /** The events of the stream, if their names or ids have a meaning. */
  readonly events?: string
  /** The form of errors, if they are not problems of RFC 9457. */
  readonly errors?: 'OpenAiError'
  /** Set for a page that people open by a signed link: it needs no token in a header, its body is a form, and its errors are HTML. */
  readonly isPage?: true
}

/** The parameters of all routes. */
const parameters = {
  format: ['query', 'string', '`events` (JSON Lines, the default) or `html`.'],
  at: ['query', 'integer', 'The event up to which the run is read: its seq.'],
  waitMs: ['query', 'integer', 'How long to wait for the run to stop, in milliseconds: 50,000 at most.'],
  limit: ['query', 'integer', 'How many entries the page holds: 200 at most.'],
  since: ['query', 'integer', 'Runs with an event then or later: milliseconds since 1970 UTC.'],
  startedSince: ['query', 'integer', 'Runs that began then or later: milliseconds since 1970 UTC.'],
  startedUntil: ['query', 'integer', 'Runs that began before.'],
  roots: ['query', 'boolean', '`true` leaves out child runs.'],
  reason: ['query', 'string', 'Runs that ended for this reason.'],
  status: [
    'query',
    'array',
    'Runs of one of these statuses: done, failed, suspended, under_way, interrupted, unfinished (the two before), unreadable.',
  ],
  tool: ['query', 'string', 'Runs with an ended call of this tool.'],
  outcome: ['query', 'string', 'Runs with a call that ended so; of `tool`, if that is given.'],
  subject: ['query', 'string', 'Runs about this subject.'],
  tag: ['query', 'string', 'Runs that were started with this tag.'],
  feedbackBy: ['query', 'string', 'Runs with feedback of this person or program.'],
  minScore: [
    'query',
    'number',
    'Runs with feedback of this score or more; of `feedbackBy`, if that is given.',
  ],
  maxScore: [
    'query',
    'number',
    'Runs with feedback of this score or less; of `feedbackBy`, if that is given.',
  ],
  q: ['query', 'string', 'A text, in upper or lower case.'],
  input: ['query', 'array', 'Calls with this in their input: a path and a value, such as `order.id=17`.'],
  by: ['query', 'string', 'The length of a part of time: `hour` or `day`.'],
  turn: ['query', 'integer', 'The turn. Default: the last one that asked a model.'],
  with: ['query', 'string', 'The id of the other run.'],
  run: [
    'query',
    'array',
    'The ids of runs, 200 at most, in place of filters. Those behind `before` of a page are left for the next.',
  ],
  definitions: [
    'query',
    'string',
    'By which definitions of agents the run is driven: `today`, the default, or `recorded`.',
  ],
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
  'webhook-id': ['header', 'string', 'The id of a signed event, under which it counts once.'],
  'webhook-timestamp': ['header', 'string', 'When it was signed, in seconds since 1970 UTC.'],
  'webhook-signature': [
    'header',
    'string',
    '`v1,` and the HMAC-SHA256 of id, timestamp and body, in base64.',
  ],
  'Idempotency-Key': ['header', 'string', 'Under which the request takes effect once.'],
  approval: ['query', 'string', 'The token of the link, which names a call and a person.'],
  traceparent: ['header', 'string', 'The trace of the caller, which the run continues.'],
} as const
type ParameterName = keyof typeof parameters

/** The headers of a request that starts a run. */
export const startParameters: readonly ParameterName[] = ['Idempotency-Key', 'traceparent']

/** A request to a route. */
export interface Call<Path extends string, Body> {
  readonly principal: Principal
  /** The run that the path names: one that the caller sees. */
  readonly runId: Path extends `/runs/:run${string}` ? RunId : undefined
  readonly req: HonoRequest<Path>
  readonly readBody: (requireSigned?: (text: string) => Promise<void>) => Promise<Body>
}

type Answer<Path extends string, Body> = (call: Call<Path, Body>) => Response | Promise<Response>

/** The routes of a server, each with its description. */
export class Routes {
  readonly served: Served
  readonly #app: Hono<RequestScope>
  readonly #described: { readonly method: string; readonly path: string; readonly operation: Operation }[] =
    []

  constructor(app: Hono<RequestScope>, served: Served) {
    this.#app = app
    this.served = served
  }

  get<const Path extends string>(path: Path, operation: Operation, answer: Answer<Path, never>): void {
    this.#add('GET', path, operation, answer)
  }

  post<const Path extends string, Body>(
    path: Path,
    operation: Operation<Body>,
    answer: Answer<Path, Body>,
  ): void {
    this.#add('POST', path, operation, answer)
  }

  #add<Path extends string, Body>(
    method: 'GET' | 'POST',
    path: Path,
    operation: Operation<Body>,
    answer: Answer<Path, Body>,
  ): void {
    this.#described.push({ method, path, operation: operation as Operation })
    const { body, permission } = operation
    const { ledger, body: limits } = this.served
    this.#app.on(method, path, async (context) => {
      const principal = context.get('principal')
      if (permission !== undefined) requirePermission(principal, permission)
      const named = path.startsWith('/runs/:run') ? context.req.param('run') : undefined
      const runId = named === undefined ? undefined : await requireVisible(ledger, principal, named)
      return await answer({
        principal,
        runId: runId as Call<Path, Body>['runId'],
        req: context.req,
        readBody: (requireSigned) => readBody(context.req.raw, body!.schema, limits, requireSigned),
      })
    })
  }

  /** The first segments of all paths. */
  get roots(): readonly string[] {
    return this.#described.map(({ path }) => path.split('/')[1] ?? '')
  }

  /** Adds the description of all routes as OpenAPI 3.1, the same for every caller. */
  addDocument(): void {
    const operation: Operation = {
      operationId: 'readDocument',
      summary: 'This document.',
      answers: { 200: 'The document.' },
      fields: ['openapi', 'info', 'paths', 'components'],
    }
    this.get('/openapi.json', operation, () => respondJson(this.#createDocument()))
  }

  #createDocument(): object {
    const paths: Record<string, Record<string, object>> = {}
    for (const { method, path, operation } of this.#described) {
      const item = (paths[path.replaceAll(/:(\w+)/g, '{$1}')] ??= {})
      item[method.toLowerCase()] = describe(operation, path)
    }
    const { basePath } = this.served
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
        schemas: {
          Problem: problem,
          OpenAiError: openAiError,
          ...describeBodies(this.#described.map((each) => each.operation)),
        },
      },
    }
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

function describe(operation: Operation, path: string): object {
  const { operationId, summary, permission, body, parameters: names = [], answers, fields = [] } = operation
  const { media, stream, events, errors, isPage } = operation
  const answer = {
    type: 'object',
    properties: Object.fromEntries(fields.map((field) => [field, {}])),
    required: fields,
  }
  const content = {
    ...Object.fromEntries((media ?? []).map((type) => [type, { schema: { type: 'string' } }])),
    ...(!media && stream !== 'always' && { 'application/json': { schema: answer } }),
    ...(stream && {
      'text/event-stream': { schema: { type: 'string', ...(events && { description: events }) } },
    }),
  }
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const others = names.map((name) => {
    const [place, type, description] = parameters[name]
    const schema = type === 'array' ? { type, items: { type: 'string' } } : { type }
    return { name, in: place, description, schema }
  })
  return {
    operationId,
    summary: permission === undefined ? summary : `${summary} Needs the permission \`${permission}\`.`,
    ...(isPage && { security: [] }),
    parameters: [...inPath, ...others],
    ...(body && {
      requestBody: {
        required: true,
        content: {
          [isPage ? 'application/x-www-form-urlencoded' : 'application/json']: {
            schema: { $ref: `${schemasAt}${body.name}` },
            example: body.example,
          },
        },
      },
    }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, description]) => [
          status,
          { description, ...(!['204', '303'].includes(status) && { content }) },
        ]),
      ),
      default: {
        description: 'The server refused the request, or failed.',
        content: isPage
          ? content
          : {
              [errors ? 'application/json' : 'application/problem+json']: {
                schema: { $ref: `${schemasAt}${errors ?? 'Problem'}` },
              },
            },
      },
    },
  }
}

/** The schemas of the bodies by name. The server also checks what JSON Schema cannot express, such as a depth. */
function describeBodies(operations: readonly Operation[]): Readonly<Record<string, object>> {
  return Object.fromEntries(
    operations.flatMap(({ body }) => {
      if (body === undefined) return []
      const { $schema: _, ...own } = z.toJSONSchema(body.schema, { io: 'input', unrepresentable: 'any' })
      // A reference within a schema has to name its place in the document.
      const text = JSON.stringify(own, (key, value: unknown) =>
        key === '$ref' && typeof value === 'string' ? value.replace(/^#/, `${schemasAt}${body.name}`) : value,
      )
      return [[body.name, JSON.parse(text) as object]]
    }),
  )
}

import { TallystickError } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Hono } from 'hono'
import * as z from 'zod'
import { respondJson, type RequestScope, type Served } from './served.ts'

/** The body of a request: its name, its check, and an example that passes it. */
interface DescribedBody {
  readonly name: string
  readonly schema: z.ZodType
  readonly example: JsonObject
}

/** The description of a route. It stands beside the route. */
export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly body?: DescribedBody
  /** Parameters of the query string, and headers, by their names. */
  readonly parameters?: readonly ParameterName[]
  /** The meaning of each status of success. */
  readonly answers: Readonly<Record<string, string>>
  /** The fields of the JSON answer. Default: any. */
  readonly fields?: readonly string[]
  /** Set if the answer is a stream of server-sent events: always, or if the request asks for it. */
  readonly stream?: 'always' | 'accepted'
  /** The form of errors, if they are not problems of RFC 9457. */
  readonly errors?: 'OpenAiError'
}

/** The parameters of all routes. */
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

/** Operations by method and path, as the routes name them. */
export type Operations = Readonly<Record<string, Operation>>

/** The headers of a request that starts a run. */
export const startParameters: readonly ParameterName[] = ['Idempotency-Key', 'traceparent']

/**
 * Adds the description of all routes of an app as OpenAPI 3.1, the same for every caller. A request for it throws if a route
 * is not among the operations.
 */
export function addOpenApi(app: Hono<RequestScope>, { basePath }: Served, described: Operations): void {
  const operations: Operations = {
    'GET /openapi.json': {
      operationId: 'readDocument',
      summary: 'This document.',
      answers: { 200: 'The document.' },
      fields: ['openapi', 'info', 'paths', 'components'],
    },
    ...described,
  }
  app.get('/openapi.json', () => {
    const routes = app.routes.flatMap(({ method, path }) =>
      method === 'ALL' ? [] : [{ method, path: path.slice(basePath.length) }],
    )
    return respondJson(createDocument(operations, routes, basePath))
  })
}

function createDocument(
  operations: Operations,
  routes: readonly { readonly method: string; readonly path: string }[],
  basePath: string,
): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const { method, path } of routes) {
    const operation = operations[`${method} ${path}`]
    if (operation === undefined) {
      throw new TallystickError('undescribed_route', `${method} ${path} is not among the operations.`)
    }
    const item = (paths[path.replaceAll(/:(\w+)/g, '{$1}')] ??= {})
    item[method.toLowerCase()] = describe(operation, path)
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
      schemas: { Problem: problem, OpenAiError: openAiError, ...describeBodies(operations) },
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

function describe({ operationId, summary, body, parameters: names = [], ...rest }: Operation, path: string) {
  return {
    operationId,
    summary,
    parameters: [...describePathParameters(path), ...names.map(describeParameter)],
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
          { description, ...(status !== '204' && { content: describeContent(rest) }) },
        ]),
      ),
      default: {
        description: 'The server refused the request, or failed.',
        content: describeErrors(rest.errors),
      },
    },
  }
}

function describeErrors(errors: Operation['errors']): object {
  return errors
    ? { 'application/json': { schema: { $ref: `${schemasAt}${errors}` } } }
    : { 'application/problem+json': { schema: { $ref: `${schemasAt}Problem` } } }
}

function describeContent({ fields = [], stream }: Pick<Operation, 'fields' | 'stream'>): object {
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

function describePathParameters(path: string): readonly object[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function describeParameter(name: ParameterName): object {
  const [place, type, description] = parameters[name]
  const schema = type === 'array' ? { type, items: { type: 'string' } } : { type }
  return { name, in: place, description, schema }
}

/** The schemas of the bodies by name. The server also checks what JSON Schema cannot express, such as a depth. */
function describeBodies(operations: Operations): Readonly<Record<string, object>> {
  const described = Object.values(operations).flatMap(({ body }) => body ?? [])
  return Object.fromEntries(
    described.map(({ name, schema }) => {
      const { $schema: _, ...own } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
      return [name, withRefsInto(own, `${schemasAt}${name}`)]
    }),
  )
}

/** A reference within a schema has to name its place in the document. */
function withRefsInto(schema: object, place: string): object {
  const text = JSON.stringify(schema, (key, value: unknown) =>
    key === '$ref' && typeof value === 'string' ? value.replace(/^#/, place) : value,
  )
  return JSON.parse(text) as object
}

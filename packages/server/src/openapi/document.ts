import { TallystickError } from '@tallystick/core'
import * as z from 'zod'
import { operations, parameters, type Operation, type ParameterName } from './operations.ts'

/** A route as the server has it: its method, and its path with names after colons. */
export interface Route {
  readonly method: string
  readonly path: string
}

/** Describes the routes of a server as OpenAPI 3.1. Throws for a route that the operations do not describe. */
export function openApiDocument(routes: readonly Route[], basePath: string): object {
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

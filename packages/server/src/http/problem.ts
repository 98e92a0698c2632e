import { LedgerConflictError, RunNotFoundError, TallystickError } from '@tallystick/core'
import { findNearestNames } from '@tallystick/core/internal'
import type { Json } from '@tallystick/core/vocabulary'
import * as z from 'zod'

/** Further fields of a problem, such as the run that keeps a session busy. */
export type ProblemDetails = { readonly [field: string]: Json | undefined }

/** A request that the server refuses: the status of the response, and the stable code of its problem. */
export class RefusedRequestError extends TallystickError {
  readonly status: number
  readonly details: ProblemDetails
  readonly headers: Readonly<Record<string, string>>
  constructor(
    status: number,
    code: string,
    message: string,
    {
      details = {},
      headers = {},
    }: { details?: ProblemDetails; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(code, message)
    this.status = status
    this.details = details
    this.headers = headers
  }
}

/** Errors that a request can cause. Every other code is a fault of the server. */
const statusOfCode: ReadonlyMap<string, number> = new Map([
  ['configuration', 400],
  ['key_used', 409],
  ['run_not_found', 404],
  ['ledger_conflict', 409],
  ['ledger_unavailable', 503],
  ['context_unavailable', 503],
])

const titles: Readonly<Record<number, string>> = {
  400: 'The request cannot work',
  401: 'The request names no caller',
  403: 'The caller may not do this',
  404: 'Not found',
  405: 'The path takes another method',
  408: 'The request took too long',
  409: 'The run does not allow this now',
  413: 'The request is too large',
  415: 'The body is not JSON',
  421: 'The request is for another host',
  429: 'Too many requests',
  500: 'The server failed',
  503: 'The server cannot serve now',
}

/** Returns true for a fault of the server, which its operator has to see. */
export function isServerFault(error: unknown): boolean {
  const status = toStatus(error)
  return status >= 500 && (status === 500 || !(error instanceof RefusedRequestError))
}

function toStatus(error: unknown): number {
  if (error instanceof RefusedRequestError) return error.status
  if (error instanceof TallystickError) return statusOfCode.get(error.code) ?? 500
  return 500
}

/** An error as a caller sees it. */
export interface Problem {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly headers: Readonly<Record<string, string>>
}

/** A fault of the server hides its cause: the message may name a file or a host. */
export function toProblem(error: unknown): Problem {
  const status = toStatus(error)
  const refused = error instanceof RefusedRequestError
  const code = error instanceof TallystickError ? error.code : 'internal'
  // The message of `context_unavailable` describes only the request, not the cause.
  const isShown =
    refused || (error instanceof TallystickError && (status < 500 || code === 'context_unavailable'))
  const detail = isShown ? error.message : 'The server reported the cause to its operator. Try again later.'
  const headers = { ...(status === 503 && { 'retry-after': '1' }), ...(refused && error.headers) }
  return { status, code, detail, headers }
}

/** A response of RFC 9457, with the stable code of the error. */
export function toProblemResponse(error: unknown): Response {
  const { status, code, detail, headers } = toProblem(error)
  const problem = {
    type: `urn:tallystick:problem:${code}`,
    title: titles[status] ?? 'The request failed',
    status,
    code,
    detail,
    ...(error instanceof RefusedRequestError && error.details),
    ...(error instanceof LedgerConflictError && {
      kind: error.kind,
      ...(error.busy && { busy: error.busy }),
    }),
  }
  return new Response(JSON.stringify(problem), {
    status,
    headers: { 'content-type': 'application/problem+json', ...headers },
  })
}

export function createMalformedError(message: string): RefusedRequestError {
  return new RefusedRequestError(400, 'malformed', message)
}

/**
 * One error for a run that does not exist and for a run that the caller may not see, so that it does not reveal which.
 */
export function createRunNotFoundError(runId: string): RunNotFoundError {
  return new RunNotFoundError(runId.slice(0, 80))
}

/** Names of our fields in other libraries and services, if they are not similar in spelling. */
const otherNames: ReadonlyMap<string, string> = new Map(
  Object.entries({
    input: ['prompt', 'message', 'messages', 'text', 'content', 'query', 'question'],
    agent: ['assistant', 'assistantId', 'workflow'],
    sessionId: ['thread', 'threadId', 'thread_id', 'conversation', 'conversationId', 'chatId'],
    subject: ['user', 'userId', 'resourceId'],
    result: ['output', 'value'],
    toolCallId: ['callId', 'tool_call_id'],
  }).flatMap(([field, names]) => names.map((name) => [name, field] as const)),
)

/** Says why a body does not fit its schema: an unknown or missing field, or a wrong value. */
export function explainSchemaError(
  schema: z.ZodType,
  body: unknown,
  { issues: [issue] }: z.ZodError,
): string {
  const place = issue?.path.join('.') ?? ''
  const what =
    findStrayField(schema, body, place) ?? `${place === '' ? 'the body' : place}: ${issue?.message}.`
  return `The body does not fit: ${what}`
}

/** An unknown field explains most other faults. */
function findStrayField(schema: z.ZodType, body: unknown, place: string): string | undefined {
  const fields = listFields(schema)
  if (fields === undefined || typeof body !== 'object' || body === null || Array.isArray(body))
    return undefined
  const list = `Fields are ${fields.join(', ')}.`
  const unknown = Object.keys(body).find((name) => !fields.includes(name))
  if (unknown !== undefined) {
    const other = otherNames.get(unknown)
    const meant =
      other !== undefined && fields.includes(other) ? other : findNearestNames(unknown, fields, 1)[0]
    const hint = meant === undefined ? '' : `Did you mean ${meant}? `
    return `${unknown.slice(0, 80)} is not a field. ${hint}${list}`
  }
  return fields.includes(place) && !Object.hasOwn(body, place) ? `${place} is missing. ${list}` : undefined
}

/** The fields of a strict object, or of all objects in a union; `undefined` for other schemas. */
function listFields(schema: z.ZodType): readonly string[] | undefined {
  if (schema instanceof z.ZodUnion) {
    const each = schema.options.map((option) => listFields(option as z.ZodType))
    return each.every((fields) => fields !== undefined) ? [...new Set(each.flat())] : undefined
  }
  if (schema instanceof z.ZodPipe) return listFields(schema.in as z.ZodType)
  if (!(schema instanceof z.ZodObject) || !(schema.def.catchall instanceof z.ZodNever)) return undefined
  return Object.keys(schema.shape)
}

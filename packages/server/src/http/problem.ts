import { LedgerConflictError, RunNotFoundError, TallystickError } from '@tallystick/core'
import type { Json } from '@tallystick/core/vocabulary'

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

/** The status of a response for each code of an error that a request can cause. Every other code is a fault of the server. */
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

/** Whether an error is a fault of the server, which its operator has to see. */
export function isServerFault(error: unknown): boolean {
  const status = statusOf(error)
  return status >= 500 && (status === 500 || !(error instanceof RefusedRequestError))
}

function statusOf(error: unknown): number {
  if (error instanceof RefusedRequestError) return error.status
  if (error instanceof TallystickError) return statusOfCode.get(error.code) ?? 500
  return 500
}

/** What callers learn of an error: the status, its stable code, and what they can do. */
export interface Problem {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly headers: Readonly<Record<string, string>>
}

/** Returns what callers learn of an error. A fault of the server says nothing of its cause: the message may name a file or a host. */
export function problemOf(error: unknown): Problem {
  const status = statusOf(error)
  const refused = error instanceof RefusedRequestError
  const code = error instanceof TallystickError ? error.code : 'internal'
  const isShown = refused || (error instanceof TallystickError && (status < 500 || isSafe(error)))
  const detail = isShown ? error.message : 'The server reported the cause to its operator. Try again later.'
  const headers = { ...(status === 503 && { 'retry-after': '1' }), ...(refused && error.headers) }
  return { status, code, detail, headers }
}

/** Its message says what became of the request; the cause, which may name anything, is not part of it. */
function isSafe({ code }: TallystickError): boolean {
  return code === 'context_unavailable'
}

/** The response for an error, as RFC 9457 describes it, with the stable code of the error. */
export function problemResponse(error: unknown): Response {
  const { status, code, detail, headers } = problemOf(error)
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

/** The refusal of a request that does not fit. */
export function malformed(message: string): RefusedRequestError {
  return new RefusedRequestError(400, 'malformed', message)
}

/**
 * The error for a run that does not exist and for one that the caller may not see, so that it does not reveal which.
 */
export function runNotFound(runId: string): RunNotFoundError {
  return new RunNotFoundError(runId.slice(0, 80))
}

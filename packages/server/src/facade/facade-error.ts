import { problemOf } from '../http/problem.ts'

/** An error as clients of OpenAI read it. */
export interface FacadeError {
  readonly error: {
    readonly message: string
    readonly type: string
    readonly code: string
    readonly param: null
  }
}

const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
}

/** Returns an error of a status. */
export function facadeError(status: number, code: string, message: string): FacadeError {
  const type = types[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error')
  return { error: { message, type, code, param: null } }
}

/**
 * The response for an error. Without a header that forbids it, a client would retry on its own and start another run.
 */
export function facadeErrorResponse(thrown: unknown): Response {
  const { status, code, detail, headers } = problemOf(thrown)
  return new Response(JSON.stringify(facadeError(status, code, detail)), {
    status,
    headers: {
      'content-type': 'application/json',
      ...(!retried.has(code) && { 'x-should-retry': 'false' }),
      ...headers,
    },
  })
}

/** Codes of requests that started nothing and may succeed later. */
const retried: ReadonlySet<string> = new Set([
  'too_many_requests',
  'stopping',
  'ledger_unavailable',
  'body_too_slow',
])

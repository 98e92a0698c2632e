import type { Usage } from '@tallystick/core'
import type { FinishReason } from '@tallystick/core/vocabulary'
import { toProblem } from '../http/problem.ts'

/** Says why a run has no answer, without the provider's own message. */
export function formatFailure(runId: string, reason: FinishReason): string {
  return `Run ${runId} ended as ${reason}, without an answer. GET /runs/${runId} tells more.`
}

/** An error as clients of OpenAI read it. */
export interface OpenAiError {
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

export function toOpenAiError(status: number, code: string, message: string): OpenAiError {
  const type = types[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error')
  return { error: { message, type, code, param: null } }
}

/**
 * The response for an error. Without a header that forbids it, a client would retry on its own and start another run.
 */
export function toOpenAiErrorResponse(thrown: unknown): Response {
  const { status, code, detail, headers } = toProblem(thrown)
  return new Response(JSON.stringify(toOpenAiError(status, code, detail)), {
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

/** Tokens that a response used. */
export interface OpenAiUsage {
  readonly input: number
  readonly cached: number
  readonly output: number
  readonly reasoning: number
}

/** The usage of a run since an earlier response ended. */
export function subtractUsage(now: Usage, before: Usage): OpenAiUsage {
  const since = (field: keyof Usage): number => (now[field] ?? 0) - (before[field] ?? 0)
  return {
    input: since('inputTokens'),
    cached: since('cacheReadTokens'),
    output: since('outputTokens'),
    reasoning: since('reasoningTokens'),
  }
}

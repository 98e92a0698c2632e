import type { Usage } from '@tallystick/core'
import type { FinishReason } from '@tallystick/core/vocabulary'
import { problemOf } from '../http/problem.ts'

/** How a run ended, for a client of OpenAI: with an answer, with one that was cut off or withheld, or without one. */
export type FacadeEnding = 'completed' | 'cut' | 'withheld' | 'cancelled' | 'failed'

/** The ending for each reason why a run ended. At a limit, the text so far is the answer. */
export const facadeEndings: Readonly<Record<FinishReason, FacadeEnding>> = {
  answered: 'completed',
  handed_back: 'completed',
  stopped: 'completed',
  turn_limit: 'cut',
  tool_call_limit: 'cut',
  token_limit: 'cut',
  cost_limit: 'cut',
  time_limit: 'cut',
  repeat_limit: 'cut',
  output_truncated: 'cut',
  refused: 'withheld',
  guardrail: 'withheld',
  cancelled: 'cancelled',
  model_failed: 'failed',
  empty_reply: 'failed',
  output_invalid: 'failed',
  context_overflow: 'failed',
}

/** Returns why a run has no answer, without the provider's own message. */
export function failureText(runId: string, reason: FinishReason): string {
  return `Run ${runId} ended as ${reason}, without an answer. GET /runs/${runId} tells more of it.`
}

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

/** What a response used, in tokens. */
export interface FacadeUsage {
  readonly input: number
  readonly cached: number
  readonly output: number
  readonly reasoning: number
}

/** What a run has used since a response before this one ended. */
export function usageSince(now: Usage, before: Usage): FacadeUsage {
  const since = (field: keyof Usage): number => (now[field] ?? 0) - (before[field] ?? 0)
  return {
    input: since('inputTokens'),
    cached: since('cacheReadTokens'),
    output: since('outputTokens'),
    reasoning: since('reasoningTokens'),
  }
}

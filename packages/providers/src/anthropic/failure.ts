import { ProviderError } from '@tallystick/core'
import { getOwn, isJsonObject } from '@tallystick/core/internal'
import {
  toApiFailure,
  type ApiError,
  judgeWords,
  toClientFailure,
  createCommonFailures,
  type FailureFacts,
  final,
  isApiError,
  formatName,
  quoteFailure,
  retryable,
  type Verdict,
  judgeStatus,
  type WireFailures,
  withRequestId,
} from '../shared/failure.ts'
import { getObject, getText } from '../shared/json.ts'

/** Verdicts by the vendor's type of error, before the stream and in it. */
const byType: { readonly [type: string]: Verdict } = {
  invalid_request_error: final('invalid_request'),
  authentication_error: final('authentication'),
  billing_error: final('permission'),
  permission_error: final('permission'),
  not_found_error: final('not_found'),
  request_too_large: final('context_overflow'),
  rate_limit_error: retryable('rate_limited'),
  timeout_error: retryable('timeout'),
  conflict_error: retryable('server'),
  api_error: retryable('server'),
  overloaded_error: retryable('overloaded'),
}

/** Limits on money answer 429, too, and waiting does not help. */
const spendLimits = new Set([
  'ramp_limit_exceeded',
  'contract_spend_limit_reached',
  'enforced_spend_limit_reached',
])

const refusals = {
  overflow:
    /prompt is too long|exceeds? (the |this |its )?(model'?s? )?(maximum )?context|context (window|length)|maximum context|request_too_large/i,
  filter: /content filtering policy/i,
}

export const failures: WireFailures = {
  ...createCommonFailures({
    who: 'Anthropic',
    advice: {
      authentication: 'Set a valid key (the option apiKey, or ANTHROPIC_API_KEY).',
      permission:
        'The account may not do this: check its permissions, its credit and the workspace of the key.',
      not_found: 'Check the model id and baseURL.',
    },
  }),
  toProviderError,
  failureInStream: toStreamFailure,
}
const { failed } = failures

/** Turns what the SDK, fetch or the stream threw into a failure without payloads and keys. */
export function toProviderError(error: unknown, facts: FailureFacts): ProviderError {
  if (error instanceof ProviderError) return withRequestId(error, facts.requestId)
  if (isApiError(error)) return readApiError(error, facts)
  const { requestId } = facts
  return toClientFailure(failures, error, keyWords, requestId === undefined ? {} : { requestId })
}

const keyWords = /authentication method|credential|apiKey|profile/i

/** A failure from an `error` event, in an answer that began with status 200. */
export function toStreamFailure(error: unknown): ProviderError {
  const words =
    typeof error === 'string' ? error : (getText(error, 'message') ?? getText(error, 'detail') ?? '')
  const type = getText(error, 'type')
  const verdict = judge({ type, words, status: undefined, code: undefined })
  return failed(verdict, `Anthropic broke the reply off${formatName(type)}${quoteFailure(words)}`)
}

interface AnthropicError extends ApiError {
  readonly requestID?: string | null
  readonly type?: string | null
}

function readApiError(error: AnthropicError, { now, ...facts }: FailureFacts): ProviderError {
  const { status } = error
  // The words are the vendor's, or a gateway's in its own shape.
  const body = isJsonObject(error.error) ? error.error : {}
  const inner = getObject(body, 'error') ?? body
  const type = error.type ?? getText(inner, 'type')
  const words = getText(inner, 'message') ?? getText(body, 'error') ?? ''
  const code = getText(getObject(inner, 'details'), 'error_code')
  const told = { verdict: judge({ type, words, status, code }), label: type, words }
  return toApiFailure(failures, error, {
    who: 'Anthropic',
    ...((status !== undefined || type !== undefined) && { told }),
    timedOut: /timeout/i.test(error.name),
    requestId: error.requestID ?? facts.requestId,
    now,
  })
}

function judge(answer: {
  readonly type: string | undefined
  readonly words: string
  readonly status: number | undefined
  readonly code: string | undefined
}): Verdict {
  const { type = '', words, status, code } = answer
  const verdict = getOwn(byType, type) ?? judgeStatus(status)
  if (code !== undefined && spendLimits.has(code)) return final(verdict.class)
  return judgeWords(verdict, words, refusals)
}

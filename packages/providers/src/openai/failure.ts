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
  type HeaderReader,
  isApiError,
  formatName,
  quoteFailure,
  retryable,
  type Verdict,
  judgeStatus,
  type WireFailures,
  withRequestId,
} from '../shared/failure.ts'
import { getNumber, getObject, getText } from '../shared/json.ts'

interface Answer {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly code: string | undefined
  readonly words: string
}

/** Verdicts by the `code` or `type` that the service gives. */
const byWord: { readonly [word: string]: Verdict } = {
  invalid_api_key: final('authentication'),
  authentication_error: final('authentication'),
  permission_error: final('permission'),
  permission_denied: final('permission'),
  unsupported_country_region_territory: final('permission'),
  account_deactivated: final('permission'),
  billing_not_active: final('permission'),
  billing_hard_limit_reached: final('rate_limited'),
  insufficient_quota: final('rate_limited'),
  rate_limit_exceeded: retryable('rate_limited'),
  rate_limit_error: retryable('rate_limited'),
  model_not_found: final('not_found'),
  not_found_error: final('not_found'),
  previous_response_not_found: final('not_found'),
  conversation_not_found: final('not_found'),
  context_length_exceeded: final('context_overflow'),
  exceed_context_size_error: final('context_overflow'),
  request_too_large: final('context_overflow'),
  content_filter: final('content_filtered'),
  content_policy_violation: final('content_filtered'),
  invalid_prompt: final('content_filtered'),
  bio_policy: final('content_filtered'),
  misalignment_policy_violation: final('content_filtered'),
  server_error: retryable('server'),
  api_error: retryable('server'),
  slow_down: retryable('overloaded'),
  overloaded_error: retryable('overloaded'),
  engine_overloaded: retryable('overloaded'),
  server_is_overloaded: retryable('overloaded'),
  insufficient_system_resource: retryable('overloaded'),
  unavailable_error: retryable('overloaded'),
  vector_store_timeout: retryable('timeout'),
  timeout_error: retryable('timeout'),
  // The model wrote a call that its server could not read; the next one may be sound.
  tool_use_failed: retryable('server'),
}

const ownStatuses = { 425: retryable('server'), 498: retryable('overloaded') }

const refusals = {
  // `tokens per min`: the request alone is larger than what a minute allows.
  overflow:
    /context (window|length|size)|maximum context|prompt is too long|too many tokens in|input (is )?too long|exceeds? the (available )?context|^request too large for/i,
  filter: /content (management |filtering )?policy|content filter|usage policy|safety system/i,
}

/** Judges an answer by its own word first, then by its status; without either, the fault is on the other side. */
function judge({ status, type, code, words }: Answer): Verdict {
  const isRefused =
    status === undefined && type !== undefined && /^(invalid_request_error|BadRequestError)$/.test(type)
  const verdict =
    getOwn(byWord, code ?? '') ??
    getOwn(byWord, type ?? '') ??
    (isRefused ? final('invalid_request') : judgeStatus(status, ownStatuses))
  if (verdict.class === 'rate_limited' && /^request too large for/i.test(words)) {
    return final('context_overflow')
  }
  return judgeWords(verdict, words, refusals)
}

export const failures: WireFailures = {
  ...createCommonFailures({
    who: 'the service',
    advice: {
      authentication: 'Set a valid key (the option apiKey, or OPENAI_API_KEY).',
      permission:
        'The account may not do this: check its permissions, its credit and the project of the key.',
      not_found: 'Check the model id and baseURL.',
      content_filtered: 'The request or its output was withheld; the same request will meet the same end.',
    },
  }),
  toProviderError,
  failureInStream: toStreamFailure,
}
const { failed } = failures

/** Reads the service's id of a request. Servers differ in the name of the header. */
export function readRequestId(headers: HeaderReader): string | undefined {
  const names = ['x-request-id', 'request-id', 'apim-request-id']
  return names.map((name) => headers.get(name)).find(Boolean) ?? undefined
}

/** Turns what the SDK, fetch or the stream threw into a failure without payloads and keys. */
export function toProviderError(error: unknown, facts: FailureFacts): ProviderError {
  if (error instanceof ProviderError) {
    return withCode(readCode(error), withRequestId(error, facts.requestId))
  }
  if (isApiError(error)) return readApiError(error, facts)
  const { requestId } = facts
  return toClientFailure(failures, error, keyWords, requestId === undefined ? {} : { requestId })
}

const keyWords = /credential|apiKey|authentication method/i

/** A failure that the stream reports, in an answer that began with status 200. */
export function toStreamFailure(error: unknown): ProviderError {
  const answer = readAnswer(error)
  const { code, type, words } = answer
  const what = `The service broke the reply off${formatName(code ?? type)}${quoteFailure(words)}`
  return withCode(code, failed(judge(answer), what))
}

function readApiError(error: ApiError, { now, ...facts }: FailureFacts): ProviderError {
  const { status, headers } = error
  const answer = readAnswer(error.error, status)
  const { code, type, words } = answer
  const told = { verdict: judge(answer), label: code ?? type, words }
  const failure = toApiFailure(failures, error, {
    who: 'The service',
    ...((status !== undefined || error.error !== undefined) && { told }),
    timedOut: /timed? ?out/i.test(error.message),
    requestId: (headers && readRequestId(headers)) ?? facts.requestId,
    now,
  })
  return withCode(code, failure)
}

function readAnswer(error: unknown, status?: number): Answer {
  if (typeof error === 'string') return { status, type: undefined, code: undefined, words: error }
  const body = isJsonObject(error) ? error : {}
  const code = getNumber(body, 'code') ?? Number(getText(body, 'code') ?? NaN)
  // Some servers put the HTTP status here.
  const isStatus = Number.isInteger(code) && code >= 400 && code < 600
  const words =
    getText(body, 'message') ?? getText(getObject(body, 'message'), 'detail') ?? getText(body, 'detail')
  return {
    status: status ?? (isStatus ? code : undefined),
    type: getText(body, 'type'),
    code: isStatus ? undefined : getText(body, 'code'),
    words: words ?? '',
  }
}

const codes = new WeakMap<ProviderError, string>()

/** Keeps the vendor's code beside the failure, for a fallback that depends on it. */
function withCode(code: string | undefined, failure: ProviderError): ProviderError {
  if (code !== undefined) codes.set(failure, code)
  return failure
}

/** Returns the vendor's code of a failure, if it gave one. */
export function readCode(failure: ProviderError): string | undefined {
  return codes.get(failure)
}

export function createContradiction(what: string): ProviderError {
  return failed(retryable('protocol'), `The stream contradicts itself: ${what}`)
}

/** The model called a tool that the application has to run, in the vendor's own form. */
export function createUnrunCallError(type: string): ProviderError {
  const what = `The reply holds a ${type}, which the application has to run, and nativeTools names no tool for it`
  return failed(final('invalid_request'), what)
}

/** The model stopped for tools, and the server passed no call on: some leave out what they cannot read. */
export function createLostCallError(reason: string): ProviderError {
  return failed(
    retryable('server'),
    `The reply stopped for tools${formatName(reason)}, but contained no call`,
  )
}

import { ProviderError } from '@tallystick/core'
import { getOwn, isJsonObject } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import {
  type ApiError,
  clientFailure,
  commonFailures,
  connectionFailure,
  type FailureFacts,
  final,
  type HeaderReader,
  isApiError,
  named,
  quoted,
  retryable,
  retryAfterMs,
  statedRetry,
  type Verdict,
  verdictOfStatus,
  type WireFailures,
  withRequestId,
} from '../shared/failure.ts'
import { numberAt, objectAt, textAt } from '../shared/json.ts'

/** What a service says when it fails, as far as it says anything. */
interface Answer {
  readonly status: number | undefined
  readonly type: string | undefined
  readonly code: string | undefined
  readonly words: string
}

/** By the service's own word, its `code` or its `type`: before the stream, in it, and in a failed response. */
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

/** Statuses that some servers have of their own. */
const ownStatuses = { 425: retryable('server'), 498: retryable('overloaded') }

// `tokens per min`: the request alone is larger than what a minute allows.
const overflowWords =
  /context (window|length|size)|maximum context|prompt is too long|too many tokens in|input (is )?too long|exceeds? the (available )?context|^request too large for/i
const filterWords = /content (management |filtering )?policy|content filter|usage policy|safety system/i

/** Judges an answer: by its own word first, then by its status; without either, the fault is on the other side. */
function verdictOf(answer: Answer): Verdict {
  const { type, code, words } = answer
  const verdict = wordOf(code) ?? wordOf(type) ?? verdictWithoutWord(answer)
  if (verdict.class === 'rate_limited' && /^request too large for/i.test(words)) {
    return final('context_overflow')
  }
  if (verdict.class !== 'invalid_request') return verdict
  if (overflowWords.test(words)) return final('context_overflow')
  if (filterWords.test(words)) return final('content_filtered')
  return verdict
}

function wordOf(word: string | undefined): Verdict | undefined {
  return word === undefined ? undefined : getOwn(byWord, word)
}

function verdictWithoutWord({ status, type }: Answer): Verdict {
  const isRefused = type !== undefined && /^(invalid_request_error|BadRequestError)$/.test(type)
  return status === undefined && isRefused ? final('invalid_request') : verdictOfStatus(status, ownStatuses)
}

/** The failures that both wires report. */
export const failures: WireFailures = {
  ...commonFailures({
    who: 'the service',
    advice: {
      authentication: 'Set a valid key (the option apiKey, or OPENAI_API_KEY).',
      permission:
        'The account may not do this: check its permissions, its credit and the project of the key.',
      not_found: 'Check the model id and baseURL.',
      content_filtered: 'The request or its output was withheld; the same request will meet the same end.',
    },
  }),
  providerErrorOf,
  failureInStream,
}
const { failed } = failures

/** The id by which the service knows a request. Not every server names it as OpenAI does. */
export function requestIdIn(headers: HeaderReader): string | undefined {
  for (const name of ['x-request-id', 'request-id', 'apim-request-id']) {
    const id = headers.get(name)
    if (id) return id
  }
  return undefined
}

/** Whatever the SDK, fetch or the stream threw, as a failure that holds no payload and no key. */
export function providerErrorOf(error: unknown, facts: FailureFacts): ProviderError {
  if (error instanceof ProviderError) {
    return refusedFor(codeOf(error), withRequestId(error, facts.requestId))
  }
  if (isApiError(error)) return answeredFailure(error, facts)
  const { requestId } = facts
  return clientFailure(failures, error, keyWords, requestId === undefined ? {} : { requestId })
}

const keyWords = /credential|apiKey|authentication method/i

/** A failure that the stream itself tells of, on an answer that began with status 200. */
export function failureInStream(error: unknown): ProviderError {
  const answer = answerOf(error)
  return refusedFor(answer.code, failed(verdictOf(answer), brokenOff(answer)))
}

function answeredFailure(error: ApiError, facts: FailureFacts): ProviderError {
  const { status, headers } = error
  const requestId = (headers && requestIdIn(headers)) ?? facts.requestId
  const known = {
    ...(status !== undefined && { status }),
    ...(requestId !== undefined && { requestId }),
  }
  if (status === undefined && error.error === undefined) {
    const timedOut = /timed? ?out/i.test(error.message)
    return connectionFailure(failures, error, { who: 'The service', timedOut, known })
  }
  const answer = answerOf(error.error, status)
  const verdict = verdictOf(answer)
  if (status === undefined) {
    return refusedFor(answer.code, failed(verdict, brokenOff(answer), known))
  }
  const asked = headers && retryAfterMs(headers, facts.now)
  const failure = failed(
    { ...verdict, retryable: statedRetry(headers) ?? verdict.retryable },
    `The service answered ${status}${named(answer.code ?? answer.type)}${quoted(answer.words)}`,
    { ...known, ...(asked !== undefined && { retryAfterMs: asked }) },
  )
  return refusedFor(answer.code, failure)
}

/** What the vendor says, or a server in a shape of its own. */
function answerOf(error: unknown, status?: number): Answer {
  if (typeof error === 'string') return { status, type: undefined, code: undefined, words: error }
  const body = isJsonObject(error) ? error : {}
  const inner = statusIn(body)
  return {
    status: status ?? inner,
    type: textAt(body, 'type'),
    code: inner === undefined ? textAt(body, 'code') : undefined,
    words: wordsOf(body),
  }
}

/** An HTTP status in the field of a code. */
function statusIn(body: JsonObject): number | undefined {
  const code = numberAt(body, 'code') ?? Number(textAt(body, 'code') ?? NaN)
  return Number.isInteger(code) && code >= 400 && code < 600 ? code : undefined
}

function wordsOf(body: JsonObject): string {
  const message = textAt(body, 'message') ?? textAt(objectAt(body, 'message'), 'detail')
  return message ?? textAt(body, 'detail') ?? ''
}

const codes = new WeakMap<ProviderError, string>()

/** Keeps the vendor's own code beside the failure, for those who can do something about it. */
function refusedFor(code: string | undefined, failure: ProviderError): ProviderError {
  if (code !== undefined) codes.set(failure, code)
  return failure
}

/** The vendor's own code of a failure, where it gave one. */
export function codeOf(failure: ProviderError): string | undefined {
  return codes.get(failure)
}

function brokenOff({ code, type, words }: Answer): string {
  return `The service broke the reply off${named(code ?? type)}${quoted(words)}`
}

/** The stream is two streams, or says two things of the same. */
export function contradiction(what: string): ProviderError {
  return failed(retryable('protocol'), `The stream contradicts itself: ${what}`)
}

/** The model called a tool in the vendor's own form, which the application has to run. */
export function unrunCall(type: string): ProviderError {
  const what = `The reply holds a ${type}, which the application has to run, and nativeTools names no tool for it`
  return failed(final('invalid_request'), what)
}

/** The model stopped for tools, and the server passed no call on: some leave out what they cannot read. */
export function lostCall(reason: string): ProviderError {
  return failed(retryable('server'), `The reply stopped for tools${named(reason)}, and no call came with it`)
}

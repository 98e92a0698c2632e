import { type FailureClass, type JsonObject, type ModelFailure, ProviderError } from '@tallystick/core'
import { browserAdvice, isBrowserRefusal } from '../../shared/failure/client-refusal.ts'
import { failureText } from '../../shared/failure/failure-text.ts'
import { networkFailure } from '../../shared/failure/network-failure.ts'
import { type HeaderReader, retryAfterMs } from '../../shared/failure/retry-after.ts'
import { isJsonObject, objectAt, textAt } from '../../shared/json/json-reading.ts'

/** What the failure is, and whether the same request may succeed later. */
interface Verdict {
  readonly class: FailureClass
  readonly retryable: boolean
}

const retryable = (failureClass: FailureClass): Verdict => ({ class: failureClass, retryable: true })
const final = (failureClass: FailureClass): Verdict => ({ class: failureClass, retryable: false })

/** By the vendor's own word, which is there before the stream and in it. */
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

/** By HTTP status, for gateways that answer in their own words. */
const byStatus: { readonly [status: number]: Verdict } = {
  401: final('authentication'),
  402: final('permission'),
  403: final('permission'),
  404: final('not_found'),
  408: retryable('timeout'),
  409: retryable('server'),
  413: final('context_overflow'),
  429: retryable('rate_limited'),
  499: retryable('network'),
  501: final('server'),
  503: retryable('overloaded'),
  504: retryable('timeout'),
  529: retryable('overloaded'),
}

/** Limits on money answer 429 too, and do not go away by waiting. */
const spendLimits = new Set([
  'ramp_limit_exceeded',
  'contract_spend_limit_reached',
  'enforced_spend_limit_reached',
])

const overflowWords =
  /prompt is too long|exceeds? (the |this |its )?(model'?s? )?(maximum )?context|context (window|length)|maximum context|request_too_large/i
const filterWords = /content filtering policy/i

const advice: { readonly [failureClass in FailureClass]: string } = {
  rate_limited: 'Wait before the next call, or raise the limits of the account.',
  overloaded: 'The service is busy; try again later.',
  timeout: 'Try again; if it stays so, allow more time.',
  network: 'Check that the address can be reached, then try again.',
  truncated: 'What came of the reply is incomplete; try the call again.',
  invalid_request: 'The same request will be refused again: change what the message names.',
  authentication: 'Set a valid key (the option apiKey, or ANTHROPIC_API_KEY).',
  permission: 'The account may not do this: check its permissions, its credit and the workspace of the key.',
  not_found: 'Check the model id and baseURL.',
  context_overflow: 'The history does not fit: compact it, or ask for fewer output tokens.',
  content_filtered: 'The output was withheld; the same request will meet the same end.',
  refused: 'The model will not answer this; ask another model, or in other words.',
  protocol: 'The answer cannot be trusted; check baseURL and any gateway on the way.',
  server: 'The fault is on the other side; try again later.',
  interrupted: 'Resume the run.',
}

/** What is known when a call fails. */
export interface FailureFacts {
  /** Milliseconds since 1970 UTC, to read a date in `retry-after` against. */
  readonly now: number
  readonly requestId?: string | undefined
}

/** Whatever the SDK, fetch or the stream threw, as a failure that holds no payload and no key. */
export function providerErrorOf(error: unknown, facts: FailureFacts): ProviderError {
  if (error instanceof ProviderError) return withRequestId(error, facts.requestId)
  if (isApiError(error)) return answeredFailure(error, facts)
  const requestId = facts.requestId !== undefined && { requestId: facts.requestId }
  const network = networkFailure(error)
  if (network !== undefined)
    return failed(network.class, true, `The connection broke${named(network.code)}`, requestId)
  const name = error instanceof Error ? error.name : typeof error
  if (name === 'SyntaxError') {
    return failed('protocol', true, 'The stream holds an event that is not valid JSON', requestId)
  }
  if (isBrowserRefusal(error)) {
    return new ProviderError({ class: 'invalid_request', retryable: false, message: browserAdvice })
  }
  if (error instanceof Error && /authentication method|credential|apiKey|profile/i.test(error.message)) {
    return failed('authentication', false, 'There is no usable key for the call', requestId)
  }
  return new ProviderError(
    {
      class: 'protocol',
      retryable: false,
      message: `The call failed unexpectedly (${name}). ${advice.protocol}`,
      ...requestId,
    },
    { cause: error },
  )
}

/** An `error` event of the stream: a type and a message, on an answer that began with status 200. */
export function failureInStream(error: JsonObject): ProviderError {
  const words = textAt(error, 'message') ?? ''
  const type = textAt(error, 'type')
  const verdict = verdictOf({ type, words, status: undefined, code: undefined })
  return failed(verdict.class, verdict.retryable, brokenOff(type, words))
}

/** The SDK's `APIError`, by its shape: another copy of the SDK, or another client, throws another class. */
interface ApiError extends Error {
  readonly status: number | undefined
  readonly headers: HeaderReader | undefined
  readonly error: unknown
  readonly requestID: string | null | undefined
  readonly type: string | null
}

function isApiError(error: unknown): error is ApiError {
  return error instanceof Error && 'status' in error && 'headers' in error && 'error' in error
}

function answeredFailure(error: ApiError, facts: FailureFacts): ProviderError {
  const { status, headers } = error
  const known = { ...(status !== undefined && { status }), ...requestIdOf(error, facts) }
  const { type, words, code } = answerOf(error)
  if (status === undefined && type === undefined) return connectionFailure(error, known)
  const verdict = verdictOf({ type, words, status, code })
  if (status === undefined) return failed(verdict.class, verdict.retryable, brokenOff(type, words), known)
  const asked = headers && retryAfterMs(headers, facts.now)
  return failed(
    verdict.class,
    toldToRetry(headers) ?? verdict.retryable,
    `Anthropic answered ${status}${named(type)}${quoted(words)}`,
    { ...known, ...(asked !== undefined && { retryAfterMs: asked }) },
  )
}

/** What the vendor, or a gateway in its own shape, says in the body. */
function answerOf(error: ApiError): Omit<Answer, 'status'> {
  const body = isJsonObject(error.error) ? error.error : {}
  const inner = objectAt(body, 'error') ?? body
  return {
    type: error.type ?? textAt(inner, 'type'),
    words: textAt(inner, 'message') ?? textAt(body, 'error') ?? '',
    code: textAt(objectAt(inner, 'details'), 'error_code'),
  }
}

/** The vendor may say outright whether to try again. */
function toldToRetry(headers: HeaderReader | undefined): boolean | undefined {
  const told = headers?.get('x-should-retry')
  return told === 'true' ? true : told === 'false' ? false : undefined
}

function requestIdOf(error: ApiError, facts: FailureFacts): { readonly requestId?: string } {
  const requestId = error.requestID ?? facts.requestId
  return requestId === undefined ? {} : { requestId }
}

function brokenOff(type: string | undefined, words: string): string {
  return `Anthropic broke the reply off${named(type)}${quoted(words)}`
}

/** No answer at all: the SDK says only that, and keeps what happened as the cause. */
function connectionFailure(error: Error, known: Partial<ModelFailure>): ProviderError {
  const network = networkFailure(error.cause)
  if (network?.class === 'timeout' || /timeout/i.test(error.name)) {
    return failed('timeout', true, `No answer came in time${named(network?.code)}`, known)
  }
  return failed('network', true, `Anthropic could not be reached${named(network?.code)}`, known)
}

interface Answer {
  readonly type: string | undefined
  readonly words: string
  readonly status: number | undefined
  readonly code: string | undefined
}

function verdictOf(answer: Answer): Verdict {
  const { type, words, status, code } = answer
  const verdict =
    (type !== undefined && Object.hasOwn(byType, type) && byType[type]) || verdictOfStatus(status)
  if (code !== undefined && spendLimits.has(code)) return final(verdict.class)
  if (verdict.class !== 'invalid_request') return verdict
  if (overflowWords.test(words)) return final('context_overflow')
  if (filterWords.test(words)) return final('content_filtered')
  return verdict
}

function verdictOfStatus(status: number | undefined): Verdict {
  if (status === undefined) return retryable('server')
  return byStatus[status] ?? (status >= 500 ? retryable('server') : final('invalid_request'))
}

function failed(
  failureClass: FailureClass,
  mayRetry: boolean,
  what: string,
  known: Partial<ModelFailure> | false = false,
): ProviderError {
  return new ProviderError({
    class: failureClass,
    retryable: mayRetry,
    message: `${what}. ${advice[failureClass]}`,
    ...known,
  })
}

function withRequestId(error: ProviderError, requestId: string | undefined): ProviderError {
  if (requestId === undefined || error.requestId !== undefined) return error
  return new ProviderError({ ...error.toFailure(), requestId }, { cause: error.cause })
}

function named(word: string | null | undefined): string {
  return word ? ` (${failureText(word)})` : ''
}

function quoted(words: string): string {
  return words.trim() === '' ? '' : `: ${failureText(words).replace(/\.$/, '')}`
}

/** The stream ended, and the event that proves the reply whole never came. */
export function truncatedReply(requestId: string | undefined): ProviderError {
  return failed(
    'truncated',
    true,
    'The stream ended before the reply did',
    requestId !== undefined && { requestId },
  )
}

/** The answer was no event stream, whatever it was. */
export function notAStream(contentType: string, requestId: string | undefined): ProviderError {
  const what = `The answer is of type ${failureText(contentType)}, not an event stream`
  return failed('protocol', false, what, requestId !== undefined && { requestId })
}

/** Nothing came for longer than is allowed. */
export function silentReply(limitMs: number, requestId: string | undefined): ProviderError {
  const what = `Nothing came from Anthropic for ${limitMs} ms, and the connection was closed`
  return failed('timeout', true, what, requestId !== undefined && { requestId })
}

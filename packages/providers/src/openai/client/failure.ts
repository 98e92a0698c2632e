import { type FailureClass, type JsonObject, type ModelFailure, ProviderError } from '@tallystick/core'
import { browserAdvice, isBrowserRefusal } from '../../shared/failure/client-refusal.ts'
import { failureText } from '../../shared/failure/failure-text.ts'
import { networkFailure } from '../../shared/failure/network-failure.ts'
import { type HeaderReader, retryAfterMs } from '../../shared/failure/retry-after.ts'
import { isJsonObject, numberAt, objectAt, textAt } from '../../shared/json/json-reading.ts'
import { type Answer, verdictOf } from './verdict.ts'

const advice: { readonly [failureClass in FailureClass]: string } = {
  rate_limited: 'Wait before the next call, or raise the limits of the account.',
  overloaded: 'The service is busy; try again later.',
  timeout: 'Try again; if it stays so, allow more time.',
  network: 'Check that the address can be reached, then try again.',
  truncated: 'What came of the reply is incomplete; try the call again.',
  invalid_request: 'The same request will be refused again: change what the message names.',
  authentication: 'Set a valid key (the option apiKey, or OPENAI_API_KEY).',
  permission: 'The account may not do this: check its permissions, its credit and the project of the key.',
  not_found: 'Check the model id and baseURL.',
  context_overflow: 'The history does not fit: compact it, or ask for fewer output tokens.',
  content_filtered: 'The request or its output was withheld; the same request will meet the same end.',
  refused: 'The model will not answer this; ask another model, or in other words.',
  protocol: 'The answer cannot be trusted; check baseURL and any gateway on the way.',
  server: 'The fault is on the other side; try again later.',
  interrupted: 'Resume the run.',
}

/** The id by which the service knows a request. Not every server names it as OpenAI does. */
export function requestIdIn(headers: HeaderReader): string | undefined {
  for (const name of ['x-request-id', 'request-id', 'apim-request-id']) {
    const id = headers.get(name)
    if (id) return id
  }
  return undefined
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
  if (error instanceof Error && /credential|apiKey|authentication method/i.test(error.message)) {
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

/** A failure that the stream itself tells of, on an answer that began with status 200. */
export function failureInStream(error: unknown): ProviderError {
  const answer = answerOf(error)
  const { class: failureClass, retryable } = verdictOf(answer)
  return refusedFor(answer.code, failed(failureClass, retryable, brokenOff(answer)))
}

/** The SDK's `APIError`, by its shape: another copy of the SDK, or another client, throws another class. */
interface ApiError extends Error {
  readonly status: number | undefined
  readonly headers: HeaderReader | undefined
  /** What stood in the body, or in the record of the stream, under `error`. */
  readonly error: unknown
}

function isApiError(error: unknown): error is ApiError {
  return error instanceof Error && 'status' in error && 'headers' in error && 'error' in error
}

function answeredFailure(error: ApiError, facts: FailureFacts): ProviderError {
  const { status, headers } = error
  const requestId = (headers && requestIdIn(headers)) ?? facts.requestId
  const known = {
    ...(status !== undefined && { status }),
    ...(requestId !== undefined && { requestId }),
  }
  if (status === undefined && error.error === undefined) return connectionFailure(error, known)
  const answer = answerOf(error.error, status)
  const { class: failureClass, retryable } = verdictOf(answer)
  if (status === undefined) {
    return refusedFor(answer.code, failed(failureClass, retryable, brokenOff(answer), known))
  }
  const asked = headers && retryAfterMs(headers, facts.now)
  const failure = failed(
    failureClass,
    toldToRetry(headers) ?? retryable,
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

/** An HTTP status that stands where a code belongs. */
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

/** The vendor may say outright whether to try again. */
function toldToRetry(headers: HeaderReader | undefined): boolean | undefined {
  const told = headers?.get('x-should-retry')
  return told === 'true' ? true : told === 'false' ? false : undefined
}

function brokenOff({ code, type, words }: Answer): string {
  return `The service broke the reply off${named(code ?? type)}${quoted(words)}`
}

/** No answer at all: the SDK says only that, and keeps what happened as the cause. */
function connectionFailure(error: Error, known: Partial<ModelFailure>): ProviderError {
  const network = networkFailure(error.cause)
  if (network?.class === 'timeout' || /timed? ?out/i.test(error.message)) {
    return failed('timeout', true, `No answer came in time${named(network?.code)}`, known)
  }
  return failed('network', true, `The service could not be reached${named(network?.code)}`, known)
}

function failed(
  failureClass: FailureClass,
  retryable: boolean,
  what: string,
  known: Partial<ModelFailure> | false = false,
): ProviderError {
  const message = `${what}. ${advice[failureClass]}`
  return new ProviderError({ class: failureClass, retryable, message, ...known })
}

function withRequestId(error: ProviderError, requestId: string | undefined): ProviderError {
  if (requestId === undefined || error.requestId !== undefined) return error
  const known = new ProviderError({ ...error.toFailure(), requestId }, { cause: error.cause })
  return refusedFor(codeOf(error), known)
}

function named(word: string | undefined): string {
  return word ? ` (${failureText(word)})` : ''
}

function quoted(words: string): string {
  return words.trim() === '' ? '' : `: ${failureText(words).replace(/\.$/, '')}`
}

/** The stream ended, and nothing proved the reply whole. */
export function truncatedReply(requestId: string | undefined): ProviderError {
  const known = requestId !== undefined && { requestId }
  return failed('truncated', true, 'The stream ended before the reply did', known)
}

/** The answer was no event stream, whatever it was. */
export function notAStream(contentType: string, requestId: string | undefined): ProviderError {
  const what = `The answer is of type ${failureText(contentType)}, not an event stream`
  return failed('protocol', false, what, requestId !== undefined && { requestId })
}

/** Nothing came for longer than is allowed. */
export function silentReply(limitMs: number, requestId: string | undefined): ProviderError {
  const what = `Nothing came from the service for ${limitMs} ms, and the connection was closed`
  return failed('timeout', true, what, requestId !== undefined && { requestId })
}

/** The stream is two streams, or says two things of the same. */
export function contradiction(what: string): ProviderError {
  return failed('protocol', true, `The stream contradicts itself: ${what}`)
}

import { isJsonObject } from '@tallystick/core/kit'
import { ProviderError } from '@tallystick/core'
import { type JsonObject } from '@tallystick/core/vocabulary'
import {
  type ApiError,
  clientFailure,
  connectionFailure,
  isApiError,
  statedRetry,
} from '../../shared/failure/client-failure.ts'
import { named, quoted } from '../../shared/failure/failure-text.ts'
import { type HeaderReader, retryAfterMs } from '../../shared/failure/retry-after.ts'
import { final, retryable } from '../../shared/failure/verdict.ts'
import {
  commonFailures,
  type FailureFacts,
  type WireFailures,
  withRequestId,
} from '../../shared/failure/wire-failures.ts'
import { numberAt, objectAt, textAt } from '../../shared/json/json-reading.ts'
import { type Answer, verdictOf } from './verdict.ts'

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

import { ProviderError } from '@tallystick/core'
import { getOwn, isJsonObject } from '@tallystick/core/internal'
import type { ModelFailure } from '@tallystick/core/vocabulary'
import {
  commonFailures,
  type FailureFacts,
  final,
  named,
  networkFailure,
  quoted,
  retryable,
  retryAfterMs,
  type Verdict,
  verdictOfStatus,
  type WireFailures,
} from '../shared/failure.ts'
import { numberAt, objectAt, textAt } from '../shared/json.ts'

/** By what vendors call their errors, in an answer or in the stream. */
const byType: readonly (readonly [RegExp, Verdict])[] = [
  [/context_length_exceeded|request_too_large|exceed_context_size/, final('context_overflow')],
  [/overloaded/, retryable('overloaded')],
  [/insufficient_quota|billing/, final('rate_limited')],
  [/rate_limit/, retryable('rate_limited')],
  [/authentication|invalid_api_key/, final('authentication')],
  [/permission/, final('permission')],
  [/not_found/, final('not_found')],
  [/content_filter|content_policy/, final('content_filtered')],
  [/timeout/, retryable('timeout')],
  [/invalid_request|invalid_prompt/, final('invalid_request')],
  [/api_error|server_error|internal/, retryable('server')],
]

/** Whether a provider reports that the stream ended before its reply did: it has a class of errors for that among others. */
export function isMissingEnd(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === 'AI_InvalidResponseDataError' &&
    /stream ended without a finish reason/i.test(error.message)
  )
}

/** What the AI SDK throws of itself, by the names of its errors: another copy of it throws another class. */
const byName: { readonly [name: string]: readonly [Verdict, what: string] } = {
  AI_LoadAPIKeyError: [final('authentication'), 'There is no usable key for the call'],
  AI_LoadSettingError: [final('invalid_request'), 'The provider lacks a setting'],
  AI_NoSuchModelError: [final('not_found'), 'The provider knows no such model'],
  AI_UnsupportedFunctionalityError: [
    final('invalid_request'),
    'The provider cannot do what the request asks',
  ],
  AI_InvalidPromptError: [final('invalid_request'), 'The provider cannot send such a history'],
  AI_InvalidArgumentError: [final('invalid_request'), 'The provider takes no such setting'],
  AI_EmptyResponseBodyError: [retryable('truncated'), 'The answer is empty'],
  AI_JSONParseError: [retryable('protocol'), 'The stream holds an event that is not valid JSON'],
  AI_TypeValidationError: [
    retryable('protocol'),
    'The stream holds an event that the provider does not know',
  ],
  AI_InvalidResponseDataError: [retryable('protocol'), 'The stream contradicts itself'],
}

const overflowWords =
  /prompt is too long|exceeds? (the |this |its )?(model'?s? )?(maximum )?context|context (window|length|size)|maximum context/i
const filterWords = /content filtering policy/i

/** The failures that this wire reports. */
export const failures: WireFailures = {
  ...commonFailures({
    who: 'the provider',
    // The connection is the provider's own, so that only the call can be given up.
    closed: 'the call was given up',
    advice: {
      authentication: 'Give the provider of the AI SDK a valid key.',
      permission: 'The account may not do this: check its permissions and its credit.',
      not_found: 'Check the model id and the address of the provider.',
      protocol: 'The answer cannot be trusted; check the address of the provider and any gateway on the way.',
    },
  }),
  providerErrorOf,
  // The bytes are seen by the provider alone.
  failureInStream: (error) => providerErrorOf(error, { now: 0 }),
}
const { failed, thrownFailure } = failures

/** Whatever the provider threw, or reported in its stream, as a failure that holds no payload and no key. */
export function providerErrorOf(error: unknown, { now }: FailureFacts): ProviderError {
  if (error instanceof ProviderError) return error
  const name = error instanceof Error ? error.name : ''
  if (name === 'AI_APICallError') return answeredFailure(error as ApiCallError, now)
  const known = getOwn(byName, name)
  if (known !== undefined) return failed(known[0], known[1])
  if (networkFailure(error) !== undefined) return thrownFailure(error)
  // A provider may hand on what its vendor said in the stream, as it said it.
  const answer = answerOf(error)
  const { words, type } = answer
  if (words !== '' && (typeof error === 'string' || isJsonObject(error)) && !(error instanceof Error)) {
    return failed(verdictOf(answer), `The reply was broken off${named(type)}${quoted(words)}`)
  }
  return thrownFailure(error)
}

/** The AI SDK's `APICallError`. It holds the request and the answer, so that it is read and not kept. */
interface ApiCallError extends Error {
  readonly statusCode?: number
  readonly responseHeaders?: Readonly<Record<string, string>>
  readonly responseBody?: string
  readonly isRetryable: boolean
}

function answeredFailure(error: ApiCallError, now: number): ProviderError {
  const { statusCode: status, cause, isRetryable } = error
  if (status === undefined) {
    const network = networkFailure(cause)
    const what = `The provider could not be reached${named(network?.code)}`
    return failed(retryable(network?.class ?? 'network'), what)
  }
  if (status < 400) return unreadAnswer(cause, isRetryable)
  const { words, type } = answerOf(bodyOf(error.responseBody ?? ''))
  const what = `The provider answered ${status}${named(type)}${quoted(words)}`
  return failed(verdictOf({ words, type, status }), what, {
    status,
    ...reportedIn(error.responseHeaders ?? {}, now),
  })
}

/** An answer that began well, and could not be read: its connection broke, or it is something else. */
function unreadAnswer(cause: unknown, isRetryable: boolean): ProviderError {
  const network = networkFailure(cause)
  if (network === undefined)
    return failed({ class: 'protocol', retryable: isRetryable }, 'The answer is no reply')
  return failed(retryable(network.class), `The connection broke${named(network.code)}`)
}

function reportedIn(
  responseHeaders: Readonly<Record<string, string>>,
  now: number,
): Pick<ModelFailure, 'requestId' | 'retryAfterMs'> {
  const headers = new Headers(responseHeaders)
  const requestId = headers.get('request-id') ?? headers.get('x-request-id')
  const asked = retryAfterMs(headers, now)
  return {
    ...(requestId !== null && { requestId }),
    ...(asked !== undefined && { retryAfterMs: asked }),
  }
}

function bodyOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

interface Answer {
  readonly words: string
  readonly type: string | undefined
  /** Of an answer; or what an error in the stream calls its code, as some gateways do. */
  readonly status: number | undefined
}

/** A vendor's error: a text, an object with a message, or an object with such an `error`. */
function answerOf(error: unknown): Answer {
  if (typeof error === 'string') return { words: error, type: undefined, status: undefined }
  const inner = objectAt(error, 'error') ?? error
  const types = [textAt(inner, 'code'), textAt(inner, 'type')].filter((type) => type !== undefined)
  const code = numberAt(inner, 'code')
  return {
    words: textAt(inner, 'message') ?? textAt(error, 'error') ?? '',
    type: types.find((type) => byType.some(([pattern]) => pattern.test(type))) ?? types[0],
    status: code !== undefined && code >= 400 && code < 600 ? code : undefined,
  }
}

function verdictOf({ words, type = '', status }: Answer): Verdict {
  const named = byType.find(([pattern]) => pattern.test(type))?.[1]
  const verdict = named ?? verdictOfStatus(status)
  if (verdict.class !== 'invalid_request') return verdict
  if (overflowWords.test(words)) return final('context_overflow')
  return filterWords.test(words) ? final('content_filtered') : verdict
}

/** The provider says that the model stopped because of an error, and not which. */
export function erroneousReply(raw: string | undefined): ProviderError {
  return failed(retryable('server'), `The model stopped with an error${named(raw)}`)
}

import { ProviderError } from '@tallystick/core'
import { getOwn, isJsonObject, omitUndefined } from '@tallystick/core/internal'
import {
  createCommonFailures,
  type FailureFacts,
  final,
  formatName,
  readNetworkFailure,
  quoteFailure,
  retryable,
  readRetryAfterMs,
  type Verdict,
  judgeStatus,
  judgeWords,
  type WireFailures,
} from '../shared/failure.ts'
import { getNumber, getObject, parseJson, getText } from '../shared/json.ts'

/** Verdicts by the vendors' types of errors, in an answer or in the stream. */
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

/** True if a provider reports that the stream ended before its reply did. */
export function isMissingEnd(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === 'AI_InvalidResponseDataError' &&
    /stream ended without a finish reason/i.test(error.message)
  )
}

/** The AI SDK's own errors, by their names: another copy of it throws other classes. */
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

const refusals = {
  overflow:
    /prompt is too long|exceeds? (the |this |its )?(model'?s? )?(maximum )?context|context (window|length|size)|maximum context/i,
  filter: /content filtering policy/i,
}

export const failures: WireFailures = {
  ...createCommonFailures({
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
  toProviderError,
  // Only the provider sees the bytes.
  failureInStream: (error) => toProviderError(error, { now: 0 }),
}
const { failed, thrownFailure } = failures

/** Turns what the provider threw, or reported in its stream, into a failure without payloads and keys. */
export function toProviderError(error: unknown, { now }: FailureFacts): ProviderError {
  if (error instanceof ProviderError) return error
  const name = error instanceof Error ? error.name : ''
  // Within the error of the call, though the answer is a success.
  const { cause } = Object(error) as { readonly cause?: unknown }
  if (cause instanceof Error && cause.name === 'AI_EmptyResponseBodyError')
    return toProviderError(cause, { now })
  if (name === 'AI_APICallError') return toAnsweredFailure(error as ApiCallError, now)
  const known = getOwn(byName, name)
  if (known !== undefined) return failed(known[0], known[1])
  if (readNetworkFailure(error) !== undefined) return thrownFailure(error)
  // A provider may pass on what its vendor said in the stream.
  const answer = readAnswer(error)
  const { words, type } = answer
  if (words !== '' && (typeof error === 'string' || isJsonObject(error)) && !(error instanceof Error)) {
    return failed(judge(answer), `The reply was broken off${formatName(type)}${quoteFailure(words)}`)
  }
  return thrownFailure(error)
}

/** The AI SDK's `APICallError`. It holds the request and the answer, so it is read and not kept. */
interface ApiCallError extends Error {
  readonly statusCode?: number
  readonly responseHeaders?: Readonly<Record<string, string>>
  readonly responseBody?: string
  readonly isRetryable: boolean
}

function toAnsweredFailure(error: ApiCallError, now: number): ProviderError {
  const { statusCode: status, cause, isRetryable } = error
  const network = readNetworkFailure(cause)
  if (status === undefined) {
    const what = `The provider could not be reached${formatName(network?.code)}`
    return failed(retryable(network?.class ?? 'network'), what)
  }
  if (status < 400) {
    // The answer began well. Its connection broke, or it is something else.
    if (network) return failed(retryable(network.class), `The connection broke${formatName(network.code)}`)
    return failed({ class: 'protocol', retryable: isRetryable }, 'The answer is not a reply')
  }
  const { words, type } = readAnswer(parseJson(error.responseBody ?? ''))
  const what = `The provider answered ${status}${formatName(type)}${quoteFailure(words)}`
  const headers = new Headers(error.responseHeaders)
  const requestId = headers.get('request-id') ?? headers.get('x-request-id') ?? undefined
  return failed(judge({ words, type, status }), what, {
    status,
    ...omitUndefined({ requestId, retryAfterMs: readRetryAfterMs(headers, now) }),
  })
}

interface Answer {
  readonly words: string
  readonly type: string | undefined
  /** Of an answer, or the code of an error in the stream, as some gateways write it. */
  readonly status: number | undefined
}

/** A vendor's error: a text, an object with a message, or an object with such an `error`. */
function readAnswer(error: unknown): Answer {
  if (typeof error === 'string') return { words: error, type: undefined, status: undefined }
  const inner = getObject(error, 'error') ?? error
  const types = [getText(inner, 'code'), getText(inner, 'type')].filter((type) => type !== undefined)
  const code = getNumber(inner, 'code')
  return {
    words: getText(inner, 'message') ?? getText(error, 'error') ?? '',
    type: types.find((type) => byType.some(([pattern]) => pattern.test(type))) ?? types[0],
    status: code !== undefined && code >= 400 && code < 600 ? code : undefined,
  }
}

function judge({ words, type = '', status }: Answer): Verdict {
  const named = byType.find(([pattern]) => pattern.test(type))?.[1]
  const verdict = named ?? judgeStatus(status)
  return judgeWords(verdict, words, refusals)
}

/** The provider says that the model stopped because of an error, but not which. */
export function createErroneousReplyError(raw: string | undefined): ProviderError {
  return failed(retryable('server'), `The model stopped with an error${formatName(raw)}`)
}

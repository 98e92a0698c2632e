import { ProviderError } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import type { FailureClass, ModelFailure } from '@tallystick/core/vocabulary'
import type { Overlong } from './body.ts'
import { getText } from './json.ts'
import { withoutKeyShapes } from './secrets.ts'

const maxLength = 300

/**
 * Makes a provider's words fit for an error message, since these end up in ledgers and logs: one line, bounded, without what
 * looks like a key or a token.
 */
export function formatFailureText(text: string): string {
  const line = withoutKeyShapes(text)
    .replace(/\bBearer\s+\S+/gi, 'Bearer [struck out]')
    .replace(/\bBasic\s+[\w.~+/=-]{8,}/gi, 'Basic [struck out]')
    .replace(/\s+/g, ' ')
    .trim()
    .toWellFormed()
  return line.length <= maxLength ? line : `${line.slice(0, maxLength - 1).toWellFormed()}…`
}

export function formatName(word: string | null | undefined): string {
  return word ? ` (${formatFailureText(word)})` : ''
}

export function quoteFailure(words: string): string {
  return words.trim() === '' ? '' : `: ${formatFailureText(words).replace(/\.$/, '')}`
}

const timeoutCodes = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])

// The words of Node, Chromium, Firefox, Safari and Deno for a request that broke.
const brokenFetch =
  /^(terminated|fetch failed|failed to fetch|network ?error|load failed|error sending request)/i

// System codes (never `ERR_…`, which mark a caller's mistake), undici's, TLS and certificate ones, Bun's.
const brokenConnection = /^(E(?!RR_)[A-Z_]+|UND_ERR_\w+|ERR_(TLS|SSL)_\w+|CERT_\w+|Connection[A-Z]\w+)$/
const brokenTrust = /_(CERT|SIGNATURE)$|_CERT_/

/** Recognises an error that a broken connection caused, by its code or by its words; `undefined` for any other. */
export function readNetworkFailure(
  error: unknown,
): { readonly class: 'network' | 'timeout'; readonly code?: string } | undefined {
  let cause = error
  for (let depth = 0; depth < 5 && cause instanceof Error; depth++) {
    const code = getText(cause, 'code')
    if (code !== undefined && (brokenConnection.test(code) || brokenTrust.test(code))) {
      return { class: timeoutCodes.has(code) ? 'timeout' : 'network', code }
    }
    cause = cause.cause
  }
  return error instanceof TypeError && brokenFetch.test(error.message) ? { class: 'network' } : undefined
}

/** The class of a failure. `retryable`: the same request may succeed later. */
export type Verdict = Pick<ModelFailure, 'class' | 'retryable'>

/** The same request may succeed later. */
export function retryable(failureClass: FailureClass): Verdict {
  return { class: failureClass, retryable: true }
}

/** The same request will fail again. */
export function final(failureClass: FailureClass): Verdict {
  return { class: failureClass, retryable: false }
}

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

/** Judges an answer by its status alone, with exceptions of the wire. Without a status the other side is at fault. */
export function judgeStatus(status: number | undefined, own: typeof byStatus = {}): Verdict {
  if (status === undefined) return retryable('server')
  const known = own[status] ?? byStatus[status]
  return known ?? (status >= 500 ? retryable('server') : final('invalid_request'))
}

/** The `APIError` of an official client, by its shape: another copy of the SDK, or another client, throws another class. */
export interface ApiError extends Error {
  readonly status: number | undefined
  readonly headers: HeaderReader | undefined
  /** The body, or the record of the stream. */
  readonly error: unknown
}

export function isApiError(error: unknown): error is ApiError {
  return error instanceof Error && 'status' in error && 'headers' in error && 'error' in error
}

/** Turns what an official client threw into a failure, except an `ApiError`. `keyWords` tell that it found no key. */
export function toClientFailure(
  { failed, thrownFailure }: CommonFailures,
  error: unknown,
  keyWords: RegExp,
  known: KnownFacts,
): ProviderError {
  if (!(error instanceof Error) || readNetworkFailure(error) !== undefined) return thrownFailure(error, known)
  if (error.name === 'SyntaxError') {
    return failed(retryable('protocol'), 'The stream holds an event that is not valid JSON', known)
  }
  // The only sign is its text, which also mentions credentials.
  if (error.message.includes('dangerouslyAllowBrowser')) {
    return new ProviderError({ ...final('invalid_request'), message: browserAdvice })
  }
  if (keyWords.test(error.message)) {
    return failed(final('authentication'), 'There is no usable key for the call', known)
  }
  return thrownFailure(error, known)
}

/** There was no answer. The client keeps what happened as the cause. */
export function toConnectionFailure(
  { failed }: CommonFailures,
  { cause }: Error,
  { who, timedOut, known }: { readonly who: string; readonly timedOut: boolean; readonly known: KnownFacts },
): ProviderError {
  const network = readNetworkFailure(cause)
  if (network?.class === 'timeout' || timedOut) {
    return failed(retryable('timeout'), `No answer came in time${formatName(network?.code)}`, known)
  }
  return failed(retryable('network'), `${who} could not be reached${formatName(network?.code)}`, known)
}

/** Turns the error of an official client into a failure: no answer came, the reply broke off, or the request was refused. */
export function toApiFailure(
  common: CommonFailures,
  error: ApiError,
  answer: {
    readonly who: string
    /** The vendor's words, and what they mean; `undefined` if there was no answer. */
    readonly told?: { readonly verdict: Verdict; readonly label: string | undefined; readonly words: string }
    readonly timedOut: boolean
    readonly requestId: string | undefined
    readonly now: number
  },
): ProviderError {
  const { who, told, timedOut, requestId, now } = answer
  const { status, headers } = error
  const known = omitUndefined({ status, requestId })
  if (told === undefined) return toConnectionFailure(common, error, { who, timedOut, known })
  const { verdict } = told
  const words = `${formatName(told.label)}${quoteFailure(told.words)}`
  if (status === undefined) return common.failed(verdict, `${who} broke the reply off${words}`, known)
  const again = readStatedRetry(headers) ?? verdict.retryable
  const retryAfterMs = headers && readRetryAfterMs(headers, now)
  return common.failed({ ...verdict, retryable: again }, `${who} answered ${status}${words}`, {
    ...known,
    ...omitUndefined({ retryAfterMs }),
  })
}

/** Reads whether to try again, if the service says so. */
export function readStatedRetry(headers: HeaderReader | undefined): boolean | undefined {
  const stated = headers?.get('x-should-retry')
  return stated === 'true' ? true : stated === 'false' ? false : undefined
}

/** Judges a request that was refused as invalid by the vendor's words: what it held may be too long, or filtered. */
export function judgeWords(
  verdict: Verdict,
  words: string,
  { overflow, filter }: { readonly overflow: RegExp; readonly filter: RegExp },
): Verdict {
  if (verdict.class !== 'invalid_request') return verdict
  if (overflow.test(words)) return final('context_overflow')
  return filter.test(words) ? final('content_filtered') : verdict
}

const browserAdvice =
  'The official client does not run in a browser, where a user of the page could read the key. Let a server of yours make the calls, or pass a client that was made with dangerouslyAllowBrowser.'

export interface HeaderReader {
  get(name: string): string | null
}

/**
 * Reads how long a provider asks to wait, in whole milliseconds: `retry-after-ms`, else `retry-after` in seconds or as a date,
 * which is relative to `now`. Returns `undefined` for a wait that is not positive or not readable.
 */
export function readRetryAfterMs(headers: HeaderReader, now: number): number | undefined {
  const decimal = /^\d+(\.\d+)?$/
  const exact = headers.get('retry-after-ms')?.trim() ?? ''
  const asked = headers.get('retry-after')?.trim() ?? ''
  // A date names its month. Engines read dates into other texts, too, such as a negative number.
  const date = /[a-z]{3}/i.test(asked) ? Date.parse(asked) - now : NaN
  const waitMs = decimal.test(exact) ? Number(exact) : decimal.test(asked) ? Number(asked) * 1000 : date
  return Number.isFinite(waitMs) && waitMs > 0 ? Math.ceil(waitMs) : undefined
}

/** Advice for the user, by the class of a failure. */
type Advice = { readonly [failureClass in FailureClass]: string }

const commonAdvice: Omit<Advice, 'authentication' | 'permission' | 'not_found'> = {
  rate_limited: 'Wait before the next call, or raise the limits of the account.',
  overloaded: 'The service is busy; try again later.',
  timeout: 'Try again; if it stays so, allow more time.',
  network: 'Check that the address can be reached, then try again.',
  truncated: 'What came of the reply is incomplete; try the call again.',
  invalid_request: 'The same request will be refused again: change what the message names.',
  context_overflow: 'The history does not fit: compact it, or ask for fewer output tokens.',
  content_filtered: 'The output was withheld; the same request will meet the same end.',
  refused: 'The model will not answer this; ask another model, or in other words.',
  protocol: 'The answer cannot be trusted; check baseURL and any gateway on the way.',
  empty_reply: 'Ask again; if it stays so, check the instructions and the length of the reply.',
  server: 'The fault is on the other side; try again later.',
  interrupted: 'Resume the run.',
}

/** How a wire words its failures. */
export interface WireWords {
  /** The one who answers, as within a sentence: `Anthropic`, `the service`. */
  readonly who: string
  /** How a call that takes too long ends. */
  readonly closed?: string
  /** The wire's own advice on failures. */
  readonly advice: Partial<Advice> & Pick<Advice, 'authentication' | 'permission' | 'not_found'>
}

const overlong: { readonly [what in Overlong]: (who: string, limitMs: number) => string } = {
  silent: (who, limitMs) => `Nothing came from ${who} for ${limitMs} ms`,
  empty: (who, limitMs) => `Nothing of the reply came from ${who} for ${limitMs} ms (contentTimeoutMs)`,
  endless: (_, limitMs) => `The reply had not ended after ${limitMs} ms (totalTimeoutMs)`,
}

type KnownFacts = Pick<Partial<ModelFailure>, 'status' | 'retryAfterMs' | 'requestId'>

export interface FailureFacts {
  /** Milliseconds since 1970 UTC, to read a date in `retry-after` against. */
  readonly now: number
  readonly requestId?: string | undefined
}

/** The failures of one wire. */
export interface WireFailures extends CommonFailures {
  /** Turns what the client, `fetch` or the stream threw into a failure without payloads and keys. */
  readonly toProviderError: (error: unknown, facts: FailureFacts) => ProviderError
  /** Reads the failure that an answer of status 200 reports. */
  readonly failureInStream: (error: unknown) => ProviderError
}

/** The failures that all wires have in common. */
interface CommonFailures {
  /** Its message says what happened and what to do next. */
  readonly failed: (verdict: Verdict, what: string, known?: KnownFacts) => ProviderError
  /** A connection that broke, or an unexpected error. */
  readonly thrownFailure: (error: unknown, known?: KnownFacts) => ProviderError
  /** The stream ended, and nothing proved the reply complete. */
  readonly truncatedReply: (requestId?: string) => ProviderError
  readonly overlongReply: (what: Overlong, limitMs: number, requestId?: string) => ProviderError
  readonly notAStream: (contentType: string, requestId?: string) => ProviderError
}

export function createCommonFailures({
  who,
  advice: own,
  closed = 'the connection was closed',
}: WireWords): CommonFailures {
  const advice: Advice = { ...commonAdvice, ...own }
  const failed: CommonFailures['failed'] = (verdict, what, known) =>
    new ProviderError({ ...verdict, message: `${what}. ${advice[verdict.class]}`, ...known })
  const knownId = (requestId: string | undefined): KnownFacts =>
    requestId === undefined ? {} : { requestId }
  return {
    failed,
    thrownFailure(error, known) {
      const network = readNetworkFailure(error)
      if (network !== undefined) {
        return failed(retryable(network.class), `The connection broke${formatName(network.code)}`, known)
      }
      const name = (error instanceof Error && error.name) || typeof error
      const message = `The call failed unexpectedly (${name}). ${advice.protocol}`
      return new ProviderError({ ...final('protocol'), message, ...known }, { cause: error })
    },
    truncatedReply: (requestId) =>
      failed(retryable('truncated'), 'The stream ended before the reply did', knownId(requestId)),
    overlongReply(what, limitMs, requestId) {
      // A reply without an end would have none the next time.
      const verdict = what === 'endless' ? final('timeout') : retryable('timeout')
      return failed(verdict, `${overlong[what](who, limitMs)}, and ${closed}`, knownId(requestId))
    },
    notAStream(contentType, requestId) {
      const what = `The answer is of type ${formatFailureText(contentType)}, not an event stream`
      return failed(final('protocol'), what, knownId(requestId))
    },
  }
}

/** Adds the id of the request if the failure has none. */
export function withRequestId(error: ProviderError, requestId: string | undefined): ProviderError {
  if (requestId === undefined || error.requestId !== undefined) return error
  return new ProviderError({ ...error.toFailure(), requestId }, { cause: error.cause })
}

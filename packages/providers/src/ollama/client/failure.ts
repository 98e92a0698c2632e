import { isJsonObject } from '@tallystick/core/kit'
import { ProviderError } from '@tallystick/core'
import { failureText, named, quoted } from '../../shared/failure/failure-text.ts'
import { type HeaderReader, retryAfterMs } from '../../shared/failure/retry-after.ts'
import { final, retryable, type Verdict, verdictOfStatus } from '../../shared/failure/verdict.ts'
import { commonFailures, type WireFailures } from '../../shared/failure/wire-failures.ts'
import { objectAt, textAt } from '../../shared/json/json-reading.ts'

/** By the vendor's words: it has no other names for what went wrong, before the stream or in it. */
const byWords: readonly (readonly [RegExp, Verdict])[] = [
  [/exceed_context_size|context (size|length|window)/i, final('context_overflow')],
  [/server busy|maximum pending requests|overloaded/i, retryable('overloaded')],
  [/timed? ?out/i, retryable('timeout')],
  [/requires more system memory|cudaMalloc failed|out of memory/i, final('server')],
  [/unauthorized/i, final('authentication')],
  [/rate limit|usage limit|too many requests/i, retryable('rate_limited')],
]

/** The failures that this wire reports. */
export const failures: WireFailures = {
  ...commonFailures({
    who: 'Ollama',
    advice: {
      overloaded: 'The server is busy; try again later, or let it take more requests (OLLAMA_MAX_QUEUE).',
      timeout: 'Try again; if it stays so, allow more time: loading a model can take minutes.',
      network: 'Check that Ollama runs and that baseURL can be reached, then try again.',
      authentication:
        'Set a valid key (the option apiKey, or OLLAMA_API_KEY), or sign in with "ollama signin".',
      permission: 'The account may not do this: check its plan and its permissions.',
      not_found: 'Pull the model ("ollama pull"), or check the model id and baseURL.',
      context_overflow: 'The history does not fit: compact it, or raise contextTokens.',
      server: 'The fault is on the other side: see the log of the server.',
    },
  }),
  providerErrorOf,
  failureInStream,
}
const { failed, thrownFailure, truncatedReply } = failures

/** Whatever the client, fetch or the stream threw, as a failure that holds no payload and no key. */
export function providerErrorOf(error: unknown): ProviderError {
  if (error instanceof ProviderError) return error
  // The client says so when the body ends without a line that says `done`.
  const isCut = error instanceof Error && error.message.startsWith('Did not receive done')
  return isCut ? truncatedReply() : thrownFailure(error)
}

/** What is known of an answer that is no reply. */
export interface Refusal {
  readonly status: number
  readonly headers: HeaderReader
  readonly text: string
  /** Milliseconds since 1970 UTC, to read a date in `retry-after` against. */
  readonly now: number
}

/** An answer with another status than 200. */
export function answeredFailure({ status, headers, text, now }: Refusal): ProviderError {
  const words = wordsOf(text)
  const asked = retryAfterMs(headers, now)
  const requestId = headers.get('x-request-id') ?? undefined
  return failed(verdictOf(words, status), `Ollama answered ${status}${quotedWithoutReply(words)}`, {
    status,
    ...(asked !== undefined && { retryAfterMs: asked }),
    ...(requestId !== undefined && { requestId }),
  })
}

/** A line of the stream that holds an `error` instead of a piece of the reply. */
export function failureInStream(error: unknown): ProviderError {
  const words = innerWords(error)
  return failed(verdictOf(words, undefined), `Ollama broke the reply off${quotedWithoutReply(words)}`)
}

/** The body as JSON with an `error`; another server's page tells nothing that belongs into an error. */
function wordsOf(text: string): string {
  try {
    const body: unknown = JSON.parse(text)
    return innerWords(isJsonObject(body) ? (body['error'] ?? body) : body)
  } catch {
    return ''
  }
}

/** An error is a text, or an object with a message, or a text that is the JSON of one more error. */
function innerWords(error: unknown): string {
  if (typeof error === 'string') return error.startsWith('{') ? wordsOf(error) || error : error
  const message = textAt(error, 'message')
  if (message === undefined) return objectAt(error, 'error') ? innerWords(objectAt(error, 'error')) : ''
  const type = textAt(error, 'type')
  return type === undefined ? message : `${message} (${type})`
}

function verdictOf(words: string, status: number | undefined): Verdict {
  const known = byWords.find(([pattern]) => pattern.test(words))?.[1]
  // A refusal names the model, and a model may be called anything.
  if (known !== undefined && status !== 404) return known
  return verdictOfStatus(status)
}

function quotedWithoutReply(words: string): string {
  // The model's text follows after this; it belongs into no error.
  const reason = words.replace(/^(error parsing tool call).*$/s, '$1')
  return quoted(reason)
}

/** The answer was no stream of JSON lines, whatever it was. */
export function notLines(contentType: string): ProviderError {
  return failed(final('protocol'), `The answer is of type ${failureText(contentType)}, not JSON lines`)
}

/** The reply came to its end, and no line of it held a message. */
export function wordlessReply(): ProviderError {
  return failed(final('protocol'), 'No line of the stream holds a message, so it is no reply of a chat')
}

/** The server ended a reply that it did not begin, as it does when it has only loaded the model, or unloaded it. */
export function unwrittenReply(reason: string | undefined): ProviderError {
  return failed(retryable('server'), `The reply ended before the model wrote anything${named(reason)}`)
}

/** Returns the error for a line that cannot be read. It does not quote the line. */
export function unreadableLine(): ProviderError {
  return failed(retryable('protocol'), 'The stream holds a line that is no JSON object')
}

/** The server cut the prompt to fit its context, and answered what was left of it. */
export function cutPrompt(
  promptTokens: number | undefined,
  contextTokens: number | undefined,
): ProviderError {
  const what =
    `The prompt was longer than the context of ${contextTokens} tokens, and the server cut it to ${promptTokens} ` +
    'without a word, so the reply answers something else than was asked'
  return failed(final('context_overflow'), what)
}

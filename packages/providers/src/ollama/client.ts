import { ProviderError } from '@tallystick/core'
import { type OptionalPackage, isJsonObject, omitUndefined } from '@tallystick/core/internal'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import type * as ollamaClient from 'ollama/browser'
import {
  createCommonFailures,
  formatFailureText,
  final,
  type HeaderReader,
  formatName,
  quoteFailure,
  retryable,
  readRetryAfterMs,
  type Verdict,
  judgeStatus,
  type WireFailures,
} from '../shared/failure.ts'
import { getObject, parseJson, getText } from '../shared/json.ts'
import { declarePackage } from '../shared/options.ts'

/** Verdicts by the vendor's words, since it has no other names for what went wrong. */
const byWords: readonly (readonly [RegExp, Verdict])[] = [
  [/exceed_context_size|context (size|length|window)/i, final('context_overflow')],
  [/server busy|maximum pending requests|overloaded/i, retryable('overloaded')],
  [/timed? ?out/i, retryable('timeout')],
  [/requires more system memory|cudaMalloc failed|out of memory/i, final('server')],
  [/unauthorized/i, final('authentication')],
  [/rate limit|usage limit|too many requests/i, retryable('rate_limited')],
]

export const failures: WireFailures = {
  ...createCommonFailures({
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
  toProviderError,
  failureInStream: toStreamFailure,
}
const { failed, thrownFailure } = failures

/** Turns what the client, fetch or the stream threw into a failure without payloads and keys. */
export function toProviderError(error: unknown): ProviderError {
  return error instanceof ProviderError ? error : thrownFailure(error)
}

/** A failure from an answer with another status than 200. `now` is in milliseconds since 1970 UTC. */
export function toAnsweredFailure({
  status,
  headers,
  text,
  now,
}: {
  readonly status: number
  readonly headers: HeaderReader
  readonly text: string
  readonly now: number
}): ProviderError {
  const words = readWords(text)
  const requestId = headers.get('x-request-id') ?? undefined
  return failed(judge(words, status), `Ollama answered ${status}${quoteWithoutReply(words)}`, {
    status,
    ...omitUndefined({ retryAfterMs: readRetryAfterMs(headers, now), requestId }),
  })
}

/** A failure from a line of the stream that holds an `error`. */
export function toStreamFailure(error: unknown): ProviderError {
  const words = readErrorText(error)
  return failed(judge(words, undefined), `Ollama broke the reply off${quoteWithoutReply(words)}`)
}

/** Reads the `error` of a JSON body. The page of another server says nothing that belongs in an error. */
function readWords(text: string): string {
  const body = parseJson(text)
  return readErrorText(isJsonObject(body) ? (body['error'] ?? body) : body)
}

/** An error is a text, or an object with a message, or a text that is the JSON of one more error. */
function readErrorText(error: unknown): string {
  if (typeof error === 'string') return error.startsWith('{') ? readWords(error) || error : error
  const message = getText(error, 'message')
  if (message === undefined) return getObject(error, 'error') ? readErrorText(getObject(error, 'error')) : ''
  const type = getText(error, 'type')
  return type === undefined ? message : `${message} (${type})`
}

function judge(words: string, status: number | undefined): Verdict {
  const known = byWords.find(([pattern]) => pattern.test(words))?.[1]
  // A refusal names the model, and a model may be called anything.
  if (known !== undefined && status !== 404) return known
  return judgeStatus(status)
}

function quoteWithoutReply(words: string): string {
  // The rest is the model's text, which does not belong in an error.
  return quoteFailure(words.replace(/^(error parsing tool call).*$/s, '$1'))
}

/** The reply ended, and no line of it held a message. */
export function createWordlessReplyError(): ProviderError {
  return failed(final('protocol'), 'No line of the stream holds a message, so it is not the reply of a chat')
}

/** The server ended a reply that it did not begin, as after it has only loaded, or unloaded, the model. */
export function createUnwrittenReplyError(reason: string | undefined): ProviderError {
  return failed(retryable('server'), `The reply ended before the model wrote anything${formatName(reason)}`)
}

/** The server cut the prompt to fit its context, and answered the rest of it. */
export function cutPrompt(
  promptTokens: number | undefined,
  contextTokens: number | undefined,
): ProviderError {
  const what =
    `The prompt was longer than the context of ${contextTokens} tokens, and the server cut it to ${promptTokens} ` +
    'without a word, so the reply answers something else than was asked'
  return failed(final('context_overflow'), what)
}

/**
 * Reads the lines of an answer. The first one that is not a JSON object, or that reports an error, ends them with a
 * `ProviderError`. An incomplete last line is left out: the reply was cut there.
 */
async function* readLines(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<WireLine, void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (!done) onBytes()
      const texts = (rest + decoder.decode(value, { stream: !done })).split('\n')
      rest = texts.pop() ?? ''
      if (done && parseJson(rest) !== undefined) texts.push(rest)
      for (const text of texts) {
        if (text.trim() === '') continue
        const line = parseJson(text)
        // The line itself is not quoted.
        if (!isJsonObject(line))
          throw failed(retryable('protocol'), 'The stream holds a line that is not a JSON object')
        if ('error' in line) throw toStreamFailure(line['error'])
        yield line
      }
      if (done) return
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/**
 * The official client. The package's root would take a text that names a file for the path of an image, and send the file.
 */
export const sdk: OptionalPackage<typeof ollamaClient> = declarePackage(
  'ollama',
  () => import('ollama/browser'),
)

export interface OllamaClientOptions {
  /** The server. Without it: `OLLAMA_HOST`, or `http://127.0.0.1:11434`. */
  readonly baseURL?: string | undefined
  /** The key, for servers that want one. Without it the official client sends `OLLAMA_API_KEY` to ollama.com, and nowhere else. */
  readonly apiKey?: string | undefined
  /** Headers added to every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Replaces the `fetch` of the host: a proxy, longer timeouts for slow models, a recorder. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

// A server's refusal is short; a page sent instead need not be read to its end.
const maxRefusalLength = 64 * 1024

/**
 * Asks the official client for a stream, and reads its lines without the client, which writes unreadable ones to the console,
 * skips them, and knows an error only as a text. Each call has a client of its own, since a client takes no signal, and can be
 * stopped neither before the answer begins nor without stopping every other call.
 */
export async function openChat(
  body: WireRequest,
  call: {
    readonly options: OllamaClientOptions
    readonly signal: AbortSignal
    /** Milliseconds since 1970 UTC. */
    readonly now: () => number
    readonly onBytes: () => void
  },
): Promise<AsyncIterable<WireLine>> {
  const { Ollama } = await sdk.load('ollama')
  call.signal.throwIfAborted()
  let answer: ReadableStream<Uint8Array> | null = null
  const host = readHost(call.options)
  const { apiKey, headers } = call.options
  const client = new Ollama({
    ...(host !== undefined && { host }),
    headers: { ...(apiKey !== undefined && { Authorization: `Bearer ${apiKey}` }), ...headers },
    fetch: async (url, init) => {
      const response = await (call.options.fetch ?? globalThis.fetch)(url, { ...init, signal: call.signal })
      if (!response.ok) {
        const text = await readBeginning(response)
        const { status, headers } = response
        throw toAnsweredFailure({ status, headers, text, now: call.now() })
      }
      const contentType = response.headers.get('content-type') ?? ''
      if (/html/i.test(contentType)) {
        throw failed(
          final('protocol'),
          `The answer is of type ${formatFailureText(contentType)}, not JSON lines`,
        )
      }
      answer = response.body
      if (answer === null) throw failures.truncatedReply()
      return new Response('')
    },
  })
  await client.chat({ ...body } as never)
  if (answer === null) throw failures.truncatedReply()
  return readLines(answer, call.onBytes)
}

/** Reads the server's address from the options or the environment. */
export function readHost({ baseURL }: OllamaClientOptions): string | undefined {
  const environment = typeof process === 'undefined' ? undefined : process.env
  return baseURL ?? (environment?.['OLLAMA_HOST'] || undefined)
}

/** True for an address that the official client can read: scheme and host are optional. */
export function isAddress(host: string): boolean {
  if (host.startsWith(':')) return URL.canParse(`http://127.0.0.1${host}`)
  return URL.canParse(host.includes('://') ? host : `http://${host}`)
}

async function readBeginning({ body }: Response): Promise<string> {
  if (body === null) return ''
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  try {
    while (text.length < maxRefusalLength) {
      const { done, value } = await reader.read()
      if (done) break
      text += decoder.decode(value, { stream: true })
    }
  } catch {
    // The status says enough.
  }
  await reader.cancel().catch(() => {})
  return text
}

/** The names of this wire in `ModelRef`. */
export const provider = 'ollama'
export const api = 'chat'

/**
 * One line of the stream. Any field may be missing, whatever the vendor's types say:
 * - `message`: what is new. `content` and `thinking` are increments, `tool_calls` holds whole calls, one or several a line
 * - `done`: this is the last line, the proof that the reply is whole; it has `done_reason` and the counts
 * - `prompt_eval_count`, `eval_count`: tokens of the prompt and of the reply
 */
export type WireLine = JsonObject & {
  readonly model?: string
  readonly message?: JsonObject
  readonly done?: boolean
  readonly done_reason?: string
}

/** A call in a message of the history. */
export interface WireCall extends JsonObject {
  readonly id: string
  readonly function: { readonly name: string; readonly arguments: JsonObject }
}

/** A message of the history. */
export interface WireMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: string
  readonly thinking?: string
  /** Base64, without a media type. */
  readonly images?: readonly string[]
  readonly tool_calls?: readonly WireCall[]
  readonly tool_name?: string
  readonly tool_call_id?: string
}

export type WireThinking = boolean | 'low' | 'medium' | 'high' | 'max'

/** The body of `POST /api/chat`. */
export interface WireRequest {
  readonly model: string
  readonly messages: readonly WireMessage[]
  readonly stream: true
  /** The server may silently drop what does not fit into the context. */
  readonly truncate: boolean
  /** The server may forget the beginning when the reply reaches the end of the context. */
  readonly shift: boolean
  readonly tools?: readonly JsonObject[]
  readonly think?: WireThinking
  readonly format?: Json
  readonly keep_alive?: string | number
  readonly options: JsonObject
  readonly [field: string]: unknown
}

import { ProviderError } from '@tallystick/core'
import { isJsonObject } from '@tallystick/core/internal'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import type * as ollamaClient from 'ollama/browser'
import {
  commonFailures,
  failureText,
  final,
  type HeaderReader,
  named,
  quoted,
  retryable,
  retryAfterMs,
  type Verdict,
  verdictOfStatus,
  type WireFailures,
} from '../shared/failure.ts'
import { objectAt, textAt } from '../shared/json.ts'
import { optionalPackage, type OptionalPackage } from '../shared/options.ts'

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
function notLines(contentType: string): ProviderError {
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
function unreadableLine(): ProviderError {
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

/** A body whose lines were looked at on their way to the official client. */
interface LineBody {
  readonly lines: ReadableStream<Uint8Array>
  /** Reads what is left, for the sake of the connection. Rejects when that breaks. */
  readonly drain: () => Promise<void>
}

/**
 * Looks at the lines of a body before the official client does, which writes those that it cannot read to the console and
 * goes on without them, blank ones too, and knows an error only as a text. What the client can read passes as it is. The first
 * line that is no JSON object, or that reports an error, ends the body with a `ProviderError`, when what came before it has
 * been read. Half a line at the end is left out: the reply was cut there.
 */
function lineBody(source: ReadableStream<Uint8Array>, onBytes: () => void): LineBody {
  const reader = source.getReader()
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()]
  let rest = ''
  let failure: Error | undefined
  /** The lines that may pass; the first that may not becomes the failure. */
  const passing = (texts: readonly string[]): string => {
    let passed = ''
    for (const text of texts) {
      if (text.trim() === '') continue
      failure = faultIn(text)
      if (failure !== undefined) break
      passed += `${text}\n`
    }
    return passed
  }
  const throwFailure = (): void => {
    if (failure !== undefined) throw failure
  }
  const lines = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          // Thrown at the next pull, since an error drops what the reader has not taken yet.
          throwFailure()
          const { done, value } = await reader.read()
          if (!done) onBytes()
          const texts = (rest + decoder.decode(value, { stream: !done })).split('\n')
          rest = texts.pop() ?? ''
          if (done && parsed(rest) !== undefined) texts.push(rest)
          const passed = passing(texts)
          if (passed !== '') controller.enqueue(encoder.encode(passed))
          if (done) {
            throwFailure()
            return controller.close()
          }
          if (passed !== '') return
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  return { lines, drain: () => drained(reader) }
}

async function drained(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  while (!(await reader.read()).done);
}

function faultIn(text: string): Error | undefined {
  const line = parsed(text)
  if (!isJsonObject(line)) return unreadableLine()
  return 'error' in line ? failureInStream(line['error']) : undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/**
 * The official client. Not the package's root: there a text that names a file is taken for an image's path, and the file
 * goes out.
 */
export const sdk: OptionalPackage<typeof ollamaClient> = optionalPackage(
  'ollama',
  () => import('ollama/browser'),
)

/** Where the server is and how to reach it. */
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

/** One call. Its end closes the connection, whatever state it is in. */
export interface OllamaCall {
  readonly options: OllamaClientOptions
  readonly signal: AbortSignal
  /** Milliseconds since 1970 UTC. */
  readonly now: () => number
  /** Called whenever something came. */
  readonly onBytes: () => void
}

// What a server says about a refusal is short; a page sent in its place need not be read to its end.
const maxRefusalLength = 64 * 1024

/**
 * Asks the official client for a stream, and returns its lines. When the last line was read, the rest of the answer is read
 * too, so that its connection can be used again. Each call has a client of its own, since a client knows no signal
 * and can be stopped neither before the answer begins nor without stopping every other call.
 */
export async function openChat(body: WireRequest, call: OllamaCall): Promise<AsyncIterable<WireLine>> {
  const { Ollama } = await sdk.load('ollama')
  call.signal.throwIfAborted()
  let answer: LineBody | undefined
  const host = hostOf(call.options)
  const { apiKey, headers } = call.options
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const response = await (call.options.fetch ?? globalThis.fetch)(url, { ...init, signal: call.signal })
    if (!response.ok) {
      const text = await beginningOf(response)
      const { status, headers } = response
      throw answeredFailure({ status, headers, text, now: call.now() })
    }
    const contentType = response.headers.get('content-type') ?? ''
    if (/html/i.test(contentType)) throw notLines(contentType)
    if (response.body === null) return response
    answer = lineBody(response.body, call.onBytes)
    return new Response(answer.lines, response)
  }
  const client = new Ollama({
    ...(host !== undefined && { host }),
    fetch,
    headers: { ...(apiKey !== undefined && { Authorization: `Bearer ${apiKey}` }), ...headers },
  })
  const lines: unknown = await client.chat({ ...body } as never)
  if (answer === undefined) throw failures.truncatedReply()
  return drainedAfter(lines as AsyncIterable<WireLine>, answer)
}

/** The lines, and then the rest of their connection. Throws what ends the reply. */
async function* drainedAfter(
  lines: AsyncIterable<WireLine>,
  { drain }: LineBody,
): AsyncGenerator<WireLine, void> {
  yield* lines
  await drain().catch(() => {})
}

/** The server that the options, or else the environment, name. */
export function hostOf({ baseURL }: OllamaClientOptions): string | undefined {
  const environment = typeof process === 'undefined' ? undefined : process.env
  return baseURL ?? (environment?.['OLLAMA_HOST'] || undefined)
}

/** Whether a server can be at such an address, as the official client reads it: the scheme and the host may be left out. */
export function isAddress(host: string): boolean {
  if (host.startsWith(':')) return URL.canParse(`http://127.0.0.1${host}`)
  return URL.canParse(host.includes('://') ? host : `http://${host}`)
}

/** What a server says about a refusal, as far as it comes. */
async function beginningOf({ body }: Response): Promise<string> {
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
    // The status is worth more than the rest of the words.
  }
  await reader.cancel().catch(() => {})
  return text
}

/** This wire, as `ModelRef` names it. */
export const provider = 'ollama'
export const api = 'chat'

/**
 * One line of the stream. Every field may lack, whatever the vendor's types say:
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

/** How the model is asked to think: not, as it likes, or how hard. */
export type WireThinking = boolean | 'low' | 'medium' | 'high' | 'max'

/** The body of `POST /api/chat`, as far as this adapter writes it. */
export interface WireRequest {
  readonly model: string
  readonly messages: readonly WireMessage[]
  readonly stream: true
  /** Whether the server may drop what does not fit into the context, and say nothing. */
  readonly truncate: boolean
  /** Whether the server may forget the beginning when the reply reaches the end of the context. */
  readonly shift: boolean
  readonly tools?: readonly JsonObject[]
  readonly think?: WireThinking
  readonly format?: Json
  readonly keep_alive?: string | number
  readonly options: JsonObject
  readonly [field: string]: unknown
}

import { answeredFailure, failures, notLines } from './failure.ts'
import { lineBody, type LineBody } from './line-body.ts'
import { sdk } from './sdk.ts'
import type { WireLine, WireRequest } from './wire.ts'

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

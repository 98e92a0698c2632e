import type { OwnSecrets } from '../../shared/secrets/own-secrets.ts'
import { sdk } from './sdk.ts'

/** What the adapter hands over with each call. */
export interface OpenAICallOptions {
  readonly signal: AbortSignal
  readonly maxRetries: number
  /** Milliseconds that the client may wait for an answer to begin. */
  readonly timeout: number
  readonly headers: Readonly<Record<string, string>>
}

/** Resolves to the raw events, in order; iterating ends, or throws, when the call does, and `signal` ends both at once. */
export type OpenAICreate = (body: object, options: OpenAICallOptions) => PromiseLike<AsyncIterable<unknown>>

/** From where on a response is sent for again. */
export interface ResponsePlace {
  readonly stream: true
  readonly starting_after: number
  readonly include?: readonly string[]
}

/** Just enough of the official client for the Responses API: `new OpenAI(…)` is one, and so is `new AzureOpenAI(…)`. */
export interface OpenAIClient {
  readonly responses: {
    create(...call: Parameters<OpenAICreate>): ReturnType<OpenAICreate>
    /** Sends for the rest of a response, for the option `background`. */
    retrieve?(id: string, ...more: never[]): unknown
    /** Ends a response that nobody waits for any more. */
    cancel?(id: string, ...more: never[]): unknown
  }
}

/** Just enough of the official client for Chat Completions. */
export interface OpenAIChatClient {
  readonly chat: {
    readonly completions: { create(...call: Parameters<OpenAICreate>): ReturnType<OpenAICreate> }
  }
}

/** What the official client is made with. */
export interface OpenAIClientOptions {
  /** The key, or a function that gets one. Without it: `OPENAI_API_KEY`. Servers of your own take any text. */
  readonly apiKey?: string | (() => Promise<string>) | undefined
  /** Where the service is, `/v1` included. Without it: `OPENAI_BASE_URL`, or OpenAI itself. */
  readonly baseURL?: string | undefined
  /** Replaces the `fetch` of the host: a proxy, a recorder. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** The official client. It says nothing on the console, where its messages would show payloads. */
export async function officialClient(
  maker: string,
  { apiKey, baseURL, fetch = (input, init) => globalThis.fetch(input, init) }: OpenAIClientOptions,
  secrets: OwnSecrets,
): Promise<OpenAIClient & OpenAIChatClient> {
  const { OpenAI } = await sdk.load(maker)
  const noting = secrets.noting(fetch)
  return new OpenAI({
    ...(apiKey !== undefined && { apiKey }),
    ...(baseURL !== undefined && { baseURL }),
    maxRetries: 0,
    logLevel: 'off',
    fetch: (input, init) => noting(input, init).then(withErrorInside),
  })
}

/**
 * The official client reads a refusal's reason from the field `error` of the body, and passes over all other words.
 * Some servers put the reason at the top of the body instead, or the body into a list: it is moved to where the client looks.
 */
async function withErrorInside(response: Response): Promise<Response> {
  if (response.status < 400 || !response.headers.get('content-type')?.includes('json')) return response
  const text = await response.text()
  const headers = new Headers(response.headers)
  headers.delete('content-length')
  headers.delete('content-encoding')
  return new Response(mended(text), { status: response.status, statusText: response.statusText, headers })
}

function mended(text: string): string {
  try {
    const given: unknown = JSON.parse(text)
    const body: unknown = Array.isArray(given) && given.length === 1 ? given[0] : given
    const isInside = typeof body === 'object' && body !== null && 'error' in body
    return JSON.stringify(isInside ? body : { error: body })
  } catch {
    return text
  }
}

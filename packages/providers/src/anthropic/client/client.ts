import type { OwnSecrets } from '../../shared/secrets/own-secrets.ts'
import { sdk } from './sdk.ts'

/** What the adapter hands over with each call. */
export interface AnthropicCallOptions {
  readonly signal: AbortSignal
  readonly maxRetries: number
  /** Milliseconds that the client may wait for an answer to begin. */
  readonly timeout: number
  readonly headers: Readonly<Record<string, string>>
  readonly middleware: readonly AnthropicMiddleware[]
}

/** Sees the HTTP answer before the client reads it. A client that knows no middleware may leave it out. */
export type AnthropicMiddleware = <Request>(
  request: Request,
  next: (request: Request) => Promise<Response>,
) => Promise<Response>

/**
 * Just enough of the official client: `new Anthropic(…)` is one, and so are its siblings for other clouds. `create`
 * resolves to the raw events, in order; iterating ends, or throws, when the call does, and `signal` ends both at once.
 */
export interface AnthropicClient {
  readonly messages: {
    create(body: object, options: AnthropicCallOptions): PromiseLike<AsyncIterable<unknown>>
  }
}

/** What the official client is made with. */
export interface AnthropicClientOptions {
  /** The key, or a function that gets one. Without it: `ANTHROPIC_API_KEY`, or what else the official client finds. */
  readonly apiKey?: string | (() => Promise<string>) | undefined
  /** Where the service is, without `/v1`. Without it: `ANTHROPIC_BASE_URL`, or Anthropic itself. */
  readonly baseURL?: string | undefined
  /** Replaces the `fetch` of the host: a proxy, a recorder. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** The official client. It says nothing on the console, where its messages would show payloads. */
export async function officialClient(
  { apiKey, baseURL, fetch = (input, init) => globalThis.fetch(input, init) }: AnthropicClientOptions,
  secrets: OwnSecrets,
): Promise<AnthropicClient> {
  const { default: Anthropic } = await sdk.load('anthropic')
  return new Anthropic({
    ...(apiKey !== undefined && { apiKey }),
    baseURL,
    fetch: secrets.noting(fetch),
    maxRetries: 0,
    logLevel: 'off',
  })
}

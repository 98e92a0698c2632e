import type { OptionalPackage } from '@tallystick/core/internal'
import type * as anthropicSdk from '@anthropic-ai/sdk'
import type { Json, JsonObject, Opaque } from '@tallystick/core/vocabulary'
import { declarePackage } from '../shared/options.ts'
import { readOpaqueData } from '../shared/reply.ts'
import type { OwnSecrets } from '../shared/secrets.ts'

/** The official SDK. */
export const sdk: OptionalPackage<typeof anthropicSdk> = declarePackage(
  '@anthropic-ai/sdk',
  () => import('@anthropic-ai/sdk'),
)

/** The options that the adapter passes with each call. */
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

/** Options of the official client. */
export interface AnthropicClientOptions {
  /** The key, or a function that gets one. Without it: `ANTHROPIC_API_KEY`, or what else the official client finds. */
  readonly apiKey?: string | (() => Promise<string>) | undefined
  /** Where the service is, without `/v1`. Without it: `ANTHROPIC_BASE_URL`, or Anthropic itself. */
  readonly baseURL?: string | undefined
  /** Replaces the `fetch` of the host: a proxy, a recorder. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** Makes an official client that says nothing on the console, where its messages would show payloads. */
export function createOfficialClient(
  { default: Anthropic }: typeof anthropicSdk,
  { apiKey, baseURL, fetch = (input, init) => globalThis.fetch(input, init) }: AnthropicClientOptions,
  secrets: OwnSecrets,
): AnthropicClient {
  return new Anthropic({
    ...(apiKey !== undefined && { apiKey }),
    baseURL,
    fetch: secrets.noting(fetch),
    maxRetries: 0,
    logLevel: 'off',
  })
}

/** The names of this wire in `ModelRef` and `Opaque`. */
export const provider = 'anthropic'
export const api = 'messages'

/**
 * A piece of a message's content. The vendor announces new kinds within an API version, so only `type` is certain.
 */
export interface WireBlock extends JsonObject {
  readonly type: string
}

/** The message as `message_start` shows it: usually empty, but some calls arrive in it complete. */
export interface WireMessage {
  readonly id?: string
  readonly model?: string
  readonly content?: readonly WireBlock[]
  readonly stop_reason?: string | null
  readonly container?: JsonObject | null
  readonly usage?: JsonObject | null
  readonly input_transformations?: Json
}

/**
 * One event of the stream, all kinds in one loose shape:
 * - `message_start`: `message`
 * - `content_block_start`: `index`, `content_block`
 * - `content_block_delta`: `index`, `delta` (`text_delta`, `input_json_delta`, `thinking_delta`, `signature_delta`,
 *   `citations_delta`, `compaction_delta`, …)
 * - `content_block_stop`: `index`
 * - `message_delta`: `delta` with `stop_reason`, `stop_details` and `container`, `usage` with totals so far,
 *   `context_management` and `input_transformations` with what the vendor left out of the history
 * - `message_stop`: nothing; the proof that the message is whole
 * - `error`: `error` with `type` and `message`. The SDK throws it, gateways may send it under another event name
 */
export interface WireEvent {
  readonly type: string
  readonly index?: number
  readonly message?: WireMessage
  readonly content_block?: WireBlock
  readonly delta?: JsonObject
  readonly usage?: JsonObject | null
  readonly context_management?: JsonObject | null
  readonly input_transformations?: Json
  readonly error?: JsonObject
}

/** A message of the history. */
export interface WireTurn {
  readonly role: 'user' | 'assistant' | 'system'
  readonly content: readonly WireBlock[]
}

interface WireThinkingDetails {
  readonly display?: 'summarized' | 'omitted' | 'updates'
  readonly block_binding?: { readonly prefix_mismatch_behavior: 'drop_block' | 'error' }
}

export type WireThinking =
  | ({ readonly type: 'adaptive' } & WireThinkingDetails)
  | ({ readonly type: 'enabled'; readonly budget_tokens: number } & WireThinkingDetails)
  | { readonly type: 'between_tools' }
  | { readonly type: 'disabled' }

/** The body of `POST /v1/messages`. */
export interface WireRequest {
  readonly model: string
  readonly max_tokens: number
  readonly stream: true
  readonly system?: readonly WireBlock[]
  readonly messages: readonly WireTurn[]
  readonly tools?: readonly JsonObject[]
  readonly tool_choice?: JsonObject
  readonly thinking?: WireThinking
  readonly output_config?: JsonObject
  readonly container?: string
  readonly [field: string]: unknown
}

/**
 * The data of an `Opaque` of this wire: the block's fields that have no place in the part itself, and the sandbox that the
 * reply ran in, which the next request names to find its files again. `note` belongs to the reply as a whole, and never
 * goes back.
 */
export interface OpaqueData extends JsonObject {
  readonly block: JsonObject
  readonly container?: JsonObject
  readonly note?: JsonObject
}

/** Reads the data of a part's `Opaque`; `undefined` for another wire. */
export function readOpaque(opaque: Opaque | undefined): OpaqueData | undefined {
  const data = readOpaqueData(opaque, provider, api) as OpaqueData | undefined
  return typeof data?.block === 'object' ? data : undefined
}

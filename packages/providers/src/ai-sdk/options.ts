import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { ConfigurationError } from '@tallystick/core'
import { isJsonObject, option, type Schema, requireOptions } from '@tallystick/core/internal'
import type { Json, JsonObject, Opaque } from '@tallystick/core/vocabulary'
import type { Timeouts } from '../shared/body.ts'
import { commonChecks, otherNames, type Warning } from '../shared/options.ts'
import { readOpaqueData } from '../shared/reply.ts'

/** Options of `fromAiSdk()`, all optional. */
export interface AiSdkOptions extends Timeouts {
  /**
   * The name of the service in the ledger and in prices. Default: the beginning of the AI SDK's name, `anthropic` of
   * `anthropic.messages`. State that a provider needs back goes to the same service only.
   */
  readonly provider?: string | undefined
  /** The most output tokens of one reply, unless the request says. Default: no maximum. */
  readonly maxOutputTokens?: number | undefined
  /** Settings of the AI SDK for each call, such as `temperature`, `seed`, `reasoning`, `stopSequences`. */
  readonly settings?: JsonObject | undefined
  /** The option of that name of the AI SDK: options by the name of the provider. */
  readonly providerOptions?: JsonObject | undefined
  /**
   * Keeps the values of `settings` and `providerOptions` in the ledger. Default: `false`, which records a digest of each,
   * since a value may be secret.
   */
  readonly recordAdditions?: boolean | undefined
  /** Headers added to every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /**
   * A reply counts as complete although its provider did not say that it ended, for servers that never say so. Default:
   * `false`, such a reply fails as `truncated`.
   */
  readonly endOfStreamIsEnd?: boolean | undefined
  /**
   * The schema of an answer also goes into the instructions, for providers that do not pass it on to the model. Default: as
   * `supportsStructuredOutputs` of the provider says, or its warning, from the next call on.
   */
  readonly answerInInstructions?: boolean | undefined
  /** Gets the parts of a request that the provider could not express, each once for a model. Must not throw. */
  readonly onWarning?: ((warning: AiSdkWarning) => void) | undefined
}

const { anyObject, fields, filledText, maybe, trueOrFalse } = option
const { baseURL: _baseURL, extraBody: _extraBody, fetch: _fetch, ...ownChecks } = commonChecks

const aiSdkOptions: Schema = fields<AiSdkOptions>(
  {
    ...ownChecks,
    provider: maybe(filledText),
    settings: maybe(anyObject),
    providerOptions: maybe(anyObject),
    endOfStreamIsEnd: maybe(trueOrFalse),
    answerInInstructions: maybe(trueOrFalse),
  },
  { ...otherNames, temperature: 'settings.temperature', seed: 'settings.seed', topP: 'settings.topP' },
)

/** Throws `ConfigurationError` for a model, or options, that cannot work. */
export function checkOptions(model: AiSdkModel, options: AiSdkOptions): void {
  if (typeof (Object(model) as Partial<AiSdkModel>).doStream !== 'function') {
    throw new ConfigurationError(
      "fromAiSdk() got something that is not a language model of the AI SDK. Pass one, such as google('gemini-3-pro') of @ai-sdk/google.",
    )
  }
  const { specificationVersion } = model
  if (specificationVersion !== 'v3' && specificationVersion !== 'v4') {
    throw new ConfigurationError(
      `fromAiSdk() got a model of the AI SDK's interface ${specificationVersion}, which it does not know. Use a provider of the AI SDK 6 or 7 (interface v3 or v4).`,
    )
  }
  requireOptions('fromAiSdk', aiSdkOptions, options)
}

/**
 * Something in a request that the AI SDK's provider, or its vendor, could not express. The call continues without it.
 */
export interface AiSdkWarning extends Warning {
  /** The AI SDK's type, such as `unsupported`, `compatibility`, `other`. */
  readonly what: string
}

/** The name of this wire in `ModelRef` and `Opaque`. */
export const api = 'ai-sdk'

export type WireCall = LanguageModelV4CallOptions
export type WireMessage = WireCall['prompt'][number]
/** A part of the stream. Version 3 differs only in files. */
export type WirePart = LanguageModelV4StreamPart

/** The data of an `Opaque` of this wire. `part` holds a part of the AI SDK for which we have no type. */
export type OpaqueData = JsonObject & {
  /** By the provider's name; it goes back on the same part. */
  readonly metadata?: { readonly [provider: string]: JsonObject }
  readonly part?: JsonObject
}

/** Reads the data of a part's `Opaque`; `undefined` for another provider. */
export function readOpaque(opaque: Opaque | undefined, provider: string): OpaqueData | undefined {
  return readOpaqueData(opaque, provider, api)
}

/** Converts a value to JSON: leaves out what JSON cannot carry, and writes bytes as base64. */
export function toJson(value: unknown): Json {
  const text = JSON.stringify(value, (_, field: unknown) =>
    field instanceof Uint8Array
      ? btoa(Array.from(field, (byte) => String.fromCharCode(byte)).join(''))
      : field,
  )
  return text === undefined ? null : (JSON.parse(text) as Json)
}

/** Converts an object to JSON; `undefined` for an empty one, and for any other value. */
export function toJsonObject(value: unknown): JsonObject | undefined {
  const json = toJson(value)
  return isJsonObject(json) && Object.keys(json).length > 0 ? json : undefined
}

/** A language model of the AI SDK, version 3 or 4, such as any provider's `provider('model')`. */
export interface AiSdkModel {
  readonly specificationVersion: string
  readonly provider: string
  readonly modelId: string
  /** By media type, the addresses that the provider fetches itself. */
  readonly supportedUrls?:
    | PromiseLike<Readonly<Record<string, readonly RegExp[]>>>
    | Readonly<Record<string, readonly RegExp[]>>
    | undefined
  /** The provider passes the schema of an answer on; not all providers say so. */
  readonly supportsStructuredOutputs?: boolean | undefined
  doStream(options: never): PromiseLike<{ readonly stream: unknown }>
}

import type { JsonObject } from '@tallystick/core/vocabulary'
import type { AiSdkWarning } from './warning.ts'
import type { Timeouts } from '../../shared/stream/silence-watch.ts'

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
   * Whether a reply counts as whole although its provider did not say that it ended, for servers that never say so.
   * Default: `false`, such a reply fails as `truncated`.
   */
  readonly endOfStreamIsEnd?: boolean | undefined
  /**
   * Whether the schema of an answer also goes into the instructions, for providers that do not pass it on to the model.
   * Default: as `supportsStructuredOutputs` of the provider says, or its warning, from the next call on.
   */
  readonly answerInInstructions?: boolean | undefined
  /** Gets the parts of a request that the provider could not express, each once for a model. Must not throw. */
  readonly onWarning?: ((warning: AiSdkWarning) => void) | undefined
}

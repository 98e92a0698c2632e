import type { JsonObject } from '@tallystick/core/vocabulary'
import type { AiSdkWarning } from './warning.ts'

/** How `fromAiSdk()` calls the model. Everything may be left out. */
export interface AiSdkOptions {
  /**
   * Whose model this is, as the ledger and the prices name it. The beginning of what the AI SDK calls it: `anthropic` of
   * `anthropic.messages`. What a provider needs back goes to the same one only.
   */
  readonly provider?: string | undefined
  /** Output tokens of one reply at most, where the request does not say. None. */
  readonly maxOutputTokens?: number | undefined
  /** Settings of the AI SDK for each call, such as `temperature`, `seed`, `reasoning`, `stopSequences`. */
  readonly settings?: JsonObject | undefined
  /** What the AI SDK calls so: options by the name of the provider. */
  readonly providerOptions?: JsonObject | undefined
  /** Headers added to every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /**
   * Whether a reply counts as whole where its provider does not say that it ended. Off: such a reply fails as `truncated`.
   * For servers that never say so.
   */
  readonly endOfStreamIsEnd?: boolean | undefined
  /**
   * Whether the schema of an answer also goes into the instructions, for providers that do not pass it on to the model.
   * If not given, `supportsStructuredOutputs` of the provider decides, or its warning, from the next call on.
   */
  readonly answerInInstructions?: boolean | undefined
  /** Gets what the provider could not do of a request, each thing once for a model. Must not throw. */
  readonly onWarning?: ((warning: AiSdkWarning) => void) | undefined
  /** The longest wait for an answer to begin, in milliseconds. 5 minutes. */
  readonly responseTimeoutMs?: number | undefined
  /** The longest silence while a reply streams, in milliseconds. 2 minutes. */
  readonly idleTimeoutMs?: number | undefined
}

import type { JsonObject } from '@tallystick/core/vocabulary'
import type { OpenAIClientOptions } from '../client/client.ts'
import type { Timeouts } from '../../shared/stream/silence-watch.ts'

/** Something in a request that this wire, or this server, cannot express. The request is sent without it. */
export interface OpenAIWarning {
  /** What was left out or changed. */
  readonly what:
    | 'schema'
    | 'tool_name'
    | 'tool_choice'
    | 'parallel_tool_calls'
    | 'output_schema'
    | 'state'
    | 'reasoning'
    | 'model_settings'
  /** One sentence, for people: names and places in a schema, no content. */
  readonly message: string
}

/** A tool whose input the model writes as free text (SQL, a patch), and the runtime gets as an object with one field. */
export interface OpenAICustomTool {
  /** The field of the tool's input that the text becomes. */
  readonly field: string
  /** What the text has to look like, in the vendor's words, such as `{ type: 'grammar', syntax: 'lark', definition }`. */
  readonly format?: JsonObject | undefined
}

/** Options of both wires of OpenAI, all optional. */
export interface OpenAICommonOptions extends OpenAIClientOptions, Timeouts {
  /** The name of the service in the ledger and in prices. Default: `openai`. */
  readonly provider?: string | undefined
  /** The most output tokens of one reply, reasoning included. The request may ask for less. */
  readonly maxOutputTokens?: number | undefined
  /** Asks the vendor to guarantee that tool inputs fit their schemas, if a schema allows it. Default: `false`. */
  readonly strictTools?: boolean | undefined
  /** Tools, by name, that are offered as custom tools: the model writes their input as free text. */
  readonly customTools?: Readonly<Record<string, OpenAICustomTool>> | undefined
  /** Fields added to the definition of a tool, by its name, in the vendor's words, such as `{ defer_loading: true }`. */
  readonly toolFields?: Readonly<Record<string, JsonObject>> | undefined
  /** Requests with the same key share the vendor's prompt cache. */
  readonly promptCacheKey?: string | undefined
  /** The speed and price of calls: `auto`, `default`, `flex`, `priority`; the service says which of them it has. */
  readonly serviceTier?: string | undefined
  /** Names and values that the service keeps with what it stores of the calls, for its own lists. At most 16. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Headers added to every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Fields of the request's body that no option covers. They replace those of options. */
  readonly extraBody?: JsonObject | undefined
  /**
   * Keeps the values of `extraBody`, `toolFields` and `providerTools` in the ledger. Default: `false`, which records the names of
   * their fields and a digest of each value, since a value may be secret.
   */
  readonly recordAdditions?: boolean | undefined
  /** Gets the parts of a request that the wire could not express, each once for a model. Must not throw. */
  readonly onWarning?: ((warning: OpenAIWarning) => void) | undefined
}

import type { JsonObject } from '@tallystick/core/vocabulary'
import type { OpenAIClientOptions } from '../client/client.ts'

/** Something that a request asked for and that this wire, or this server, cannot express. The call goes out without it. */
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
  /** One sentence, for people: names and places in a schema, never what was said. */
  readonly message: string
}

/** A tool whose input the model writes as free text (SQL, a patch), and the runtime gets as an object with one field. */
export interface OpenAICustomTool {
  /** The field of the tool's input that the text becomes. */
  readonly field: string
  /** What the text has to look like, in the vendor's words, such as `{ type: 'grammar', syntax: 'lark', definition }`. */
  readonly format?: JsonObject
}

/** How both wires of OpenAI call their model. Everything may be left out. */
export interface OpenAICommonOptions extends OpenAIClientOptions {
  /** Whose service this is, as the ledger and the prices name it: `openai` where nothing is said. */
  readonly provider?: string | undefined
  /** Output tokens of one reply at most, reasoning included. The request may ask for less. */
  readonly maxOutputTokens?: number | undefined
  /** Asks for tool inputs that fit their schemas, guaranteed by the vendor, where a schema allows it. Off. */
  readonly strictTools?: boolean | undefined
  /** Tools, by name, that are offered as custom tools: the model writes their input as free text. */
  readonly customTools?: Readonly<Record<string, OpenAICustomTool>> | undefined
  /** Fields added to the definition of a tool, by its name, in the vendor's words, such as `{ defer_loading: true }`. */
  readonly toolFields?: Readonly<Record<string, JsonObject>> | undefined
  /** Requests with the same key share the vendor's prompt cache. */
  readonly promptCacheKey?: string | undefined
  /** At what speed and price: `auto`, `default`, `flex`, `priority`; which of them there are, the service says. */
  readonly serviceTier?: string | undefined
  /** Names and values that the service keeps with what it stores of the calls, for its own lists. At most 16. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Headers added to every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Fields of the request's body that no option covers. They win over those that one does. */
  readonly extraBody?: JsonObject | undefined
  /** Gets what a request could not express, each thing once for a model. Must not throw. */
  readonly onWarning?: ((warning: OpenAIWarning) => void) | undefined
  /** The longest wait for an answer to begin, in milliseconds. 5 minutes, which is also where Node's own fetch gives up. */
  readonly responseTimeoutMs?: number | undefined
  /** The longest silence while a reply streams, in milliseconds; keep-alives break it. 2 minutes. */
  readonly idleTimeoutMs?: number | undefined
}

import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Warning } from '../../shared/options/warning.ts'
import type { AnthropicClient, AnthropicClientOptions } from '../client/client.ts'
import type { Timeouts } from '../../shared/stream/silence-watch.ts'

/** Something in a request that this wire cannot express. The request is sent without it. */
export interface AnthropicWarning extends Warning {
  readonly what:
    | 'schema'
    | 'tool_name'
    | 'output_schema'
    | 'tool_choice'
    | 'thinking'
    | 'citations'
    | 'model_settings'
}

/** How thinking is shown in the reply, and what becomes of earlier thinking. */
export interface AnthropicThinkingDetails {
  /** `updates` shows short notes on the progress. Default: as the model has it. */
  readonly display?: 'summarized' | 'omitted' | 'updates' | undefined
  /**
   * What the service does with earlier thinking that belongs to another beginning of the conversation, because a
   * compaction, a handoff or other tools changed it. `drop_block` leaves it out, and the reply's record says so; `error`
   * refuses the request, which then goes out once more without any earlier thinking; `unset` leaves it to the account.
   * Default: `drop_block` for models that bind their thinking, `unset` for others.
   */
  readonly onPrefixMismatch?: 'drop_block' | 'error' | 'unset' | undefined
}

/** How the model thinks before it answers. Which of these a model takes, and its default, depends on the model. */
export type AnthropicThinking =
  /** The model decides when and how much. */
  | ({ readonly type: 'adaptive' } & AnthropicThinkingDetails)
  /** Up to `budgetTokens` (at least 1024) in every reply; a request that cannot have them is sent without. */
  | ({ readonly type: 'enabled'; readonly budgetTokens: number } & AnthropicThinkingDetails)
  | { readonly type: 'between_tools' }
  | { readonly type: 'disabled' }

/** An MCP server whose tools Anthropic calls itself. */
export interface AnthropicMcpServer {
  readonly name: string
  readonly url: string
  /** Sent with each request, and never recorded. */
  readonly authorizationToken?: string | undefined
  /** Which of its tools are offered and how, in the vendor's form: `default_config`, `configs`. Default: all. */
  readonly toolset?: JsonObject | undefined
}

/** Options of `anthropic()`, all optional. */
export interface AnthropicOptions extends AnthropicClientOptions, Timeouts {
  /** A client of your own (another cloud, a proxy, your own logging) instead of `apiKey` and `baseURL`. */
  readonly client?: AnthropicClient | undefined
  /** The most output tokens of one reply, thinking included, unless the request says. Default: 32 000. */
  readonly maxOutputTokens?: number | undefined
  readonly thinking?: AnthropicThinking | undefined
  readonly effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined
  /**
   * How long the vendor keeps the beginning of the prompt in its cache: five minutes (the default; writing costs a
   * quarter more than reading anew, finding it a tenth), an hour, or not at all.
   */
  readonly promptCache?: '5m' | '1h' | 'off' | undefined
  /** Asks for answers that cite the documents of the history. A schema of the answer turns it off. Default: `false`. */
  readonly citations?: boolean | undefined
  /**
   * Asks the vendor to guarantee that tool inputs fit their schemas, if a schema allows it, and for as many tools as
   * the vendor takes. Default: `false`.
   */
  readonly strictTools?: boolean | undefined
  /**
   * Lets tool inputs stream while they are written, unchecked by the vendor, instead of in checked pieces. An input
   * that turns out not to be JSON is a malformed call. Default: `false`.
   */
  readonly eagerToolInputs?: boolean | undefined
  /** Fields added to the definition of a tool, by its name, in the vendor's words, such as `{ defer_loading: true }`. */
  readonly toolFields?: Readonly<Record<string, JsonObject>> | undefined
  /**
   * Tools that Anthropic runs itself, in its own words, such as
   * `{ type: 'web_search_20260318', name: 'web_search', max_uses: 3 }`. A run with `maxCostUsd` needs the `max_uses`, since
   * Anthropic bills each search.
   */
  readonly providerTools?: readonly JsonObject[] | undefined
  /** MCP servers whose tools Anthropic calls itself. */
  readonly mcpServers?: readonly AnthropicMcpServer[] | undefined
  /** What Anthropic removes from a long history, in Anthropic's words, such as `{ type: 'compact_20260112' }`. */
  readonly contextEdits?: readonly JsonObject[] | undefined
  /** Values of the `anthropic-beta` header, beside those that the other options need. */
  readonly betas?: readonly string[] | undefined
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
  readonly onWarning?: ((warning: AnthropicWarning) => void) | undefined
}

import type { JsonObject } from '@tallystick/core/vocabulary'
import type { Warning } from '../../shared/options/warning.ts'
import type { AnthropicClient, AnthropicClientOptions } from '../client/client.ts'

/** Something that a request asked for and that this wire cannot express. The call goes out without it. */
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

/** How the model thinks before it answers. Which of these a model takes, and what holds when none is set, is its own. */
export type AnthropicThinking =
  /** The model decides when and how much. */
  | { readonly type: 'adaptive'; readonly display?: 'summarized' | 'omitted' }
  /** Up to `budgetTokens` (at least 1024) in every reply; a request that cannot have them goes out without. */
  | { readonly type: 'enabled'; readonly budgetTokens: number; readonly display?: 'summarized' | 'omitted' }
  | { readonly type: 'between_tools' }
  | { readonly type: 'disabled' }

/** An MCP server whose tools Anthropic calls itself. */
export interface AnthropicMcpServer {
  readonly name: string
  readonly url: string
  /** Sent with each request, and nowhere kept. */
  readonly authorizationToken?: string
  /** Which of its tools are offered and how, in the vendor's words: `default_config`, `configs`. All, where nothing is said. */
  readonly toolset?: JsonObject
}

/** How `anthropic()` calls its model. Everything may be left out. */
export interface AnthropicOptions extends AnthropicClientOptions {
  /** A client of your own (another cloud, a proxy, your own logging) instead of `apiKey` and `baseURL`. */
  readonly client?: AnthropicClient | undefined
  /** Output tokens of one reply at most, thinking included, where the request does not say. 32 000. */
  readonly maxOutputTokens?: number | undefined
  readonly thinking?: AnthropicThinking | undefined
  readonly effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined
  /**
   * How long the vendor keeps the beginning of the prompt in its cache: five minutes (the default; writing costs a
   * quarter more than reading anew, finding it a tenth), an hour, or not at all.
   */
  readonly promptCache?: '5m' | '1h' | 'off' | undefined
  /** Asks for answers that cite the documents of the history. Not together with a schema of the answer, which wins. Off. */
  readonly citations?: boolean | undefined
  /**
   * Asks for tool inputs that fit their schemas, guaranteed by the vendor, where a schema allows it and for as many tools
   * as the vendor takes. Off.
   */
  readonly strictTools?: boolean | undefined
  /**
   * Lets tool inputs stream as they are written, not checked by the vendor, instead of in pieces that it has checked: one
   * that turns out to be no JSON is a malformed call. Off.
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
  /** Fields of the request's body that no option covers. They win over those that one does. */
  readonly extraBody?: JsonObject | undefined
  /** Gets what a request could not express, each thing once for a model. Must not throw. */
  readonly onWarning?: ((warning: AnthropicWarning) => void) | undefined
  /** The longest wait for an answer to begin, in milliseconds. 5 minutes, which is also where Node's own fetch gives up. */
  readonly responseTimeoutMs?: number | undefined
  /** The longest silence while a reply streams, in milliseconds; keep-alives break it. 2 minutes. */
  readonly idleTimeoutMs?: number | undefined
}

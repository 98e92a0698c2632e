import type { JsonObject } from '@tallystick/core/vocabulary'
import type { OpenAIClient } from '../../openai/client/client.ts'
import type { OpenAICommonOptions } from '../../openai/options/options.ts'

/** How `openai()` calls its model. Everything may be left out. */
export interface OpenAIOptions extends OpenAICommonOptions {
  /** A client of your own (Azure, a proxy, your own logging) instead of `apiKey` and `baseURL`. */
  readonly client?: OpenAIClient | undefined
  /**
   * How the model reasons: `effort` (`none` to `max`; which of them a model takes is its own), and `summary`, without
   * which no reasoning is shown.
   */
  readonly reasoning?:
    | { readonly effort?: string; readonly summary?: 'auto' | 'concise' | 'detailed' }
    | undefined
  readonly verbosity?: 'low' | 'medium' | 'high' | undefined
  /**
   * What OpenAI is to add to its reply beside what the adapter needs, such as `web_search_call.action.sources`. It is kept
   * with the parts of the reply.
   */
  readonly include?: readonly string[] | undefined
  /**
   * Tools that OpenAI runs itself, in its own words, such as `{ type: 'web_search' }`. A run with `maxCostUsd` needs a bound
   * of the searches, since OpenAI bills each: `extraBody: { max_tool_calls: 3 }`.
   */
  readonly providerTools?: readonly JsonObject[] | undefined
  /**
   * The tool that stands for the question whether a call to an MCP server may be made: the call comes here under this
   * name with `server`, `tool` and `input`, and a result that is a success approves it. `mcp_approval`.
   */
  readonly approvalTool?: string | undefined
  /**
   * Lets OpenAI keep each response, and sends only what is new after the last of them (`previous_response_id`).
   * Without it OpenAI keeps nothing, and every request carries the whole history.
   */
  readonly chain?: boolean | undefined
  /** The id of a conversation that OpenAI keeps: requests carry only what it has not seen. Not together with `chain`. */
  readonly conversation?: string | undefined
}

import type { JsonObject } from '@tallystick/core/vocabulary'
import type { OpenAIClient } from '../../openai/client/client.ts'
import type { OpenAICommonOptions } from '../../openai/options/options.ts'

/** Options of `openai()`, all optional. */
export interface OpenAIOptions extends OpenAICommonOptions {
  /** A client of your own (Azure, a proxy, your own logging) instead of `apiKey` and `baseURL`. */
  readonly client?: OpenAIClient | undefined
  /**
   * How the model reasons: `effort` (`none` to `max`; which of them a model takes depends on the model), and `summary`,
   * without which no reasoning is shown.
   */
  readonly reasoning?:
    | {
        readonly effort?: string | undefined
        readonly summary?: 'auto' | 'concise' | 'detailed' | undefined
      }
    | undefined
  readonly verbosity?: 'low' | 'medium' | 'high' | undefined
  /**
   * What OpenAI adds to its reply beside what the adapter needs, such as `web_search_call.action.sources`. It is kept
   * with the parts of the reply.
   */
  readonly include?: readonly string[] | undefined
  /**
   * Tools that OpenAI runs itself, in its own words, such as `{ type: 'web_search' }`. A run with `maxCostUsd` needs a bound
   * of the searches, since OpenAI bills each: `extraBody: { max_tool_calls: 3 }`.
   */
  readonly providerTools?: readonly JsonObject[] | undefined
  /**
   * Has OpenAI work on each response in the background, and keep it for a while: where the connection breaks, the rest of the
   * reply is sent for, instead of another reply asked for and paid. A call that is given up is cancelled there. For replies
   * that take many minutes; the first word comes later. Default: `false`.
   */
  readonly background?: boolean | undefined
  /**
   * Tools of yours, by their names, that are offered as tools which OpenAI trained its models on. `shell` gets `commands`,
   * `timeout_ms` and `max_output_length`, and may answer `{ stdout, stderr, exitCode }`; `apply_patch` gets `type`
   * (`create_file`, `update_file`, `delete_file`), `path` and `diff`.
   */
  readonly nativeTools?:
    | { readonly shell?: string | undefined; readonly apply_patch?: string | undefined }
    | undefined
  /**
   * The tool that represents OpenAI's question whether it may call an MCP server: the question arrives as a call of
   * this tool with `server`, `tool` and `input`, and a successful result approves. Default: `mcp_approval`.
   */
  readonly approvalTool?: string | undefined
  /**
   * Lets OpenAI keep each response, and sends only the messages after the last one (`previous_response_id`). Without it
   * OpenAI keeps nothing, and every request carries the whole history.
   */
  readonly chain?: boolean | undefined
  /** The id of a conversation that OpenAI keeps: requests carry only what it has not seen. Not together with `chain`. */
  readonly conversation?: string | undefined
}

import type { OpenAIChatClient } from '../../openai/client/client.ts'
import type { OpenAICommonOptions } from '../../openai/options/options.ts'
import type { OpenAIChatQuirks, OpenAIChatServer } from './quirks.ts'

/** Options of `openaiChat()`, all optional. */
export interface OpenAIChatOptions extends OpenAICommonOptions {
  /** A client of your own (Azure, a proxy, your own logging) instead of `apiKey` and `baseURL`. */
  readonly client?: OpenAIChatClient | undefined
  /**
   * The server, if it is one of those that the adapter knows; also the `provider`, if that is not given. Default:
   * `openai`. The adapter never guesses it from the address.
   */
  readonly server?: OpenAIChatServer | undefined
  /** How the server differs from `server`. */
  readonly quirks?: OpenAIChatQuirks | undefined
  /** How much the model reasons: `none` to `max`; which of them a model takes depends on the model. */
  readonly reasoningEffort?: string | undefined
  readonly verbosity?: 'low' | 'medium' | 'high' | undefined
}

import type { OpenAIChatClient } from '../../openai/client/client.ts'
import type { OpenAICommonOptions } from '../../openai/options/options.ts'
import type { OpenAIChatQuirks, OpenAIChatServer } from './quirks.ts'

/** How `openaiChat()` calls its model. Everything may be left out. */
export interface OpenAIChatOptions extends OpenAICommonOptions {
  /** A client of your own (Azure, a proxy, your own logging) instead of `apiKey` and `baseURL`. */
  readonly client?: OpenAIChatClient | undefined
  /**
   * Which server it is, of those whose ways are known; also the `provider` where none is given. `openai`. It is never
   * guessed from an address.
   */
  readonly server?: OpenAIChatServer | undefined
  /** Ways of the server that differ from what is known of it. */
  readonly quirks?: OpenAIChatQuirks | undefined
  /** How much the model reasons: `none` to `max`; which of them a model takes is its own. */
  readonly reasoningEffort?: string | undefined
  readonly verbosity?: 'low' | 'medium' | 'high' | undefined
}

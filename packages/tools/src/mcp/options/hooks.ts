import type { client } from './client-library.ts'

/** Where a server's question comes from. */
export interface McpQuestion {
  readonly server: string
  /** Aborts when the server takes the question back, or its connection ends. */
  readonly signal: AbortSignal
}

/**
 * Answers questions of servers. Without a hook the server learns at the start that this client answers no such question. What a
 * hook throws, the server reads as a refusal. While a hook decides, the time of a call stands still.
 */
export interface McpHooks {
  /** A server asks the user for data, by a form or at a URL: `{ action: 'accept', content }`, `decline` or `cancel`. */
  readonly elicit?:
    | ((
        request: client.ElicitRequestParams,
        question: McpQuestion,
      ) => client.ElicitResult | Promise<client.ElicitResult>)
    | undefined
  /** A server asks for an answer of a model, at your cost. */
  readonly sample?:
    | ((
        request: client.CreateMessageRequestParams,
        question: McpQuestion,
      ) => client.CreateMessageResult | Promise<client.CreateMessageResult>)
    | undefined
}

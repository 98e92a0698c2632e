import type { client } from './client-library.ts'

/** The server that asks, and the signal of its question. */
export interface McpQuestion {
  readonly server: string
  /** Aborts when the server takes the question back, or its connection ends. */
  readonly signal: AbortSignal
}

/**
 * Answers questions of servers. A server learns at the start which questions this client answers: those with a hook. If
 * a hook throws, the server reads a refusal. While a hook decides, the time limit of the call does not run.
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

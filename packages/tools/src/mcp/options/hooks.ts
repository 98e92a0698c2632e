import type { client } from './client-library.ts'

/** The server that asks, and the signal of its question. */
export interface McpQuestion {
  readonly server: string
  /** Aborts when the server takes the question back, or its connection ends. */
  readonly signal: AbortSignal
}

/**
 * Answers questions of servers. A server learns at the start which questions this client answers: those with a hook. If
 * a hook throws, the server reads a refusal. While a hook decides, the time limit of the call does not run; a server asks
 * one thing at a time, within a call of a tool, and only so often. Texts come without control characters, and addresses are
 * those of web pages.
 */
export interface McpHooks {
  /** A server asks the user for data, by a form or at a URL: `{ action: 'accept', content }`, `decline` or `cancel`. */
  readonly elicit?:
    | ((
        request: client.ElicitRequestParams,
        question: McpQuestion,
      ) => client.ElicitResult | Promise<client.ElicitResult>)
    | undefined
  /**
   * A server asks for an answer of a model, at your cost, which no limit of a run counts. Ask the user first, or give only
   * servers that you trust a manager with this hook: what it throws is a refusal.
   */
  readonly sample?:
    | ((
        request: client.CreateMessageRequestParams,
        question: McpQuestion,
      ) => client.CreateMessageResult | Promise<client.CreateMessageResult>)
    | undefined
}

/** How much of a model a server may use within one call of a tool. */
export interface SamplingLimits {
  /** The most answers. */
  readonly maxPerCall: number
  /** The most tokens of each; a server that asks for more gets this many. */
  readonly maxTokens: number
}

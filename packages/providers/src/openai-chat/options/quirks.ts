import { omitUndefined } from '@tallystick/core/kit'

/** How a server differs from OpenAI. All fields are optional: what is left out is as with OpenAI. */
export interface OpenAIChatQuirks {
  /** The role of instructions. Default: `system`. */
  readonly systemRole?: 'system' | 'developer' | undefined
  /** The field that limits the output. Default: `max_completion_tokens`. */
  readonly maxTokensField?: 'max_completion_tokens' | 'max_tokens' | undefined
  /** Whether the server takes the option that asks for usage in the stream. Default: `true`. */
  readonly streamUsage?: boolean | undefined
  /** Whether it takes `parallel_tool_calls`. Default: `true`. */
  readonly parallelToolCalls?: boolean | undefined
  /**
   * Whether it obeys `tool_choice`: all values, or none, so that the adapter cannot force a tool, and warns. Default:
   * `all`.
   */
  readonly toolChoice?: 'all' | 'none' | undefined
  /**
   * Whether it can enforce a schema of the answer, only JSON, or nothing. If it cannot enforce the schema, the
   * instructions contain it. Default: `json_schema`.
   */
  readonly structuredOutput?: 'json_schema' | 'json_object' | 'none' | undefined
  /** Whether it knows `strict` on tools and schemas. Default: `true`. */
  readonly strict?: boolean | undefined
  /** How many stop texts it takes. Default: 4. */
  readonly maxStop?: number | undefined
  /** The field of a seed. Default: `seed`. */
  readonly seedField?: 'seed' | 'random_seed' | 'none' | undefined
  /**
   * Which ids of calls it takes: any (64 characters of `[a-zA-Z0-9_-]`), or nine letters and digits. Default: `any`.
   */
  readonly callIds?: 'any' | 'nine_alphanumeric' | undefined
  /** Which names of tools it takes: 64 characters of `[a-zA-Z0-9_-]`, or any word. Default: `identifier`. */
  readonly toolNames?: 'identifier' | 'any' | undefined
  /**
   * Whether messages of the user and of the assistant must alternate, beginning with the user, and no message of the
   * user may follow that of a tool. Default: `false`.
   */
  readonly alternatingRoles?: boolean | undefined
  /**
   * Whether a stream counts as whole that ends properly and has words or calls, but no finish reason. A broken or
   * silent stream never does. Default: `false`.
   */
  readonly finishReasonOptional?: boolean | undefined
  /**
   * When the reasoning of a reply is sent back with it: in the open turn, always, or never. A server that showed none
   * gets none. Default: `open_turn`.
   */
  readonly replayReasoning?: 'open_turn' | 'always' | 'never' | undefined
}

/** The servers that the adapter knows by name. */
export type OpenAIChatServer =
  | 'openai'
  | 'azure'
  | 'deepseek'
  | 'groq'
  | 'llamacpp'
  | 'lmstudio'
  | 'mistral'
  | 'ollama'
  | 'openrouter'
  | 'vllm'
  | 'xai'

/** All ways of a server. */
export type WholeQuirks = {
  readonly [Name in keyof OpenAIChatQuirks]-?: Exclude<OpenAIChatQuirks[Name], undefined>
}

/** What is known of a server's ways. */
export const quirksOf: { readonly [server in OpenAIChatServer]: OpenAIChatQuirks } = {
  openai: {},
  azure: {},
  deepseek: {
    maxTokensField: 'max_tokens',
    parallelToolCalls: false,
    structuredOutput: 'json_object',
    strict: false,
    maxStop: 16,
    seedField: 'none',
  },
  groq: { strict: false },
  llamacpp: { maxTokensField: 'max_tokens', strict: false, maxStop: Infinity },
  lmstudio: { maxTokensField: 'max_tokens', parallelToolCalls: false, strict: false, maxStop: Infinity },
  mistral: {
    maxTokensField: 'max_tokens',
    streamUsage: false,
    callIds: 'nine_alphanumeric',
    alternatingRoles: true,
    maxStop: Infinity,
    seedField: 'random_seed',
  },
  ollama: {
    maxTokensField: 'max_tokens',
    parallelToolCalls: false,
    toolChoice: 'none',
    strict: false,
    maxStop: Infinity,
    toolNames: 'any',
  },
  openrouter: { maxTokensField: 'max_tokens', replayReasoning: 'always' },
  vllm: { maxTokensField: 'max_tokens', alternatingRoles: true, strict: false, maxStop: Infinity },
  xai: {},
}

/** Returns all quirks of a server: given ones override those known for it. */
export function allQuirks(server: OpenAIChatServer, quirks: OpenAIChatQuirks | undefined): WholeQuirks {
  return {
    systemRole: 'system',
    maxTokensField: 'max_completion_tokens',
    streamUsage: true,
    parallelToolCalls: true,
    toolChoice: 'all',
    structuredOutput: 'json_schema',
    strict: true,
    callIds: 'any',
    toolNames: 'identifier',
    alternatingRoles: false,
    finishReasonOptional: false,
    maxStop: 4,
    seedField: 'seed',
    replayReasoning: 'open_turn',
    ...omitUndefined(quirksOf[server]),
    ...omitUndefined({ ...quirks }),
  }
}

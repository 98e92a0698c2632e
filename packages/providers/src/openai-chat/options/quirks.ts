/** How a server differs from OpenAI. Everything may be left out: what is, is as OpenAI has it. */
export interface OpenAIChatQuirks {
  /** The role that instructions go by. `system`. */
  readonly systemRole?: 'system' | 'developer'
  /** The field that bounds the output. `max_completion_tokens`. */
  readonly maxTokensField?: 'max_completion_tokens' | 'max_tokens'
  /** Whether the server takes the wish for usage in the stream. `true`. */
  readonly streamUsage?: boolean
  /** Whether it takes `parallel_tool_calls`. `true`. */
  readonly parallelToolCalls?: boolean
  /** Whether it obeys `tool_choice`: all its values, or none, so that forcing a tool is left out with a warning. `all`. */
  readonly toolChoice?: 'all' | 'none'
  /**
   * Whether it can hold an answer to a schema, to JSON of any kind, or to nothing. Where not to a schema, the
   * instructions contain the schema. `json_schema`.
   */
  readonly structuredOutput?: 'json_schema' | 'json_object' | 'none'
  /** Whether it knows `strict` on tools and schemas. `true`. */
  readonly strict?: boolean
  /** How many texts that end a reply it takes. 4. */
  readonly maxStop?: number
  /** The field that a seed goes by. `seed`. */
  readonly seedField?: 'seed' | 'random_seed' | 'none'
  /** What it takes for the id of a call: 64 characters of `[a-zA-Z0-9_-]`, or nine letters and digits. `any`. */
  readonly callIds?: 'any' | 'nine_alphanumeric'
  /** What it takes for the name of a tool: 64 characters of `[a-zA-Z0-9_-]`, or any word. `identifier`. */
  readonly toolNames?: 'identifier' | 'any'
  /**
   * Whether messages of the user and of the assistant have to take turns, beginning with the user, and none of the user
   * may follow a tool's. `false`.
   */
  readonly alternatingRoles?: boolean
  /**
   * Whether a stream that comes to its proper end without a finish reason, but not without words or calls, was whole. A
   * break or a silence is no such end, whatever came before. `false`.
   */
  readonly finishReasonOptional?: boolean
  /**
   * Whether the reasoning that a reply showed goes back with it: in the turn that is under way, always, or never. A
   * server that showed none gets none. `open_turn`.
   */
  readonly replayReasoning?: 'open_turn' | 'always' | 'never'
}

/** Servers whose ways are known by name. */
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
export function allQuirks(
  server: OpenAIChatServer,
  quirks: OpenAIChatQuirks | undefined,
): Required<OpenAIChatQuirks> {
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
    ...quirksOf[server],
    ...quirks,
  }
}

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
   * When the reasoning of a reply is sent back with it: in the open turn, in the open turn and in all turns with calls,
   * always, or never. A server that showed none gets none. Default: `turns_with_calls`.
   */
  readonly replayReasoning?: 'open_turn' | 'turns_with_calls' | 'always' | 'never' | undefined
  /**
   * The text in the place of the reasoning of a reply with calls that has none, as one of another model: some servers refuse
   * it otherwise. Default: `false`, no such field.
   */
  readonly reasoningPlaceholder?: string | false | undefined
  /**
   * Whether the server reads the arguments of calls in the history, so that arguments which are no JSON would have it
   * refuse every later request: they go in an object then. Default: `false`, and they go as the model wrote them.
   */
  readonly readsArguments?: boolean | undefined
  /** Whether calls need a signature of Google's, so that those of other models get the word that stands for one. Default: `false`. */
  readonly signsCalls?: boolean | undefined
}

/** The servers that the adapter knows by name. */
export type OpenAIChatServer =
  | 'openai'
  | 'azure'
  | 'deepseek'
  | 'gemini'
  | 'groq'
  | 'llamacpp'
  | 'lmstudio'
  | 'mistral'
  | 'moonshot'
  | 'ollama'
  | 'openrouter'
  | 'sglang'
  | 'vllm'
  | 'xai'
  | 'zai'

/** All ways of a server. */
export type WholeQuirks = {
  readonly [Name in keyof OpenAIChatQuirks]-?: Exclude<OpenAIChatQuirks[Name], undefined>
}

/** Of servers that render the history with a model's own template, which takes turns and arguments apart. */
const ownTemplates: OpenAIChatQuirks = {
  maxTokensField: 'max_tokens',
  strict: false,
  maxStop: Infinity,
  readsArguments: true,
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
    reasoningPlaceholder: '',
  },
  gemini: {
    maxTokensField: 'max_tokens',
    parallelToolCalls: false,
    strict: false,
    maxStop: 5,
    seedField: 'none',
    readsArguments: true,
    signsCalls: true,
  },
  groq: { strict: false, readsArguments: true },
  llamacpp: ownTemplates,
  lmstudio: { ...ownTemplates, parallelToolCalls: false },
  mistral: {
    maxTokensField: 'max_tokens',
    streamUsage: false,
    callIds: 'nine_alphanumeric',
    alternatingRoles: true,
    maxStop: Infinity,
    seedField: 'random_seed',
    readsArguments: true,
  },
  moonshot: {
    parallelToolCalls: false,
    maxStop: 5,
    seedField: 'none',
    reasoningPlaceholder: ' ',
    readsArguments: true,
  },
  ollama: { ...ownTemplates, parallelToolCalls: false, toolChoice: 'none', toolNames: 'any' },
  openrouter: { maxTokensField: 'max_tokens', replayReasoning: 'always', readsArguments: true },
  sglang: { ...ownTemplates, alternatingRoles: true },
  vllm: { ...ownTemplates, alternatingRoles: true },
  xai: { readsArguments: true },
  zai: {
    maxTokensField: 'max_tokens',
    streamUsage: false,
    parallelToolCalls: false,
    toolChoice: 'none',
    structuredOutput: 'json_object',
    strict: false,
    maxStop: 1,
    seedField: 'none',
    readsArguments: true,
  },
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
    replayReasoning: 'turns_with_calls',
    reasoningPlaceholder: false,
    readsArguments: false,
    signsCalls: false,
    ...omitUndefined(quirksOf[server]),
    ...omitUndefined({ ...quirks }),
  }
}

import { ConfigurationError } from '@tallystick/core'
import { omitUndefined, option, type OptionalSchema } from '@tallystick/core/internal'
import type { JsonObject, MaxWebSearches } from '@tallystick/core/vocabulary'
import type { Timeouts } from '../shared/body.ts'
import { getCount, getText } from '../shared/json.ts'
import { apiKey, commonChecks, objects, otherNames, requireModelOptions } from '../shared/options.ts'
import type { OpenAIChatClient, OpenAIClient, OpenAIClientOptions } from './client.ts'

/** Something in a request that this wire, or this server, cannot express. The request is sent without it. */
export interface OpenAIWarning {
  /** The part of the request that was left out or changed. */
  readonly what:
    | 'schema'
    | 'tool_name'
    | 'tool_choice'
    | 'parallel_tool_calls'
    | 'output_schema'
    | 'state'
    | 'reasoning'
    | 'model_settings'
  /** One sentence, for people: names and places in a schema, no content. */
  readonly message: string
}

/** A tool whose input the model writes as free text (SQL, a patch), and the runtime gets as an object with one field. */
export interface OpenAICustomTool {
  /** The field of the tool's input that the text becomes. */
  readonly field: string
  /** The form of the text, in the vendor's words, such as `{ type: 'grammar', syntax: 'lark', definition }`. */
  readonly format?: JsonObject | undefined
}

/** Options of both wires of OpenAI, all optional. */
export interface OpenAICommonOptions extends OpenAIClientOptions, Timeouts {
  /** The name of the service in the ledger and in prices. Default: `openai`. */
  readonly provider?: string | undefined
  /** The most output tokens of one reply, reasoning included. The request may ask for less. */
  readonly maxOutputTokens?: number | undefined
  /** Asks the vendor to guarantee that tool inputs fit their schemas, if a schema allows it. Default: `false`. */
  readonly strictTools?: boolean | undefined
  /** Tools, by name, that are offered as custom tools: the model writes their input as free text. */
  readonly customTools?: Readonly<Record<string, OpenAICustomTool>> | undefined
  /** Fields added to the definition of a tool, by its name, in the vendor's words, such as `{ defer_loading: true }`. */
  readonly toolFields?: Readonly<Record<string, JsonObject>> | undefined
  /** Requests with the same key share the vendor's prompt cache. */
  readonly promptCacheKey?: string | undefined
  /** The speed and price of calls: `auto`, `default`, `flex`, `priority`; the service says which of them it has. */
  readonly serviceTier?: string | undefined
  /** Names and values that the service keeps with what it stores of the calls, for its own lists. At most 16. */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Headers added to every call. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Fields of the request's body that no option covers. They replace those of options. */
  readonly extraBody?: JsonObject | undefined
  /**
   * Keeps the values of `extraBody`, `toolFields` and `providerTools` in the ledger. Default: `false`, which records the names of
   * their fields and a digest of each value, since a value may be secret.
   */
  readonly recordAdditions?: boolean | undefined
  /** Gets the parts of a request that the wire could not express, each once for a model. Must not throw. */
  readonly onWarning?: ((warning: OpenAIWarning) => void) | undefined
}

const { anyObject, anyText, fields, filledText, listOf, maybe, oneOf, recordOf, trueOrFalse, valueThat } =
  option

const customTool = fields<OpenAICustomTool>({ field: filledText, format: maybe(anyObject) })

/** Checks of the options that both wires of OpenAI take. */
const bothChecks: {
  readonly [name in keyof OpenAICommonOptions | 'client' | 'verbosity']: OptionalSchema
} = {
  ...commonChecks,
  apiKey: maybe(apiKey),
  client: maybe(anyObject),
  provider: maybe(filledText),
  strictTools: maybe(trueOrFalse),
  customTools: maybe(recordOf(customTool)),
  toolFields: maybe(recordOf(anyObject)),
  promptCacheKey: maybe(anyText),
  serviceTier: maybe(filledText),
  metadata: maybe(recordOf(anyText)),
  verbosity: maybe(oneOf(['low', 'medium', 'high'])),
}

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

/** How a server differs from OpenAI. All fields are optional: what is left out is as with OpenAI. */
export interface OpenAIChatQuirks {
  /** The role of instructions. Default: `system`. */
  readonly systemRole?: 'system' | 'developer' | undefined
  /** The field that limits the output. Default: `max_completion_tokens`. */
  readonly maxTokensField?: 'max_completion_tokens' | 'max_tokens' | undefined
  /** The server takes the option that asks for usage in the stream. Default: `true`. */
  readonly streamUsage?: boolean | undefined
  /** It takes `parallel_tool_calls`. Default: `true`. */
  readonly parallelToolCalls?: boolean | undefined
  /**
   * Which values of `tool_choice` it obeys. With `none` the adapter cannot force a tool, and warns. Default: `all`.
   */
  readonly toolChoice?: 'all' | 'none' | undefined
  /**
   * The strongest form of an answer that it enforces: a schema, only JSON, or nothing. If it cannot enforce the schema, the
   * instructions contain it. Default: `json_schema`.
   */
  readonly structuredOutput?: 'json_schema' | 'json_object' | 'none' | undefined
  /** It knows `strict` on tools and schemas. Default: `true`. */
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
   * Messages of the user and of the assistant must alternate, beginning with the user, and no message of the user may
   * follow that of a tool. Default: `false`.
   */
  readonly alternatingRoles?: boolean | undefined
  /**
   * A stream that ends properly and has words or calls, but no finish reason, counts as complete. A broken or silent
   * stream never does. Default: `false`.
   */
  readonly finishReasonOptional?: boolean | undefined
  /**
   * When the reasoning of a reply is sent back with it: in the open turn, in the open turn and in all turns with calls,
   * always, or never. A server that showed none gets none. Default: `turns_with_calls`.
   */
  readonly replayReasoning?: 'open_turn' | 'turns_with_calls' | 'always' | 'never' | undefined
  /**
   * The text that replaces the reasoning of a reply with calls that has none, such as one of another model: some servers
   * refuse the reply otherwise. Default: `false`, no such field.
   */
  readonly reasoningPlaceholder?: string | false | undefined
  /**
   * The server parses the arguments of calls in the history, and would refuse every request whose history has arguments
   * that are not JSON: these are sent inside an object. Default: `false`, which sends them as the model wrote them.
   */
  readonly readsArguments?: boolean | undefined
  /** Calls need a signature of Google's; calls of other models get Google's placeholder. Default: `false`. */
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

export type WholeQuirks = {
  readonly [Name in keyof OpenAIChatQuirks]-?: Exclude<OpenAIChatQuirks[Name], undefined>
}

/** For servers that render the history with the model's own template, which parses arguments. */
const ownTemplates: OpenAIChatQuirks = {
  maxTokensField: 'max_tokens',
  strict: false,
  maxStop: Infinity,
  readsArguments: true,
}

export const quirksByServer: { readonly [server in OpenAIChatServer]: OpenAIChatQuirks } = {
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
export function resolveQuirks(server: OpenAIChatServer, quirks: OpenAIChatQuirks | undefined): WholeQuirks {
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
    ...omitUndefined(quirksByServer[server]),
    ...omitUndefined({ ...quirks }),
  }
}

const quirks = fields<OpenAIChatQuirks>({
  systemRole: maybe(oneOf(['system', 'developer'])),
  maxTokensField: maybe(oneOf(['max_completion_tokens', 'max_tokens'])),
  streamUsage: maybe(trueOrFalse),
  parallelToolCalls: maybe(trueOrFalse),
  toolChoice: maybe(oneOf(['all', 'none'])),
  structuredOutput: maybe(oneOf(['json_schema', 'json_object', 'none'])),
  strict: maybe(trueOrFalse),
  maxStop: maybe(valueThat('a number of texts, or Infinity', (max) => typeof max === 'number' && max >= 0)),
  seedField: maybe(oneOf(['seed', 'random_seed', 'none'])),
  callIds: maybe(oneOf(['any', 'nine_alphanumeric'])),
  toolNames: maybe(oneOf(['identifier', 'any'])),
  alternatingRoles: maybe(trueOrFalse),
  finishReasonOptional: maybe(trueOrFalse),
  replayReasoning: maybe(oneOf(['open_turn', 'turns_with_calls', 'always', 'never'])),
  reasoningPlaceholder: maybe(
    valueThat('a text, or false', (value) => typeof value === 'string' || value === false),
  ),
  readsArguments: maybe(trueOrFalse),
  signsCalls: maybe(trueOrFalse),
})

const openaiChatOptions = fields<OpenAIChatOptions>(
  { ...bothChecks, server: maybe(anyText), quirks: maybe(quirks), reasoningEffort: maybe(anyText) },
  otherNames,
)

/** Throws `ConfigurationError` for options that cannot work. */
export function checkChatOptions(modelId: string, options: OpenAIChatOptions): void {
  requireModelOptions('openaiChat', openaiChatOptions, { modelId, options })
  const { server = 'openai' } = options
  if (Object.hasOwn(quirksByServer, server)) return
  throw new ConfigurationError(
    `openaiChat() got the server ${JSON.stringify(server)}, which it does not know. Name one of ${Object.keys(quirksByServer).join(', ')}, or describe the server in quirks.`,
  )
}

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
   * Further content that OpenAI adds to its reply, such as `web_search_call.action.sources`. It is kept
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

const openaiOptions = fields<OpenAIOptions>(
  {
    ...bothChecks,
    reasoning: maybe(
      fields<NonNullable<OpenAIOptions['reasoning']>>({
        effort: maybe(anyText),
        summary: maybe(oneOf(['auto', 'concise', 'detailed'])),
      }),
    ),
    include: maybe(listOf(filledText)),
    providerTools: maybe(objects),
    approvalTool: maybe(filledText),
    background: maybe(trueOrFalse),
    nativeTools: maybe(
      fields<NonNullable<OpenAIOptions['nativeTools']>>({
        shell: maybe(filledText),
        apply_patch: maybe(filledText),
      }),
    ),
    chain: maybe(trueOrFalse),
    conversation: maybe(filledText),
  },
  { ...otherNames, reasoningEffort: 'reasoning.effort' },
)

/** Throws `ConfigurationError` for options that cannot work. */
export function checkResponsesOptions(modelId: string, options: OpenAIOptions): void {
  requireModelOptions('openai', openaiOptions, { modelId, options })
  if (options.conversation === undefined || !options.chain) return
  throw new ConfigurationError(
    'openai() got a conversation together with chain; the service continues from one of the two. Pass the id of a conversation, or chain.',
  )
}

/**
 * Bounds the web searches that OpenAI runs within one call by `max_tool_calls` of the request's body, which bounds the calls of
 * all tools that OpenAI runs itself. Empty if no web search is offered. `extraBody.tools` replaces all tools.
 */
export function boundWebSearches({ providerTools = [], extraBody = {} }: OpenAIOptions): {
  readonly maxWebSearches?: MaxWebSearches
} {
  const tools: unknown = 'tools' in extraBody ? extraBody['tools'] : providerTools
  const offered = Array.isArray(tools) ? tools : []
  if (!offered.some((tool) => getText(tool, 'type')?.startsWith('web_search') === true)) return {}
  return { maxWebSearches: getCount(extraBody, 'max_tool_calls') ?? 'unbounded' }
}

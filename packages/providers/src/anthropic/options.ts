import { ConfigurationError } from '@tallystick/core'
import { option, type Schema } from '@tallystick/core/internal'
import type { JsonObject, MaxWebSearches } from '@tallystick/core/vocabulary'
import type { Timeouts } from '../shared/body.ts'
import { getCount, getText } from '../shared/json.ts'
import {
  apiKey,
  commonChecks,
  objects,
  otherNames,
  requireModelOptions,
  type Warning,
} from '../shared/options.ts'
import type { AnthropicClient, AnthropicClientOptions } from './client.ts'

/** Something in a request that this wire cannot express. The request is sent without it. */
export interface AnthropicWarning extends Warning {
  readonly what:
    | 'schema'
    | 'tool_name'
    | 'output_schema'
    | 'tool_choice'
    | 'thinking'
    | 'citations'
    | 'model_settings'
}

/** How thinking is shown in the reply, and what becomes of earlier thinking. */
export interface AnthropicThinkingDetails {
  /** `updates` shows short notes on the progress. Default: as the model has it. */
  readonly display?: 'summarized' | 'omitted' | 'updates' | undefined
  /**
   * How the service treats earlier thinking if the beginning of the conversation has changed since, by a compaction, a
   * handoff or other tools. `drop_block` leaves it out, and the reply's record says so; `error` refuses the request,
   * which then goes out once more without any earlier thinking; `unset` leaves it to the account. Default: `drop_block`
   * for models that bind their thinking, `unset` for others.
   */
  readonly onPrefixMismatch?: 'drop_block' | 'error' | 'unset' | undefined
}

/** How the model thinks before it answers. Which of these a model takes, and its default, depends on the model. */
export type AnthropicThinking =
  /** The model decides when and how much. */
  | ({ readonly type: 'adaptive' } & AnthropicThinkingDetails)
  /** Up to `budgetTokens` (at least 1024) in every reply; a request that cannot have them is sent without. */
  | ({ readonly type: 'enabled'; readonly budgetTokens: number } & AnthropicThinkingDetails)
  | { readonly type: 'between_tools' }
  | { readonly type: 'disabled' }

/** An MCP server whose tools Anthropic calls itself. */
export interface AnthropicMcpServer {
  readonly name: string
  readonly url: string
  /** Sent with each request, and never recorded. */
  readonly authorizationToken?: string | undefined
  /** Which of its tools are offered and how, in the vendor's form: `default_config`, `configs`. Default: all. */
  readonly toolset?: JsonObject | undefined
}

/** Options of `anthropic()`, all optional. */
export interface AnthropicOptions extends AnthropicClientOptions, Timeouts {
  /** A client of your own (another cloud, a proxy, your own logging) instead of `apiKey` and `baseURL`. */
  readonly client?: AnthropicClient | undefined
  /** The most output tokens of one reply, thinking included, unless the request says. Default: 32 000. */
  readonly maxOutputTokens?: number | undefined
  readonly thinking?: AnthropicThinking | undefined
  readonly effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max' | undefined
  /**
   * How long the vendor keeps the beginning of the prompt in its cache: five minutes (the default; writing costs a
   * quarter more than reading again, finding it a tenth), an hour, or not at all.
   */
  readonly promptCache?: '5m' | '1h' | 'off' | undefined
  /** Asks for answers that cite the documents of the history. A schema of the answer turns it off. Default: `false`. */
  readonly citations?: boolean | undefined
  /**
   * Asks the vendor to guarantee that tool inputs fit their schemas, if a schema allows it, and for as many tools as
   * the vendor takes. Default: `false`.
   */
  readonly strictTools?: boolean | undefined
  /**
   * Lets tool inputs stream while they are written, unchecked by the vendor, instead of in checked pieces. An input
   * that turns out not to be JSON is a malformed call. Default: `false`.
   */
  readonly eagerToolInputs?: boolean | undefined
  /** Fields added to the definition of a tool, by its name, in the vendor's words, such as `{ defer_loading: true }`. */
  readonly toolFields?: Readonly<Record<string, JsonObject>> | undefined
  /**
   * Tools that Anthropic runs itself, in its own words, such as
   * `{ type: 'web_search_20260318', name: 'web_search', max_uses: 3 }`. A run with `maxCostUsd` needs the `max_uses`,
   * since Anthropic bills each search.
   */
  readonly providerTools?: readonly JsonObject[] | undefined
  /**
   * Sends a change of the offered tools as a message at its place in the conversation, instead of another `tools`. The
   * prompt's cached beginning, and the thinking of models that bind it, then survive the change. Each reply after a
   * change keeps the tools in the ledger. In beta, on the Claude API. Default: `false`.
   */
  readonly midConversationTools?: boolean | undefined
  /** MCP servers whose tools Anthropic calls itself. */
  readonly mcpServers?: readonly AnthropicMcpServer[] | undefined
  /** Has Anthropic shorten a long history, in Anthropic's words, such as `{ type: 'compact_20260112' }`. */
  readonly contextEdits?: readonly JsonObject[] | undefined
  /** Values of the `anthropic-beta` header, beside those that the other options need. */
  readonly betas?: readonly string[] | undefined
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
  readonly onWarning?: ((warning: AnthropicWarning) => void) | undefined
}

const header = 'anthropic-version'
/** The version that the official client sends. */
const clientVersion = '2026-10-21'
/** From this version on, the service refuses `temperature`, `top_p` and `top_k`. */
const withoutSampling = '2026-10-21'

/**
 * True if the service takes `temperature`, `top_p` and `top_k`: by the API version that a call names in its headers, or else
 * by the one that its client names. Other clouds speak older versions, and so may a client that is not the vendor's.
 */
export function takesSampling({ headers, client }: Pick<AnthropicOptions, 'headers' | 'client'>): boolean {
  const { defaultHeaders } = (client && Reflect.get(client, '_options')) ?? {}
  const ofClient =
    client === undefined || isOfficial(client) ? (readVersion(defaultHeaders) ?? clientVersion) : undefined
  const spoken = readVersion(headers) ?? ofClient
  return spoken === undefined || spoken < withoutSampling
}

/**
 * True for a client of the official SDK's class for Anthropic's own service, of any copy of the SDK: its class has the
 * resources of that service, and inherits from the one that all clouds share and that names itself.
 */
function isOfficial(client: object): boolean {
  let prototype: unknown = Object.getPrototypeOf(client)
  while (typeof prototype === 'object' && prototype !== null) {
    const { constructor } = prototype
    const base: unknown = Object.getPrototypeOf(constructor)
    const isOwn = Object.hasOwn(constructor, 'Messages') && Object.hasOwn(constructor, 'Models')
    if (isOwn && typeof base === 'function' && Reflect.get(base, 'Anthropic') === base) return true
    prototype = Object.getPrototypeOf(prototype)
  }
  return false
}

function readVersion(headers: unknown): string | undefined {
  if (typeof headers !== 'object' || headers === null) return undefined
  if (headers instanceof Headers) return headers.get(header) ?? undefined
  const named = Object.entries(headers).find(([name]) => name.toLowerCase() === header)
  return typeof named?.[1] === 'string' ? named[1] : undefined
}

const { anyObject, anyText, fields, filledText, listOf, maybe, numberFrom, oneOf, recordOf, trueOrFalse } =
  option

const thinking = fields<{
  type: string
  budgetTokens?: number | undefined
  display?: string | undefined
  onPrefixMismatch?: string | undefined
}>({
  type: oneOf(['adaptive', 'enabled', 'between_tools', 'disabled'] satisfies AnthropicThinking['type'][]),
  budgetTokens: maybe(numberFrom(1, { whole: true })),
  display: maybe(oneOf(['summarized', 'omitted', 'updates'])),
  onPrefixMismatch: maybe(oneOf(['drop_block', 'error', 'unset'])),
})

const mcpServer = fields<AnthropicMcpServer>({
  name: anyText,
  url: filledText,
  authorizationToken: maybe(anyText),
  toolset: maybe(anyObject),
})

const anthropicOptions: Schema = fields<AnthropicOptions>(
  {
    ...commonChecks,
    apiKey: maybe(apiKey),
    client: maybe(anyObject),
    thinking: maybe(thinking),
    effort: maybe(oneOf(['low', 'medium', 'high', 'xhigh', 'max'])),
    promptCache: maybe(oneOf(['5m', '1h', 'off'])),
    citations: maybe(trueOrFalse),
    strictTools: maybe(trueOrFalse),
    eagerToolInputs: maybe(trueOrFalse),
    midConversationTools: maybe(trueOrFalse),
    toolFields: maybe(recordOf(anyObject)),
    providerTools: maybe(objects),
    mcpServers: maybe(listOf(mcpServer)),
    contextEdits: maybe(objects),
    betas: maybe(listOf(anyText)),
  },
  otherNames,
)

/** Fields that the newest versions of the API refuse. */
const refusedFields = ['temperature', 'top_p', 'top_k']

/** Throws `ConfigurationError` for options that cannot work. */
export function checkOptions(modelId: string, options: AnthropicOptions): void {
  requireModelOptions('anthropic', anthropicOptions, { modelId, options })
  const names = (options.mcpServers ?? []).map(({ name }) => name)
  if (new Set(names).size < names.length || names.includes('')) {
    throw new ConfigurationError(
      'anthropic() got MCP servers without a name, or with the same name, which the service refuses. Give each of mcpServers its own name.',
    )
  }
  const { extraBody = {} } = options
  for (const field of ['stream', 'model', 'messages', ...(takesSampling(options) ? [] : refusedFields)]) {
    if (!(field in extraBody)) continue
    const why = refusedFields.includes(field)
      ? 'which the service no longer takes in the API version that is spoken: every call would be refused'
      : 'without which, as the adapter sends it, no reply could be read'
    throw new ConfigurationError(`anthropic() got ${field} in extraBody, ${why}. Leave it out.`)
  }
}

/**
 * Bounds the web searches that Anthropic runs within one call by `max_uses` of each web search tool, which Anthropic enforces
 * for every request. Empty if no such tool is offered. `extraBody.tools` replaces all tools.
 */
export function boundWebSearches({ providerTools = [], extraBody = {} }: AnthropicOptions): {
  readonly maxWebSearches?: MaxWebSearches
} {
  const tools: unknown = 'tools' in extraBody ? extraBody['tools'] : providerTools
  const bounds = (Array.isArray(tools) ? tools : [])
    .filter((tool) => getText(tool, 'type')?.startsWith('web_search') === true)
    .map((tool) => getCount(tool, 'max_uses'))
  if (bounds.length === 0) return {}
  const known = bounds.filter((bound) => bound !== undefined)
  return {
    maxWebSearches: known.length < bounds.length ? 'unbounded' : known.reduce((sum, bound) => sum + bound, 0),
  }
}

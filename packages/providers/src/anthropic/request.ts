import type { ModelRequest } from '@tallystick/core'
import { getOwn, omitUndefined } from '@tallystick/core/internal'
import type { JsonObject, ModelSettings } from '@tallystick/core/vocabulary'
import { omitFields, getText } from '../shared/json.ts'
import type { Warn } from '../shared/options.ts'
import { bindCalls, type ToolNames, withAnswerSchema, withProviderOptions } from '../shared/request.ts'
import { api, provider, readOpaque, type WireRequest, type WireThinking, type WireTurn } from './client.ts'
import { beginsWithSummary, isThinking, toTextBlock, thinkingLeftOut, toTurns } from './messages.ts'
import type { AnthropicOptions, AnthropicWarning } from './options.ts'
import { fitAnswerSchema, offerTools } from './tools.ts'

const mcpClient = 'mcp-client-2025-11-20'
const compaction = 'compact-2026-01-12'
const compactionOnDemand = 'compact-2026-09-04'
const thinkingBinding = 'thinking-binding-controls-2026-08-01'

/** The betas of a request whose history has such blocks. */
const byBlock: { readonly [type: string]: (block: JsonObject) => string } = {
  mcp_tool_use: () => mcpClient,
  mcp_tool_result: () => mcpClient,
  mcp_tool_listing: () => 'mcp-client-2026-09-15',
  // A signed one answers a request for it, any other came with the reply after it.
  compaction: (block) => (getText(block, 'signature') === undefined ? compaction : compactionOnDemand),
}

/** Lists the values of the `anthropic-beta` header that a body needs, `wanted` first. */
export function listBetas(body: WireRequest, wanted: readonly string[]): readonly string[] {
  const betas = new Set(wanted)
  if (body['compaction'] !== undefined) betas.add(compactionOnDemand)
  if (body['mcp_servers'] !== undefined) betas.add(mcpClient)
  if (body.thinking !== undefined && 'block_binding' in body.thinking) betas.add(thinkingBinding)
  const management = body['context_management'] as { readonly edits?: readonly JsonObject[] } | undefined
  for (const edit of management?.edits ?? []) {
    betas.add('context-management-2025-06-27')
    if (getText(edit, 'type')?.startsWith('compact_')) betas.add(compaction)
  }
  for (const { role, content } of body.messages) {
    if (role === 'system') betas.add('inline-tools-2026-09-15')
    if (role !== 'assistant') continue
    for (const block of content) {
      const beta = getOwn(byBlock, block.type)?.(block)
      if (beta !== undefined) betas.add(beta)
    }
  }
  return [...betas]
}

type CachePolicy = '5m' | '1h' | 'off'

const maxMarks = 4

/**
 * Marks the end of the unchanging beginning, after the instructions or else after the tools, and the end of the last two
 * user messages: the last request is in the cache up to the first one, and the next request will find this one up to the
 * second. Marks that the caller has set on tools stay, and count.
 */
export function markCache<T extends Pick<WireRequest, 'system' | 'tools' | 'messages'>>(
  request: T,
  policy: CachePolicy,
): T {
  if (policy === 'off') return request
  const { system = [], tools = [], messages } = request
  let left = maxMarks - tools.filter((tool) => 'cache_control' in tool).length
  // A tool that is loaded later is not in the beginning, and takes no mark.
  const lastTool = tools.findLastIndex((tool) => tool['defer_loading'] !== true)
  const onTools = system.length === 0 && lastTool >= 0 && !('cache_control' in tools[lastTool]!)
  if (left <= 0) return request
  if (system.length > 0 || onTools) left -= 1
  const cache_control = { type: 'ephemeral', ...(policy === '1h' && { ttl: policy }) }
  const mark = <Item extends JsonObject>(items: readonly Item[], place = items.length - 1): readonly Item[] =>
    items.with(place, { ...items[place]!, cache_control })
  const users = messages.filter(({ role }) => role === 'user').slice(-Math.min(left, 2))
  return {
    ...request,
    ...(system.length > 0 && { system: mark(system) }),
    ...(onTools && { tools: mark(tools, lastTool) }),
    messages: messages.map((turn) =>
      left > 0 && users.includes(turn) ? { ...turn, content: mark(turn.content) } : turn,
    ),
  }
}

/** Renders the model settings. A model that thinks takes none but stop texts. */
function renderSampling(
  { temperature, topP, stop = [], seed }: ModelSettings,
  thinks: boolean,
  { takesSampling, warn }: RenderSettings,
): JsonObject {
  const leftOut = (what: string, why: string): void =>
    warn({ what: 'model_settings', message: `${what} was left out: ${why}.` })
  const chosen: JsonObject = {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
  }
  const unfit = takesSampling
    ? thinks
      ? 'the model thinks'
      : undefined
    : 'the API version that is spoken refuses it'
  if (unfit) for (const field of Object.keys(chosen)) leftOut(field, unfit)
  if (seed !== undefined) leftOut('seed', 'the vendor knows none')
  const texts = stop.filter((text) => text.trim() !== '')
  if (texts.length < stop.length) leftOut('A text of blanks that ends a reply', 'the vendor refuses it')
  return { ...(unfit === undefined && chosen), ...(texts.length > 0 && { stop_sequences: texts }) }
}

const thinkingBudgetMin = 1024

/** How a request differs from one that the vendor refused. */
export interface FallbackChanges {
  /** Leaves all earlier thinking out. */
  readonly withoutThinking?: true
  /** Asks in words for the call that was demanded. */
  readonly asksInWords?: true
}

/**
 * Renders a request. `now` is in milliseconds since 1970 UTC; `betas` are the values of the `anthropic-beta` header, and `toKeep`
 * the tools that the reply keeps for later requests.
 */
export function renderRequest(
  request: ModelRequest,
  settings: RenderSettings,
  { now, changes = {} }: { readonly now: number; readonly changes?: FallbackChanges },
): {
  readonly body: WireRequest
  readonly names: ToolNames
  readonly betas: readonly string[]
  readonly toKeep?: readonly JsonObject[] | undefined
} {
  const { warn } = settings
  const answer = fitAnswerSchema(request.outputSchema, warn)
  const citations = settings.citations === true && answer === undefined
  if (settings.citations && !citations) {
    const message = 'The answer has to fit a schema, with which the vendor takes no wish for citations.'
    warn({ what: 'citations', message })
  }
  // If thinking is off, the vendor wants bound thinking removed.
  const isOff = settings.bindsThinking === true && settings.thinking?.type === 'disabled'
  const withoutThinking = isOff || changes.withoutThinking === true
  // Thinking that was left out once stays out: later thinking does not build on it.
  const thinksFrom = withoutThinking
    ? Infinity
    : request.messages.findLastIndex(
        (message) =>
          message.role === 'assistant' &&
          message.parts.some((part) => part.type === 'provider' && part.kind === thinkingLeftOut),
      )
  if (changes.withoutThinking) {
    const message =
      'The service did not take earlier thinking back, since something before it has changed, so the request went out without any.'
    warn({ what: 'thinking', message })
  } else if (thinksFrom > 0 && !withoutThinking) {
    const message =
      'Thinking that the service had refused to take back in an earlier request stayed out of this one.'
    warn({ what: 'thinking', message })
  }
  const from = Math.max(0, request.messages.findLastIndex(beginsWithSummary))
  const messages = request.messages.slice(from)
  const asked = { ...request, messages }
  const { providerTools } = settings
  const binding = bindCalls(asked, { provider, api, maxLength: 128, providerTools, warn })
  const offered = offerTools(request, settings, binding, answer?.size)
  const { fields } = offered
  const turns = toTurns(messages, {
    binding,
    modelId: settings.modelId,
    citations,
    keepsThinking: (place) => place + from >= thinksFrom,
    // A summary states the changes of the tools before it.
    changes: new Map([...(offered.changes ?? [])].map(([place, blocks]) => [place - from, blocks])),
  })
  const maxTokens = Math.min(request.maxOutputTokens ?? Infinity, settings.maxOutputTokens)
  const demand =
    settings.bindsThinking || changes.asksInWords ? askInWords(request, settings, fields) : undefined
  const thinking = renderThinking(settings, fields.tool_choice, turns, maxTokens)
  // If thinking is off, a reply that is to be continued may not show any.
  const shown = thinking?.type === 'disabled' ? withoutLastThinking(turns) : turns
  const { instructions, outputSchema } = request
  const isInWords = outputSchema !== undefined && answer === undefined
  const system = toTextBlock(isInWords ? withAnswerSchema(instructions, outputSchema) : instructions)
  const effort = readEffort(request.modelSettings, settings)
  const format = answer && { type: 'json_schema', schema: answer.schema }
  const body: WireRequest = {
    model: settings.modelId,
    max_tokens: maxTokens,
    stream: true,
    ...markCache(
      {
        ...(system.length > 0 && { system }),
        ...fields,
        ...(demand && { tool_choice: demand.choice }),
        messages: withWords(shown, demand?.words),
      },
      settings.promptCache,
    ),
    ...(thinking && { thinking }),
    ...((effort !== undefined || format) && { output_config: { ...omitUndefined({ effort, format }) } }),
    ...renderServer(settings, messages, now),
    ...settings.extraBody,
    ...renderSampling(request.modelSettings ?? {}, (thinking?.type ?? 'disabled') !== 'disabled', settings),
  }
  const merged = withProviderOptions(body, request, { provider, held: heldFields, warn: settings.warn })
  const whole = merged['compaction'] === undefined ? merged : withoutReplyFields(merged)
  const betas = listBetas(whole, settings.betas ?? [])
  return { body: whole, names: binding.names, betas, toKeep: offered.toKeep }
}

/** The vendor refuses fields for a reply in a request for a summary. */
function withoutReplyFields({
  stop_sequences: _stop,
  context_management: _edits,
  tool_choice: choice,
  output_config: config,
  ...body
}: WireRequest): WireRequest {
  const isForced = choice?.['type'] === 'any' || choice?.['type'] === 'tool'
  const output = omitFields(config ?? {}, ['format'])
  return {
    ...body,
    ...(choice && !isForced && { tool_choice: choice }),
    ...(Object.keys(output).length > 0 && { output_config: output }),
  }
}

/** Without these fields, as the adapter writes them, no reply could be read. */
const heldFields = ['model', 'messages', 'stream', 'tools', 'system']

/** The vendor knows fewer efforts than a request may ask for. */
function readEffort(
  { reasoningEffort: asked }: ModelSettings = {},
  { effort, warn }: RenderSettings,
): string | undefined {
  if (asked !== 'none' && asked !== 'minimal') return asked ?? effort
  const message = `The reasoning effort ${asked} was left out: the vendor knows none below low.`
  warn({ what: 'model_settings', message })
  return effort
}

/** Renders the vendor's sandbox, its MCP servers, and its edits of the history. */
function renderServer(
  { mcpServers = [], contextEdits = [] }: RenderSettings,
  messages: ModelRequest['messages'],
  now: number,
): object {
  const latest = messages
    .flatMap((message) => (message.role === 'assistant' ? message.parts : []))
    .map((part) => readOpaque(part.opaque)?.container)
    .findLast((container) => container !== undefined)
  // The vendor refuses a sandbox that has expired.
  const isGone = Date.parse(getText(latest, 'expires_at') ?? '') <= now
  const container = isGone ? undefined : getText(latest, 'id')
  const servers = mcpServers.map(({ name, url, authorizationToken: authorization_token }) => ({
    ...{ type: 'url', name, url },
    ...omitUndefined({ authorization_token }),
  }))
  return {
    ...(container !== undefined && { container }),
    ...(servers.length > 0 && { mcp_servers: servers }),
    ...(contextEdits.length > 0 && { context_management: { edits: contextEdits } }),
  }
}

/**
 * Decides how the model may think. With a fixed budget the vendor refuses a forced tool choice, a budget that does not fit
 * into the reply, and an open turn that began without thinking, because another model began it.
 */
function renderThinking(
  settings: RenderSettings,
  choice: JsonObject | undefined,
  turns: readonly WireTurn[],
  maxTokens: number,
): WireThinking | undefined {
  const { thinking, bindsThinking, keepsBinding } = settings
  // A model that binds its thinking thinks adaptively by default, so to say so changes nothing.
  const binds = bindsThinking && !keepsBinding
  let wanted = thinking ?? (binds ? { type: 'adaptive' as const } : undefined)
  if (binds && (wanted?.type === 'adaptive' || wanted?.type === 'enabled') && !wanted.block_binding)
    wanted = { ...wanted, block_binding: { prefix_mismatch_behavior: 'drop_block' } }
  if (wanted?.type !== 'enabled') return wanted
  const budget = Math.min(wanted.budget_tokens, maxTokens - 1)
  const forced = choice?.['type'] === 'any' || choice?.['type'] === 'tool'
  // An open turn is what the assistant did since the user's last words. One that has not begun may think.
  const lastWord = turns.findLastIndex(
    ({ role, content }) => role === 'user' && content.some((block) => block.type !== 'tool_result'),
  )
  const begun = turns.slice(lastWord + 1).find(({ role }) => role === 'assistant')
  const openTurnThinks = begun === undefined || isThinking(begun.content[0])
  if (!forced && budget >= thinkingBudgetMin && openTurnThinks) return { ...wanted, budget_tokens: budget }
  const message =
    'A fixed thinking budget was left out of a request that the vendor would have refused with it: a call was demanded, too few output tokens are left, or the turn began without thinking.'
  settings.warn({ what: 'thinking', message })
  return undefined
}

/** A model that always thinks refuses to be forced to a call, and the vendor advises to ask for it in words. */
function askInWords(
  request: ModelRequest,
  settings: RenderSettings,
  { tool_choice: forced }: { readonly tool_choice?: JsonObject },
): { readonly choice: JsonObject; readonly words: string } | undefined {
  if (forced?.['type'] !== 'any' && forced?.['type'] !== 'tool') return undefined
  const name = getText(forced, 'name')
  const which = name === undefined ? 'one of the tools' : `the tool ${name}`
  settings.warn({
    what: 'tool_choice',
    message: `The model refuses to be forced to a call, so the request asks in words for a call of ${which}.`,
  })
  const alone = request.parallelToolCalls ? {} : { disable_parallel_tool_use: true }
  return { choice: { type: 'auto', ...alone }, words: `(Answer this with a call of ${which}.)` }
}

function withWords(turns: readonly WireTurn[], words: string | undefined): readonly WireTurn[] {
  const place = turns.findLastIndex(({ role }) => role !== 'system')
  const last = turns[place]
  if (words === undefined || last?.role !== 'user') return turns
  return turns.with(place, { ...last, content: [...last.content, ...toTextBlock(words)] })
}

function withoutLastThinking(turns: readonly WireTurn[]): readonly WireTurn[] {
  const last = turns.at(-1)
  if (last?.role !== 'assistant') return turns
  const content = last.content.filter((block) => !isThinking(block))
  return content.length === 0 ? turns.slice(0, -1) : turns.with(turns.length - 1, { ...last, content })
}

/** The options of a model, as requests need them. */
export interface RenderSettings extends Pick<
  AnthropicOptions,
  | 'betas'
  | 'citations'
  | 'contextEdits'
  | 'eagerToolInputs'
  | 'effort'
  | 'extraBody'
  | 'mcpServers'
  | 'midConversationTools'
  | 'providerTools'
  | 'strictTools'
  | 'toolFields'
> {
  readonly modelId: string
  readonly maxOutputTokens: number
  readonly promptCache: CachePolicy
  /** The API version takes `temperature` and `top_p`. */
  readonly takesSampling?: boolean | undefined
  readonly thinking?: WireThinking | undefined
  /** The model binds its thinking, which is always on, to the messages before it. */
  readonly bindsThinking?: boolean | undefined
  /** The account decides what becomes of earlier thinking that belongs to another beginning. */
  readonly keepsBinding?: boolean | undefined
  /** Reports what the wire cannot express of this request. */
  readonly warn: Warn<AnthropicWarning>
}

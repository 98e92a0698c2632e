import type { Message, ModelRequest } from '@tallystick/core'
import { getOwn, omitUndefined } from '@tallystick/core/internal'
import type { JsonObject, ModelSettings } from '@tallystick/core/vocabulary'
import { omitFields, textAt } from '../shared/json.ts'
import type { Warn } from '../shared/options.ts'
import {
  callIds,
  memoized,
  toolNames,
  type ToolNames,
  warnOfNames,
  withAnswerSchema,
  withProviderOptions,
} from '../shared/request.ts'
import { provider, type WireBlock, type WireRequest, type WireThinking, type WireTurn } from './client.ts'
import { isSummary, isThinking, type RenderedMessage, renderMessage, textBlock, toTurns } from './messages.ts'
import type { AnthropicMcpServer, AnthropicWarning } from './options.ts'
import { answerSchema, type FittedSchema, offerTools } from './tools.ts'

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
  compaction: (block) => (textAt(block, 'signature') === undefined ? compaction : compactionOnDemand),
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
    if (textAt(edit, 'type')?.startsWith('compact_')) betas.add(compaction)
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

export interface Markable {
  readonly system?: readonly WireBlock[]
  readonly tools?: readonly JsonObject[]
  readonly messages: readonly WireTurn[]
}

/**
 * Marks the end of the unchanging beginning, after the instructions or else after the tools, and the end of the last two
 * user messages: the last request is in the cache up to the first one, and the next request will find this one up to the
 * second. Marks that the caller has set on tools stay, and count.
 */
export function markCache<T extends Markable>(request: T, policy: CachePolicy): T {
  if (policy === 'off') return request
  const { system = [], tools = [], messages } = request
  let left = maxMarks - tools.filter((tool) => 'cache_control' in tool).length
  // A tool that is loaded later is not in the beginning, and takes no mark.
  const lastTool = tools.findLastIndex((tool) => tool['defer_loading'] !== true)
  const onTools = system.length === 0 && lastTool >= 0 && !('cache_control' in tools[lastTool]!)
  if (left <= 0) return request
  if (system.length > 0 || onTools) left -= 1
  return {
    ...request,
    ...(system.length > 0 && { system: marked(system, system.length - 1, policy) }),
    ...(onTools && { tools: marked(tools, lastTool, policy) }),
    messages: markedTurns(messages, Math.min(left, 2), policy),
  }
}

function markedTurns(turns: readonly WireTurn[], marks: number, policy: CachePolicy): readonly WireTurn[] {
  const result = [...turns]
  let left = marks
  for (let place = turns.length - 1; place >= 0 && left > 0; place--) {
    const { role, content } = turns[place]!
    if (role !== 'user') continue
    result[place] = { role, content: marked(content, content.length - 1, policy) }
    left -= 1
  }
  return result
}

function marked<T extends JsonObject>(items: readonly T[], place: number, policy: CachePolicy): readonly T[] {
  const mark = { type: 'ephemeral', ...(policy === '1h' && { ttl: policy }) }
  return items.with(place, { ...items[place]!, cache_control: mark })
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

// The vendor takes longer ones by now; gateways and other hosts of the same models do not.
const maxIdentifierLength = 64
const maxToolNameLength = 128
const thinkingBudgetMin = 1024

/** A request that is ready to be sent. */
export interface RenderedRequest {
  readonly body: WireRequest
  readonly names: ToolNames
  /** Values of the `anthropic-beta` header. */
  readonly betas: readonly string[]
  /** The tools that the reply keeps for later requests. */
  readonly toKeep?: readonly JsonObject[]
}

/** How a request differs from one that the vendor refused. */
export interface FallbackChanges {
  /** Leaves all earlier thinking out. */
  readonly withoutThinking?: true
  /** Asks in words for the call that was demanded. */
  readonly asksInWords?: true
}

/** Renders requests of one model. `now` is in milliseconds since 1970 UTC. */
export type RequestRenderer = (
  request: ModelRequest,
  rendering: Pick<RenderSettings, 'warn'> & { readonly now: number; readonly changes?: FallbackChanges },
) => RenderedRequest

/**
 * Returns a renderer that keeps what it made of each message, so that a turn costs only what it adds. The same request
 * gives the same body, whatever was rendered before.
 */
export function requestRenderer(given: RequestSettings): RequestRenderer {
  const { modelId } = given
  const kept = [true, false].map((thinking) =>
    [false, true].map((citations) =>
      memoized((message: Message) => renderMessage(message, { modelId, citations, thinking })),
    ),
  )
  return (request, { now, warn, changes = {} }) => {
    const { asksInWords = false } = changes
    // If thinking is off, the vendor wants bound thinking removed.
    const isOff = given.bindsThinking === true && given.thinking?.type === 'disabled'
    const withoutThinking = isOff || changes.withoutThinking === true
    const settings = { ...given, warn }
    const answer = answerSchema(request.outputSchema, settings.warn)
    const citations = settings.citations === true && answer === undefined
    if (settings.citations && !citations) {
      const message = 'The answer has to fit a schema, with which the vendor takes no wish for citations.'
      warn({ what: 'citations', message })
    }
    const [whole, bare] = kept.map((renderers) => renderers[citations ? 1 : 0]!) as [
      (message: Message) => RenderedMessage,
      (message: Message) => RenderedMessage,
    ]
    const rendered = request.messages.map(withoutThinking ? bare : whole)
    // What was left out once stays out: later thinking does not build on it.
    const upTo = withoutThinking ? 0 : rendered.findLastIndex((message) => message.withoutThinking)
    if (changes.withoutThinking || upTo > 0)
      warn({ what: 'thinking', message: upTo > 0 ? thinkingStaysOut : thinkingRefused })
    const shown = rendered.map((message, place) => (place < upTo ? bare(request.messages[place]!) : message))
    return renderRequest(request, shown, settings, { answer, now, asksInWords })
  }
}

const thinkingRefused =
  'The service did not take earlier thinking back, since something before it has changed, so the request went out without any.'
const thinkingStaysOut =
  'Thinking that the service had refused to take back in an earlier request stayed out of this one.'

function renderRequest(
  request: ModelRequest,
  wholeHistory: readonly RenderedMessage[],
  settings: RenderSettings,
  {
    answer,
    now,
    asksInWords,
  }: { readonly answer: FittedSchema | undefined; readonly now: number; readonly asksInWords: boolean },
): RenderedRequest {
  const from = Math.max(
    0,
    wholeHistory.findLastIndex(({ blocks }) => isSummary(blocks[0])),
  )
  const renderedMessages = wholeHistory.slice(from)
  const calls = renderedMessages.flatMap(({ placeholders }) =>
    placeholders.filter((placeholder) => placeholder.kind === 'call'),
  )
  const names = toolNames(
    [...request.tools, ...calls].map((named) => named.name),
    {
      maxLength: maxToolNameLength,
      reserved: (settings.providerTools ?? [])
        .map((tool) => textAt(tool, 'name'))
        .filter((name) => name !== undefined),
    },
  )
  warnOfNames(request, names, settings.warn)
  const maxTokens = Math.min(request.maxOutputTokens ?? Infinity, settings.maxOutputTokens)
  const called = [...new Set(calls.map((call) => call.name))]
  const offered = offerTools(request, {
    ...{ settings, names, called, messages: wholeHistory, answer: answer?.size },
  })
  const { fields } = offered
  // A summary states the changes of the tools before it.
  const changes =
    offered.changes && new Map([...offered.changes].map(([place, blocks]) => [place - from, blocks]))
  const ids = callIds(calls, maxIdentifierLength)
  const turns = toTurns(renderedMessages, { ids, names, ...(changes && { changes }) })
  const demand =
    (settings.bindsThinking ?? false) || asksInWords ? askInWords(request, settings, fields) : undefined
  const thinking = renderThinking(settings, fields.tool_choice, turns, maxTokens)
  const { instructions, outputSchema } = request
  const isInWords = outputSchema !== undefined && answer === undefined
  const system = textBlock(isInWords ? withAnswerSchema(instructions, outputSchema) : instructions)
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
        messages: withWords(withoutLastThinking(turns, thinking), demand?.words),
      },
      settings.promptCache,
    ),
    ...(thinking && { thinking }),
    ...((effort !== undefined || format) && { output_config: { ...omitUndefined({ effort, format }) } }),
    ...renderServer(settings, renderedMessages, now),
    ...settings.extraBody,
    ...renderSampling(request.modelSettings ?? {}, (thinking?.type ?? 'disabled') !== 'disabled', settings),
  }
  const merged = withProviderOptions(body, request, { provider, held: heldFields, warn: settings.warn })
  const whole = merged['compaction'] === undefined ? merged : withoutReplyFields(merged)
  const { toKeep } = offered
  return { body: whole, names, betas: listBetas(whole, settings.betas ?? []), ...(toKeep && { toKeep }) }
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
  { reasoningEffort }: ModelSettings = {},
  { effort, warn }: RenderSettings,
): string | undefined {
  if (reasoningEffort === undefined) return effort
  if (!['none', 'minimal'].includes(reasoningEffort)) return reasoningEffort
  warn({
    what: 'model_settings',
    message: `The reasoning effort ${reasoningEffort} was left out: the vendor knows none below low.`,
  })
  return effort
}

/** Renders the vendor's sandbox, its MCP servers, and its edits of the history. */
function renderServer(
  { mcpServers = [], contextEdits = [] }: RenderSettings,
  renderedMessages: readonly RenderedMessage[],
  now: number,
): object {
  const latest = renderedMessages.findLast(({ container }) => container !== undefined)?.container
  // The vendor refuses a sandbox that has expired.
  const isGone = Date.parse(textAt(latest, 'expires_at') ?? '') <= now
  const container = isGone ? undefined : textAt(latest, 'id')
  const servers = mcpServers.map(({ name, url, authorizationToken: token }) => ({
    type: 'url',
    name,
    url,
    ...(token !== undefined && { authorization_token: token }),
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
  const wanted = withBinding(settings)
  if (wanted?.type !== 'enabled') return wanted
  const budget = Math.min(wanted.budget_tokens, maxTokens - 1)
  const forced = choice?.['type'] === 'any' || choice?.['type'] === 'tool'
  if (!forced && budget >= thinkingBudgetMin && openTurnThinks(turns))
    return { ...wanted, budget_tokens: budget }
  const message =
    'A fixed thinking budget was left out of a request that the vendor would have refused with it: a call was demanded, too few output tokens are left, or the turn began without thinking.'
  settings.warn({ what: 'thinking', message })
  return undefined
}

/** An open turn is what the assistant did since the user's last words. One that has not begun may think. */
function openTurnThinks(turns: readonly WireTurn[]): boolean {
  const lastWord = turns.findLastIndex(
    ({ role, content }) => role === 'user' && content.some((block) => block.type !== 'tool_result'),
  )
  const begun = turns.slice(lastWord + 1).find(({ role }) => role === 'assistant')
  return begun === undefined || isThinking(begun.content[0])
}

/**
 * Adds what becomes of earlier thinking that belongs to another beginning. A model that binds its thinking thinks adaptively
 * by default, so to say so changes nothing.
 */
function withBinding({ thinking, bindsThinking, keepsBinding }: RenderSettings): WireThinking | undefined {
  if (!bindsThinking || keepsBinding) return thinking
  const wanted = thinking ?? { type: 'adaptive' }
  if ((wanted.type !== 'adaptive' && wanted.type !== 'enabled') || wanted.block_binding) return wanted
  return { ...wanted, block_binding: { prefix_mismatch_behavior: 'drop_block' } }
}

/** A model that always thinks refuses to be forced to a call, and the vendor advises to ask for it in words. */
function askInWords(
  request: ModelRequest,
  settings: RenderSettings,
  { tool_choice: forced }: { readonly tool_choice?: JsonObject },
): { readonly choice: JsonObject; readonly words: string } | undefined {
  if (forced?.['type'] !== 'any' && forced?.['type'] !== 'tool') return undefined
  const name = textAt(forced, 'name')
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
  return turns.with(place, { ...last, content: [...last.content, ...textBlock(words)] })
}

/** If thinking is off, a reply that is to be continued may not show any. */
function withoutLastThinking(
  turns: readonly WireTurn[],
  thinking: WireThinking | undefined,
): readonly WireTurn[] {
  const last = turns.at(-1)
  if (thinking?.type !== 'disabled' || last?.role !== 'assistant') return turns
  const content = last.content.filter((block) => !isThinking(block))
  return content.length === 0 ? turns.slice(0, -1) : [...turns.slice(0, -1), { ...last, content }]
}

/** The options of a model, as requests need them. */
interface RequestSettings {
  readonly modelId: string
  readonly maxOutputTokens: number
  readonly promptCache: CachePolicy
  /** The API version takes `temperature` and `top_p`. */
  readonly takesSampling?: boolean | undefined
  readonly thinking?: WireThinking | undefined
  /** The model binds its thinking, which is always on, to what stands before it. */
  readonly bindsThinking?: boolean | undefined
  /** The account decides what becomes of earlier thinking that belongs to another beginning. */
  readonly keepsBinding?: boolean | undefined
  readonly effort?: string | undefined
  readonly citations?: boolean | undefined
  readonly strictTools?: boolean | undefined
  readonly eagerToolInputs?: boolean | undefined
  /** Sends changes of the tools as messages. */
  readonly midConversationTools?: boolean | undefined
  readonly toolFields?: Readonly<Record<string, JsonObject>> | undefined
  readonly providerTools?: readonly JsonObject[] | undefined
  readonly mcpServers?: readonly AnthropicMcpServer[] | undefined
  readonly contextEdits?: readonly JsonObject[] | undefined
  readonly betas?: readonly string[] | undefined
  readonly extraBody?: JsonObject | undefined
}

export interface RenderSettings extends RequestSettings {
  /** Reports what the wire cannot express of this request. */
  readonly warn: Warn<AnthropicWarning>
}

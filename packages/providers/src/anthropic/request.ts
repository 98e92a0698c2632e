import type { JsonObject, Message, ModelRequest, ToolChoice, ToolDefinition } from '@tallystick/core'
import { callIds } from '../shared/call-ids.ts'
import { textAt } from '../shared/json-reading.ts'
import { toolNames, type ToolNames } from '../shared/tool-names.ts'
import { textBlock } from './content-blocks.ts'
import { type Draft, draftOf } from './draft.ts'
import { isThinking, turnsOf } from './history.ts'
import type { WireBlock, WireRequest, WireThinking, WireTurn } from './wire.ts'

// The vendor takes longer ones by now; gateways and other hosts of the same models do not.
const identifierLengthMax = 64
const thinkingBudgetMin = 1024

/** What of a request the model's options decide. */
export interface RequestSettings {
  readonly modelId: string
  readonly maxOutputTokens: number
  readonly promptCache: '5m' | '1h' | 'off'
  readonly thinking?: WireThinking | undefined
  readonly effort?: string | undefined
  /** Tools that the vendor runs itself, in its own words. */
  readonly providerTools?: readonly JsonObject[] | undefined
  /** Fields of the body that no option covers. They win. */
  readonly extraBody?: JsonObject | undefined
}

/** A request, ready to be sent. */
export interface RenderedRequest {
  readonly body: WireRequest
  /** For the reply: the names that its calls go by. */
  readonly names: ToolNames
}

/** Renders requests of one model. `now` is in milliseconds since 1970 UTC. */
export type RequestRenderer = (request: ModelRequest, now: number) => RenderedRequest

/**
 * A renderer that keeps what it made of each message, so that a turn costs what it adds. The same request gives the
 * same body, whatever was rendered before.
 */
export function requestRenderer(settings: RequestSettings): RequestRenderer {
  const drafts = new WeakMap<Message, Draft>()
  const draftFor = (message: Message): Draft => {
    const before = drafts.get(message)
    if (before !== undefined) return before
    const draft = draftOf(message, settings.modelId)
    drafts.set(message, draft)
    return draft
  }
  return (request, now) => renderRequest(request, request.messages.map(draftFor), settings, now)
}

function renderRequest(
  request: ModelRequest,
  drafts: readonly Draft[],
  settings: RequestSettings,
  now: number,
): RenderedRequest {
  const providerTools = settings.providerTools ?? []
  const calls = drafts.flatMap(({ slots }) => slots.filter((slot) => slot.kind === 'call'))
  const names = toolNames(
    [...request.tools, ...calls].map((named) => named.name),
    {
      lengthMax: identifierLengthMax,
      reserved: providerTools.map((tool) => textAt(tool, 'name')).filter((name) => name !== undefined),
    },
  )
  const turns = turnsOf(drafts, { ids: callIds(calls, identifierLengthMax), names })
  const maxTokens = Math.min(request.maxOutputTokens ?? Infinity, settings.maxOutputTokens)
  const choice = choiceOf(request, [...new Set(calls.map((call) => call.name))], names, providerTools)
  const thinking = thinkingOf(settings.thinking, request.toolChoice, turns, maxTokens)
  const container = liveContainer(drafts, now)
  const body: WireRequest = {
    model: settings.modelId,
    max_tokens: maxTokens,
    stream: true,
    ...cached(textBlock(request.instructions), choice, settings.promptCache),
    messages: cachedTurns(thinkingAllowed(turns, thinking), settings.promptCache),
    ...(thinking && { thinking }),
    ...(settings.effort !== undefined && { output_config: { effort: settings.effort } }),
    ...(container !== undefined && { container }),
    ...settings.extraBody,
  }
  return { body, names }
}

interface Choice {
  readonly tools?: readonly JsonObject[]
  readonly tool_choice?: JsonObject
}

/**
 * The tools and whether they may be called. Tools stay in the request when they may not be: the vendor wants them there
 * when the history holds calls, and the prompt's cached beginning stays the same.
 */
function choiceOf(
  request: ModelRequest,
  called: readonly string[],
  names: ToolNames,
  providerTools: readonly JsonObject[],
): Choice {
  const tools = [...request.tools.map((tool) => wireTool(tool, names)), ...providerTools]
  if (tools.length > 0) {
    const choice = wireChoice(request.toolChoice, request.parallelToolCalls, names)
    return { tools, ...(choice && { tool_choice: choice }) }
  }
  if (called.length === 0) return {}
  const past = called.map((name) => ({ name: names.toWire(name), input_schema: { type: 'object' } }))
  return { tools: past, tool_choice: { type: 'none' } }
}

function wireTool({ name, description, inputSchema }: ToolDefinition, names: ToolNames): JsonObject {
  return {
    name: names.toWire(name),
    ...(description.trim() !== '' && { description: description.toWellFormed() }),
    input_schema: { type: 'object', ...inputSchema },
  }
}

function wireChoice(choice: ToolChoice, parallel: boolean, names: ToolNames): JsonObject | undefined {
  const alone = parallel ? {} : { disable_parallel_tool_use: true }
  switch (choice.type) {
    case 'auto':
      return parallel ? undefined : { type: 'auto', ...alone }
    case 'any':
      return { type: 'any', ...alone }
    case 'none':
      return { type: 'none' }
    case 'tool':
      return { type: 'tool', name: names.toWire(choice.name), ...alone }
  }
}

/**
 * The thinking that this request may ask for. With a fixed budget the vendor refuses a forced tool choice, a budget
 * that does not fit into the reply, and an open turn that began without thinking (because another model began it).
 */
function thinkingOf(
  wanted: WireThinking | undefined,
  choice: ToolChoice,
  turns: readonly WireTurn[],
  maxTokens: number,
): WireThinking | undefined {
  if (wanted?.type !== 'enabled') return wanted
  const budget = Math.min(wanted.budget_tokens, maxTokens - 1)
  const forced = choice.type === 'any' || choice.type === 'tool'
  if (forced || budget < thinkingBudgetMin || !openTurnThinks(turns)) return undefined
  return { ...wanted, budget_tokens: budget }
}

/** An open turn: what the assistant did since the user's last words. One that has not begun may think. */
function openTurnThinks(turns: readonly WireTurn[]): boolean {
  const lastWord = turns.findLastIndex(
    ({ role, content }) => role === 'user' && content.some((block) => block.type !== 'tool_result'),
  )
  const begun = turns.slice(lastWord + 1).find(({ role }) => role === 'assistant')
  return begun === undefined || isThinking(begun.content[0])
}

/** Where thinking is off, a reply that is to be continued may not show any. */
function thinkingAllowed(
  turns: readonly WireTurn[],
  thinking: WireThinking | undefined,
): readonly WireTurn[] {
  const last = turns.at(-1)
  if (thinking?.type !== 'disabled' || last?.role !== 'assistant') return turns
  const content = last.content.filter((block) => !isThinking(block))
  return content.length === 0 ? turns.slice(0, -1) : [...turns.slice(0, -1), { ...last, content }]
}

/** The latest sandbox, unless it is gone: naming one that has expired is refused. */
function liveContainer(drafts: readonly Draft[], now: number): string | undefined {
  const container = drafts.findLast((draft) => draft.container !== undefined)?.container
  const expiresAt = Date.parse(textAt(container, 'expires_at') ?? '')
  return expiresAt <= now ? undefined : textAt(container, 'id')
}

/** Marks where the unchanging beginning ends: behind the instructions, or else behind the tools. */
function cached(
  system: readonly WireBlock[],
  choice: Choice,
  policy: RequestSettings['promptCache'],
): object {
  const marked = system.length > 0 ? { system: marking(system, policy) } : {}
  if (system.length > 0 || !choice.tools) return { ...marked, ...choice }
  return { ...choice, tools: marking(choice.tools, policy) }
}

/**
 * Marks the end of the last two user messages: up to the first one the last request is in the cache, up to the second
 * one the next request will find this one.
 */
function cachedTurns(
  turns: readonly WireTurn[],
  policy: RequestSettings['promptCache'],
): readonly WireTurn[] {
  if (policy === 'off') return turns
  const marked = [...turns]
  let left = 2
  for (let place = turns.length - 1; place >= 0 && left > 0; place--) {
    const turn = turns[place]!
    if (turn.role !== 'user') continue
    marked[place] = { role: 'user', content: marking(turn.content, policy) }
    left -= 1
  }
  return marked
}

function marking<T extends JsonObject>(
  items: readonly T[],
  policy: RequestSettings['promptCache'],
): readonly T[] {
  const last = items.at(-1)
  if (policy === 'off' || last === undefined) return items
  const mark = { type: 'ephemeral', ...(policy === '1h' && { ttl: policy }) }
  return [...items.slice(0, -1), { ...last, cache_control: mark }]
}

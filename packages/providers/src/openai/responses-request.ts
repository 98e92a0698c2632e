import type { Message, ModelRequest, ProviderError } from '@tallystick/core'
import { getOwn, omitUndefined } from '@tallystick/core/internal'
import type { JsonObject, ModelSettings, ProviderState, ToolDefinition } from '@tallystick/core/vocabulary'
import { textAt } from '../shared/json.ts'
import type { Warn } from '../shared/options.ts'
import {
  callIds,
  memoized,
  type ToolNames,
  toolNames,
  warnOfNames,
  withAnswerSchema,
  withProviderOptions,
} from '../shared/request.ts'
import { codeOf } from './failure.ts'
import type { OpenAICustomTool, OpenAIWarning } from './options.ts'
import {
  callContext,
  type CallContext,
  effortName,
  refusedField,
  refusedMessage,
  samplingFields,
  takenChoice,
} from './request.ts'
import {
  type Binding,
  type GoingOn,
  inputOf,
  lastKept,
  type RenderedMessage,
  renderMessage,
  seenUpTo,
} from './responses-messages.ts'
import type { KeptResponse, NativeKind, WireRequest } from './responses-wire.ts'
import {
  fitSchema,
  isAnswerSchema,
  noAnswerSchema,
  offeredChoice,
  type OfferedChoice,
  offeredTool,
} from './tools.ts'

/** The tools, and whether they may be called. Without tools the vendor takes no word about them. */
function toolFields(
  request: ModelRequest,
  names: ToolNames,
  settings: RenderSettings,
  refused: readonly string[],
): object {
  const tools = [...settings.providerTools, ...request.tools.map((tool) => wireTool(tool, names, settings))]
  if (tools.length === 0) return {}
  const choice = takenChoice(wireChoice(request, names, settings), refused, settings.warn)
  return {
    tools,
    ...(choice !== undefined && { tool_choice: choice }),
    ...(!request.parallelToolCalls && { parallel_tool_calls: false }),
  }
}

function wireChoice(
  { toolChoice }: ModelRequest,
  names: ToolNames,
  settings: RenderSettings,
): OfferedChoice | { readonly type: NativeKind } {
  const native = toolChoice.type === 'tool' ? nativeKind(toolChoice.name, settings) : undefined
  return native === undefined ? offeredChoice(toolChoice, names, settings) : { type: native }
}

function nativeKind(name: string, { nativeTools }: RenderSettings): NativeKind | undefined {
  return (['shell', 'apply_patch'] as const).find((kind) => nativeTools[kind] === name)
}

function wireTool(tool: ToolDefinition, names: ToolNames, settings: RenderSettings): JsonObject {
  const native = nativeKind(tool.name, settings)
  if (native !== undefined) {
    const local = native === 'shell' ? { environment: { type: 'local' } } : {}
    return { type: native, ...local, ...getOwn(settings.toolFields, tool.name) }
  }
  const { type, fields, strict, more } = offeredTool(tool, names, { ...settings, knowsStrict: true })
  return { type, ...fields, ...(strict !== undefined && { strict }), ...more }
}

// The vendor refuses to write less.
const outputTokensMin = 16
const ways = { maxStop: 0, seedField: 'none' } as const

/** How much the model may write, how it thinks and writes, and what no option covers. */
function writingFields(
  { maxOutputTokens = Infinity, modelSettings = {} }: ModelRequest,
  settings: RenderSettings,
  changes: FallbackChanges,
): JsonObject {
  const { refused = [] } = changes
  const { include: _, ...extraBody } = settings.extraBody ?? {}
  const include = includeOf(settings, changes)
  const maxTokens = Math.min(maxOutputTokens, settings.maxOutputTokens ?? Infinity)
  return {
    ...(Number.isFinite(maxTokens) && { max_output_tokens: Math.max(maxTokens, outputTokensMin) }),
    ...optionFields(settings),
    ...extraBody,
    ...reasoningFields(modelSettings, settings, refused),
    ...(include.length > 0 && { include }),
    ...samplingFields(modelSettings, ways, { ...settings, refused }),
  }
}

/** How much the model is to reason, over what the options and the body say of that. */
function reasoningFields(
  { reasoningEffort: effort }: ModelSettings,
  { reasoning, extraBody, warn }: RenderSettings,
  refused: readonly string[],
): JsonObject {
  if (effort === undefined) return {}
  if (refused.includes(effortName)) {
    warn({ what: 'model_settings', message: refusedMessage(effortName) })
    return {}
  }
  const given = extraBody?.['reasoning'] ?? reasoning
  return { reasoning: { ...(given as JsonObject | undefined), effort } }
}

/** Fields that the options of the model say word for word. */
function optionFields(settings: RenderSettings): JsonObject {
  return omitUndefined({
    reasoning: settings.reasoning,
    prompt_cache_key: settings.promptCacheKey,
    service_tier: settings.serviceTier,
    metadata: settings.metadata,
  })
}

/** What the service is to add to its reply: what the adapter needs, beside what the options ask for. */
function includeOf(
  { include = [], extraBody }: RenderSettings,
  { noEncryption }: FallbackChanges,
): readonly string[] {
  const more = extraBody?.['include']
  const asked = [...include, ...(Array.isArray(more) ? (more as readonly string[]) : [])]
  const wanted = ['reasoning.encrypted_content', ...asked]
  const all = new Set(wanted.filter((one) => !noEncryption || one !== 'reasoning.encrypted_content'))
  return [...all]
}

/** A request, ready to be sent. */
export interface RenderedRequest {
  readonly body: WireRequest
  /** For the reply. */
  readonly context: ReplyContext
}

/** What the rendering of one request depends on. */
interface Rendering extends Pick<RenderSettings, 'warn'> {
  readonly changes?: FallbackChanges
}

/** Renders requests of one model. */
export type RequestRenderer = (request: ModelRequest, rendering: Rendering) => RenderedRequest

/**
 * A renderer that keeps what it made of each message, so that a turn costs what it adds. The same request gives the
 * same body, whatever was rendered before.
 */
export function requestRenderer(given: RequestSettings): RequestRenderer {
  const rendered = memoized((message: Message) => renderMessage(message, given.provider, given.modelId))
  return (request, { warn, changes = {} }) =>
    renderRequest(
      request,
      request.messages.map(rendered),
      { ...given, warn, state: stateIn(request, given) },
      changes,
    )
}

const maxIdentifierLength = 64
const heldFields = [
  'model',
  'input',
  'stream',
  'tools',
  'store',
  'previous_response_id',
  'conversation',
  'include',
]

function renderRequest(
  request: ModelRequest,
  renderedMessages: readonly RenderedMessage[],
  settings: RenderSettings,
  changes: FallbackChanges,
): RenderedRequest {
  const binding = bindingOf(request, renderedMessages, settings)
  const seen = seenUpTo(renderedMessages)
  const goingOn = changes.stateLost ? undefined : goingOnFrom(renderedMessages, seen, binding, settings)
  const state = stateOf(renderedMessages, goingOn, settings, changes)
  const input = inputOf(renderedMessages, goingOn?.from ?? 0, binding)
  const answer = answerFields(request, settings.warn)
  const { text, tools } = {
    text: textField(answer.format, settings),
    tools: toolFields(request, binding.names, settings, changes.refused ?? []),
  }
  const body: WireRequest = {
    model: settings.modelId,
    ...(answer.instructions.trim() !== '' && { instructions: answer.instructions.toWellFormed() }),
    input: input.length > 0 ? input : [{ role: 'user', content: '(The conversation begins here.)' }],
    stream: true,
    ...state,
    // Only what is stored can be sent for again.
    ...(settings.background && { background: true, store: true }),
    ...tools,
    ...text,
    ...writingFields(request, settings, changes),
  }
  const isKept = body.store && state.store
  const kept = (id: string) =>
    isKept ? keptResponse(id, seen(renderedMessages.length), body.conversation) : undefined
  return {
    body: withProviderOptions(body, request, { ...settings, held: heldFields }),
    context: {
      ...callContext(request, binding.names, settings),
      approvalTool: settings.approvalTool,
      nativeTools: settings.nativeTools,
      hasProviderTools: hasProviderTools(settings),
      kept,
      providerState: (id) => (isKept ? providerStateOf(id, body) : undefined),
    },
  }
}

function bindingOf(
  request: ModelRequest,
  renderedMessages: readonly RenderedMessage[],
  settings: RenderSettings,
): Binding {
  const calls = renderedMessages.flatMap(({ placeholders }) =>
    placeholders.filter((placeholder) => placeholder.role === 'call'),
  )
  const names = toolNames(
    [...request.tools, ...calls].map((named) => named.name),
    {
      maxLength: maxIdentifierLength,
      reserved: settings.providerTools
        .map((tool) => textAt(tool, 'name'))
        .filter((name) => name !== undefined),
    },
  )
  warnOfNames(request, names, settings.warn)
  return { ids: callIds(calls, maxIdentifierLength), names }
}

function goingOnFrom(
  renderedMessages: readonly RenderedMessage[],
  seen: (place: number) => string,
  { ids }: Binding,
  { state }: RenderSettings,
): GoingOn | undefined {
  if (state === 'none') return undefined
  const conversation = conversationIn(state)
  // The service knows its calls by the ids that it gave them.
  return lastKept(renderedMessages, seen, (kept, { placeholders }) => {
    const known = placeholders.every(({ toolCallId, ownId }) => ids.get(toolCallId) === ownId)
    return known && kept.conversation === conversation
  })
}

/**
 * The fields that say where the conversation is kept. A conversation that holds another past than ours cannot be gone
 * on with, and cannot be begun anew: such a request carries everything, and is kept nowhere.
 */
function stateOf(
  renderedMessages: readonly RenderedMessage[],
  goingOn: GoingOn | undefined,
  { state, warn }: RenderSettings,
  { stateLost }: FallbackChanges,
): Pick<WireRequest, 'store' | 'previous_response_id' | 'conversation'> {
  if (state === 'none') return { store: false }
  if (typeof state === 'object' && 'after' in state)
    return { store: true, previous_response_id: goingOn ? goingOn.kept.id : state.after }
  if (state === 'responses') {
    return { store: true, ...(goingOn && { previous_response_id: goingOn.kept.id }) }
  }
  const begun = renderedMessages.some(({ kept }) => kept?.conversation === state.conversation)
  if (!stateLost && (goingOn || !begun)) return { store: true, conversation: state.conversation }
  warn({
    what: 'state',
    message: `The conversation ${state.conversation} does not hold this history, so the request carried all of it.`,
  })
  return { store: false }
}

function hasProviderTools({ providerTools, extraBody }: RenderSettings): boolean {
  return providerTools.length > 0 || extraBody?.['tools'] !== undefined
}

/** Where the past is kept: as the request says, else as the model is set to. */
function stateIn({ providerState }: ModelRequest, { state }: RequestSettings): RequestSettings['state'] {
  const { conversationId, previousResponseId } = providerState ?? {}
  if (conversationId !== undefined) return { conversation: conversationId }
  return previousResponseId === undefined ? state : { after: previousResponseId }
}

function conversationIn(state: RequestSettings['state']): string | undefined {
  return typeof state === 'object' && 'conversation' in state ? state.conversation : undefined
}

function keptResponse(id: string, seen: string, conversation: string | undefined): KeptResponse {
  return { id, seen, ...(conversation !== undefined && { conversation }) }
}

/** What a run that continues from here is given. */
function providerStateOf(
  id: string,
  { store, conversation }: Pick<WireRequest, 'store' | 'conversation'>,
): ProviderState | undefined {
  if (!store) return undefined
  return conversation === undefined ? { previousResponseId: id } : { conversationId: conversation }
}

function textField(
  format: JsonObject | undefined,
  { verbosity }: RenderSettings,
): { readonly text?: JsonObject } {
  const text = { ...(format && { format }), ...(verbosity !== undefined && { verbosity }) }
  return Object.keys(text).length > 0 ? { text } : {}
}

/** How the model is asked for an answer of a schema: by the vendor's own way, or in the instructions. */
interface AnswerFields {
  readonly instructions: string
  readonly format?: JsonObject
}

function answerFields(
  { outputSchema, instructions }: ModelRequest,
  warn: (warning: OpenAIWarning) => void,
): AnswerFields {
  if (outputSchema === undefined) return { instructions }
  if (!isAnswerSchema(outputSchema)) {
    warn({ what: 'output_schema', message: noAnswerSchema })
    return { instructions: withAnswerSchema(instructions, outputSchema) }
  }
  const { schema, strict, notes } = fitSchema(outputSchema)
  for (const note of notes) warn({ what: 'output_schema', message: `The schema of the answer: ${note}.` })
  return { instructions, format: { type: 'json_schema', name: 'answer', schema, strict } }
}

/** The settings of a request that come from the options of the model. */
export interface RequestSettings {
  readonly modelId: string
  readonly provider: string
  readonly maxOutputTokens?: number | undefined
  /** Where the conversation is kept: nowhere, after each response, or in a conversation that has an id. */
  readonly state: 'none' | 'responses' | { readonly conversation: string } | { readonly after: string }
  readonly reasoning?: JsonObject | undefined
  readonly include?: readonly string[] | undefined
  readonly serviceTier?: string | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  readonly verbosity?: string | undefined
  readonly strictTools: boolean
  readonly customTools: Readonly<Record<string, OpenAICustomTool>>
  readonly toolFields: Readonly<Record<string, JsonObject>>
  readonly providerTools: readonly JsonObject[]
  readonly approvalTool: string
  readonly background: boolean
  readonly nativeTools: { readonly [kind in NativeKind]?: string | undefined }
  readonly promptCacheKey?: string | undefined
  readonly extraBody?: JsonObject | undefined
}

/** How one request is rendered. */
export interface RenderSettings extends RequestSettings {
  /** Reports what the wire cannot express of this request. */
  readonly warn: Warn<OpenAIWarning>
}

/** How a request is to differ from what the settings say, after one was refused. */
export interface FallbackChanges {
  /** The service has lost what it kept: everything is sent. */
  readonly stateLost?: boolean
  /** The model knows no encrypted reasoning: it is not asked for. */
  readonly noEncryption?: boolean
  /** Fields of how to write that the model takes none of. */
  readonly refused?: readonly string[]
}

/** The parts of the request that reading a reply needs. */
export interface ReplyContext extends CallContext {
  /** The tool that stands for the vendor's question whether a call to an MCP server may be made. */
  readonly approvalTool: string
  /** The tool of the application that each native tool is. */
  readonly nativeTools: { readonly [kind in NativeKind]?: string | undefined }
  /** Whether the vendor runs tools of its own, by names that nobody offered. */
  readonly hasProviderTools: boolean
  /** Makes what is remembered of a response that the service keeps; nothing where it keeps none. */
  readonly kept: (responseId: string) => KeptResponse | undefined
  /** Where the service keeps the conversation with a response, if it does. */
  readonly providerState: (responseId: string) => ProviderState | undefined
}

/** How the next request differs from one that was refused. */
export interface Fallback {
  readonly now: FallbackChanges
  /** The changes that hold for every later call of the model. */
  readonly forGood: FallbackChanges
  /** Left out where rendering the next request warns. */
  readonly warning?: { readonly what: 'state' | 'reasoning'; readonly message: string }
}

/** A request that was refused, and the changes that it was made with. */
interface Refused {
  readonly failure: ProviderError
  readonly body: object
  readonly changes: FallbackChanges
  /** Whether the run relies on a past that the provider keeps: if that is lost, it is nowhere else. */
  readonly given?: ProviderState | undefined
}

/**
 * Returns the changes for the next request, where one was refused for a single thing that it can go without. Returns
 * `undefined` where the request went without that thing already, so that something else in it is refused.
 */
export function fallbackFor(refused: Refused): Fallback | undefined {
  const { failure } = refused
  if (failure.class !== 'invalid_request' && failure.class !== 'not_found') return undefined
  return lostState(refused) ?? noEncryption(refused) ?? noSetting(refused)
}

const lostCodes = new Set(['previous_response_not_found', 'conversation_not_found'])

function lostState({ failure, body, changes, given = {} }: Refused): Fallback | undefined {
  const { previous_response_id: after, conversation } = body as Partial<WireRequest>
  if (changes.stateLost || (after ?? conversation) === undefined) return undefined
  if ((after ?? conversation) === (given.previousResponseId ?? given.conversationId)) return undefined
  const isLost =
    lostCodes.has(codeOf(failure) ?? '') ||
    (/\b(previous response|conversation)\b/i.test(failure.message) &&
      /\b(not found|does not exist|expired)/i.test(failure.message))
  if (!isLost) return undefined
  const message = 'The service no longer has what it kept of this history, so the request carried all of it.'
  return { now: { stateLost: true }, forGood: {}, warning: { what: 'state', message } }
}

function noEncryption({ failure, body, changes }: Refused): Fallback | undefined {
  if (changes.noEncryption || !('include' in body)) return undefined
  if (!/encrypted.?content is not supported|reasoning\.encrypted_content/i.test(failure.message))
    return undefined
  const message = 'The model knows no encrypted reasoning, so it is no longer asked for.'
  const without = { noEncryption: true }
  return { now: without, forGood: without, warning: { what: 'reasoning', message } }
}

function noSetting({ failure, body, changes }: Refused): Fallback | undefined {
  const before = changes.refused ?? []
  const field = refusedField(failure, body)
  if (field === undefined || before.includes(field)) return undefined
  const without = { refused: [...before, field] }
  return { now: without, forGood: without }
}

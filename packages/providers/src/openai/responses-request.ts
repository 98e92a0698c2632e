import type { ModelRequest, ProviderError } from '@tallystick/core'
import { getOwn, omitUndefined } from '@tallystick/core/internal'
import type { JsonObject, ProviderState, ToolDefinition } from '@tallystick/core/vocabulary'
import { toItems } from '../shared/json.ts'
import type { Warn } from '../shared/options.ts'
import { bindCalls, type ToolNames, withAnswerSchema, withProviderOptions } from '../shared/request.ts'
import { readCode } from './failure.ts'
import type { OpenAICustomTool, OpenAIOptions, OpenAIWarning } from './options.ts'
import {
  createCallContext,
  type CallContext,
  effortName,
  findRefusedField,
  describeRefusedField,
  toSamplingFields,
  pickChoice,
} from './request.ts'
import { findLastKept, type GoingOn, readKept, digestUpTo, toInput } from './responses-messages.ts'
import { api, type KeptResponse, type NativeKind, type WireRequest } from './responses-wire.ts'
import { fitAnswer, toOfferedChoice, toOfferedTool } from './tools.ts'

/** Without tools the vendor takes no field about them. */
function renderTools(
  request: ModelRequest,
  names: ToolNames,
  settings: RenderSettings,
  refused: readonly string[],
): object {
  const tools = [...settings.providerTools, ...request.tools.map((tool) => renderTool(tool, names, settings))]
  if (tools.length === 0) return {}
  const { toolChoice } = request
  const native = toolChoice.type === 'tool' ? findNativeKind(toolChoice.name, settings) : undefined
  const wanted = native === undefined ? toOfferedChoice(toolChoice, names, settings) : { type: native }
  const choice = pickChoice<typeof wanted>(wanted, refused, settings.warn)
  return {
    tools,
    ...(choice !== undefined && { tool_choice: choice }),
    ...(!request.parallelToolCalls && { parallel_tool_calls: false }),
  }
}

function findNativeKind(name: string, { nativeTools }: RenderSettings): NativeKind | undefined {
  return (['shell', 'apply_patch'] as const).find((kind) => nativeTools[kind] === name)
}

function renderTool(tool: ToolDefinition, names: ToolNames, settings: RenderSettings): JsonObject {
  const native = findNativeKind(tool.name, settings)
  if (native !== undefined) {
    const local = native === 'shell' ? { environment: { type: 'local' } } : {}
    return { type: native, ...local, ...getOwn(settings.toolFields, tool.name) }
  }
  const { type, fields, strict, more } = toOfferedTool(tool, names, { ...settings, knowsStrict: true })
  return { type, ...fields, ...(strict !== undefined && { strict }), ...more }
}

// The vendor refuses to write less.
const outputTokensMin = 16

/** The fields on how the model reasons and writes, and those that no option covers. */
function renderWriting(
  { maxOutputTokens = Infinity, modelSettings = {} }: ModelRequest,
  settings: RenderSettings,
  changes: FallbackChanges,
): JsonObject {
  const { refused = [], noEncryption } = changes
  const { include: more, ...extraBody } = settings.extraBody ?? {}
  const encrypted = 'reasoning.encrypted_content'
  const asked = [encrypted, ...(settings.include ?? []), ...(toItems(more) as readonly string[])]
  const include = [...new Set(asked)].filter((one) => !noEncryption || one !== encrypted)
  const maxTokens = Math.min(maxOutputTokens, settings.maxOutputTokens ?? Infinity)
  // The effort that the request asks for wins over options and body.
  const { reasoningEffort: effort } = modelSettings
  const given = extraBody['reasoning'] ?? settings.reasoning
  const takesEffort = !refused.includes(effortName)
  if (effort !== undefined && !takesEffort)
    settings.warn({ what: 'model_settings', message: describeRefusedField(effortName) })
  return {
    ...(Number.isFinite(maxTokens) && { max_output_tokens: Math.max(maxTokens, outputTokensMin) }),
    ...omitUndefined({
      reasoning: settings.reasoning,
      prompt_cache_key: settings.promptCacheKey,
      service_tier: settings.serviceTier,
      metadata: settings.metadata,
    }),
    ...extraBody,
    ...(effort !== undefined &&
      takesEffort && { reasoning: { ...(given as JsonObject | undefined), effort } }),
    ...(include.length > 0 && { include }),
    ...toSamplingFields(modelSettings, { maxStop: 0, seedField: 'none' }, { ...settings, refused }),
  }
}

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

export function renderRequest(
  request: ModelRequest,
  given: RenderSettings,
  changes: FallbackChanges = {},
): { readonly body: WireRequest; readonly context: ReplyContext } {
  const { messages } = request
  // The request decides where the past is kept, or else the options.
  const { conversationId, previousResponseId: after } = request.providerState ?? {}
  const asked = after === undefined ? given.state : { after }
  const state = conversationId === undefined ? asked : { conversation: conversationId }
  const settings = { ...given, state }
  const { provider, modelId } = settings
  const binding = bindCalls(request, {
    provider,
    api,
    providerTools: settings.providerTools,
    warn: settings.warn,
  })
  const rendering = { provider, modelId, binding }
  const seen = digestUpTo(messages)
  const known = typeof state === 'object' && 'conversation' in state ? state.conversation : undefined
  const goingOn =
    changes.stateLost || state === 'none' ? undefined : findLastKept(messages, known, seen, rendering)
  const stored = renderState(request, goingOn, settings, changes)
  const input = toInput(messages, goingOn?.from ?? 0, rendering)
  const { outputSchema } = request
  const answer = outputSchema && fitAnswer(outputSchema, true, settings.warn)
  const instructions =
    outputSchema && answer === undefined
      ? withAnswerSchema(request.instructions, outputSchema)
      : request.instructions
  const format = answer && { type: 'json_schema', name: 'answer', ...answer }
  const text = omitUndefined({ format, verbosity: settings.verbosity })
  const body: WireRequest = {
    model: settings.modelId,
    ...(instructions.trim() !== '' && { instructions: instructions.toWellFormed() }),
    input: input.length > 0 ? input : [{ role: 'user', content: '(The conversation begins here.)' }],
    stream: true,
    ...stored,
    // Only a stored response can be fetched again.
    ...(settings.background && { background: true, store: true }),
    ...renderTools(request, binding.names, settings, changes.refused ?? []),
    ...(Object.keys(text).length > 0 && { text }),
    ...renderWriting(request, settings, changes),
  }
  const isKept = body.store && stored.store
  const { conversation } = body
  return {
    body: withProviderOptions(body, request, { ...settings, held: heldFields }),
    context: {
      ...createCallContext(request, binding.names, settings),
      approvalTool: settings.approvalTool,
      nativeTools: settings.nativeTools,
      hasProviderTools: settings.providerTools.length > 0 || settings.extraBody?.['tools'] !== undefined,
      kept: (id) =>
        isKept ? { id, seen: seen(messages.length), ...omitUndefined({ conversation }) } : undefined,
      providerState: (id) => {
        if (!isKept) return undefined
        return conversation === undefined ? { previousResponseId: id } : { conversationId: conversation }
      },
    },
  }
}

/**
 * The fields that say where the conversation is kept. A conversation with another past than ours cannot be continued, nor
 * begun again: such a request carries everything, and is kept nowhere.
 */
function renderState(
  { messages }: ModelRequest,
  goingOn: GoingOn | undefined,
  settings: RenderSettings,
  { stateLost }: FallbackChanges,
): Pick<WireRequest, 'store' | 'previous_response_id' | 'conversation'> {
  const { state, warn } = settings
  if (state === 'none') return { store: false }
  if (typeof state === 'object' && 'after' in state)
    return { store: true, previous_response_id: goingOn ? goingOn.kept.id : state.after }
  if (state === 'responses') {
    return { store: true, ...(goingOn && { previous_response_id: goingOn.kept.id }) }
  }
  const begun = messages.some((message) => readKept(message, settings)?.conversation === state.conversation)
  if (!stateLost && (goingOn || !begun)) return { store: true, conversation: state.conversation }
  warn({
    what: 'state',
    message: `The conversation ${state.conversation} does not hold this history, so the request carried all of it.`,
  })
  return { store: false }
}

/** The options of a model, as requests need them. */
export interface RenderSettings extends Pick<
  OpenAIOptions,
  'extraBody' | 'include' | 'maxOutputTokens' | 'metadata' | 'promptCacheKey' | 'serviceTier' | 'verbosity'
> {
  readonly modelId: string
  readonly provider: string
  /** Where the conversation is kept: nowhere, after each response, or in a conversation that has an id. */
  readonly state: 'none' | 'responses' | { readonly conversation: string } | { readonly after: string }
  readonly reasoning?: JsonObject | undefined
  readonly strictTools: boolean
  readonly customTools: Readonly<Record<string, OpenAICustomTool>>
  readonly toolFields: Readonly<Record<string, JsonObject>>
  readonly providerTools: readonly JsonObject[]
  readonly approvalTool: string
  readonly background: boolean
  readonly nativeTools: { readonly [kind in NativeKind]?: string | undefined }
  /** Reports what the wire cannot express of this request. */
  readonly warn: Warn<OpenAIWarning>
}

/** How a request differs from the settings after one was refused. */
export interface FallbackChanges {
  /** The service has lost what it kept, so everything is sent. */
  readonly stateLost?: boolean
  /** The model knows no encrypted reasoning, so it is not asked for. */
  readonly noEncryption?: boolean
  /** Fields that the model refuses. */
  readonly refused?: readonly string[]
}

/** The parts of the request that reading a reply needs. */
export interface ReplyContext extends CallContext {
  /** The tool that represents the vendor's question whether it may call an MCP server. */
  readonly approvalTool: string
  /** The tool of the application that each native tool is. */
  readonly nativeTools: { readonly [kind in NativeKind]?: string | undefined }
  /** The vendor runs tools of its own, by names that nobody offered. */
  readonly hasProviderTools: boolean
  /** Returns what a later request needs to find the response, if the service keeps it. */
  readonly kept: (responseId: string) => KeptResponse | undefined
  /** Where the service keeps the conversation with a response, if it does. */
  readonly providerState: (responseId: string) => ProviderState | undefined
}

const lostCodes = new Set(['previous_response_not_found', 'conversation_not_found'])

/**
 * Returns how the next request differs if one was refused for a single thing that it can go without, and which of the changes
 * hold `forGood`, for every later call of the model. `undefined` if there is no such thing, or if the request went without it
 * already. `given` is a past that only the provider keeps; losing it is final.
 */
export function findFallback({
  failure,
  body,
  changes,
  given = {},
}: {
  readonly failure: ProviderError
  readonly body: object
  readonly changes: FallbackChanges
  readonly given?: ProviderState | undefined
}):
  | { readonly now: FallbackChanges; readonly forGood: FallbackChanges; readonly warning?: OpenAIWarning }
  | undefined {
  if (failure.class !== 'invalid_request' && failure.class !== 'not_found') return undefined
  const { previous_response_id, conversation } = body as Partial<WireRequest>
  const past = previous_response_id ?? conversation
  const isLost =
    lostCodes.has(readCode(failure) ?? '') ||
    (/\b(previous response|conversation)\b/i.test(failure.message) &&
      /\b(not found|does not exist|expired)/i.test(failure.message))
  const isGiven = past === (given.previousResponseId ?? given.conversationId)
  if (isLost && past !== undefined && !isGiven && !changes.stateLost) {
    const message =
      'The service no longer has what it kept of this history, so the request carried all of it.'
    return { now: { stateLost: true }, forGood: {}, warning: { what: 'state', message } }
  }
  const isOfEncryption = /encrypted.?content is not supported|reasoning\.encrypted_content/i.test(
    failure.message,
  )
  if (isOfEncryption && !changes.noEncryption && 'include' in body) {
    const message = 'The model knows no encrypted reasoning, so it is no longer asked for.'
    const without = { noEncryption: true }
    return { now: without, forGood: without, warning: { what: 'reasoning', message } }
  }
  const before = changes.refused ?? []
  const field = findRefusedField(failure, body)
  if (field === undefined || before.includes(field)) return undefined
  const without = { refused: [...before, field] }
  return { now: without, forGood: without }
}

import {
  type JsonObject,
  type Message,
  type ModelRequest,
  present,
  type ToolDefinition,
  withoutAddedNulls,
} from '@tallystick/core'
import type { OpenAICustomTool, OpenAIWarning } from '../../openai/options/options.ts'
import { samplingFields } from '../../openai/request/sampling.ts'
import { fitSchema, isAnswerSchema, noAnswerSchema } from '../../openai/request/strict-schema.ts'
import { toldInWords, withAnswerSchema } from '../../shared/request/answer-instructions.ts'
import { withProviderOptions } from '../../shared/request/provider-options.ts'
import { anyWord, toolNames, type ToolNames, warnOfNames } from '../../shared/request/tool-names.ts'
import { chatCallIds } from './call-ids.ts'
import { type Draft, draftOf } from './rendered-message.ts'
import { messagesOf } from './history.ts'
import type { OpenAIChatQuirks } from '../options/quirks.ts'
import type { ReplyContext } from '../reply/signals.ts'
import type { WireRequest } from '../client/wire.ts'

/** What of a request the model's options decide. */
export interface RequestSettings {
  readonly modelId: string
  readonly provider: string
  readonly quirks: Required<OpenAIChatQuirks>
  readonly maxOutputTokens?: number | undefined
  readonly reasoningEffort?: string | undefined
  readonly verbosity?: string | undefined
  readonly strictTools: boolean
  readonly customTools: Readonly<Record<string, OpenAICustomTool>>
  readonly toolFields: Readonly<Record<string, JsonObject>>
  readonly promptCacheKey?: string | undefined
  readonly serviceTier?: string | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  readonly extraBody?: JsonObject | undefined
  readonly warn: (warning: OpenAIWarning) => void
}

/** A request, ready to be sent. */
export interface RenderedRequest {
  readonly body: WireRequest
  /** For the reply. */
  readonly context: ReplyContext
}

/** Renders requests of one model. `refused`: fields of how to write that the model takes none of. */
export type RequestRenderer = (request: ModelRequest, refused?: readonly string[]) => RenderedRequest

const toolNameLengthMax = 64
const heldFields = ['model', 'messages', 'stream', 'stream_options', 'tools', 'n']

/**
 * A renderer that keeps what it made of each message, so that a turn costs what it adds. The same request gives the
 * same body, whatever was rendered before.
 */
export function requestRenderer(settings: RequestSettings): RequestRenderer {
  const drafts = new WeakMap<Message, Draft>()
  const draftFor = (message: Message): Draft => {
    const before = drafts.get(message)
    if (before !== undefined) return before
    const draft = draftOf(message, settings.provider)
    drafts.set(message, draft)
    return draft
  }
  return (request, refused = []) => renderRequest(request, request.messages.map(draftFor), settings, refused)
}

function renderRequest(
  request: ModelRequest,
  drafts: readonly Draft[],
  settings: RequestSettings,
  refused: readonly string[],
): RenderedRequest {
  const { quirks } = settings
  const calls = drafts.flatMap((draft) => (draft.role === 'assistant' ? draft.calls : []))
  const names = toolNames(
    [...request.tools, ...calls].map((named) => named.name),
    { lengthMax: toolNameLengthMax, ...(quirks.toolNames === 'any' && { pattern: anyWord }) },
  )
  warnOfNames(request, names, settings.warn)
  const history = messagesOf(drafts, { ids: chatCallIds(calls, quirks.callIds), names, quirks })
  const maxTokens = Math.min(request.maxOutputTokens ?? Infinity, settings.maxOutputTokens ?? Infinity)
  const answer = answerFields(request, settings)
  const instructions = answer.instructions.toWellFormed()
  const body: WireRequest = {
    model: settings.modelId,
    messages:
      instructions.trim() === '' ? history : [{ role: quirks.systemRole, content: instructions }, ...history],
    stream: true,
    ...(quirks.streamUsage && { stream_options: { include_usage: true } }),
    ...toolFields(request, names, settings),
    ...(answer.format && { response_format: answer.format }),
    ...(Number.isFinite(maxTokens) && { [quirks.maxTokensField]: maxTokens }),
    ...optionFields(settings),
    ...settings.extraBody,
    ...samplingFields(request.modelSettings ?? {}, quirks, { ...settings, refused }),
  }
  return {
    body: withProviderOptions(body, request, { ...settings, held: heldFields }),
    context: contextOf(request, names, settings),
  }
}

/** Fields that the options of the model say word for word. */
function optionFields(settings: RequestSettings): object {
  return present({
    reasoning_effort: settings.reasoningEffort,
    verbosity: settings.verbosity,
    prompt_cache_key: settings.promptCacheKey,
    service_tier: settings.serviceTier,
    metadata: settings.metadata,
  })
}

function contextOf(request: ModelRequest, names: ToolNames, settings: RequestSettings): ReplyContext {
  const schemas = new Map(request.tools.map((tool) => [tool.name, tool.inputSchema]))
  return {
    provider: settings.provider,
    toolName: names.fromWire,
    customField: (tool) => customToolOf(settings, tool)?.field ?? 'input',
    cleaned: (tool, input) => {
      const schema = settings.strictTools && settings.quirks.strict ? schemas.get(tool) : undefined
      return schema === undefined ? input : withoutAddedNulls(schema, input)
    },
    finishReasonOptional: settings.quirks.finishReasonOptional,
  }
}

function customToolOf({ customTools }: RequestSettings, name: string): OpenAICustomTool | undefined {
  return Object.hasOwn(customTools, name) ? customTools[name] : undefined
}

/** The tools, and whether they may be called. Without tools these servers take no word about them. */
function toolFields(request: ModelRequest, names: ToolNames, settings: RequestSettings): object {
  const { quirks, warn } = settings
  const { tools, toolChoice, parallelToolCalls } = request
  if (tools.length === 0) return {}
  if (quirks.toolChoice === 'none' && toolChoice.type !== 'auto') {
    // To offer none is the one way to forbid them all that every server obeys.
    if (toolChoice.type === 'none') return {}
    const message = 'The server obeys no choice of tools, so the model was free to call any or none.'
    warn({ what: 'tool_choice', message })
  }
  if (!parallelToolCalls && !quirks.parallelToolCalls) {
    const message = 'The server cannot be told to make one call at a time, so it may make several.'
    warn({ what: 'parallel_tool_calls', message })
  }
  const choice = quirks.toolChoice === 'none' ? undefined : wireChoice(request, names, settings)
  return {
    tools: tools.map((tool) => wireTool(tool, names, settings)),
    ...(choice !== undefined && { tool_choice: choice }),
    ...(!parallelToolCalls && quirks.parallelToolCalls && { parallel_tool_calls: false }),
  }
}

function wireTool(tool: ToolDefinition, names: ToolNames, settings: RequestSettings): JsonObject {
  const name = names.toWire(tool.name)
  const described = tool.description.trim() !== '' && { description: tool.description.toWellFormed() }
  const more = Object.hasOwn(settings.toolFields, tool.name) ? settings.toolFields[tool.name] : {}
  const custom = customToolOf(settings, tool.name)
  if (custom) {
    const body = { name, ...described, ...(custom.format && { format: custom.format }), ...more }
    return { type: 'custom', custom: body }
  }
  const parameters = { type: 'object', ...tool.inputSchema }
  if (!settings.strictTools)
    return { type: 'function', function: { name, ...described, parameters, ...more } }
  const { schema, strict, notes } = settings.quirks.strict
    ? fitSchema(tool.inputSchema)
    : { schema: parameters, strict: false, notes: ['the server knows no strict tools'] }
  for (const note of notes) {
    settings.warn({ what: 'schema', message: `The schema of the tool ${tool.name}: ${note}.` })
  }
  const body = { name, ...described, parameters: schema, ...(strict && { strict }), ...more }
  return { type: 'function', function: body }
}

function wireChoice(
  { toolChoice }: ModelRequest,
  names: ToolNames,
  settings: RequestSettings,
): string | JsonObject | undefined {
  switch (toolChoice.type) {
    case 'auto':
      return undefined
    case 'any':
      return 'required'
    case 'none':
      return 'none'
    case 'tool': {
      const type = customToolOf(settings, toolChoice.name) ? 'custom' : 'function'
      return { type, [type]: { name: names.toWire(toolChoice.name) } }
    }
  }
}

/** How the model is asked for an answer of a schema: by the server's own way, in the instructions, or by both. */
interface AnswerFields {
  readonly instructions: string
  readonly format?: JsonObject
}

function answerFields(
  { outputSchema, instructions }: ModelRequest,
  { quirks, warn }: RequestSettings,
): AnswerFields {
  if (outputSchema === undefined) return { instructions }
  const told = withAnswerSchema(instructions, outputSchema)
  if (quirks.structuredOutput === 'none') {
    warn({ what: 'output_schema', message: toldInWords('the server cannot hold an answer to a schema') })
    return { instructions: told }
  }
  if (!isAnswerSchema(outputSchema)) {
    warn({ what: 'output_schema', message: noAnswerSchema })
    return { instructions: told }
  }
  if (quirks.structuredOutput === 'json_object') {
    warn({
      what: 'output_schema',
      message: toldInWords('the server holds an answer to JSON, and to no schema'),
    })
    return { instructions: told, format: { type: 'json_object' } }
  }
  const fitted = fitSchema(outputSchema)
  const { schema, strict } = quirks.strict
    ? fitted
    : { schema: { type: 'object', ...outputSchema }, strict: false }
  const notes = quirks.strict ? fitted.notes : []
  for (const note of notes) warn({ what: 'output_schema', message: `The schema of the answer: ${note}.` })
  const described = { name: 'answer', schema, ...(quirks.strict && { strict }) }
  return { instructions, format: { type: 'json_schema', json_schema: described } }
}

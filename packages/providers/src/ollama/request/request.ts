import type { JsonObject, Message, ModelRequest, ModelSettings, ToolDefinition } from '@tallystick/core'
import { toldInWords, withAnswerSchema } from '../../shared/request/answer-instructions.ts'
import { callIds } from '../../shared/request/call-ids.ts'
import { withProviderOptions } from '../../shared/request/provider-options.ts'
import { anyWord, toolNames, type ToolNames, warnOfNames } from '../../shared/request/tool-names.ts'
import type { Warning } from '../../shared/options/warning.ts'
import { type Draft, draftOf, messagesOf } from './history.ts'
import { type RenderedSchema, toolSchema } from './tool-schema.ts'
import { provider, type WireMessage, type WireRequest, type WireThinking } from '../client/wire.ts'

// The server takes anything; longer ones no model writes without a slip.
const identifierLengthMax = 64

/** Something that a request asked for and that this wire cannot be told. The call goes out without it. */
export interface OllamaWarning extends Warning {
  readonly what:
    | 'schema'
    | 'tool_name'
    | 'tool_choice'
    | 'parallel_tool_calls'
    | 'output_schema'
    | 'model_settings'
}

/** What of a request the model's options decide. */
export interface RequestSettings {
  readonly modelId: string
  readonly contextTokens: number
  readonly maxOutputTokens?: number | undefined
  readonly thinking?: WireThinking | undefined
  readonly keepAlive?: string | number | undefined
  /** The vendor's own settings of a model, by its own names. They win over those that an option makes. */
  readonly parameters?: JsonObject | undefined
  /** Fields of the body that no option covers. They win. */
  readonly extraBody?: JsonObject | undefined
  /** Hears what the wire cannot be told. */
  readonly warn?: ((warning: OllamaWarning) => void) | undefined
}

/** A request, ready to be sent. */
export interface RenderedRequest {
  readonly body: WireRequest
  /** For the reply: the names that its calls go by. */
  readonly names: ToolNames
}

/** Renders requests of one model. */
export type RequestRenderer = (request: ModelRequest) => RenderedRequest

/**
 * A renderer that keeps what it made of each message and each tool, so that a turn costs what it adds. The same request
 * gives the same body, whatever was rendered before.
 */
export function requestRenderer(settings: RequestSettings): RequestRenderer {
  const drafts = kept((message: Message) => draftOf(message, settings.modelId))
  const schemas = kept(toolSchema)
  return (request) => renderRequest(request, request.messages.map(drafts), { settings, schemas })
}

/** The function, which remembers what it answered for each object. */
function kept<Given extends object, Made>(make: (given: Given) => Made): (given: Given) => Made {
  const made = new WeakMap<Given, Made>()
  return (given) => {
    const before = made.get(given)
    if (before !== undefined) return before
    const now = make(given)
    made.set(given, now)
    return now
  }
}

interface Rendering {
  readonly settings: RequestSettings
  readonly schemas: (schema: JsonObject) => RenderedSchema
}

function renderRequest(
  request: ModelRequest,
  drafts: readonly Draft[],
  { settings, schemas }: Rendering,
): RenderedRequest {
  const calls = drafts.flatMap((draft) => draft.calls)
  const names = toolNames(
    [...request.tools, ...calls].map((named) => named.name),
    { lengthMax: identifierLengthMax, pattern: anyWord },
  )
  if (settings.warn) warnOfNames(request, names, settings.warn)
  const tools = offered(request).map((tool) => wireTool(tool, names, { settings, schemas }))
  if (settings.warn) warnings(request, tools.length > 0).forEach(settings.warn)
  const history = messagesOf(drafts, { ids: callIds(calls, identifierLengthMax), names })
  const limits = [request.maxOutputTokens, settings.maxOutputTokens].filter((limit) => limit !== undefined)
  const { instructions, format } = answerFields(request, tools.length > 0)
  const body: WireRequest = {
    model: settings.modelId,
    messages: [...systemMessage(instructions), ...history],
    stream: true,
    truncate: false,
    shift: false,
    ...(tools.length > 0 && { tools }),
    ...(settings.thinking !== undefined && { think: settings.thinking }),
    ...(format && { format }),
    ...(settings.keepAlive !== undefined && { keep_alive: settings.keepAlive }),
    options: {
      num_ctx: settings.contextTokens,
      ...(limits.length > 0 && { num_predict: Math.min(...limits) }),
      ...settings.parameters,
      ...samplingOf(request.modelSettings ?? {}),
    },
    ...settings.extraBody,
  }
  return {
    body: withProviderOptions(body, request, {
      ...{ provider, held: heldFields },
      warn: (warning) => settings.warn?.(warning),
    }),
    names,
  }
}

/** Without these fields, as the adapter writes them, no reply could be read. */
const heldFields = ['model', 'messages', 'stream', 'tools', 'truncate', 'shift']

function samplingOf({ temperature, topP, stop, seed }: ModelSettings): JsonObject {
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(stop && stop.length > 0 && { stop: [...stop] }),
    ...(seed !== undefined && { seed }),
  }
}

/** How the model is asked for an answer of a schema: a reply that is held to one cannot call a tool. */
function answerFields(
  { instructions, outputSchema }: ModelRequest,
  toolsShown: boolean,
): { readonly instructions: string; readonly format?: JsonObject } {
  if (outputSchema === undefined) return { instructions }
  if (!toolsShown) return { instructions, format: outputSchema }
  return { instructions: withAnswerSchema(instructions, outputSchema) }
}

/** The wire cannot forbid tools, nor demand one: what may not be called is not shown. */
function offered({ tools, toolChoice }: ModelRequest): readonly ToolDefinition[] {
  if (toolChoice.type === 'none') return []
  return toolChoice.type === 'tool' ? tools.filter(({ name }) => name === toolChoice.name) : tools
}

function systemMessage(instructions: string): readonly WireMessage[] {
  return instructions.trim() === '' ? [] : [{ role: 'system', content: instructions.toWellFormed() }]
}

function wireTool(
  { name, description, inputSchema }: ToolDefinition,
  names: ToolNames,
  { settings, schemas }: Rendering,
): JsonObject {
  const { schema, told } = schemas(inputSchema)
  if (told.length > 0) {
    const what = `${told.join(', ')} in the schema of the tool ${name}`
    settings.warn?.({
      what: 'schema',
      message: `Ollama has no word for ${what}: told in descriptions instead.`,
    })
  }
  return {
    type: 'function',
    function: { name: names.toWire(name), description: description.toWellFormed(), parameters: schema },
  }
}

function warnings(
  { toolChoice, parallelToolCalls, outputSchema }: ModelRequest,
  toolsShown: boolean,
): OllamaWarning[] {
  const all: OllamaWarning[] = []
  if (toolChoice.type === 'any' || toolChoice.type === 'tool') {
    const message = 'Ollama cannot be told that a tool must be called: the model may answer without one.'
    all.push({ what: 'tool_choice', message })
  }
  if (toolsShown && !parallelToolCalls) {
    const message = 'Ollama cannot be told to ask for one call at a time: all that come are taken.'
    all.push({ what: 'parallel_tool_calls', message })
  }
  if (toolsShown && outputSchema !== undefined) {
    const message = toldInWords('a reply that Ollama holds to a schema could call no tool')
    all.push({ what: 'output_schema', message })
  }
  return all
}

import type { Message, ModelRequest } from '@tallystick/core'
import type { JsonObject, ModelSettings } from '@tallystick/core/vocabulary'
import { schemaInWords, withAnswerSchema } from '../../shared/request/answer-instructions.ts'
import { callIds } from '../../shared/request/call-ids.ts'
import { memoized } from '../../shared/request/memoized.ts'
import { withProviderOptions } from '../../shared/request/provider-options.ts'
import { anyWord, toolNames, type ToolNames, warnOfNames } from '../../shared/request/tool-names.ts'
import { provider, type WireMessage, type WireRequest } from '../client/wire.ts'
import type { OllamaWarning } from '../options/options.ts'
import { messagesOf } from './history.ts'
import { type RenderedMessage, renderMessage } from './rendered-message.ts'
import type { RenderSettings, RequestSettings } from './request-settings.ts'
import { toolSchema } from './tool-schema.ts'
import { offered, type Rendering, wireTool } from './tools.ts'

// The server takes anything; longer ones no model writes without a slip.
const maxIdentifierLength = 64

/** A request, ready to be sent. */
export interface RenderedRequest {
  readonly body: WireRequest
  /** For the reply: the names that its calls go by. */
  readonly names: ToolNames
}

/** Renders requests of one model. */
export type RequestRenderer = (
  request: ModelRequest,
  rendering: Pick<RenderSettings, 'warn'>,
) => RenderedRequest

/**
 * A renderer that keeps what it made of each message and each tool, so that a turn costs what it adds. The same request
 * gives the same body, whatever was rendered before.
 */
export function requestRenderer(given: RequestSettings): RequestRenderer {
  const renderedMessages = memoized((message: Message) => renderMessage(message, given.modelId))
  const schemas = memoized(toolSchema)
  return (request, { warn }) =>
    renderRequest(request, request.messages.map(renderedMessages), { settings: { ...given, warn }, schemas })
}

function renderRequest(
  request: ModelRequest,
  renderedMessages: readonly RenderedMessage[],
  { settings, schemas }: Rendering,
): RenderedRequest {
  const calls = renderedMessages.flatMap((rendered) => rendered.calls)
  const names = toolNames(
    [...request.tools, ...calls].map((named) => named.name),
    { maxLength: maxIdentifierLength, pattern: anyWord },
  )
  warnOfNames(request, names, settings.warn)
  const tools = offered(request).map((tool) => wireTool(tool, names, { settings, schemas }))
  warnings(request, tools.length > 0).forEach(settings.warn)
  const history = messagesOf(renderedMessages, { ids: callIds(calls, maxIdentifierLength), names })
  const limits = [request.maxOutputTokens, settings.maxOutputTokens].filter((limit) => limit !== undefined)
  const { instructions, format } = answerFields(request, tools.length > 0)
  const body: WireRequest = {
    model: settings.modelId,
    messages: [...systemMessage(instructions), ...history],
    stream: true,
    truncate: false,
    shift: false,
    ...(tools.length > 0 && { tools }),
    ...thinkingOf(request.modelSettings, settings),
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
    body: withProviderOptions(body, request, { provider, held: heldFields, warn: settings.warn }),
    names,
  }
}

/** Without these fields, as the adapter writes them, no reply could be read. */
const heldFields = ['model', 'messages', 'stream', 'tools', 'truncate', 'shift']

/** How much the model is to think: the vendor knows fewer words. */
function thinkingOf(
  { reasoningEffort }: ModelSettings = {},
  { thinking, warn }: RenderSettings,
): Pick<WireRequest, 'think'> {
  if (reasoningEffort === 'none') return { think: false }
  if (reasoningEffort === 'low' || reasoningEffort === 'medium' || reasoningEffort === 'high')
    return { think: reasoningEffort }
  if (reasoningEffort !== undefined) {
    warn({
      what: 'model_settings',
      message: `The reasoning effort ${reasoningEffort} was left out: the server knows none, low, medium and high.`,
    })
  }
  return thinking === undefined ? {} : { think: thinking }
}

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

function systemMessage(instructions: string): readonly WireMessage[] {
  return instructions.trim() === '' ? [] : [{ role: 'system', content: instructions.toWellFormed() }]
}

function warnings(
  { toolChoice, parallelToolCalls, outputSchema }: ModelRequest,
  toolsShown: boolean,
): OllamaWarning[] {
  const all: OllamaWarning[] = []
  if (toolChoice.type === 'any' || toolChoice.type === 'tool') {
    const message = 'Ollama has no way to demand a tool call: the model may answer without one.'
    all.push({ what: 'tool_choice', message })
  }
  if (toolsShown && !parallelToolCalls) {
    const message = 'Ollama has no way to ask for one call at a time: all that come are taken.'
    all.push({ what: 'parallel_tool_calls', message })
  }
  if (toolsShown && outputSchema !== undefined) {
    const message = schemaInWords('a reply that Ollama holds to a schema could call no tool')
    all.push({ what: 'output_schema', message })
  }
  return all
}

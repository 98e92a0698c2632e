import { type Message, type ModelRequest, joinText } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import type {
  AssistantMessage,
  ImagePart,
  ModelSettings,
  ResultPart,
  ToolResult,
  UserPart,
} from '@tallystick/core/vocabulary'
import { mendText } from '../shared/json.ts'
import { wrapUnreadInput } from '../shared/reply.ts'
import {
  anyWord,
  bindCalls,
  type Binding,
  describeLeftOut,
  isBase64,
  readTextFile,
  describeSchemaMove,
  type ToolNames,
  withAnswerSchema,
  withProviderOptions,
} from '../shared/request.ts'
import { api, provider, type WireCall, type WireMessage, type WireRequest } from './client.ts'
import type { RenderSettings } from './options.ts'
import { renderTool, selectTools } from './tools.ts'

const opening = '(The conversation begins here.)'

/** Fits a history to every model's template: it begins with the user, and the user and the assistant alternate. */
export function alternateTurns(history: readonly WireMessage[]): readonly WireMessage[] {
  const messages: WireMessage[] = []
  for (const rendered of history) {
    const last = messages.at(-1)
    if (last !== undefined && last.role === rendered.role && rendered.role !== 'tool') {
      messages[messages.length - 1] = mergeMessages(last, rendered)
    } else messages.push(rendered)
  }
  if (messages[0]?.role !== 'user') messages.unshift({ role: 'user', content: opening })
  return messages
}

function mergeMessages(first: WireMessage, second: WireMessage): WireMessage {
  const between = (one: string, other: string): string =>
    [one, other].filter((text) => text !== '').join('\n\n')
  const thinking = between(first.thinking ?? '', second.thinking ?? '')
  const images = [...(first.images ?? []), ...(second.images ?? [])]
  const tool_calls = [...(first.tool_calls ?? []), ...(second.tool_calls ?? [])]
  return {
    role: first.role,
    content: between(first.content, second.content),
    ...(thinking !== '' && { thinking }),
    ...(images.length > 0 && { images }),
    ...(tool_calls.length > 0 && { tool_calls }),
  }
}

function renderMessage(message: Message, modelId: string, binding: Binding): readonly WireMessage[] {
  switch (message.role) {
    case 'user':
      return [toUserMessage(message.parts, '(The message is empty.)')]
    case 'tool':
      return [
        ...message.results.map((result) => toResultMessage(result, binding)),
        ...toImageMessages(message.results),
      ]
    case 'assistant':
      return renderReply(message, modelId, binding)
  }
}

function toUserMessage(parts: readonly (UserPart | ResultPart)[], otherwise: string): WireMessage {
  const images = parts.flatMap((part) => (part.type === 'image' && isCarried(part) ? [part.data!] : []))
  const texts = parts.flatMap(toWords).filter((text) => text.trim() !== '')
  const content = texts.join('\n\n') || (images.length > 0 ? '' : otherwise)
  return { role: 'user', content, ...(images.length > 0 && { images }) }
}

/** Renders a part as text: a text, the content of a text file, or the name of anything that the wire cannot carry. */
function toWords(part: UserPart | ResultPart): readonly string[] {
  switch (part.type) {
    case 'text':
      return [part.text.toWellFormed()]
    case 'image':
      return isCarried(part) ? [] : [describeLeftOut(part)]
    case 'file': {
      const text = isWholeBase64(part.data ?? '') ? readTextFile(part) : ''
      return [text === '' ? describeLeftOut(part) : part.name ? `${part.name}:\n${text}` : text]
    }
  }
}

// The types that every engine of the server decodes. Any other image would fail this request and all that follow.
const imageTypes = /^image\/(png|jpe?g)\s*(;|$)/i

/** The server decodes base64 only with its padding. */
function isWholeBase64(data: string): boolean {
  return data.length % 4 === 0 && isBase64(data)
}

function isCarried({ mediaType, data }: ImagePart): boolean {
  return data !== undefined && imageTypes.test(mediaType) && isWholeBase64(data)
}

/** A result is text only. The wire has no mark for errors, so the text says that it is one. */
function toResultMessage(
  { toolCallId, name, outcome, content }: ToolResult,
  { toWireId, names }: Binding,
): WireMessage {
  const text = content
    .flatMap((part) =>
      part.type === 'image' && isCarried(part) ? ['[See the image below.]'] : toWords(part),
    )
    .join('\n')
  const resultText =
    outcome === 'success' ? text : `Error (${outcome}): ${text.trim() === '' ? 'there is no output.' : text}`
  return {
    role: 'tool',
    content: resultText,
    tool_name: names.toWire(name),
    tool_call_id: toWireId(toolCallId),
  }
}

/** Shows the images of all results in a message of the user after them. */
function toImageMessages(results: readonly ToolResult[]): readonly WireMessage[] {
  const images = results.flatMap(({ content }) =>
    content.filter((part) => part.type === 'image').filter(isCarried),
  )
  const names = results
    .filter(({ content }) => content.some((part) => part.type === 'image' && isCarried(part)))
    .map(({ name }) => name)
  if (images.length === 0) return []
  return [
    {
      ...toUserMessage(images, ''),
      content: `[Images in the results of: ${names.join(', ')}]`.toWellFormed(),
    },
  ]
}

/** Thinking goes back to the model that thought it; others would take it for their own. */
function renderReply(
  { parts, model }: AssistantMessage,
  modelId: string,
  { toWireId, names }: Binding,
): readonly WireMessage[] {
  const isOwn = model.provider === provider && model.api === api && model.modelId === modelId
  const thinking = isOwn ? parts.map((part) => (part.type === 'reasoning' ? part.text : '')).join('') : ''
  const toolCalls = parts
    .filter((part) => part.type === 'tool_call')
    .map(({ toolCallId, name, input, malformed }): WireCall => ({
      id: toWireId(toolCallId),
      function: {
        name: names.toWire(name),
        arguments: mendText(malformed ? wrapUnreadInput(malformed.text) : input),
      },
    }))
  const content = joinText(parts).toWellFormed()
  if (content.trim() === '' && toolCalls.length === 0) return []
  return [
    {
      role: 'assistant',
      content,
      ...(thinking.trim() !== '' && { thinking: thinking.toWellFormed() }),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    },
  ]
}

export function renderRequest(
  request: ModelRequest,
  settings: RenderSettings,
): { readonly body: WireRequest; readonly names: ToolNames } {
  const binding = bindCalls(request, {
    provider,
    api,
    pattern: anyWord,
    warn: settings.warn,
  })
  const { names } = binding
  const tools = selectTools(request).map((tool) => renderTool(tool, names, settings.warn))
  warnOfLimits(request, tools.length > 0, settings.warn)
  const history = alternateTurns(
    request.messages.flatMap((message) => renderMessage(message, settings.modelId, binding)),
  )
  const limits = [request.maxOutputTokens, settings.maxOutputTokens].filter((limit) => limit !== undefined)
  const { outputSchema, modelSettings = {} } = request
  const { temperature, topP, seed, stop = [] } = modelSettings
  // A reply that is held to a schema cannot call a tool.
  const isInWords = outputSchema !== undefined && tools.length > 0
  const instructions = isInWords ? withAnswerSchema(request.instructions, outputSchema) : request.instructions
  const body: WireRequest = {
    model: settings.modelId,
    messages:
      instructions.trim() === ''
        ? history
        : [{ role: 'system', content: instructions.toWellFormed() }, ...history],
    stream: true,
    truncate: false,
    shift: false,
    ...(tools.length > 0 && { tools }),
    ...renderThinking(request.modelSettings, settings),
    ...(outputSchema && !isInWords && { format: outputSchema }),
    ...(settings.keepAlive !== undefined && { keep_alive: settings.keepAlive }),
    options: {
      num_ctx: settings.contextTokens,
      ...(limits.length > 0 && { num_predict: Math.min(...limits) }),
      ...settings.parameters,
      ...omitUndefined({ temperature, top_p: topP, seed }),
      ...(stop.length > 0 && { stop: [...stop] }),
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

/** The vendor knows fewer efforts than a request may ask for. */
function renderThinking(
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

/** Warns of what the server cannot do. */
function warnOfLimits(
  { toolChoice, parallelToolCalls, outputSchema }: ModelRequest,
  toolsShown: boolean,
  warn: RenderSettings['warn'],
): void {
  if (toolChoice.type === 'any' || toolChoice.type === 'tool') {
    const message = 'Ollama has no way to demand a tool call: the model may answer without one.'
    warn({ what: 'tool_choice', message })
  }
  if (toolsShown && !parallelToolCalls) {
    const message = 'Ollama has no way to ask for one call at a time: all that come are taken.'
    warn({ what: 'parallel_tool_calls', message })
  }
  if (toolsShown && outputSchema !== undefined) {
    const message = describeSchemaMove('a reply that Ollama holds to a schema could call no tool')
    warn({ what: 'output_schema', message })
  }
}

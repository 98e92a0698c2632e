import type { Message, ModelRequest } from '@tallystick/core'
import { isJsonObject, omitUndefined } from '@tallystick/core/internal'
import type {
  AssistantPart,
  FilePart,
  ImagePart,
  JsonObject,
  Opaque,
  ResultPart,
  ToolChoice,
  ToolResult,
  UserPart,
} from '@tallystick/core/vocabulary'
import { parseJson, getText, mendText } from '../shared/json.ts'
import type { Warn } from '../shared/options.ts'
import {
  toBareType,
  bindCalls,
  type Binding,
  imageTypes,
  findKeptFileId,
  describeLeftOut,
  isBase64,
  readTextFile,
  type ToolNameRules,
  type ToolNames,
  withAnswerSchema,
  withOptions,
} from '../shared/request.ts'
import {
  type AiSdkOptions,
  type AiSdkWarning,
  api,
  readOpaque,
  type WireCall,
  type WireMessage,
} from './options.ts'

/** The model that a prompt is for. */
export interface Reader {
  readonly provider: string
  readonly modelId: string
  /** The versions differ in files. */
  readonly version: 'v3' | 'v4'
  /** The provider takes sounds; many throw at one. */
  readonly audio: boolean
  /** The provider fetches what is at this address. */
  readonly fetches: (mediaType: string, url: string) => boolean
}

type UserContent = Extract<WireMessage, { readonly role: 'user' }>['content'][number]
type AssistantContent = Extract<WireMessage, { readonly role: 'assistant' }>['content'][number]

function toUserMessage(text: string): WireMessage {
  return { role: 'user', content: [{ type: 'text', text }] }
}

/** Nothing in a message is blank, and state of other providers is gone: the AI SDK's providers rely on that. */
function renderMessage(message: Message, binding: Binding, reader: Reader): WireMessage[] {
  switch (message.role) {
    case 'user': {
      const content = message.parts.flatMap((part) => toUserContent(part, reader))
      return [content.length > 0 ? { role: 'user', content } : toUserMessage('(The message is empty.)')]
    }
    case 'tool': {
      const content = message.results.map((result) => renderResult(result, binding, reader))
      return [{ role: 'tool', content }]
    }
    case 'assistant': {
      const { model, parts } = message
      // Its provider and interface are in the state of each part.
      const sameModel = model.modelId === reader.modelId
      const content = parts.flatMap((part) => renderPart(part, binding, reader, sameModel))
      // Thinking that nothing follows was cut off; vendors refuse a message that ends in it.
      while (content.at(-1)?.type === 'reasoning') content.pop()
      return content.length > 0 ? [{ role: 'assistant', content }] : []
    }
  }
}

function toUserContent(part: UserPart | ResultPart, reader: Reader): UserContent[] {
  if (part.type === 'text')
    return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text.toWellFormed() }]
  const file = toSentFile(part, reader)
  if (file === undefined) return [{ type: 'text', text: describeFile(part) }]
  const name = part.type === 'file' && part.name ? { filename: part.name.toWellFormed() } : {}
  const detail = part.type === 'image' && part.detail !== undefined
  const options = detail && { providerOptions: { [reader.provider]: { imageDetail: part.detail } } }
  return [{ type: 'file', mediaType: file.mediaType, data: file.data as never, ...name, ...options }]
}

/** Renders a part as a file of the AI SDK; `undefined` if the provider could not send it. */
function toSentFile(
  part: ImagePart | FilePart,
  { version, provider, audio, fetches }: Reader,
): { readonly mediaType: string; readonly data: unknown } | undefined {
  const mediaType = toBareType(part.mediaType)
  if (part.providerFile !== undefined) {
    const fileId = findKeptFileId(part, provider)
    // Version 3 has no way to name it.
    if (fileId === undefined || version === 'v3') return undefined
    return { mediaType, data: { type: 'reference', reference: { [provider]: fileId } } }
  }
  const isFile = mediaType === 'application/pdf' || (audio && mediaType.startsWith('audio/'))
  if (!(part.type === 'image' ? imageTypes.has(mediaType) : isFile)) return undefined
  if (part.url !== undefined) {
    if (!URL.canParse(part.url) || !fetches(mediaType, part.url)) return undefined
    const url = new URL(part.url)
    return { mediaType, data: version === 'v3' ? url : { type: 'url', url } }
  }
  const { data } = part
  if (!data || !isBase64(data)) return undefined
  return { mediaType, data: version === 'v3' ? data : { type: 'data', data } }
}

/** Renders the content of a text file; for anything else that the wire cannot carry, a sentence that names it. */
function describeFile(part: ImagePart | FilePart): string {
  const text = part.type === 'file' && isBase64(part.data ?? '') ? readTextFile(part) : ''
  if (part.type !== 'file' || text.trim() === '') return describeLeftOut(part)
  return part.name ? `${part.name}:\n${text}` : text
}

function renderResult(
  result: ToolResult,
  { toWireId, names }: Binding,
  reader: Reader,
): Extract<WireMessage, { readonly role: 'tool' }>['content'][number] {
  const { toolCallId, name, outcome, content } = result
  const parts = content.flatMap((part) => toUserContent(part, reader))
  const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
  const whole = {
    type: 'tool-result',
    toolCallId: toWireId(toolCallId),
    toolName: names.toWire(name),
  } as const
  if (outcome !== 'success') {
    const value = text === '' ? `The call ended as ${outcome}, without output.` : text
    return { ...whole, output: { type: 'error-text', value } }
  }
  if (parts.every((part) => part.type === 'text')) return { ...whole, output: { type: 'text', value: text } }
  const value = parts.map((part) => (part.type === 'text' ? part : toResultFile(part, reader)))
  return { ...whole, output: { type: 'content', value: value as never } }
}

function toResultFile(part: Extract<UserContent, { readonly type: 'file' }>, { version }: Reader): object {
  if (version === 'v4') return part
  const what = part.mediaType.startsWith('image/') ? 'image' : 'file'
  const data: unknown = part.data
  return data instanceof URL
    ? { type: `${what}-url`, url: data.href }
    : { type: `${what}-data`, data, mediaType: part.mediaType }
}

function renderPart(
  part: AssistantPart,
  { toWireId, names }: Binding,
  { provider }: Reader,
  sameModel: boolean,
): AssistantContent[] {
  const metadata = readOpaque(part.opaque, provider)?.metadata
  const options: Options = metadata && {
    providerOptions: metadata as Record<string, Record<string, never>>,
  }
  switch (part.type) {
    case 'text':
      return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text.toWellFormed(), ...options }]
    case 'reasoning':
      // The proof of thinking holds for one model only, and goes back to the letter.
      return sameModel && options !== undefined ? [{ type: 'reasoning', text: part.text, ...options }] : []
    case 'tool_call': {
      return [
        {
          type: 'tool-call',
          toolCallId: toWireId(part.toolCallId),
          toolName: names.toWire(part.name),
          input: mendText(part.input),
          ...options,
        },
      ]
    }
    case 'provider':
      return renderKept(part.opaque, provider, options)
  }
}

type Options = { readonly providerOptions: Record<string, Record<string, never>> } | undefined

/** Renders a part that was kept complete; none for parts that the AI SDK has no place for. */
function renderKept(opaque: Opaque, provider: string, options: Options): AssistantContent[] {
  const part = readOpaque(opaque, provider)?.part
  const [toolCallId, toolName] = [getText(part, 'toolCallId'), getText(part, 'toolName')]
  const type = getText(part, 'type') ?? ''
  const isOfCall = type === 'tool-call' || type === 'tool-result'
  if (isOfCall && (toolCallId === undefined || toolName === undefined)) return []
  const call = { toolCallId: toolCallId ?? '', toolName: toolName ?? '' }
  switch (type) {
    case 'tool-call': {
      const input = parseJson(getText(part, 'input') ?? '{}') ?? {}
      return [{ type, ...call, input, providerExecuted: true, ...options }]
    }
    case 'tool-result': {
      const kind = part?.['isError'] === true ? 'error-json' : 'json'
      return [{ type, ...call, output: { type: kind, value: part?.['result'] as never }, ...options }]
    }
    case 'custom':
    case 'file':
    case 'reasoning-file':
      return isJsonObject(part) ? [{ ...part, ...options } as unknown as AssistantContent] : []
    default:
      return []
  }
}

/** Tools that may not be called stay in the request: some vendors demand them if the history has calls. */
function renderTools(request: ModelRequest, called: readonly string[], names: ToolNames): object {
  const { tools, toolChoice } = request
  if (tools.length > 0) {
    const offered = tools.map(({ name, description, inputSchema }) => ({
      type: 'function',
      name: names.toWire(name),
      ...(description.trim() !== '' && { description: description.toWellFormed() }),
      inputSchema: { type: 'object', ...inputSchema },
    }))
    return { tools: offered, toolChoice: renderChoice(toolChoice, names) }
  }
  if (called.length === 0) return {}
  const past = called.map((name) => ({
    type: 'function',
    name: names.toWire(name),
    inputSchema: { type: 'object' },
  }))
  return { tools: past, toolChoice: { type: 'none' } }
}

function renderChoice(choice: ToolChoice, names: ToolNames): WireCall['toolChoice'] & object {
  switch (choice.type) {
    case 'any':
      return { type: 'required' }
    case 'tool':
      return { type: 'tool', toolName: names.toWire(choice.name) }
    case 'auto':
    case 'none':
      return { type: choice.type }
  }
}

/** The names of tools that vendors take, if not the usual ones. */
const nameRules: ReadonlyMap<string, ToolNameRules> = new Map([
  ['anthropic', { maxLength: 128 }],
  ['google', { maxLength: 128, pattern: /^[a-zA-Z_][a-zA-Z0-9_.:-]*$/ }],
])

/** The settings of a call. */
export interface CallSettings extends Pick<
  AiSdkOptions,
  'headers' | 'maxOutputTokens' | 'providerOptions' | 'settings'
> {
  /** The schema of an answer also goes into the instructions. */
  readonly answerInWords?: boolean
  readonly warn: Warn<AiSdkWarning>
}

/**
 * Renders a request as the AI SDK asks its models. Every call reports raw events too: these are the signs of life. `names` are
 * those that the calls of the reply go by.
 */
export function renderCall(
  request: ModelRequest,
  reader: Reader,
  given: CallSettings,
): { readonly call: WireCall; readonly names: ToolNames } {
  const binding = bindCalls(request, {
    provider: reader.provider,
    api,
    ...nameRules.get(reader.provider),
    warn: given.warn,
  })
  const { calls, names } = binding
  const limits = [request.maxOutputTokens, given.maxOutputTokens].filter((limit) => limit !== undefined)
  const options = mergeOptions(request, given)
  const { outputSchema } = request
  const instructions =
    outputSchema && given.answerInWords
      ? withAnswerSchema(request.instructions, outputSchema)
      : request.instructions
  const history = request.messages.flatMap((message) => renderMessage(message, binding, reader))
  const { temperature, topP, stop = [], seed, reasoningEffort: reasoning } = request.modelSettings ?? {}
  const call = {
    ...given.settings,
    ...omitUndefined({ reasoning, temperature, topP }),
    ...(stop.length > 0 && { stopSequences: [...stop] }),
    ...omitUndefined({ seed }),
    prompt: [
      ...(instructions.trim() === ''
        ? []
        : [{ role: 'system', content: instructions.toWellFormed() } as const]),
      // It begins with the user.
      ...(history[0]?.role === 'user' ? [] : [toUserMessage('(The conversation begins here.)')]),
      ...history,
    ],
    ...(limits.length > 0 && { maxOutputTokens: Math.min(...limits) }),
    ...(outputSchema && { responseFormat: { type: 'json', schema: outputSchema } }),
    ...renderTools(request, [...new Set(calls.map(({ name }) => name))], names),
    ...(Object.keys(options).length > 0 && { providerOptions: options }),
    ...(given.headers && { headers: { ...given.headers } }),
    includeRawChunks: true,
  }
  return { call: call as unknown as WireCall, names }
}

/** The AI SDK has no common word for one call at a time, so the words of the providers that have one are used. */
function mergeOptions(
  { parallelToolCalls, tools, modelSettings }: ModelRequest,
  given: CallSettings,
): JsonObject {
  const providerOptions = withOptions(given.providerOptions ?? {}, { ...modelSettings?.providerOptions })
  if (parallelToolCalls || tools.length === 0) return providerOptions
  const alone: JsonObject = {
    anthropic: { disableParallelToolUse: true },
    openai: { parallelToolCalls: false },
  }
  const merged = { ...alone, ...providerOptions }
  return Object.fromEntries(
    Object.entries(merged).map(([name, options]) => {
      const ours = alone[name]
      return [name, isJsonObject(ours) && isJsonObject(options) ? { ...ours, ...options } : options]
    }),
  )
}

import type { Message, ModelRequest } from '@tallystick/core'
import { isJsonObject } from '@tallystick/core/internal'
import type {
  AssistantPart,
  FilePart,
  ImagePart,
  JsonObject,
  ModelSettings,
  Opaque,
  ResultPart,
  ToolChoice,
  ToolResult,
  UserPart,
} from '@tallystick/core/vocabulary'
import { parseJson, textAt, wellFormed } from '../shared/json.ts'
import {
  type Binding,
  callIds,
  decodedText,
  type IdentifiedCall,
  keptFileId,
  leftOutText,
  type ToolNameRules,
  type ToolNames,
  toolNames,
  withAnswerSchema,
  withOptions,
} from '../shared/request.ts'
import { api, readOpaque, type WireCall, type WireMessage } from './options.ts'

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
type ResultContent = Extract<WireMessage, { readonly role: 'tool' }>['content'][number]

const opening = '(The conversation begins here.)'
const emptyMessage = '(The message is empty.)'

/** Lists the calls of a history, with the ids that this provider gave its own. */
function listCalls(
  messages: readonly Message[],
  reader: Reader,
): (IdentifiedCall & { readonly name: string })[] {
  return messages.flatMap((message) => {
    if (message.role !== 'assistant') return []
    const own = message.model.provider === reader.provider && message.model.api === api
    return message.parts.flatMap((part) =>
      part.type === 'tool_call'
        ? [{ toolCallId: part.toolCallId, name: part.name, ...(own && { ownId: part.providerCallId }) }]
        : [],
    )
  })
}

/**
 * Renders the history for the AI SDK. Its providers rely on what this ensures: it begins with the user, nothing in it is
 * blank, and state of other providers is gone.
 */
function renderPrompt(
  instructions: string,
  messages: readonly Message[],
  binding: Binding,
  reader: Reader,
): WireMessage[] {
  const rendered = messages.flatMap((message) => renderMessage(message, binding, reader))
  const system: WireMessage[] =
    instructions.trim() === '' ? [] : [{ role: 'system', content: instructions.toWellFormed() }]
  const first: WireMessage[] =
    rendered[0]?.role === 'user' ? [] : [{ role: 'user', content: [{ type: 'text', text: opening }] }]
  return [...system, ...first, ...rendered]
}

function renderMessage(message: Message, binding: Binding, reader: Reader): WireMessage[] {
  switch (message.role) {
    case 'user': {
      const content = message.parts.flatMap((part) => userContent(part, reader))
      return [
        { role: 'user', content: content.length > 0 ? content : [{ type: 'text', text: emptyMessage }] },
      ]
    }
    case 'tool':
      return [
        { role: 'tool', content: message.results.map((result) => renderResult(result, binding, reader)) },
      ]
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

function userContent(part: UserPart | ResultPart, reader: Reader): UserContent[] {
  if (part.type === 'text')
    return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text.toWellFormed() }]
  const file = carriedFile(part, reader)
  if (file === undefined) return [{ type: 'text', text: describeFile(part) }]
  const name = part.type === 'file' && part.name ? { filename: part.name.toWellFormed() } : {}
  const detail = part.type === 'image' && part.detail !== undefined
  const options = detail && { providerOptions: { [reader.provider]: { imageDetail: part.detail } } }
  return [{ type: 'file', mediaType: file.mediaType, data: file.data as never, ...name, ...options }]
}

// What most providers' vendors take. An image of another kind would fail this request and all that follow.
const imageTypes = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const base64 = /^[A-Za-z0-9+/]+={0,2}$/
const textTypes = /^(text\/|application\/(json|xml|yaml|x-yaml|javascript|typescript|toml|x-ndjson|sql)\b)/i

/** Renders a part as a file of the AI SDK; `undefined` if the provider could not send it. */
function carriedFile(
  part: ImagePart | FilePart,
  { version, provider, audio, fetches }: Reader,
): { readonly mediaType: string; readonly data: unknown } | undefined {
  const bare = (part.mediaType.split(';')[0] ?? '').trim().toLowerCase()
  const mediaType = bare === 'image/jpg' ? 'image/jpeg' : bare
  if (part.providerFile !== undefined) {
    const fileId = keptFileId(part, provider)
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
  if (!data || !base64.test(data)) return undefined
  return { mediaType, data: version === 'v3' ? data : { type: 'data', data } }
}

/** Renders the content of a text file; for anything else that the wire cannot carry, a sentence that names it. */
function describeFile(part: ImagePart | FilePart): string {
  const name = part.type === 'file' && part.name ? part.name : undefined
  if (part.type === 'file' && part.data && textTypes.test(part.mediaType) && base64.test(part.data)) {
    const text = decodedText(part.data)
    if (text.trim() !== '') return `${name === undefined ? '' : `${name}:\n`}${text}`
  }
  return leftOutText(part)
}

function renderResult(result: ToolResult, { ids, names }: Binding, reader: Reader): ResultContent {
  const { toolCallId, name, outcome, content } = result
  const parts = content.flatMap((part) => userContent(part, reader))
  const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')
  const whole = {
    type: 'tool-result',
    toolCallId: ids.get(toolCallId) ?? toolCallId,
    toolName: names.toWire(name),
  } as const
  if (outcome !== 'success') {
    const value = text === '' ? `The call ended as ${outcome}, without output.` : text
    return { ...whole, output: { type: 'error-text', value } }
  }
  if (parts.every((part) => part.type === 'text')) return { ...whole, output: { type: 'text', value: text } }
  const value = parts.map((part) => (part.type === 'text' ? part : resultFile(part, reader)))
  return { ...whole, output: { type: 'content', value: value as never } }
}

function resultFile(part: Extract<UserContent, { readonly type: 'file' }>, { version }: Reader): object {
  if (version === 'v4') return part
  const what = part.mediaType.startsWith('image/') ? 'image' : 'file'
  const data: unknown = part.data
  return data instanceof URL
    ? { type: `${what}-url`, url: data.href }
    : { type: `${what}-data`, data, mediaType: part.mediaType }
}

function renderPart(
  part: AssistantPart,
  { ids, names }: Binding,
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
      const { toolCallId, name, input } = part
      const id = ids.get(toolCallId) ?? toolCallId
      return [
        {
          type: 'tool-call',
          toolCallId: id,
          toolName: names.toWire(name),
          input: wellFormed(input),
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
  const [toolCallId, toolName] = [textAt(part, 'toolCallId'), textAt(part, 'toolName')]
  switch (textAt(part, 'type') ?? '') {
    case 'tool-call': {
      if (toolCallId === undefined || toolName === undefined) return []
      const input = parseJson(textAt(part, 'input') ?? '{}') ?? {}
      return [{ type: 'tool-call', toolCallId, toolName, input, providerExecuted: true, ...options }]
    }
    case 'tool-result': {
      if (toolCallId === undefined || toolName === undefined) return []
      const type = part?.['isError'] === true ? 'error-json' : 'json'
      return [
        {
          type: 'tool-result',
          toolCallId,
          toolName,
          output: { type, value: part?.['result'] as never },
          ...options,
        },
      ]
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

// What every provider's vendor takes.
const maxIdentifierLength = 64

/** The names of tools that vendors take, if not the usual ones. */
const nameRules: ReadonlyMap<string, ToolNameRules> = new Map([
  ['anthropic', { maxLength: 128 }],
  ['google', { maxLength: 128, pattern: /^[a-zA-Z_][a-zA-Z0-9_.:-]*$/ }],
])

/** The settings of a call that come from the options. */
export interface CallSettings {
  readonly maxOutputTokens?: number | undefined
  /** Settings of the AI SDK for this call, such as `temperature`, `seed`, `reasoning`, `stopSequences`. */
  readonly settings?: JsonObject | undefined
  readonly providerOptions?: JsonObject | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The schema of an answer also goes into the instructions. */
  readonly answerInWords?: boolean
}

/** A call, ready to be made. */
export interface RenderedCall {
  readonly call: WireCall
  /** For the reply: the names that its calls go by. */
  readonly names: ToolNames
}

/** A request as the AI SDK asks its models. Every call reports raw events too: these are the signs of life. */
export function renderCall(
  request: ModelRequest,
  reader: Reader,
  given: CallSettings,
): Omit<RenderedCall, 'abortSignal'> {
  const calls = listCalls(request.messages, reader)
  const names = toolNames(
    [...request.tools, ...calls].map((named) => named.name),
    nameRules.get(reader.provider) ?? { maxLength: maxIdentifierLength },
  )
  const binding = { ids: callIds(calls, maxIdentifierLength), names }
  const limits = [request.maxOutputTokens, given.maxOutputTokens].filter((limit) => limit !== undefined)
  const options = mergedOptions(request, given)
  const { outputSchema } = request
  const instructions =
    outputSchema && given.answerInWords
      ? withAnswerSchema(request.instructions, outputSchema)
      : request.instructions
  const call = {
    ...given.settings,
    ...renderSampling(request.modelSettings ?? {}),
    prompt: renderPrompt(instructions, request.messages, binding, reader),
    ...(limits.length > 0 && { maxOutputTokens: Math.min(...limits) }),
    ...(outputSchema && { responseFormat: { type: 'json', schema: outputSchema } }),
    ...renderTools(request, [...new Set(calls.map(({ name }) => name))], names),
    ...(Object.keys(options).length > 0 && { providerOptions: options }),
    ...(given.headers && { headers: { ...given.headers } }),
    includeRawChunks: true,
  }
  return { call: call as unknown as WireCall, names }
}

function renderSampling({ temperature, topP, stop, seed, reasoningEffort }: ModelSettings): object {
  return {
    ...(reasoningEffort !== undefined && { reasoning: reasoningEffort }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(stop && stop.length > 0 && { stopSequences: [...stop] }),
    ...(seed !== undefined && { seed }),
  }
}

/** The AI SDK has no common word for one call at a time, so that it is said in those of the providers that know one. */
function mergedOptions(
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

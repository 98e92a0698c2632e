import type { ModelRequest, ProviderError } from '@tallystick/core'
import { getOwn, isJsonObject, omitUndefined, withoutAddedNulls } from '@tallystick/core/internal'
import type {
  Citation,
  FilePart,
  ImageDetail,
  ImagePart,
  Json,
  JsonObject,
  ModelSettings,
  ModelSignal,
  Outcome,
  ResultPart,
  Source,
  UserPart,
} from '@tallystick/core/vocabulary'
import { countAt, itemsOf, numberAt, objectAt, textAt } from '../shared/json.ts'
import { coherentUsage, known } from '../shared/reply.ts'
import { bareType, decodedText, keptFileId, leftOutText, type ToolNames } from '../shared/request.ts'
import type { OpenAICustomTool, OpenAIWarning } from './options.ts'

/** The parts of the request that reading a call needs. */
export interface CallContext {
  readonly provider: string
  /** The tool's own name, for the name that the wire knows it by. */
  readonly toolName: (wireName: string) => string
  /** The field that the text of a custom tool becomes. */
  readonly customField: (toolName: string) => string
  /** A call's input, once what only the wire needed is taken away. */
  readonly cleaned: (toolName: string, input: JsonObject) => JsonObject
  /** Whether a tool goes by this name on the wire. */
  readonly knows: (wireName: string) => boolean
  /** Whether the tool has no parameters, so that a call without an input lacks nothing. */
  readonly takesNothing: (toolName: string) => boolean
}

/** The options that decide how calls are read. */
interface CallOptions {
  readonly provider: string
  readonly customTools: Readonly<Record<string, OpenAICustomTool>>
  /** Whether the wire's schemas may hold nulls that the tools' own do not. */
  readonly strictTools: boolean
}

/** How the calls of the reply to this request are read. */
export function callContext(request: ModelRequest, names: ToolNames, options: CallOptions): CallContext {
  const schemas = new Map(request.tools.map((tool) => [tool.name, tool.inputSchema]))
  const wireNames = new Set(request.tools.map((tool) => names.toWire(tool.name)))
  return {
    provider: options.provider,
    toolName: names.fromWire,
    customField: (tool) => getOwn(options.customTools, tool)?.field ?? 'input',
    cleaned: (tool, input) => {
      const schema = options.strictTools ? schemas.get(tool) : undefined
      return schema === undefined ? input : withoutAddedNulls(schema, input)
    },
    knows: (wireName) => wireNames.has(wireName),
    takesNothing: (tool) => {
      const schema = schemas.get(tool)
      return schema !== undefined && !describing.some((keyword) => isFilled(schema[keyword]))
    },
  }
}

/** Keywords of a schema that say what an input holds. */
const describing = ['properties', 'patternProperties', 'anyOf', 'oneOf', 'allOf', '$ref', 'required'] as const

function isFilled(value: Json | undefined): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : value !== undefined
}

/** What a part comes to on these wires, before each says it in its own words. */
export type Carried =
  | { readonly kind: 'text'; readonly text: string }
  /** An image: its address, or its bytes as a data URL. */
  | { readonly kind: 'image'; readonly url: string; readonly detail: ImageDetail | undefined }
  /** A PDF: its address, or its bytes as a data URL. */
  | { readonly kind: 'pdf'; readonly name: string; readonly url?: string; readonly data?: string }
  /** A sound, as base64. */
  | { readonly kind: 'audio'; readonly format: 'wav' | 'mp3'; readonly data: string }
  /** What the service keeps under an id. */
  | {
      readonly kind: 'kept'
      readonly what: 'image' | 'file'
      readonly fileId: string
      readonly detail: ImageDetail | undefined
    }

/** What a wire of a service takes. */
export interface Carrier {
  /** Whose service it is: files that another one keeps cannot be named to it. */
  readonly provider: string
  /** Whether documents may be named by their addresses. */
  readonly documentUrls: boolean
  /** Whether images may be named by the ids under which the service keeps them. */
  readonly imageIds: boolean
  readonly audio: boolean
}

const imageTypes = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])
const audioFormats: ReadonlyMap<string, 'wav' | 'mp3'> = new Map([
  ['audio/wav', 'wav'],
  ['audio/x-wav', 'wav'],
  ['audio/wave', 'wav'],
  ['audio/mpeg', 'mp3'],
  ['audio/mp3', 'mp3'],
])
const textTypes = /^(text\/|application\/(json|xml|yaml|x-yaml|javascript|typescript|toml|x-ndjson|sql)$)/

/** What a user wrote, or a tool answered. Text that holds nothing is left out; a part that no wire carries is described. */
export function carried(parts: readonly (UserPart | ResultPart)[], carrier: Carrier): Carried[] {
  return parts.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return words(part.text)
      case 'image':
        return [imageOf(part, carrier) ?? leftOut(part)]
      case 'file':
        return [fileOf(part, carrier) ?? leftOut(part)]
    }
  })
}

function words(text: string): Carried[] {
  return text.trim() === '' ? [] : [{ kind: 'text', text: text.toWellFormed() }]
}

function imageOf(part: ImagePart, { provider, imageIds }: Carrier): Carried | undefined {
  const { mediaType, data, url, detail } = part
  const fileId = keptFileId(part, provider)
  if (fileId !== undefined) return imageIds ? { kind: 'kept', what: 'image', fileId, detail } : undefined
  if (url !== undefined) return { kind: 'image', url, detail }
  const type = bareType(mediaType) === 'image/jpg' ? 'image/jpeg' : bareType(mediaType)
  if (!data || !imageTypes.has(type)) return undefined
  return { kind: 'image', url: `data:${type};base64,${data}`, detail }
}

function fileOf(part: FilePart, carrier: Carrier): Carried | undefined {
  const fileId = keptFileId(part, carrier.provider)
  if (fileId !== undefined) return { kind: 'kept', what: 'file', fileId, detail: undefined }
  const type = bareType(part.mediaType)
  if (type === 'application/pdf') return pdfOf(part, carrier)
  const format = audioFormats.get(type)
  if (format && part.data && carrier.audio) return { kind: 'audio', format, data: part.data }
  return textTypes.test(type) ? textOfFile(part) : undefined
}

function pdfOf({ name: given, data, url }: FilePart, { documentUrls }: Carrier): Carried | undefined {
  const name = given?.toWellFormed() || 'document.pdf'
  if (data) return { kind: 'pdf', name, data: `data:application/pdf;base64,${data}` }
  return url !== undefined && documentUrls ? { kind: 'pdf', name, url } : undefined
}

function textOfFile({ name, data }: FilePart): Carried | undefined {
  const text = data ? decodedText(data) : ''
  if (text.trim() === '') return undefined
  return { kind: 'text', text: `${name ? `File "${name.toWellFormed()}"` : 'A file'}:\n\n${text}` }
}

function leftOut(part: ImagePart | FilePart): Carried {
  return { kind: 'text', text: leftOutText(part) }
}

/** What a tool answered. These wires have no mark for errors, so an error says in words that it is one. */
export function carriedResult(outcome: Outcome, content: readonly ResultPart[], carrier: Carrier): Carried[] {
  const parts = carried(content, carrier)
  if (outcome === 'success') return parts
  if (parts.length === 0) return words(`The call ended as ${outcome}, without output.`)
  const [first, ...rest] = parts
  return first?.kind === 'text'
    ? [{ kind: 'text', text: `Error (${outcome}): ${first.text}` }, ...rest]
    : [{ kind: 'text', text: `Error (${outcome}):` }, ...parts]
}

/** What a wire of OpenAI's kind takes of how a model is to write. */
export interface SamplingWays {
  /** How many texts that end a reply it takes; 0 where it knows none. */
  readonly maxStop: number
  /** The field of the seed. */
  readonly seedField: 'seed' | 'random_seed' | 'none'
  /** The field of how much the model reasons, where it is one of the body. */
  readonly effortField?: 'reasoning_effort'
}

/** The fields of a body that say how the model is to write, without those that the model is known to refuse. */
export function samplingFields(
  { temperature, topP, stop = [], seed, reasoningEffort }: ModelSettings,
  ways: SamplingWays,
  { refused, warn }: { readonly refused: readonly string[]; readonly warn: (warning: OpenAIWarning) => void },
): JsonObject {
  if (stop.length > ways.maxStop) warnOf(warn, stopMessage(ways.maxStop))
  if (seed !== undefined && ways.seedField === 'none')
    warnOf(warn, 'The server takes no seed, so none was sent.')
  const taken = stop.slice(0, ways.maxStop)
  const fields: JsonObject = {
    ...omitUndefined({
      temperature,
      top_p: topP,
      reasoning_effort: ways.effortField && reasoningEffort,
    }),
    ...(taken.length > 0 && { stop: taken }),
    ...(seed !== undefined && ways.seedField !== 'none' && { [ways.seedField]: seed }),
  }
  const sent = Object.entries(fields).filter(([field]) => !refused.includes(field))
  for (const field of Object.keys(fields)) if (refused.includes(field)) warnOf(warn, refusedMessage(field))
  return Object.fromEntries(sent)
}

function stopMessage(max: number): string {
  return max === 0
    ? 'The service knows no texts that end a reply, so none were sent.'
    : `The server takes ${max} texts that end a reply, so only the first ${max} were sent.`
}

/** Says that a model takes no such field. */
export function refusedMessage(field: string): string {
  return `The model takes no ${field}, so it was left out.`
}

/** The field of the reasoning effort within `reasoning`. */
export const effortName = 'reasoning.effort'

function warnOf(warn: (warning: OpenAIWarning) => void, message: string): void {
  warn({ what: 'model_settings', message })
}

const samplingNames = ['temperature', 'top_p', 'stop', 'seed', 'random_seed', 'reasoning_effort']

/**
 * What a model takes none of, of the fields of a body, where a request was refused for it: how the model is to write, which
 * reasoning models do not let themselves be told, or a choice of tools, which models that think do not. The latter by its
 * kind, since a model may take another one. A value out of bounds is no such refusal.
 */
export function refusedField(failure: ProviderError, body: object): string | undefined {
  if (failure.class !== 'invalid_request') return undefined
  const choice = 'tool_choice' in body ? refusableChoice(body.tool_choice) : undefined
  if (choice !== undefined && choiceWords.every((words) => words.test(failure.message))) return choice
  if (!/unsupported|not supported|does not support/i.test(failure.message)) return undefined
  if ('reasoning' in body && failure.message.includes(`'${effortName}'`)) return effortName
  return samplingNames.find((field) => field in body && failure.message.includes(`'${field}'`))
}

/** What DeepSeek, Moonshot, Alibaba and others say of a choice that their thinking models do not take. */
const choiceWords = [
  /tool.?choice/i,
  /incompatible|not support|unsupported|not allowed|not available|only (auto|none)/i,
]

/** A choice of tools, unless the model is known to refuse its kind: then the model is free, as its vendor advises. */
export function takenChoice<Choice>(
  choice: Choice,
  refused: readonly string[],
  warn: (warning: OpenAIWarning) => void,
): Choice | undefined {
  const known = refusableChoice(choice)
  if (known === undefined || !refused.includes(known)) return choice
  const message = 'The model takes no such choice of tools, so it was free to call any or none.'
  warn({ what: 'tool_choice', message })
  return undefined
}

/** How a refused choice of tools is remembered; `undefined` for one that leaves the model free. */
function refusableChoice(wireChoice: unknown): string | undefined {
  if (wireChoice === 'auto' || wireChoice === undefined) return undefined
  return `tool_choice ${typeof wireChoice === 'string' ? wireChoice : 'named'}`
}

/**
 * Returns the citations in the annotations of a text. On the wire of chats their fields are in an object of their own.
 */
export function citationsIn(annotations: Json | undefined): readonly Citation[] {
  return itemsOf(annotations).flatMap((one) => {
    const fields = objectAt(one, textAt(one, 'type') ?? '') ?? one
    if (!isJsonObject(fields)) return []
    const [url, fileId] = [textAt(fields, 'url'), textAt(fields, 'file_id')]
    if (url === undefined && fileId === undefined) return []
    return [citationOf(fields, url, fileId)]
  })
}

function citationOf(fields: JsonObject, url: string | undefined, fileId: string | undefined): Citation {
  const [from, to] = [numberAt(fields, 'start_index'), numberAt(fields, 'end_index')]
  return known<Citation>({
    url,
    fileId,
    title: textAt(fields, 'title') ?? textAt(fields, 'filename'),
    quote: textAt(fields, 'quote') ?? textAt(fields, 'content'),
    pages: undefined,
    place: placeOf(from, to),
  })
}

/** Some servers say 0 and 0 where they do not know. */
function placeOf(from: number | undefined, to: number | undefined): Citation['place'] {
  if (from === undefined || to === undefined || !Number.isInteger(from) || !Number.isInteger(to))
    return undefined
  return from >= 0 && to > from ? { from, to } : undefined
}

/** What a search of the vendor's found: on the web, or in files. */
export function sourcesIn(item: JsonObject): readonly Source[] {
  const found = [...itemsOf(objectAt(item, 'action')?.['sources']), ...itemsOf(item['results'])]
  return sourcesOf(found)
}

/** Addresses as some servers list them beside a reply: as texts, or as objects. */
export function sourcesOf(found: readonly Json[]): readonly Source[] {
  return found.flatMap((one) => {
    const url = typeof one === 'string' ? one : textAt(one, 'url')
    const fileId = textAt(one, 'file_id')
    if (url === undefined && fileId === undefined) return []
    return [known<Source>({ url, fileId, title: textAt(one, 'title') ?? textAt(one, 'filename') })]
  })
}

/** How a wire names its totals. OpenAI counts cached tokens into the prompt, and reasoning into the output; not all do. */
interface UsageNames {
  readonly input: string
  readonly inputDetails: string
  readonly output: string
  readonly outputDetails: string
}

const names: { readonly [wire in 'responses' | 'chat']: UsageNames } = {
  responses: {
    input: 'input_tokens',
    inputDetails: 'input_tokens_details',
    output: 'output_tokens',
    outputDetails: 'output_tokens_details',
  },
  chat: {
    input: 'prompt_tokens',
    inputDetails: 'prompt_tokens_details',
    output: 'completion_tokens',
    outputDetails: 'completion_tokens_details',
  },
}

/** Tokens as we count them; what the service does not say stays unknown. */
export function usageSignal(raw: JsonObject, wire: 'responses' | 'chat', webSearches?: number): ModelSignal {
  const { input, inputDetails, output, outputDetails } = names[wire]
  // DeepSeek counts the cache beside the details too; the details are younger.
  const cacheReadTokens =
    countAt(objectAt(raw, inputDetails), 'cached_tokens') ?? countAt(raw, 'prompt_cache_hit_tokens')
  const details = objectAt(raw, inputDetails)
  const cacheWriteLongTokens = countAt(objectAt(details, 'cache_write_tokens_details'), 'ttl_12h_tokens')
  const usage = coherentUsage(
    {
      inputTokens: countAt(raw, input),
      outputTokens: countAt(raw, output),
      cacheReadTokens,
      cacheWriteTokens: countAt(details, 'cache_write_tokens'),
      cacheWriteLongTokens,
      reasoningTokens: countAt(objectAt(raw, outputDetails), 'reasoning_tokens'),
      webSearches,
    },
    countAt(raw, 'total_tokens'),
  )
  return { type: 'model_usage', usage, raw }
}

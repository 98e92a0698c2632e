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
import { getCount, toItems, getNumber, getObject, getText } from '../shared/json.ts'
import { mergeUsageCounts, omitUnknown } from '../shared/reply.ts'
import {
  toBareType,
  imageTypes,
  findKeptFileId,
  describeLeftOut,
  readTextFile,
  type ToolNames,
} from '../shared/request.ts'
import type { OpenAICustomTool, OpenAIWarning } from './options.ts'

/** The parts of the request that reading a call needs. */
export interface CallContext {
  readonly provider: string
  /** Returns the tool's own name for its name on the wire. */
  readonly toolName: (wireName: string) => string
  /** The field that the text of a custom tool becomes. */
  readonly customField: (toolName: string) => string
  /** Returns a call's input without what only the wire needed. */
  readonly cleaned: (toolName: string, input: JsonObject) => JsonObject
  /** True if a tool has this name on the wire. */
  readonly knows: (wireName: string) => boolean
  /** True if the tool has no parameters, so that a call may have no input. */
  readonly takesNothing: (toolName: string) => boolean
}

/** `strictTools`: the wire's schemas may allow nulls that the tools' own do not. */
export function createCallContext(
  request: ModelRequest,
  names: ToolNames,
  options: Pick<CallContext, 'provider'> & {
    readonly customTools: Readonly<Record<string, OpenAICustomTool>>
    readonly strictTools: boolean
  },
): CallContext {
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

/** A part of a message as both wires carry it, each in its own form. */
export type Carried =
  | { readonly kind: 'text'; readonly text: string }
  /** An image: its address, or its bytes as a data URL. */
  | { readonly kind: 'image'; readonly url: string; readonly detail: ImageDetail | undefined }
  /** A PDF: its address, or its bytes as a data URL. */
  | { readonly kind: 'pdf'; readonly name: string; readonly url?: string; readonly data?: string }
  /** A sound, as base64. */
  | { readonly kind: 'audio'; readonly format: 'wav' | 'mp3'; readonly data: string }
  /** A file that the service keeps under an id. */
  | {
      readonly kind: 'kept'
      readonly what: 'image' | 'file'
      readonly fileId: string
      readonly detail: ImageDetail | undefined
    }

/** The abilities of a wire of a service. */
export interface Carrier {
  /** The service. It cannot find files that another one keeps. */
  readonly provider: string
  /** Documents may be named by their addresses. */
  readonly documentUrls: boolean
  /** Images may be named by the ids under which the service keeps them. */
  readonly imageIds: boolean
  readonly audio: boolean
}

const audioFormats: ReadonlyMap<string, 'wav' | 'mp3'> = new Map([
  ['audio/wav', 'wav'],
  ['audio/x-wav', 'wav'],
  ['audio/wave', 'wav'],
  ['audio/mpeg', 'mp3'],
  ['audio/mp3', 'mp3'],
])

/** Renders the parts of a message or result. Blank text is left out; text describes what the wire cannot carry. */
export function carryParts(parts: readonly (UserPart | ResultPart)[], carrier: Carrier): Carried[] {
  return parts.flatMap((part) => {
    switch (part.type) {
      case 'text':
        return carryWords(part.text)
      case 'image':
      case 'file': {
        const file = part.type === 'image' ? carryImage(part, carrier) : carryFile(part, carrier)
        return [file ?? { kind: 'text', text: describeLeftOut(part) }]
      }
    }
  })
}

function carryWords(text: string): Carried[] {
  return text.trim() === '' ? [] : [{ kind: 'text', text: text.toWellFormed() }]
}

function carryImage(part: ImagePart, { provider, imageIds }: Carrier): Carried | undefined {
  const { mediaType, data, url, detail } = part
  const fileId = findKeptFileId(part, provider)
  if (fileId !== undefined) return imageIds ? { kind: 'kept', what: 'image', fileId, detail } : undefined
  if (url !== undefined) return { kind: 'image', url, detail }
  const type = toBareType(mediaType)
  if (!data || !imageTypes.has(type)) return undefined
  return { kind: 'image', url: `data:${type};base64,${data}`, detail }
}

function carryFile(part: FilePart, carrier: Carrier): Carried | undefined {
  const fileId = findKeptFileId(part, carrier.provider)
  if (fileId !== undefined) return { kind: 'kept', what: 'file', fileId, detail: undefined }
  const type = toBareType(part.mediaType)
  const { data, url } = part
  if (type === 'application/pdf') {
    const name = part.name?.toWellFormed() || 'document.pdf'
    if (data) return { kind: 'pdf', name, data: `data:application/pdf;base64,${data}` }
    return url !== undefined && carrier.documentUrls ? { kind: 'pdf', name, url } : undefined
  }
  const format = audioFormats.get(type)
  if (format && data && carrier.audio) return { kind: 'audio', format, data }
  const text = readTextFile(part)
  if (text.trim() === '') return undefined
  const title = part.name ? `File "${part.name.toWellFormed()}"` : 'A file'
  return { kind: 'text', text: `${title}:\n\n${text}` }
}

/** Renders a tool's result. These wires have no mark for errors, so its text says that it is one. */
export function carryResult(outcome: Outcome, content: readonly ResultPart[], carrier: Carrier): Carried[] {
  const parts = carryParts(content, carrier)
  if (outcome === 'success') return parts
  if (parts.length === 0) return carryWords(`The call ended as ${outcome}, without output.`)
  const [first, ...rest] = parts
  return first?.kind === 'text'
    ? [{ kind: 'text', text: `Error (${outcome}): ${first.text}` }, ...rest]
    : [{ kind: 'text', text: `Error (${outcome}):` }, ...parts]
}

/** Renders the model settings, without fields that the model is known to refuse. */
export function toSamplingFields(
  { temperature, topP, stop = [], seed, reasoningEffort }: ModelSettings,
  ways: {
    /** How many stop texts the wire takes. */
    readonly maxStop: number
    readonly seedField: 'seed' | 'random_seed' | 'none'
    /** Absent if the effort is not a field of the body itself. */
    readonly effortField?: 'reasoning_effort'
  },
  { refused, warn }: { readonly refused: readonly string[]; readonly warn: (warning: OpenAIWarning) => void },
): JsonObject {
  const say = (message: string): void => warn({ what: 'model_settings', message })
  if (stop.length > ways.maxStop) {
    say(
      ways.maxStop === 0
        ? 'The service knows no texts that end a reply, so none were sent.'
        : `The server takes ${ways.maxStop} texts that end a reply, so only the first ${ways.maxStop} were sent.`,
    )
  }
  if (seed !== undefined && ways.seedField === 'none') say('The server takes no seed, so none was sent.')
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
  for (const field of Object.keys(fields)) if (refused.includes(field)) say(describeRefusedField(field))
  return Object.fromEntries(sent)
}

export function describeRefusedField(field: string): string {
  return `The model takes no ${field}, so it was left out.`
}

export const effortName = 'reasoning.effort'

const samplingNames = ['temperature', 'top_p', 'stop', 'seed', 'random_seed', 'reasoning_effort']

/**
 * Returns the field that a request was refused for because the model never takes it: a model setting (reasoning models
 * refuse many), or a kind of tool choice (thinking models refuse to be forced). A value out of bounds is not such a refusal.
 */
export function findRefusedField(failure: ProviderError, body: object): string | undefined {
  if (failure.class !== 'invalid_request') return undefined
  const choice = 'tool_choice' in body ? nameChoice(body.tool_choice) : undefined
  if (choice !== undefined && choiceWords.every((words) => words.test(failure.message))) return choice
  if (!/unsupported|not supported|does not support/i.test(failure.message)) return undefined
  if ('reasoning' in body && failure.message.includes(`'${effortName}'`)) return effortName
  return samplingNames.find((field) => field in body && failure.message.includes(`'${field}'`))
}

/** In the words of DeepSeek, Moonshot, Alibaba and others. */
const choiceWords = [
  /tool.?choice/i,
  /incompatible|not support|unsupported|not allowed|not available|only (auto|none)/i,
]

/** Returns the choice of tools, or `undefined` if the model is known to refuse its kind. */
export function pickChoice<Choice>(
  choice: Choice,
  refused: readonly string[],
  warn: (warning: OpenAIWarning) => void,
): Choice | undefined {
  const known = nameChoice(choice)
  if (known === undefined || !refused.includes(known)) return choice
  const message = 'The model takes no such choice of tools, so it was free to call any or none.'
  warn({ what: 'tool_choice', message })
  return undefined
}

/** Names the kind of a choice of tools; `undefined` for one that leaves the model free. */
function nameChoice(wireChoice: unknown): string | undefined {
  if (wireChoice === 'auto' || wireChoice === undefined) return undefined
  return `tool_choice ${typeof wireChoice === 'string' ? wireChoice : 'named'}`
}

/** Reads the citations of a text. In Chat Completions their fields are in an object of their own. */
export function readCitations(annotations: Json | undefined): readonly Citation[] {
  return toItems(annotations).flatMap((one) => {
    const fields = getObject(one, getText(one, 'type') ?? '') ?? one
    if (!isJsonObject(fields)) return []
    const [url, fileId] = [getText(fields, 'url'), getText(fields, 'file_id')]
    if (url === undefined && fileId === undefined) return []
    const [from = NaN, to = NaN] = [getNumber(fields, 'start_index'), getNumber(fields, 'end_index')]
    // Some servers say 0 and 0 if they do not know.
    const isPlace = Number.isInteger(from) && Number.isInteger(to) && from >= 0 && to > from
    return [
      omitUnknown<Citation>({
        url,
        fileId,
        title: getText(fields, 'title') ?? getText(fields, 'filename'),
        quote: getText(fields, 'quote') ?? getText(fields, 'content'),
        pages: undefined,
        place: isPlace ? { from, to } : undefined,
      }),
    ]
  })
}

/** Reads what a search found, as OpenAI or another server lists it: as texts, or as objects. */
export function readSources(found: readonly Json[]): readonly Source[] {
  return found.flatMap((one) => {
    const url = typeof one === 'string' ? one : getText(one, 'url')
    const fileId = getText(one, 'file_id')
    if (url === undefined && fileId === undefined) return []
    return [omitUnknown<Source>({ url, fileId, title: getText(one, 'title') ?? getText(one, 'filename') })]
  })
}

const usageNames = {
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

export function toUsageSignal(
  raw: JsonObject,
  wire: 'responses' | 'chat',
  webSearches?: number,
): ModelSignal {
  const { input, inputDetails, output, outputDetails } = usageNames[wire]
  const details = getObject(raw, inputDetails)
  const usage = mergeUsageCounts(
    {
      inputTokens: getCount(raw, input),
      outputTokens: getCount(raw, output),
      // DeepSeek counts the cache beside the details, too.
      cacheReadTokens: getCount(details, 'cached_tokens') ?? getCount(raw, 'prompt_cache_hit_tokens'),
      cacheWriteTokens: getCount(details, 'cache_write_tokens'),
      cacheWriteLongTokens: getCount(getObject(details, 'cache_write_tokens_details'), 'ttl_12h_tokens'),
      reasoningTokens: getCount(getObject(raw, outputDetails), 'reasoning_tokens'),
      webSearches,
    },
    getCount(raw, 'total_tokens'),
  )
  return { type: 'model_usage', usage, raw }
}

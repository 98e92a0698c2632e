import type { ModelRequest } from '@tallystick/core'
import { getOwn, isJsonObject } from '@tallystick/core/internal'
import type { FilePart, ImagePart, Json, JsonObject, ModelRef, ToolCallId } from '@tallystick/core/vocabulary'
import { getText } from './json.ts'
import type { Warn, Warning } from './options.ts'

/** Adds the schema of the answer to the instructions, for a wire that cannot enforce it. */
export function withAnswerSchema(instructions: string, schema: JsonObject): string {
  const ofSchema = `Your answer has to be JSON that fits this JSON Schema, and nothing else: no words before or behind it.\n${JSON.stringify(schema)}`
  return instructions.trim() === '' ? ofSchema : `${instructions}\n\n${ofSchema}`
}

/** Returns the warning for a schema that went into the instructions, with the reason. */
export function describeSchemaMove(why: string): string {
  return `The schema of the answer was put into the instructions, and the runtime alone checks the answer: ${why}.`
}

const identifier = /^[a-zA-Z0-9_-]+$/

/** True for a name or id that all vendors accept: `[a-zA-Z0-9_-]`, from 1 to `maxLength` characters. */
export function isIdentifier(text: string, maxLength: number): boolean {
  return text.length <= maxLength && identifier.test(text)
}

/**
 * Makes an identifier of any text: its readable part, then 8 hex digits of a hash of all of it. It depends on the text alone,
 * so that it stays the same from turn to turn. Another `salt` gives another identifier, in case one is taken.
 */
export function fitIdentifier(text: string, maxLength: number, salt: number): string {
  const digest = hashText(salt === 0 ? text : `${text}\0${salt}`)
    .toString(16)
    .padStart(8, '0')
  const readable = text.replace(/[^a-zA-Z0-9_-]/gu, '_').slice(0, maxLength - 9)
  return `${readable}_${digest}`
}

function freeIdentifier(text: string, maxLength: number, taken: { has(name: string): boolean }): string {
  for (let salt = 0; ; salt++) {
    const candidate = fitIdentifier(text, maxLength, salt)
    if (!taken.has(candidate)) return candidate
  }
}

/** FNV-1a, 32 bits. Not for security: a collision only costs another salt. */
function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let place = 0; place < text.length; place++) {
    const unit = text.charCodeAt(place)
    hash = Math.imul(hash ^ (unit & 0xff), 0x01000193)
    hash = Math.imul(hash ^ (unit >> 8), 0x01000193)
  }
  return hash >>> 0
}

/** A call in the history. `ownId` is the id that the vendor of the request gave it. */
export interface IdentifiedCall {
  readonly toolCallId: ToolCallId
  readonly ownId?: string
}

/** Which ids of calls a wire takes, and how others are made: the same ones in every request, others with another `salt`. */
export interface CallIdRule {
  readonly fits: (id: string) => boolean
  readonly make: (text: string, salt: number) => string
}

const anyIdentifier: CallIdRule = {
  fits: (id) => isIdentifier(id, maxIdentifierLength),
  make: (text, salt) => fitIdentifier(text, maxIdentifierLength, salt),
}

/**
 * Gives each call of a request a unique id: the vendor's own if it fits and is free, else one made from `toolCallId`. Decided
 * from the front, so that a longer history changes no earlier id.
 */
export function createCallIds(
  calls: Iterable<IdentifiedCall>,
  { fits, make }: CallIdRule = anyIdentifier,
): ReadonlyMap<ToolCallId, string> {
  const ids = new Map<ToolCallId, string>()
  const taken = new Set<string>()
  for (const { toolCallId, ownId } of calls) {
    if (ids.has(toolCallId)) continue
    let id = [ownId, toolCallId].find((own) => own !== undefined && fits(own) && !taken.has(own))
    for (let salt = 0; id === undefined || taken.has(id); salt++) id = make(toolCallId, salt)
    ids.set(toolCallId, id)
    taken.add(id)
  }
  return ids
}

/** The ids of a request's calls, and the names of its tools, on the wire. */
export interface Binding {
  /** The calls of the history, in order. */
  readonly calls: readonly (IdentifiedCall & { readonly name: string })[]
  readonly toWireId: (toolCallId: ToolCallId) => string
  readonly names: ToolNames
}

/** Decides ids and names for a whole request. Warns of each tool that is offered under another name. */
export function bindCalls(
  { tools, messages }: Pick<ModelRequest, 'tools' | 'messages'>,
  {
    provider,
    api,
    warn,
    idRule,
    providerTools = [],
    ...rules
  }: Pick<ModelRef, 'provider' | 'api'> &
    ToolNameRules & {
      /** The vendor's own tools, whose names are taken. */
      readonly providerTools?: readonly JsonObject[] | undefined
      readonly warn: (warning: Warning & { readonly what: 'tool_name' }) => void
      readonly idRule?: CallIdRule
    },
): Binding {
  const calls = messages.flatMap((message) => {
    if (message.role !== 'assistant') return []
    const own = message.model.provider === provider && message.model.api === api
    return message.parts.flatMap((part) =>
      part.type === 'tool_call'
        ? [{ toolCallId: part.toolCallId, name: part.name, ...(own && { ownId: part.providerCallId }) }]
        : [],
    )
  })
  const names = createToolNames(
    [...tools, ...calls].map((named) => named.name),
    { ...rules, reserved: providerTools.map((tool) => getText(tool, 'name') ?? '') },
  )
  for (const { name } of tools) {
    const wireName = names.toWire(name)
    if (wireName === name) continue
    const message = `The tool ${JSON.stringify(name)} is offered to the model as ${wireName}: its own name is not one that the vendor takes, or is that of another tool.`
    warn({ what: 'tool_name', message })
  }
  const ids = createCallIds(calls, idRule)
  return { calls, toWireId: (toolCallId) => ids.get(toolCallId) ?? toolCallId, names }
}

// Vendors take longer ones by now; gateways and other hosts of the same models do not, and models miswrite them.
const maxIdentifierLength = 64

/** The images that most vendors take. One of another kind would fail a request, and all that follow. */
export const imageTypes: ReadonlySet<string> = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

/** A media type without its parameters, in lower case. */
export function toBareType(mediaType: string): string {
  const bare = (mediaType.split(';')[0] ?? '').trim().toLowerCase()
  return bare === 'image/jpg' ? 'image/jpeg' : bare
}

const textTypes = /^(text\/|application\/(json|xml|yaml|x-yaml|javascript|typescript|toml|x-ndjson|sql)\b)/

/**
 * True for base64, with padding or without it. It looks for what that may not hold: a pattern of the whole text would need more
 * stack than there is for a picture of some megabytes.
 */
export function isBase64(data: string): boolean {
  const digits = data.replace(/={1,2}$/, '')
  return digits !== '' && !/[^A-Za-z0-9+/]/.test(digits)
}

/** Reads the content of a text file; an empty text if it is of another type, or not base64. */
export function readTextFile({ mediaType, data }: FilePart): string {
  if (!data || !textTypes.test(toBareType(mediaType))) return ''
  try {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0))
    return new TextDecoder().decode(bytes)
  } catch {
    return ''
  }
}

/** Names a part that a wire cannot carry, so that the model knows of it. */
export function describeLeftOut(part: ImagePart | FilePart): string {
  const name = part.type === 'file' && part.name ? ` "${part.name}"` : ''
  const { url, providerFile } = part
  const place = url === undefined ? '' : `, at ${url}`
  const keeper = providerFile === undefined ? '' : `, kept by ${providerFile.provider} as ${providerFile.id}`
  const text = `[The ${part.type}${name} of type ${part.mediaType}${place}${keeper}, cannot be shown here and was left out.]`
  return text.toWellFormed()
}

/** The id of a file that this provider keeps. */
export function findKeptFileId({ providerFile }: ImagePart | FilePart, provider: string): string | undefined {
  return providerFile?.provider === provider ? providerFile.id : undefined
}

/** Adds the options of a request for its provider, except `held` fields, without which no reply could be read. */
export function withProviderOptions<Body extends object>(
  body: Body,
  { modelSettings }: ModelRequest,
  {
    provider,
    held,
    warn,
  }: {
    readonly provider: string
    readonly held: readonly string[]
    readonly warn: Warn<Warning & { readonly what: 'model_settings' }>
  },
): Body {
  const all = modelSettings?.providerOptions ?? {}
  const given = Object.entries(getOwn(all, provider) ?? {})
  for (const [name] of given.filter(([field]) => held.includes(field))) {
    const message = `The provider option ${name} was left out: only the adapter may write that field of the request.`
    warn({ what: 'model_settings', message })
  }
  return withOptions(body, Object.fromEntries(given.filter(([field]) => !held.includes(field))))
}

/** Lays options over a body: objects are merged, anything else is replaced. */
export function withOptions<Body extends object>(body: Body, options: JsonObject): Body {
  const entries = Object.entries(options).map(([name, above]): [string, Json] => {
    const below = (body as { readonly [name: string]: Json | undefined })[name]
    return [name, isJsonObject(below) && isJsonObject(above) ? withOptions(below, above) : above]
  })
  return { ...body, ...Object.fromEntries(entries) }
}

/** Translates names of tools to those of a wire and back. Unknown names stay unchanged. */
export interface ToolNames {
  readonly toWire: (name: string) => string
  readonly fromWire: (wireName: string) => string
}

export interface ToolNameRules {
  /** Default: 64. */
  readonly maxLength?: number
  /** Default: letters, digits, `_` and `-`. */
  readonly pattern?: RegExp
  /** Names that are taken, such as those of a vendor's own tools. */
  readonly reserved?: Iterable<string>
}

/** For servers that take every name: words whose end is clear. */
export const anyWord: RegExp = /^[^\s\p{C}"'`<>{}()[\],;]+$/u

/**
 * Gives each name a unique one of the wire: unchanged if it fits and is free, else readable with a hash after it. The order of
 * `names` does not matter, so a request's prefix stays the same while tools come and go.
 */
export function createToolNames(names: Iterable<string>, rules: ToolNameRules): ToolNames {
  const fromWire = new Map<string, string>()
  const toWire = new Map<string, string>()
  const { maxLength = maxIdentifierLength, pattern = identifier } = rules
  const reserved = new Set(rules.reserved)
  const taken = { has: (name: string): boolean => reserved.has(name) || fromWire.has(name) }
  const fits = (name: string): boolean => name.length <= maxLength && pattern.test(name)
  const unfit: string[] = []
  for (const name of new Set(names)) {
    if (!fits(name) || reserved.has(name)) unfit.push(name)
    else fromWire.set(name, name)
  }
  for (const name of unfit.sort()) {
    const wireName = [name, `_${name}`].map((text) => freeIdentifier(text, maxLength, taken)).find(fits)!
    toWire.set(name, wireName)
    fromWire.set(wireName, name)
  }
  return {
    toWire: (name) => toWire.get(name) ?? name,
    fromWire: (wireName) => fromWire.get(wireName) ?? wireName,
  }
}

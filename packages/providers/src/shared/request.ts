import type { ModelRequest } from '@tallystick/core'
import { getOwn, isJsonObject } from '@tallystick/core/internal'
import type { FilePart, ImagePart, Json, JsonObject, ToolCallId } from '@tallystick/core/vocabulary'
import type { Warning } from './options.ts'

/** Instructions that also say what the answer has to be, for a wire that cannot hold a model to this schema. */
export function withAnswerSchema(instructions: string, schema: JsonObject): string {
  const ofSchema = `Your answer has to be JSON that fits this JSON Schema, and nothing else: no words before or behind it.\n${JSON.stringify(schema)}`
  return instructions.trim() === '' ? ofSchema : `${instructions}\n\n${ofSchema}`
}

/** Returns the warning for a schema that went into the instructions, with the reason. */
export function schemaInWords(why: string): string {
  return `The schema of the answer was put into the instructions, and the runtime alone checks the answer: ${why}.`
}

const alphabet = /^[a-zA-Z0-9_-]+$/

/** Whether a name or id fits what all vendors accept: `[a-zA-Z0-9_-]`, from 1 to `maxLength` characters. */
export function isIdentifier(text: string, maxLength: number): boolean {
  return text.length <= maxLength && alphabet.test(text)
}

/**
 * Returns an identifier for a text that is no identifier: its readable part, then 8 hex digits of a hash of all of it.
 * It depends on the text alone, so that it stays the same from turn to turn. Another `salt` gives another identifier,
 * for the case that one is taken.
 */
export function fitIdentifier(text: string, maxLength: number, salt: number): string {
  const digest = hashText(salt === 0 ? text : `${text}\0${salt}`)
    .toString(16)
    .padStart(8, '0')
  const readable = text.replace(/[^a-zA-Z0-9_-]/gu, '_').slice(0, maxLength - 9)
  return `${readable}_${digest}`
}

/** The first identifier for `text` that is not taken. */
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

/** A call in the history. `ownId` is there when the vendor that will read the request gave the id itself. */
export interface IdentifiedCall {
  readonly toolCallId: ToolCallId
  readonly ownId?: string
}

/**
 * The id that each call has in one request: the vendor's own where it fits and is not taken, else one made from
 * `toolCallId`. Unique in the request. Decided from the front, so a longer history changes no earlier id.
 */
export function callIds(calls: Iterable<IdentifiedCall>, maxLength: number): ReadonlyMap<ToolCallId, string> {
  const ids = new Map<ToolCallId, string>()
  const taken = new Set<string>()
  for (const { toolCallId, ownId } of calls) {
    if (ids.has(toolCallId)) continue
    const wanted = [ownId, toolCallId].find(
      (id) => id !== undefined && isIdentifier(id, maxLength) && !taken.has(id),
    )
    const id = wanted ?? freeIdentifier(toolCallId, maxLength, taken)
    ids.set(toolCallId, id)
    taken.add(id)
  }
  return ids
}

/** Returns a media type without its parameters, in lower case. */
export function bareType(mediaType: string): string {
  return (mediaType.split(';')[0] ?? '').trim().toLowerCase()
}

/** Returns the text of base64 data in UTF-8; `''` where the data is not base64. */
export function decodedText(base64: string): string {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
    return new TextDecoder().decode(bytes)
  } catch {
    return ''
  }
}

/** A thing that a wire cannot carry stays visible to the model by its name. */
export function leftOutText(part: ImagePart | FilePart): string {
  const name = part.type === 'file' && part.name ? ` "${part.name}"` : ''
  const { url, providerFile } = part
  const place = url === undefined ? '' : `, at ${url}`
  const keeper = providerFile === undefined ? '' : `, kept by ${providerFile.provider} as ${providerFile.id}`
  const text = `[The ${part.type}${name} of type ${part.mediaType}${place}${keeper}, cannot be shown here and was left out.]`
  return text.toWellFormed()
}

/** The id of a file that this provider keeps; none of a file that another one keeps, or that is here. */
export function keptFileId({ providerFile }: ImagePart | FilePart, provider: string): string | undefined {
  return providerFile?.provider === provider ? providerFile.id : undefined
}

/** The same function, which keeps what it made of each object for as long as the object lives. */
export function memoized<Given extends object, Made>(make: (given: Given) => Made): (given: Given) => Made {
  const made = new WeakMap<Given, { readonly value: Made }>()
  return (given) => {
    let kept = made.get(given)
    if (kept === undefined) made.set(given, (kept = { value: make(given) }))
    return kept.value
  }
}

/** What decides which of a request's provider options go into a body. */
export interface OwnFields {
  /** By whose name the options go. */
  readonly provider: string
  /** Fields of the body that only the adapter may write: otherwise no reply could be read. */
  readonly held: readonly string[]
  readonly warn: (warning: { readonly what: 'model_settings'; readonly message: string }) => void
}

/** A body with the options that its request holds for its provider. */
export function withProviderOptions<Body extends object>(
  body: Body,
  { modelSettings }: ModelRequest,
  { provider, held, warn }: OwnFields,
): Body {
  const all = modelSettings?.providerOptions ?? {}
  const given = Object.entries(getOwn(all, provider) ?? {})
  for (const [name] of given.filter(([field]) => held.includes(field))) {
    const message = `The provider option ${name} was left out: only the adapter may write that field of the request.`
    warn({ what: 'model_settings', message })
  }
  return withOptions(body, Object.fromEntries(given.filter(([field]) => !held.includes(field))))
}

/** A body with options over it: objects go into each other, anything else takes the place of what was there. */
export function withOptions<Body extends object>(body: Body, options: JsonObject): Body {
  const entries = Object.entries(options).map(([name, value]): [string, unknown] => [
    name,
    laidOver((body as { readonly [name: string]: Json | undefined })[name], value),
  ])
  return { ...body, ...Object.fromEntries(entries) }
}

function laidOver(below: Json | undefined, above: Json): Json {
  return isJsonObject(below) && isJsonObject(above) ? withOptions(below, above) : above
}

/** Tool names as we have them and as a wire accepts them. Both ways; a name that is not known passes as it is. */
export interface ToolNames {
  readonly toWire: (name: string) => string
  readonly fromWire: (wireName: string) => string
}

/** What a wire asks of tool names. */
export interface ToolNameRules {
  readonly maxLength: number
  /** What a name of any length may look like, where that is more than letters, digits, `_` and `-`. */
  readonly pattern?: RegExp
  /** Wire names that are spoken for, such as those of a vendor's own tools. */
  readonly reserved?: Iterable<string>
}

const identifier = /^[a-zA-Z0-9_-]+$/
/** For servers that take every name: what a model can write without a doubt where the name ends. */
export const anyWord: RegExp = /^[^\s\p{C}"'`<>{}()[\],;]+$/u

/**
 * One wire name for each name: unchanged where it fits and is free, else readable with a hash after it. No two names
 * share one. The order of `names` does not matter, so a request's prefix stays the same while tools come and go.
 */
export function toolNames(names: Iterable<string>, rules: ToolNameRules): ToolNames {
  const fromWire = new Map<string, string>()
  const toWire = new Map<string, string>()
  const { maxLength, pattern = identifier } = rules
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

/** Warns about each tool that a request offers under another name than its own: the model sees only that other name. */
export function warnOfNames(
  { tools }: Pick<ModelRequest, 'tools'>,
  { toWire }: ToolNames,
  warn: (warning: Warning & { readonly what: 'tool_name' }) => void,
): void {
  for (const { name } of tools) {
    const wireName = toWire(name)
    if (wireName === name) continue
    const message = `The tool ${JSON.stringify(name)} is offered to the model as ${wireName}: its own name is not one that the vendor takes, or is that of another tool.`
    warn({ what: 'tool_name', message })
  }
}

import { ConfigurationError } from '@tallystick/core'
import { imageDetails, omitUndefined, option, requireOptions } from '@tallystick/core/internal'
import type {
  FilePart,
  ImageDetail,
  ImagePart,
  Json,
  ProviderFile,
  ResultPart,
  TextPart,
} from '@tallystick/core/vocabulary'

/**
 * Where the bytes of an image or a file are: here (base64 text, or bytes), at an address that the provider fetches, or with a
 * provider that keeps them.
 */
export type Source =
  | { readonly data: string | Uint8Array; readonly url?: undefined; readonly providerFile?: undefined }
  | { readonly url: string; readonly data?: undefined; readonly providerFile?: undefined }
  | { readonly providerFile: ProviderFile; readonly data?: undefined; readonly url?: undefined }

/** Input of `image`. `mediaType` as in `image/png`. */
export type ImageSource = Source & { readonly mediaType: string; readonly detail?: ImageDetail | undefined }
/** Input of `file`. `mediaType` as in `application/pdf`. */
export type FileSource = Source & { readonly mediaType: string; readonly name?: string | undefined }

interface AnySource extends Pick<ImageSource, 'mediaType'> {
  readonly data?: string | Uint8Array | undefined
  readonly url?: string | undefined
  readonly providerFile?: ProviderFile | undefined
}

const { anyText, fields, maybe, oneOf, valueThat } = option
const sourceFields = {
  mediaType: anyText,
  data: maybe(
    valueThat(
      'base64 text, or bytes in a Uint8Array',
      (value) => typeof value === 'string' || value instanceof Uint8Array,
    ),
  ),
  url: maybe(anyText),
  providerFile: maybe(fields<ProviderFile>({ provider: anyText, id: anyText })),
} as const
const otherNames = { mimeType: 'mediaType', mime: 'mediaType', bytes: 'data', base64: 'data', href: 'url' }
const imageSource = fields<AnySource & Pick<ImageSource, 'detail'>>(
  { ...sourceFields, detail: maybe(oneOf(imageDetails)) },
  otherNames,
)
const fileSource = fields<AnySource & Pick<FileSource, 'name'>>(
  { ...sourceFields, name: maybe(anyText) },
  { ...otherNames, filename: 'name', fileName: 'name' },
)

// Registered, so that a part made by another copy of this package is known too. JSON that happens to look like a
// part does not carry it, and stays JSON.
const made = Symbol.for('@tallystick/tools/part')

/** Text for the model, beside other parts: `[text('The chart:'), image({ … })]`. */
export function text(content: string): TextPart {
  if (typeof content !== 'string')
    throw new ConfigurationError(`text() takes a string, not ${typeof content}.`)
  return mark({ type: 'text', text: content })
}

/** An image for the model to look at. */
export function image(source: ImageSource): ImagePart {
  requireOptions('image', imageSource, source)
  if (!/^image\/[\w.+-]+$/.test(source.mediaType)) {
    throw new ConfigurationError(`image() takes a mediaType such as "image/png", not "${source.mediaType}".`)
  }
  const { mediaType, detail } = source
  return mark({ type: 'image', mediaType, ...omitUndefined({ detail }), ...readSource('image', source) })
}

/** A document for the model to read, such as a PDF. */
export function file(source: FileSource): FilePart {
  requireOptions('file', fileSource, source)
  if (!/^[\w.+-]+\/[\w.+-]+$/.test(source.mediaType)) {
    throw new ConfigurationError(
      `file() takes a mediaType such as "application/pdf", not "${source.mediaType}".`,
    )
  }
  const { mediaType, name } = source
  return mark({ type: 'file', mediaType, ...omitUndefined({ name }), ...readSource('file', source) })
}

/** A value as JSON text, even if it could be read as lines or parts: `json(['a', 'b'])` is `["a","b"]`. */
export function json(value: unknown): TextPart {
  return mark({ type: 'text', text: JSON.stringify(toJson(value)) })
}

/**
 * Turns what a tool returned into parts of its result: a string is one text, an array of strings a text of so many lines, nothing
 * is a text that says so, made parts are themselves, and any other value is JSON text. Throws `NotJsonError` for what JSON
 * cannot carry.
 */
export function toContent(value: unknown): readonly ResultPart[] {
  if (value === undefined) return [{ type: 'text', text: 'Done. The tool has nothing to report.' }]
  if (typeof value === 'string') return requireText(value)
  if (isMade(value)) return [{ ...value }]
  if (Array.isArray(value) && value.length > 0) {
    const items: readonly unknown[] = Array.from(value)
    // Not as JSON, where their line breaks and quotes would be escaped; nor as parts, which some models read as one word.
    if (items.every((item) => typeof item === 'string')) return requireText(items.join('\n'))
    if (items.some(isMade)) return items.filter((item) => item !== '').map(toPart)
  }
  return [{ type: 'text', text: JSON.stringify(toJson(value)) }]
}

/** A text that is not empty, since models refuse those. */
function requireText(text: string): readonly TextPart[] {
  return [{ type: 'text', text: text.trim() === '' ? 'Done. The result is an empty text.' : text }]
}

function toPart(value: unknown): ResultPart {
  if (isMade(value)) return { ...value }
  return { type: 'text', text: typeof value === 'string' ? value : JSON.stringify(toJson(value)) }
}

function isMade(value: unknown): value is ResultPart {
  return typeof value === 'object' && value !== null && made in value
}

function mark<Part extends ResultPart>(part: Part): Part {
  return Object.freeze(Object.defineProperty(part, made, { value: true }))
}

function readSource(
  maker: string,
  { data, url, providerFile }: Source,
): { data: string } | { url: string } | { providerFile: ProviderFile } {
  if ([data, url, providerFile].filter((one) => one !== undefined).length !== 1) {
    throw new ConfigurationError(`${maker}() takes exactly one of data, url and providerFile.`)
  }
  if (url !== undefined) return { url }
  if (providerFile !== undefined) {
    const { provider, id } = providerFile
    if (provider && id) return { providerFile: { provider, id } }
    throw new ConfigurationError(
      `${maker}() takes a providerFile with the provider that keeps it, and its id there.`,
    )
  }
  if (typeof data !== 'string') return { data: encodeBase64(data) }
  // A pattern of the whole text may need more stack than there is for one of megabytes.
  const digits = data.replace(/={1,2}$/, '')
  if (digits === '' || /[^A-Za-z0-9+/]/.test(digits) || data.length % 4 !== 0) {
    throw new ConfigurationError(`${maker}() takes data as base64 text, or as bytes in a Uint8Array.`)
  }
  return { data }
}

function encodeBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += 8192)
    binary += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return btoa(binary)
}

const maxDepth = 200

/** A value that JSON cannot carry; the message names the place, as in `$.items[2] is a bigint, …`. */
class NotJsonError extends TypeError {
  override readonly name: string = 'NotJsonError'
}

/**
 * A copy of a value as JSON carries it. Keys whose value is `undefined` are left out and `toJSON` is called, as
 * `JSON.stringify` does; what `JSON.stringify` would lose without a word (a Map, a Response, NaN, a function) is a
 * `NotJsonError` instead.
 */
export function toJson(value: unknown): Json {
  return copy(value, '$', [])
}

function copy(value: unknown, path: string, ancestors: readonly object[]): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new NotJsonError(`${path} is ${value}, which JSON cannot carry`)
    // JSON has one zero: the live value must equal the one that is read back.
    return value === 0 ? 0 : value
  }
  if (typeof value !== 'object') {
    const kind = value === undefined ? 'undefined' : `a ${typeof value}`
    throw new NotJsonError(`${path} is ${kind}, which JSON cannot carry`)
  }
  if (ancestors.includes(value)) throw new NotJsonError(`${path} holds itself, which JSON cannot carry`)
  if (ancestors.length >= maxDepth)
    throw new NotJsonError(`${path.slice(0, 80)}… is nested deeper than ${maxDepth} levels`)
  const within = [...ancestors, value]
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return copy(value.toJSON(), `${path}.toJSON()`, within)
  }
  if (Array.isArray(value)) return Array.from(value, (item, index) => copy(item, `${path}[${index}]`, within))
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype) {
    // The content of these is not in their own enumerable keys: their JSON would be empty without any error.
    const hidden = value instanceof Error || Symbol.iterator in value || Symbol.asyncIterator in value
    if (hidden || Object.keys(value).length === 0) {
      const kind = value.constructor?.name
      throw new NotJsonError(`${path} is an instance of ${kind || 'a class'}, which JSON cannot carry`)
    }
  }
  const entries: [string, Json][] = []
  for (const [key, item] of Object.entries(value)) {
    if (item !== undefined) entries.push([key, copy(item, `${path}.${key}`, within)])
  }
  return Object.fromEntries(entries)
}

import type { FilePart, ImagePart, ResultPart, TextPart } from '@tallystick/core'
import { ConfigurationError } from '@tallystick/core'
import { jsonOf } from './json-value.ts'

/** Where the bytes of an image or a file are: here (base64 text, or bytes), or at an address the provider fetches. */
export type Source =
  | { readonly data: string | Uint8Array; readonly url?: never }
  | { readonly url: string; readonly data?: never }

/** What `image` makes a part from. `mediaType` as in `image/png`. */
export type ImageSource = Source & { readonly mediaType: string }
/** What `file` makes a part from. `mediaType` as in `application/pdf`. */
export type FileSource = Source & { readonly mediaType: string; readonly name?: string }

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
  if (!/^image\/[\w.+-]+$/.test(source.mediaType)) {
    throw new ConfigurationError(`image() takes a mediaType such as "image/png", not "${source.mediaType}".`)
  }
  return mark({ type: 'image', mediaType: source.mediaType, ...bytesOf('image', source) })
}

/** A document for the model to read, such as a PDF. */
export function file(source: FileSource): FilePart {
  if (!/^[\w.+-]+\/[\w.+-]+$/.test(source.mediaType)) {
    throw new ConfigurationError(
      `file() takes a mediaType such as "application/pdf", not "${source.mediaType}".`,
    )
  }
  const name = source.name === undefined ? {} : { name: source.name }
  return mark({ type: 'file', mediaType: source.mediaType, ...name, ...bytesOf('file', source) })
}

/**
 * What a tool returned, as parts of its result: a string is one text, nothing is a text that says so, made parts
 * are themselves, and any other value is JSON text. Throws `NotJsonError` for what JSON cannot carry.
 */
export function contentOf(value: unknown): readonly ResultPart[] {
  if (value === undefined) return [{ type: 'text', text: 'Done. The tool has nothing to report.' }]
  if (value === '') return [{ type: 'text', text: 'Done. The result is an empty text.' }]
  if (typeof value === 'string') return [{ type: 'text', text: value }]
  if (isMade(value)) return [{ ...value }]
  if (Array.isArray(value) && value.some(isMade)) return value.map(partOf)
  return [{ type: 'text', text: JSON.stringify(jsonOf(value)) }]
}

function partOf(value: unknown): ResultPart {
  if (isMade(value)) return { ...value }
  return { type: 'text', text: typeof value === 'string' ? value : JSON.stringify(jsonOf(value)) }
}

function isMade(value: unknown): value is ResultPart {
  return typeof value === 'object' && value !== null && made in value
}

function mark<Part extends ResultPart>(part: Part): Part {
  return Object.freeze(Object.defineProperty(part, made, { value: true }))
}

function bytesOf(maker: string, { data, url }: Source): { data: string } | { url: string } {
  if (url !== undefined && data === undefined) return { url }
  if (data === undefined || url !== undefined) {
    throw new ConfigurationError(`${maker}() takes exactly one of data and url.`)
  }
  if (typeof data !== 'string') return { data: base64(data) }
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(data) || data.length % 4 !== 0) {
    throw new ConfigurationError(`${maker}() takes data as base64 text, or as bytes in a Uint8Array.`)
  }
  return { data }
}

function base64(bytes: Uint8Array): string {
  let binary = ''
  for (let at = 0; at < bytes.length; at += 8192)
    binary += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return btoa(binary)
}

import type { ResultPart, UserPart } from '@tallystick/core/vocabulary'
import { malformed } from '../http/problem.ts'

/** A part of a message, in the words of either API. */
type GivenPart = { readonly type?: unknown; readonly [field: string]: unknown }

/** Reads the message of a user: a text, or parts of either API. */
export function userParts(content: unknown, place: string): readonly UserPart[] {
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  if (!Array.isArray(parts)) throw malformed(`${place} has to be a text, or a list of parts.`)
  const read = parts.flatMap((part, index) => userPart(Object(part) as GivenPart, `${place}.${index}`))
  if (read.length > 0) return read
  throw malformed(`${place} is empty.`)
}

/** The text of a message whose parts can only be texts. */
export function textIn(content: unknown, place: string): string {
  if (content == null) return ''
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  if (!Array.isArray(parts)) throw malformed(`${place} has to be a text, or a list of parts.`)
  return parts.map((part, index) => onlyText(Object(part) as GivenPart, `${place}.${index}`)).join('')
}

/** Reads the result of a call that a client ran. */
export function resultParts(content: unknown, place: string): readonly ResultPart[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : userParts(content, place)
}

function onlyText({ type, text, refusal }: GivenPart, place: string): string {
  if (typeof text === 'string') return text
  if (type === 'refusal' && typeof refusal === 'string') return refusal
  throw malformed(`${place} has to be a text.`)
}

function userPart(part: GivenPart, place: string): readonly UserPart[] {
  switch (part.type) {
    case 'text':
    case 'input_text':
      return part['text'] === '' ? [] : [{ type: 'text', text: onlyText(part, place) }]
    case 'image_url':
      return [image(Object(part['image_url']) as { readonly url?: unknown }, place)]
    case 'input_image':
      return [image({ url: part['image_url'] }, place)]
    case 'file':
      return [file(Object(part['file']) as GivenPart, place)]
    case 'input_file':
      return [file(part, place)]
    default:
      throw malformed(
        `${place} has the type ${String(part.type).slice(0, 40)}, and can be a text, an image or a file.`,
      )
  }
}

function image({ url }: { readonly url?: unknown }, place: string): UserPart {
  const { mediaType = 'image/*', ...where } = source(url, place)
  if (mediaType.startsWith('image/')) return { type: 'image', mediaType, ...where }
  throw malformed(`${place} has to be an image.`)
}

function file({ file_data, file_url, filename }: GivenPart, place: string): UserPart {
  const { mediaType = 'application/octet-stream', ...where } = source(file_data ?? file_url, place)
  return { type: 'file', mediaType, ...where, ...(typeof filename === 'string' && { name: filename }) }
}

/** The content of a file: in a data URL, or at a URL that the model's provider reads. */
function source(
  url: unknown,
  place: string,
):
  | { readonly mediaType?: string; readonly data: string }
  | { readonly mediaType?: string; readonly url: string } {
  const text = typeof url === 'string' ? url : ''
  const [, mediaType, data] = /^data:([\w.+-]+\/[\w.+-]+);base64,([A-Za-z0-9+/=]*)$/.exec(text) ?? []
  if (mediaType !== undefined && data !== undefined) return { mediaType, data }
  if (/^https?:\/\//.test(text)) return { url: text }
  throw malformed(`${place} has no URL of http, https or data with base64. Files by an id are not kept here.`)
}

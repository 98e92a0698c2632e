import { TextDecoder } from 'node:util'
import type { Response } from 'undici'

/** Media types that are shown when nothing else is said. */
export const defaultContentTypes: readonly string[] = [
  'text/*',
  'application/json',
  'application/*+json',
  'application/x-ndjson',
  'application/xml',
  'application/*+xml',
  'application/yaml',
]

/** Whether a media type is one of those to show. An answer that names none is taken for text. */
export function isShown(contentType: string | null, shown: readonly string[]): boolean {
  const type = contentType?.split(';')[0]?.trim().toLowerCase() ?? 'text/plain'
  return shown.some((pattern) => {
    const [start = '', end] = pattern.toLowerCase().split('*')
    return end === undefined ? type === start : type.startsWith(start) && type.endsWith(end)
  })
}

/** Whether a media type is that of a page. */
export function isPage(contentType: string | null): boolean {
  return isShown(contentType, ['text/html', 'application/xhtml+xml'])
}

/** The content type of a page with the character set that it names itself, where its server names none. */
export function pageType(bytes: Buffer, contentType: string | null): string {
  const type = contentType ?? ''
  if (/charset=/i.test(type)) return type
  const head = bytes.toString('latin1', 0, 1_024).toLowerCase()
  const named = textAfter(textAfter(head, '<meta'), 'charset')
  const charset = /^\s*=\s*["']?([\w-]{1,40})/.exec(named)?.[1]
  return charset === undefined ? type : `${type}; charset=${charset}`
}

/** The first bytes of a body, unpacked, and whether there are more. Reads no further than it has to. */
export async function readBytes(
  response: Response,
  maxBytes: number,
): Promise<{ readonly bytes: Buffer; readonly more: boolean }> {
  const chunks: Uint8Array[] = []
  let length = 0
  // Leaving the loop cancels the rest of the body.
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk as Uint8Array)
    length += (chunk as Uint8Array).length
    if (length > maxBytes) break
  }
  const bytes = Buffer.concat(chunks)
  return { bytes: bytes.subarray(0, maxBytes), more: bytes.length > maxBytes }
}

/** Bytes as text, in the character set that the content type names, else UTF-8. */
export function decoded(bytes: Uint8Array, contentType: string | null): string {
  const charset = /charset="?([\w-]+)/i.exec(contentType ?? '')?.[1] ?? 'utf-8'
  return decoderOf(charset).decode(bytes)
}

/** At most so many bytes of a text, and no part of a character. */
export function textWithin(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  return bytes.length <= maxBytes
    ? text
    : new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true })
}

/** What follows the first place of a word; empty where the text lacks the word. */
function textAfter(text: string, word: string): string {
  const place = text.indexOf(word)
  return place === -1 ? '' : text.slice(place + word.length)
}

function decoderOf(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset)
  } catch {
    return new TextDecoder()
  }
}

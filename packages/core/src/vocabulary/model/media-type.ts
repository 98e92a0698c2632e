import type { FilePart, ImagePart, Message, ResultPart, TextPart, UserPart } from './content.ts'

/** How the base64 of a file begins, by the type that the first bytes of every such file tell. */
const beginnings: readonly (readonly [RegExp, string])[] = [
  [/^iVBORw0KGgo/, 'image/png'],
  [/^\/9j\//, 'image/jpeg'],
  [/^R0lGOD/, 'image/gif'],
  [/^UklGR.{6}XRUJQ/, 'image/webp'],
  [/^UklGR.{6}XQVZF/, 'audio/wav'],
  [/^JVBERi0/, 'application/pdf'],
]

/**
 * A part of a message with the media type that its bytes have: services refuse an image whose type is another one, and so every
 * later run of a session that holds it. A part without bytes here, and one of bytes that tell nothing, stays as it is.
 */
function correctMediaType<Part extends TextPart | ImagePart | FilePart>(
  part: Part,
): Part | ImagePart | FilePart {
  if (part.type === 'text' || part.data === undefined) return part
  const { data, mediaType: declared } = part
  const mediaType = beginnings.find(([beginning]) => beginning.test(data))?.[1]
  if (mediaType === undefined || mediaType === declared.toLowerCase()) return part
  const isImage = mediaType.startsWith('image/')
  if (isImage === declared.startsWith('image/')) return { ...part, mediaType }
  return isImage ? { type: 'image', mediaType, data } : { type: 'file', mediaType, data }
}

/** Returns parts with the media types that their bytes have; the same list where nothing is corrected. */
export function correctMediaTypes<Part extends UserPart | ResultPart>(
  parts: readonly Part[],
): readonly Part[] {
  const corrected = parts.map((part) => correctMediaType(part) as Part)
  return corrected.some((part, place) => part !== parts[place]) ? corrected : parts
}

/** The same for the parts of a message: what a user gave, or tools answered. */
export function correctMessage<Given extends Message>(message: Given): Given {
  if (message.role === 'user') {
    const parts = correctMediaTypes(message.parts)
    return parts === message.parts ? message : { ...message, parts }
  }
  if (message.role !== 'tool') return message
  const results = message.results.map((result) => {
    const content = correctMediaTypes(result.content)
    return content === result.content ? result : { ...result, content }
  })
  return results.some((result, place) => result !== message.results[place])
    ? { ...message, results }
    : message
}

import type { ResultPart, UserPart } from '@tallystick/core'

/** Parts as one text; what is no text is named by its media type. */
export function contentText(parts: readonly (UserPart | ResultPart)[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : `[${part.mediaType}]`)).join('\n')
}

/** A text on one line, cut after `max` characters. */
export function oneLine(text: string, max: number): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length <= max ? line : `${line.slice(0, max - 1)}…`
}

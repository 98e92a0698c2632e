import type { ResultPart, UserPart } from '@tallystick/core/vocabulary'
import { fitted } from '../../terminal/text-width.ts'
import { visibleText } from '../../terminal/visible-text.ts'

/** Parts as one text; what is no text is named by its media type. */
export function contentText(parts: readonly (UserPart | ResultPart)[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : `[${thingText(part)}]`)).join('\n')
}

/** An image or a file, by its type and by what it is found by. */
function thingText(part: Exclude<UserPart | ResultPart, { readonly type: 'text' }>): string {
  const { mediaType, url, providerFile } = part
  const name = part.type === 'file' && part.name !== undefined ? [part.name] : []
  const keeper = providerFile ? [`kept by ${providerFile.provider} as ${providerFile.id}`] : []
  return [mediaType, ...name, ...(url === undefined ? [] : [url]), ...keeper].join(', ')
}

/** A text on one line, cut where it takes more than `max` columns. */
export function oneLine(text: string, max: number): string {
  // Of a text of megabytes no more is looked at than can be shown.
  const part = text.slice(0, max * 4 + 100)
  const line = visibleText(part.replaceAll(/\s+/g, ' ')).trim()
  const shown = fitted(line, max)
  return part.length < text.length && shown === line ? fitted(`${line} …`, max) : shown
}

import { boundedText } from '../../content/bounded-text.ts'
import { visibleText } from '../../content/visible-text.ts'

/** A text from a server without what a reader does not see, of `maxCharacters` at most. Line breaks and tabs stay. */
export function cleanText(text: string, maxCharacters: number): string {
  // Bounded first as well: the rest is never looked at.
  const rough = text.slice(0, maxCharacters * 2)
  return boundedText(visibleText(rough), maxCharacters)
}

/** The same on one line, for a sentence of an error. */
export function cleanLine(text: string, maxCharacters: number): string {
  return cleanText(text, maxCharacters).replaceAll(/\s+/g, ' ').trim()
}

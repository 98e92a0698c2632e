import { boundedText } from '../../content/bounded-text.ts'

/**
 * Characters that a reader does not see, and that a terminal or a model obeys: controls, marks that turn the direction of
 * writing, and the tags of Unicode, in which whole sentences can be hidden.
 */
const unseen =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu

/** A text from a server without characters that are not seen, of `maxCharacters` at most. Line breaks and tabs stay. */
export function cleanText(text: string, maxCharacters: number): string {
  // Bounded first as well: the rest is never looked at.
  const rough = text.slice(0, maxCharacters * 2)
  return boundedText(rough.replaceAll('\r\n', '\n').replaceAll(unseen, '').toWellFormed(), maxCharacters)
}

/** The same on one line, for a sentence of an error. */
export function cleanLine(text: string, maxCharacters: number): string {
  return cleanText(text, maxCharacters).replaceAll(/\s+/g, ' ').trim()
}

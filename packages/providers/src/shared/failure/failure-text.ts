import { withoutKeyShapes } from '../secrets/struck-keys.ts'

const maxLength = 300

/**
 * A provider's own words, fit for an error message: one line, bounded, and with what looks like a key or a token struck
 * out. Provider messages end up in ledgers and logs.
 */
export function failureText(text: string): string {
  const line = withoutKeyShapes(text)
    .replace(/\bBearer\s+\S+/gi, 'Bearer [struck out]')
    .replace(/\bBasic\s+[\w.~+/=-]{8,}/gi, 'Basic [struck out]')
    .replace(/\s+/g, ' ')
    .trim()
    .toWellFormed()
  return line.length <= maxLength ? line : `${line.slice(0, maxLength - 1).toWellFormed()}…`
}

/** Returns a word of the provider in brackets, to follow a sentence; an empty text if there is no word. */
export function named(word: string | null | undefined): string {
  return word ? ` (${failureText(word)})` : ''
}

/** Returns the provider's own words, to follow a sentence; an empty text if there are no words. */
export function quoted(words: string): string {
  return words.trim() === '' ? '' : `: ${failureText(words).replace(/\.$/, '')}`
}

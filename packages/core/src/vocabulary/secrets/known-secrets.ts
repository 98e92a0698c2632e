import { endOfWords, maxEscapeLength, inSmallLetters, mayBeAt } from './escaped-text.ts'
import type { TextSpan } from './key-shapes.ts'

/** Characters that a secret has at least. A shorter one is found in texts that have nothing to do with it. */
export const secretLengthMin = 8

/** Secrets that are known word for word, such as the keys that a program sends itself. */
export interface KnownSecrets {
  /**
   * The ranges of a text that hold one of them, in order, none overlapping another: as it is, in any case, in Base64
   * (also within a longer value) and in hexadecimal, each also escaped as in URLs, JSON, JavaScript or HTML, and broken
   * into lines. Not found: what is compressed, encrypted, spelt backwards, or encoded twice over.
   */
  spansIn(text: string): readonly TextSpan[]
  /** A text with other words in place of each. */
  struckFrom(text: string, instead: (secret: string) => string): string
  /** Characters that the longest of them takes in any of these forms. */
  readonly maxFormLength: number
}

/** Gets ready to find these secrets. Those that are shorter than `secretLengthMin` are left out. */
export function knownSecrets(secrets: Iterable<string>): KnownSecrets {
  const known = [...new Set(secrets)].filter((secret) => secret.length >= secretLengthMin)
  const forms = [...new Set(known.flatMap(formsOf).map(inSmallLetters))]
  const spansIn = (text: string): readonly TextSpan[] => merged(forms.flatMap((form) => placesOf(form, text)))
  return {
    spansIn,
    struckFrom(text, instead) {
      let result = ''
      let from = 0
      for (const { start, end } of spansIn(text)) {
        result += text.slice(from, start) + instead(text.slice(start, end))
        from = end
      }
      return result + text.slice(from)
    },
    maxFormLength: maxEscapeLength * Math.max(0, ...forms.map(({ length }) => length)),
  }
}

function placesOf(form: string, text: string): readonly TextSpan[] {
  const [first = ''] = form
  const spans: TextSpan[] = []
  for (let start = 0; start < text.length;) {
    const end = mayBeAt(first, text, start) ? endOfWords(form, text, start) : undefined
    if (end !== undefined) spans.push({ start, end })
    start = end ?? start + 1
  }
  return spans
}

function merged(spans: readonly TextSpan[]): readonly TextSpan[] {
  const result: TextSpan[] = []
  for (const span of spans.toSorted((one, other) => one.start - other.start)) {
    const last = result.at(-1)
    if (last === undefined || span.start >= last.end) result.push(span)
    else if (span.end > last.end) result[result.length - 1] = { start: last.start, end: span.end }
  }
  return result
}

function formsOf(secret: string): readonly string[] {
  const bytes = utf8(secret)
  const asBytes = String.fromCharCode(...bytes)
  const hexadecimal = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')
  const encoded = [0, 1, 2].map((offset) => base64Within(bytes, offset))
  const forUrls = encoded.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))
  return [secret, asBytes, hexadecimal, ...encoded, ...forUrls]
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

/** The characters of Base64 that bytes alone decide, wherever they begin within a group of three. */
function base64Within(bytes: readonly number[], offset: number): string {
  const bits = bytes.map((byte) => byte.toString(2).padStart(8, '0')).join('')
  // Bits that share a character with the byte before.
  const shared = (6 - ((offset * 8) % 6)) % 6
  let text = ''
  for (let bit = shared; bit + 6 <= bits.length; bit += 6) {
    text += alphabet[Number.parseInt(bits.slice(bit, bit + 6), 2)] ?? ''
  }
  return text
}

function utf8(text: string): readonly number[] {
  return [...encodeURIComponent(text.toWellFormed()).matchAll(/%([0-9A-F]{2})|[^%]/g)].map(
    ([character, hex]) => (hex === undefined ? character.charCodeAt(0) : Number.parseInt(hex, 16)),
  )
}

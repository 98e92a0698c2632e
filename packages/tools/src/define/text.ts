/**
 * Removes what a terminal obeys and a reader does not see: escape sequences as a whole, other control characters, marks that
 * turn the direction of writing, the tags of Unicode. Line breaks and tabs stay; a return is a line break.
 */
export function toVisibleText(text: string): string {
  return text.replaceAll(escapeSequence, '').replaceAll(/\r\n?/g, '\n').replaceAll(unseen, '').toWellFormed()
}

/**
 * A control sequence; or any text up to a bell or to another sequence, of which `ESC \` is one, such as the title of a window;
 * or another sequence. Of one that does not end within 4,096 characters the rest stays.
 */
const escapeSequence =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /\u001b(?:\[[ -?]{0,4096}[@-~]?|[\]PX^_](?:[^\u0007\u001b\n]{0,4095}(?:\u0007|(?=[\u001b\n])))?|[ -/]*[0-~]?)/g

const unseen =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu

/** At most so many bytes of a text in UTF-8, and no part of a character. */
export function readWithin(text: string, maxBytes: number): string {
  const bytes = new TextEncoder().encode(text.slice(0, maxBytes + 1))
  return bytes.length <= maxBytes
    ? text
    : new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(0, maxBytes), { stream: true })
}

/** At most `maxCharacters` UTF-16 units of a text, with a mark where it was cut; never half of a surrogate pair. */
export function boundText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  const mark = ' … (cut)'
  const kept = text.slice(0, Math.max(0, maxCharacters - mark.length))
  return kept.replace(/[\ud800-\udbff]$/, '') + mark
}

/**
 * Lower-case letters that are another form of a lower-case letter: `ς` is the `σ` at the end of a word. That one is the
 * lower case of their upper case, except three whose upper case has several letters. With them `toLowerCase` becomes what
 * Unicode calls simple case folding.
 */
const anyForm = /[\u0345µſ\u0390\u03b0ςϐϑϕϖϰϱϵᲀ-ᲈẛ\u1fbe\ufb05]/g
const longForms: ReadonlyMap<string, string> = new Map([
  ['\u0390', '\u1fd3'],
  ['\u03b0', '\u1fe3'],
  ['\ufb05', '\ufb06'],
])

/**
 * A text without its case. What is found in it is at the same place in the text: of all letters, `İ` alone would become two,
 * and is folded as `I` is.
 */
export function foldCase(text: string): string {
  return text
    .replaceAll('İ', 'i')
    .toLowerCase()
    .replaceAll(anyForm, (form) => longForms.get(form) ?? form.toUpperCase().toLowerCase())
}

import type { TextSpan } from '@tallystick/core/vocabulary'
import { isPlainlySecret, isSecretName } from './secret-name.ts'

/** A secret in a text, and whether it is a number of JSON, whose digits alone may be masked. */
export interface NamedSecret extends TextSpan {
  readonly isNumber?: true
  /** Of a text between quotes: the backslashes before each quote, which say how deep it is nested in JSON texts. */
  readonly nested?: number
}

/** Names whose value is the rest of the line. */
const headerName = /^(?:(?:proxy-)?authorization|(?:set-)?cookie)$/i
/** A bare value after `name: ` may be a word of a sentence; passwords that are shorter are few. */
const bareLengthMin = 4

/**
 * The values of a text under the name of a secret: in JSON, also within a JSON text, in assignments, parameters,
 * settings and headers. Takes time in proportion to the length of the text: no text after a separator is read twice,
 * and a name ends at the separator before it.
 */
export function namedSecretsIn(text: string): readonly NamedSecret[] {
  const separator = /[:=]/g
  const secrets: NamedSecret[] = []
  for (let found = separator.exec(text); found; found = separator.exec(text)) {
    const name = nameBefore(text, found.index)
    if (!isSecretName(name.text)) continue
    const values = valuesAfter(text, found.index, name).filter(({ start, end }) => start < end)
    secrets.push(...values)
    separator.lastIndex = Math.max(separator.lastIndex, values.at(-1)?.end ?? 0)
  }
  return secrets
}

interface Name {
  readonly text: string
  readonly quoted: boolean
  /** Whether white space separates the name and the separator. */
  readonly apart: boolean
}

/** The name before a separator; empty where none is. */
function nameBefore(text: string, separator: number): Name {
  // The separator `:=`.
  const before = text[separator] === '=' && text[separator - 1] === ':' ? separator - 1 : separator
  const beforeSpace = startOfRun(text, before, isBlank)
  const quoted = isQuote(text[beforeSpace - 1])
  const end = quoted ? startOfRun(text, beforeSpace - 1, isBackslash) : beforeSpace
  const start = startOfRun(text, end, isNameCharacter)
  const name = text.slice(start, end)
  const known = !quoted && isBackslash(text[start - 1]) ? nameAfterBackslash(name) : name
  return { text: known, quoted, apart: beforeSpace < before }
}

/**
 * The name after a backslash. In a JSON text a line break is a backslash and a letter, which does not belong to the name;
 * in a path of Windows the letter is the name's first.
 */
function nameAfterBackslash(name: string): string {
  const rest = name.slice(1)
  return isSecretName(rest) || /^[bfnrt][A-Z]/.test(name) ? rest : name
}

function valuesAfter(text: string, separator: number, name: Name): readonly NamedSecret[] {
  const after = text.startsWith('=>', separator) ? separator + 2 : separator + 1
  const start = endOfRun(text, after, name.quoted ? isBlank : isSpace)
  if (name.quoted) return valuesOfJson(text, start)
  const opening = endOfRun(text, start, isBackslash)
  if (isQuote(text[opening])) return [quotedValue(text, start, opening)]
  const value = bareValue(text, { separator, behind: after, start }, name)
  return value ? [value] : []
}

/** A text or a number of JSON, or those of a list and of lists within it, up to the first object. */
function valuesOfJson(text: string, from: number): readonly NamedSecret[] {
  const values: NamedSecret[] = []
  let depth = 0
  let place = from
  do {
    const opening = endOfRun(text, place, isBackslash)
    const value = isQuote(text[opening]) ? quotedValue(text, place, opening) : numberValue(text, place)
    if (text[place] === '[') depth++
    if (text[place] === ']') depth--
    if (value) values.push(value)
    // After the quote that ends a text.
    if (value) place = value.isNumber ? value.end : value.end + 1 + opening - place
    else if (isBetweenItems(text[place] ?? '')) place++
    else return values
  } while (depth > 0)
  return values
}

function bareValue(
  text: string,
  {
    separator,
    behind: after,
    start,
  }: { readonly separator: number; readonly behind: number; readonly start: number },
  name: Name,
): NamedSecret | undefined {
  const assigns = text[separator] === '='
  return assigns
    ? assignedValue(text, start, name.apart || start > after)
    : lineValue(text, start, name, after)
}

/** A bare value after `=`. */
function assignedValue(text: string, start: number, apart: boolean): NamedSecret | undefined {
  const end = endOfRun(text, start, isBare)
  // `token = read()` is code, and no secret.
  return apart && text.slice(start, end).includes('(') ? undefined : { start, end }
}

/** A bare value after `:`: the rest of a header's line, a word of a setting's. */
function lineValue(text: string, start: number, name: Name, after: number): NamedSecret | undefined {
  if (headerName.test(name.text)) return { start, end: endOfRun(text, start, isOfLine) }
  // Nothing is read to its end that may turn out to be no secret, or texts of many names would be read again and again.
  if (start === after || !isPlainlySecret(name.text)) return undefined
  const end = endOfRun(text, start, isBare)
  return end - start >= bareLengthMin ? { start, end } : undefined
}

/**
 * The text between quotes; `opening` is the index of the first quote, which follows as many backslashes as it is
 * nested deep.
 */
function quotedValue(text: string, start: number, opening: number): NamedSecret {
  const nested = opening - start
  const quote = text[opening]
  let backslashes = 0
  for (let place = opening + 1; place < text.length; place++) {
    const character = text[place]
    if (character === '\\') {
      backslashes++
      continue
    }
    // Each level of nesting doubles backslashes: a quote of this level has those of its level alone, beside pairs.
    const closes = character === quote && backslashes % (2 * (nested + 1)) === nested
    if (closes) return { start: opening + 1, end: place - nested, nested }
    backslashes = 0
  }
  return { start: opening + 1, end: text.length, nested }
}

function numberValue(text: string, start: number): NamedSecret | undefined {
  const end = endOfRun(text, start, (character) => /[-+.\dEe]/.test(character))
  const isNumber = end > start && Number.isFinite(Number(text.slice(start, end)))
  return isNumber ? { start, end, isNumber } : undefined
}

type Belongs = (character: string) => boolean

const isQuote = (character: string | undefined): boolean => character === '"' || character === "'"
const isBackslash = (character: string | undefined): boolean => character === '\\'
const isSpace: Belongs = (character) => character === ' ' || character === '\t'
const isBlank: Belongs = (character) => isSpace(character) || character === '\r' || character === '\n'
const isNameCharacter: Belongs = (character) => /[\w-]/.test(character)
/** Also the letters of `true`, `false` and `null`. */
const isBetweenItems: Belongs = (character) => /[[\],a-z\s]/.test(character)
const isOfLine: Belongs = (character) => !'\r\n"\'\\'.includes(character)
const isBare: Belongs = (character) => !' \t\r\n&;,"\'\\'.includes(character)

function endOfRun(text: string, from: number, belongs: Belongs): number {
  let place = from
  while (place < text.length && belongs(text[place] ?? '')) place++
  return place
}

function startOfRun(text: string, to: number, belongs: Belongs): number {
  let place = to
  while (place > 0 && belongs(text[place - 1] ?? '')) place--
  return place
}

import { toCanonicalJson, type Json } from './json.ts'

/** The longest text that an error gives to a ledger, in characters. */
const MAX_CHARACTERS = 2_000
/** The number of fields that are named of an object without a message that is not an error. */
const MAX_FIELDS = 10

/** Characters that a terminal obeys, hides or reorders text by, and halves of surrogate pairs. */
export const unseen: RegExp = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu

const hidden =
  /(?!(?<=\p{Extended_Pictographic})\uFE0F)[\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?![\t\n])\p{Cc}/gu
const otherSpace = /(?! )\p{Zs}/gu

/**
 * A text with the characters made visible that a reader cannot see, and that may hide or reorder others; with `spaces`, also those
 * that look like a space.
 */
export function showHidden(text: string, { spaces = false }: { readonly spaces?: boolean } = {}): string {
  const toMark = (character: string): string =>
    `⟨U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`
  const shown = text.replaceAll(hidden, toMark)
  return spaces ? shown.replaceAll(otherSpace, toMark) : shown
}

/** Reads a decimal number such as 5, 0.5 or 1e3. NaN for every other text (`0x10`, `Infinity`), and for a number that is too large. */
export function readDecimal(text: string): number {
  const value = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN
  return Number.isFinite(value) ? value : Number.NaN
}

/** Describes a thrown value in words. Anything can be thrown, even a value that throws when it is read. */
export function formatError(thrown: unknown): string {
  return formatThrown(thrown, ({ name, message }) => message || name)
}

/** Describes a thrown value as a sentence that ends in one mark: many messages bring their own, others none. */
export function formatErrorSentence(thrown: unknown): string {
  const text = formatError(thrown).trimEnd()
  return /[.!?…]$/.test(text) ? text : `${text}.`
}

/** Describes a thrown value in words, with the kind of error it is. */
export function formatNamedError(thrown: unknown): string {
  return formatThrown(thrown, ({ name, message }) => `${name}: ${message}`)
}

function formatThrown(thrown: unknown, ofError: (error: Error) => string): string {
  try {
    const text = thrown instanceof Error ? ofError(thrown) : (formatObject(thrown) ?? String(thrown))
    return text.slice(0, MAX_CHARACTERS)
  } catch {
    return 'something that cannot be put in words'
  }
}

/** The longest stack that a ledger holds, with those of its causes, in characters. */
const MAX_STACK_CHARACTERS = 8_000
const MAX_CAUSES = 8

/** The stack of what was thrown, and of its causes, for the record. Anything can be thrown, also what throws when it is looked at. */
export function formatErrorStack(thrown: unknown): string {
  const stacks: string[] = []
  try {
    let error = thrown
    for (let depth = 0; depth < MAX_CAUSES && error !== undefined; depth++) {
      const stack = error instanceof Error && typeof error.stack === 'string' ? error.stack : undefined
      stacks.push(stack ?? formatNamedError(error))
      error = typeof error === 'object' && error !== null && 'cause' in error ? error.cause : undefined
    }
  } catch {
    stacks.push('something that cannot be put in words')
  }
  return stacks.join('\nCaused by: ').slice(0, MAX_STACK_CHARACTERS)
}

/** The message of an object that is not an `Error`; `undefined` if its text says it. */
function formatObject(thrown: unknown): string | undefined {
  if (typeof thrown !== 'object' || thrown === null) return undefined
  // Some libraries throw objects with a message, and errors of another realm are not an `Error` here.
  if ('message' in thrown && typeof thrown.message === 'string' && thrown.message !== '')
    return thrown.message
  const hasText = 'toString' in thrown && thrown.toString !== Object.prototype.toString
  return hasText ? undefined : nameFields(thrown)
}

/** The names of an object's fields alone: a value may be a secret, such as a header of a request, and models read this text. */
function nameFields(thrown: object): string {
  const fields = Object.keys(thrown)
  if (fields.length === 0) return 'an object without a message'
  const others = fields.length > MAX_FIELDS ? ` and ${fields.length - MAX_FIELDS} more` : ''
  return `an object without a message, with the fields ${fields.slice(0, MAX_FIELDS).join(', ')}${others}`
}

/** Deeper than this nothing is shown: the value may have no end. */
const MAX_DEPTH = 30

/**
 * A value as people read it in a message: JSON with its keys in order. Names the kind of a value that JSON cannot carry. At most
 * `max` characters, and a mark where more is left out. Never throws.
 */
export function formatLegibly(value: unknown, max = 300): string {
  return cut(write(value, []), 0, max)
}

/**
 * Two values that are not the same JSON, as texts from shortly before the first difference; `undefined` if they are
 * the same.
 */
export function describeDifference(
  found: unknown,
  expected: unknown,
): { readonly found: string; readonly expected: string } | undefined {
  const [one, other] = toTexts(found, expected)
  if (one === other) return undefined
  let index = 0
  while (index < one.length && one[index] === other[index]) index++
  const start = Math.max(0, index - 60)
  return { found: cut(one, start, 300), expected: cut(other, start, 300) }
}

function toTexts(found: unknown, expected: unknown): readonly [found: string, expected: string] {
  try {
    return [toCanonicalJson(found as Json), toCanonicalJson(expected as Json)]
  } catch {
    return [write(found, []), write(expected, [])]
  }
}

function cut(text: string, start: number, length: number): string {
  const end = start + length
  return `${start > 0 ? '… ' : ''}${text.slice(start, end)}${end < text.length ? ' …' : ''}`
}

function write(value: unknown, within: readonly object[]): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'bigint') return `${value}n`
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'object' || value === null) return String(value)
  if (within.includes(value)) return 'a circle'
  if (within.length >= MAX_DEPTH) return '…'
  try {
    return writeObject(value, [...within, value])
  } catch {
    return 'an object that cannot be read'
  }
}

function writeObject(value: object, within: readonly object[]): string {
  if (Array.isArray(value)) return `[${value.map((item) => write(item, within)).join(',')}]`
  if (value instanceof Error) return formatOwnError(value)
  if (value instanceof Date) return `a Date of ${String(Number(value))}`
  if (value instanceof Map) return `a Map of ${write([...value], within)}`
  if (value instanceof Set) return `a Set of ${write([...value], within)}`
  if ('then' in value) return 'a promise'
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`
  const fields = Object.entries(value).filter(([, field]) => field !== undefined)
  const texts = fields.toSorted(([one], [other]) => (one < other ? -1 : 1))
  return `{${texts.map(([name, field]) => `${JSON.stringify(name)}:${write(field, within)}`).join(',')}}`
}

function formatOwnError(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? ` (code ${error.code})` : ''
  return `${error.name}: ${error.message}${code}`
}

/** The known name that a misspelt one most likely stands for; `undefined` if none is near. */
export function findNearestName(given: string, known: readonly string[]): string | undefined {
  return findNearestNames(given, known, 1)[0]
}

/** The known names that a misspelt one may stand for, the nearest first, `count` at most. */
export function findNearestNames(given: string, known: readonly string[], count: number): readonly string[] {
  return known
    .flatMap((name) => {
      const distance = measureDistance(given, name)
      return distance === undefined ? [] : [{ name, distance }]
    })
    .toSorted((one, other) => one.distance - other.distance)
    .slice(0, count)
    .map(({ name }) => name)
}

/** Names longer than this are not compared: they are not misspelt options. */
const MAX_LENGTH = 64

/** How far two names are apart: in letters, or in the order of their words; `undefined` if too far. */
function measureDistance(given: string, known: string): number | undefined {
  const [a, b] = [splitWords(given), splitWords(known)]
  if (given.length > MAX_LENGTH || a.length === 0) return undefined
  const within = a.every((word) => b.includes(word)) || b.every((word) => a.includes(word))
  const letters = Math.min(
    countEdits(given.toLowerCase(), known.toLowerCase()),
    countEdits(a.toSorted().join(''), b.toSorted().join('')),
  )
  if (letters <= Math.max(1, Math.floor((Math.min(given.length, known.length) + 1) / 3))) return letters
  // Such as `session` for `sessionId`: nearer than nothing, and farther than any misspelling.
  return within ? MAX_LENGTH + letters : undefined
}

function splitWords(name: string): readonly string[] {
  return name.split(/(?=[A-Z])|[^A-Za-z0-9]/).flatMap((word) => (word === '' ? [] : [word.toLowerCase()]))
}

/** Letters to be changed, added, left out or swapped with their neighbour. */
function countEdits(a: string, b: string): number {
  let before: readonly number[] = []
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = getAt(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwap ? getAt(before, j - 2) + 1 : Infinity
      row.push(Math.min(getAt(last, j) + 1, getAt(row, j - 1) + 1, changed, swapped))
    }
    before = last
    last = row
  }
  return getAt(last, b.length)
}

function getAt(row: readonly number[], index: number): number {
  return row[index] ?? Infinity
}

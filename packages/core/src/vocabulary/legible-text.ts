import { canonicalJson, type Json } from './values/json.ts'

/** Deeper than this nothing is shown: the value may have no end. */
const MAX_DEPTH = 30

/**
 * A value as people read it in a message: JSON with its keys in order. Names the kind of a value that JSON cannot carry. At most
 * `max` characters, and a mark where more is left out. Never throws.
 */
export function legibleText(value: unknown, max = 300): string {
  return cut(write(value, []), 0, max)
}

/**
 * Two values that are not the same JSON, as texts from shortly before the first difference; `undefined` where they are
 * the same.
 */
export function differenceOf(
  found: unknown,
  expected: unknown,
): { readonly found: string; readonly expected: string } | undefined {
  const [one, other] = textsOf(found, expected)
  if (one === other) return undefined
  let index = 0
  while (index < one.length && one[index] === other[index]) index++
  const start = Math.max(0, index - 60)
  return { found: cut(one, start, 300), expected: cut(other, start, 300) }
}

function textsOf(found: unknown, expected: unknown): readonly [found: string, expected: string] {
  try {
    return [canonicalJson(found as Json), canonicalJson(expected as Json)]
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
  if (value instanceof Error) return errorText(value)
  if (value instanceof Date) return `a Date of ${String(Number(value))}`
  if (value instanceof Map) return `a Map of ${write([...value], within)}`
  if (value instanceof Set) return `a Set of ${write([...value], within)}`
  if ('then' in value) return 'a promise'
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`
  const fields = Object.entries(value).filter(([, field]) => field !== undefined)
  const texts = fields.toSorted(([one], [other]) => (one < other ? -1 : 1))
  return `{${texts.map(([name, field]) => `${JSON.stringify(name)}:${write(field, within)}`).join(',')}}`
}

function errorText(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? ` (code ${error.code})` : ''
  return `${error.name}: ${error.message}${code}`
}

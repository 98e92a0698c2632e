import type { Tool } from '@tallystick/core'
import { isJsonObject, readJson, type RepairedInput, type UnfitInput } from '@tallystick/core/internal'
import type { Json } from '@tallystick/core/vocabulary'

/** More than a near miss has. */
const maxRepairs = 20

/**
 * Repairs the input of a model for the schema of a tool; returns `undefined` if it could mean several things or
 * nothing.
 */
export function repairUnfit(
  { inputSchema }: Pick<Tool, 'inputSchema'>,
  { input, malformed }: Pick<UnfitInput, 'input' | 'malformed'>,
): RepairedInput | undefined {
  const read = malformed ? readNearJson(malformed.text) : { value: input as Json, repairs: [], isCut: false }
  if (read === undefined) return undefined
  const { value, repairs: fits } = fitValue(inputSchema, read.value)
  const repairs = [...read.repairs, ...fits]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  if (repairs.length === 0 || repairs.length > maxRepairs) return undefined
  return { input: value as RepairedInput['input'], repairs, isGuess: read.isCut }
}

const maxDepth = 32

/**
 * Reads texts as the numbers, truth values, objects and lists that a JSON Schema expects in their place, where the text says
 * exactly that. References and choices between schemas are left alone, and so is whatever fits as it is.
 */
export function fitValue(
  schema: Json | undefined,
  value: Json,
): { readonly value: Json; readonly repairs: readonly string[] } {
  const repairs: string[] = []
  return { value: fitFields(schema, value, [], repairs), repairs }
}

function fitFields(schema: Json | undefined, value: Json, path: readonly string[], repairs: string[]): Json {
  if (path.length > maxDepth || !isJsonObject(schema)) return value
  const types = [schema['type']].flat()
  const read = typeof value === 'string' && !types.includes('string') ? readAs(types, value) : undefined
  if (read !== undefined) {
    const place = path.map((key) => (/^[\w-]{1,60}$/.test(key) ? key : '…')).join('.') || 'it'
    repairs.push(`${place} was a text and was read as ${read.kind}`)
  }
  const own = read === undefined ? value : read.value
  if (Array.isArray(own)) {
    const { items } = schema
    return own.map((item: Json, index) => fitFields(items, item, [...path, String(index)], repairs))
  }
  if (!isJsonObject(own)) return own
  const { properties } = schema
  return Object.fromEntries(
    Object.entries(own).map(([key, item]) => {
      // Inherited properties are not schemas.
      const inner = isJsonObject(properties) ? properties[key] : undefined
      return [key, fitFields(inner, item, [...path, key], repairs)]
    }),
  )
}

/** Reads a text as one of the types; `undefined` if it is none of them. */
function readAs(
  types: readonly (Json | undefined)[],
  text: string,
): { readonly kind: string; readonly value: Json } | undefined {
  let value: Json
  try {
    value = readJson(text) as Json
  } catch {
    return undefined
  }
  if (typeof value === 'number') {
    const isOfType = types.includes('number') || (types.includes('integer') && Number.isInteger(value))
    const isExact = String(value) === text || (text.replaceAll(/\D/g, '').length <= 15 && !/e/i.test(text))
    return isOfType && isExact ? { kind: 'a number', value } : undefined
  }
  if (typeof value === 'boolean' && types.includes('boolean')) return { kind: 'true or false', value }
  if (Array.isArray(value) && types.includes('array')) return { kind: 'a list', value }
  return isJsonObject(value) && types.includes('object') ? { kind: 'an object', value } : undefined
}

/** The JSON value that a text was repaired to. */
export interface NearJson {
  readonly value: Json
  /** The repairs in words for people, without any of the text's content. */
  readonly repairs: readonly string[]
  /** Its end is missing, so the rest of it is unknown. */
  readonly isCut: boolean
}

const maxLength = 200_000
const maxNesting = 64

const repairTexts = {
  fence: 'a code fence around it was removed',
  comments: 'comments were removed',
  commas: 'commas before closing brackets were removed',
  quotes: 'single quotes were read as double quotes',
  keys: 'names without quotes were read as names',
  words: 'True, False and None were read as true, false and null',
  breaks: 'line breaks within texts were kept',
  brackets: 'closing brackets at its end that belong to nothing were removed',
  cut: 'closing brackets that were missing at its end were added',
  text: 'a text that holds an object was read as that object',
} as const
type Repair = keyof typeof repairTexts

/**
 * Reads a text that is nearly JSON, in one pass. It repairs only what can mean one thing. Returns `undefined` for texts
 * without an end, values without a name, the same name twice, unknown escapes, and words around the value.
 */
export function readNearJson(text: string): NearJson | undefined {
  if (text.length > maxLength) return undefined
  const reader = new Reader(text)
  try {
    const value = reader.whole()
    const repairs = [...reader.repairs].map((repair) => repairTexts[repair])
    return { value, repairs, isCut: reader.repairs.has('cut') }
  } catch (error) {
    if (error === unreadable) return undefined
    throw error
  }
}

/** Thrown at what has no meaning, or several. */
const unreadable: Error = new SyntaxError('unreadable')

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const name = /[A-Za-z_$][\w$]*/y
const space = /\s*/y
const words: ReadonlyMap<string, Json> = new Map<string, Json>([
  ...(['true', 'True'] as const).map((word) => [word, true] as const),
  ...(['false', 'False'] as const).map((word) => [word, false] as const),
  ...(['null', 'None'] as const).map((word) => [word, null] as const),
])
const escapes: Readonly<Record<string, string>> = {
  ...{ '"': '"', "'": "'", '\\': '\\', '/': '/' },
  ...{ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' },
}

class Reader {
  readonly repairs: Set<Repair> = new Set<Repair>()
  readonly #text: string
  #at = 0

  constructor(given: string) {
    const text = given.trim()
    const opening = /^```[a-zA-Z]*\s/.exec(text)?.[0]
    const isFenced = opening !== undefined && text.endsWith('```')
    if (isFenced) this.repairs.add('fence')
    this.#text = isFenced ? text.slice(opening.length, -3) : text
  }

  whole(): Json {
    const value = this.#value(0)
    this.#skip()
    const rest = this.#text.slice(this.#at)
    if (rest !== '') {
      if (/[^\s}\]]/.test(rest)) throw unreadable
      this.repairs.add('brackets')
    }
    if (typeof value !== 'string') return value
    this.repairs.add('text')
    return this.#inner(value)
  }

  /** Reads JSON; a number that reading would change has no single meaning. */
  #inner(text: string): Json {
    try {
      return readJson(text) as Json
    } catch {
      throw unreadable
    }
  }

  #value(depth: number): Json {
    if (depth > maxNesting) throw unreadable
    this.#skip()
    const char = this.#text[this.#at]
    if (char === '{') return this.#object(depth)
    if (char === '[') return this.#array(depth)
    if (char === '"' || char === "'") return this.#string(char)
    const digits = this.#match(number)
    if (digits !== '') return this.#inner(digits)
    const word = this.#match(name)
    const value = words.get(word)
    if (value === undefined) throw unreadable
    if (/^[A-Z]/.test(word)) this.repairs.add('words')
    return value
  }

  #object(depth: number): Json {
    const entries = new Map<string, Json>()
    this.#items('}', () => {
      const key = this.#key()
      this.#skip()
      if (this.#text[this.#at] !== ':' || entries.has(key)) throw unreadable
      this.#at++
      entries.set(key, this.#value(depth + 1))
    })
    return Object.fromEntries(entries)
  }

  #array(depth: number): Json {
    const items: Json[] = []
    this.#items(']', () => items.push(this.#value(depth + 1)))
    return items
  }

  #items(closing: string, read: () => void): void {
    this.#at++
    this.#skip()
    for (let isFirst = true; ; isFirst = false) {
      const char = this.#text[this.#at]
      if (char === closing || char === undefined) break
      if (!isFirst) {
        if (char !== ',') throw unreadable
        this.#at++
        this.#skip()
        const next = this.#text[this.#at]
        if (next === closing || next === undefined) {
          this.repairs.add('commas')
          break
        }
      }
      read()
      this.#skip()
    }
    if (this.#text[this.#at] === undefined) this.repairs.add('cut')
    else this.#at++
  }

  #key(): string {
    const char = this.#text[this.#at]
    if (char === '"' || char === "'") return this.#string(char)
    const key = this.#match(name)
    if (key === '') throw unreadable
    this.repairs.add('keys')
    return key
  }

  #string(quote: string): string {
    if (quote === "'") this.repairs.add('quotes')
    let decoded = ''
    this.#at++
    for (;;) {
      const char = this.#text[this.#at++]
      if (char === undefined) throw unreadable
      if (char === quote) return decoded
      if (char === '\\') decoded += this.#escape()
      else {
        if (char < ' ') this.repairs.add('breaks')
        decoded += char
      }
    }
  }

  #escape(): string {
    const char = this.#text.charAt(this.#at++)
    if (char !== 'u') {
      const decoded = escapes[char]
      if (decoded === undefined) throw unreadable
      return decoded
    }
    const hex = this.#text.slice(this.#at, this.#at + 4)
    if (!/^[0-9a-fA-F]{4}$/.test(hex)) throw unreadable
    this.#at += 4
    return String.fromCharCode(Number.parseInt(hex, 16))
  }

  #skip(): void {
    for (;;) {
      this.#match(space)
      const opening = this.#text.slice(this.#at, this.#at + 2)
      if (opening !== '//' && opening !== '/*') return
      this.repairs.add('comments')
      const end = this.#text.indexOf(opening === '//' ? '\n' : '*/', this.#at + 2)
      if (end === -1) throw unreadable
      this.#at = end + (opening === '//' ? 1 : 2)
    }
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0] ?? ''
    this.#at += found.length
    return found
  }
}

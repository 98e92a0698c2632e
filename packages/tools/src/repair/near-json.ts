import type { Json } from '@tallystick/core/vocabulary'

/** The JSON value that a text was repaired to. */
export interface NearJson {
  readonly value: Json
  /** What was made of the text to read it, in words for people; without any of its content. */
  readonly repairs: readonly string[]
  /** Its end is missing: what else it would have said is not known. */
  readonly isCut: boolean
}

const maxLength = 200_000
const maxDepth = 64

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
export function nearJson(text: string): NearJson | undefined {
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

  constructor(text: string) {
    this.#text = this.#withoutFence(text.trim())
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

  #withoutFence(text: string): string {
    const opening = /^```[a-zA-Z]*\s/.exec(text)?.[0]
    if (opening === undefined || !text.endsWith('```')) return text
    this.repairs.add('fence')
    return text.slice(opening.length, -3)
  }

  /** What a text says that was written as JSON within JSON. */
  #inner(text: string): Json {
    try {
      return JSON.parse(text) as Json
    } catch {
      throw unreadable
    }
  }

  #value(depth: number): Json {
    if (depth > maxDepth) throw unreadable
    this.#skip()
    const char = this.#text[this.#at]
    if (char === '{') return this.#object(depth)
    if (char === '[') return this.#array(depth)
    if (char === '"' || char === "'") return this.#string(char)
    const digits = this.#match(number)
    if (digits !== '') {
      const value = Number(digits)
      if (!Number.isFinite(value)) throw unreadable
      return value
    }
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

  /** What is between two brackets, with commas in between. */
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

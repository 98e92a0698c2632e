/** A value that JSON can carry. Everything in the ledger is one. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

/** Returns true for an object of JSON: not null, not a list. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * The type of a value if JSON can carry it, also of an interface, which the compiler does not take for a `JsonObject`. `never` for
 * a bigint, and for what has methods, such as a date or a map.
 */
export type JsonLike<Value> = Value extends Json | undefined
  ? Value
  : Value extends (...given: never) => unknown
    ? never
    : Value extends object
      ? { readonly [Field in keyof Value]: JsonLike<Value[Field]> }
      : never

/**
 * The one text form of a value: object keys in code-unit order, no white space, numbers as ECMAScript
 * prints them (RFC 8785). Unlike RFC 8785 a lone surrogate is kept, as a `\uXXXX` escape, because what a
 * model or a tool said has to be stored as it was. Keys whose value is `undefined` are left out.
 *
 * Throws a `TypeError` that names the place for what JSON cannot carry: NaN, infinities, functions, bigint.
 */
export function toCanonicalJson<Value>(value: Value & JsonLike<Value>): string {
  try {
    return write(value)
  } catch (error) {
    throw error === uncarried ? new TypeError(findUncarried(value, '$')) : error
  }
}

/** Keys as they are written: the same few come again and again. */
const keyTexts = new Map<string, string>()
const MAX_KEY_TEXTS = 1_000

function writeKey(key: string): string {
  const known = keyTexts.get(key)
  if (known !== undefined) return known
  const text = `${JSON.stringify(key)}:`
  if (keyTexts.size < MAX_KEY_TEXTS && key.length <= 40) keyTexts.set(key, text)
  return text
}

/** Thrown for a value that JSON cannot carry. Its place is only looked for then. */
const uncarried: Error = new TypeError('JSON cannot carry this')

function write(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (isPlain(value)) return String(value)
  if (typeof value !== 'object') throw uncarried
  let text = ''
  if (Array.isArray(value)) {
    for (const item of value) text += (text === '' ? '' : ',') + write(item)
    return `[${text}]`
  }
  const object = value as JsonObject
  for (const key of sortFew(Object.keys(object))) {
    const field = object[key]
    if (field !== undefined) text += `${text === '' ? '' : ','}${writeKey(key)}${write(field)}`
  }
  return `{${text}}`
}

/** Sorts in place: few keys in a third of the time that `sort` takes. */
function sortFew(keys: string[]): string[] {
  if (keys.length > 20) return keys.sort()
  for (let end = 1; end < keys.length; end++) {
    const key = keys[end] as string
    let place = end
    for (; place > 0 && (keys[place - 1] as string) > key; place--) keys[place] = keys[place - 1] as string
    keys[place] = key
  }
  return keys
}

/** Returns true for `null`, true, false and every number that JSON has. */
function isPlain(value: unknown): value is null | boolean | number {
  return value === null || typeof value === 'boolean' || Number.isFinite(value)
}

/** Names the first value that JSON cannot carry, and its path. */
function findUncarried(value: unknown, path: string): string | undefined {
  if (typeof value === 'string' || isPlain(value)) return undefined
  if (typeof value !== 'object') {
    const what = typeof value === 'number' || value === undefined ? value : `a ${typeof value}`
    return `${path} is ${what}, which JSON cannot carry`
  }
  // No further than to the first fault: what comes after it may lead back to itself.
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const fault = findUncarried(item, `${path}[${index}]`)
      if (fault !== undefined) return fault
    }
    return undefined
  }
  const object = value as JsonObject
  for (const key of Object.keys(object).sort()) {
    const fault = object[key] === undefined ? undefined : findUncarried(object[key], `${path}.${key}`)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** The deepest nesting that is taken: SQLite reads JSON to a depth of 1,000, and any deeper could end a process. */
const MAX_DEPTH = 500

/** Returns true if JSON can carry a value, to the depth that every store can read. */
export function isJson(value: unknown): value is Json {
  return isCarriable(value, 0)
}

function isCarriable(value: unknown, depth: number): boolean {
  if (typeof value === 'string' || isPlain(value)) return true
  if (typeof value !== 'object' || depth >= MAX_DEPTH) return false
  if (Array.isArray(value)) {
    for (const item of value) if (!isCarriable(item, depth + 1)) return false
    return true
  }
  for (const key in value) {
    const field = (value as JsonObject)[key]
    // As in `toCanonicalJson`, a field without a value is left out, and what is inherited is none.
    if (field !== undefined && !isCarriable(field, depth + 1) && Object.hasOwn(value, key)) return false
  }
  return true
}

/**
 * A copy for code that may change what it reads, as arktype's schemas do: for small values faster than `structuredClone`. Not by
 * way of a text: V8 13.6 (Node 24) may read a key such as `"` as the `\` of an object that it read before.
 */
export function copyJson<Value extends Json>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: Json) => copyJson(item)) as Json as Value
  // A spread keeps a key `__proto__` as a field, and so does setting a field that is there.
  const copy: Record<string, Json | undefined> = { ...(value as JsonObject) }
  for (const key of Object.keys(copy)) {
    const field = copy[key]
    if (field === undefined) delete copy[key]
    else if (typeof field === 'object') copy[key] = copyJson(field)
  }
  return copy as Value
}

/** Returns true if two values have the same canonical JSON: the same fields, in any order. */
export function isSameJson<One, Other>(one: One & JsonLike<One>, other: Other & JsonLike<Other>): boolean {
  return (one as unknown) === other || toCanonicalJson(one) === toCanonicalJson(other)
}

/** Copies that were made to be handed on as they are. */
const frozenOnce = new WeakSet<object>()

/**
 * Returns a deeply frozen copy, so that what is on record stays as it was recorded. Zero loses its sign, as in JSON, so
 * that what is live and what is read back are the same.
 */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'number') return (value === 0 ? 0 : value) as Value
  if (typeof value !== 'object' || value === null || frozenOnce.has(value)) return value
  if (Array.isArray(value)) return Object.freeze(value.map((item: unknown) => deepFreeze(item))) as Value
  const copy = { ...value } as Record<string | symbol, unknown>
  for (const symbol of Object.getOwnPropertySymbols(copy)) delete copy[symbol]
  return freezeOwn(copy) as Value
}

/** Does the same to an object that only the caller holds: it is frozen itself, not copied. */
export function freezeOwn<Value extends object>(value: Value): Value {
  const fields = value as Record<string, unknown>
  for (const key in fields) {
    const field = fields[key]
    if ((typeof field === 'object' || field === 0) && Object.hasOwn(fields, key))
      fields[key] = deepFreeze(field)
  }
  return Object.freeze(value)
}

/** Returns true for a value that `deepFreezeOnce` froze, so that no code can change it. */
export function isFrozenOnce(value: object): boolean {
  return frozenOnce.has(value)
}

/** A deeply frozen copy that `deepFreeze` does not copy again: for what many events hold. */
export function deepFreezeOnce<Value extends object>(value: Value): Value {
  const copy = deepFreeze(value)
  frozenOnce.add(copy)
  return copy
}

/**
 * Returns what a record has under a key of its own; `undefined` if it has none. Names come from models, tools and
 * users, and a name such as `constructor` is not an own key unless the object sets it.
 */
export function getOwn<Value>(record: { readonly [key: string]: Value }, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

/** Returns the fields that are not `undefined`: a field is either there or not, never `undefined`. */
export function omitUndefined<Fields extends object>(
  fields: Fields,
): { readonly [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  const kept: Record<string, unknown> = {}
  for (const key in fields) {
    const value = fields[key]
    if (value === undefined || !Object.hasOwn(fields, key)) continue
    // A key of that name would set the prototype instead of a field.
    if (key === '__proto__')
      Object.defineProperty(kept, key, { value, enumerable: true, writable: true, configurable: true })
    else kept[key] = value
  }
  return kept as { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> }
}

/** `T` whose optional fields may be given as `undefined`, too, which says the same as leaving them out. */
export type OrUndefined<T> = { [K in keyof T]: T[K] | (object extends Pick<T, K> ? undefined : never) }

/** Strings are matched so that digits in them are passed over. */
const token = /"(?:[^"\\]|\\[^])*"?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/**
 * Reads JSON that a model or another program wrote, and that is to be kept as it was meant. Throws an error whose message is
 * for whoever wrote the text: the text is not JSON, it holds a number that would become another one (`1e400`, or a whole
 * number of more than 2^53 that is rounded), or it is nested deeper than every store can read.
 */
export function readJson(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new SyntaxError('The input is not valid JSON.')
  }
  const fault = findNumberFault(text)
  if (fault !== undefined) throw new RangeError(fault)
  if (!isJson(value)) throw new RangeError('The input is nested deeper than 500 levels.')
  return value
}

/** Few texts hold so many digits in a row, or so large an exponent, that a number may be changed. */
const mayChange = /\d{16}|[eE][+-]?\d{3}/

function findNumberFault(text: string): string | undefined {
  if (!mayChange.test(text)) return undefined
  for (const [written] of text.matchAll(token)) {
    if (written.startsWith('"') || !isChanged(written)) continue
    const shown = written.length > 60 ? `${written.slice(0, 60)}…` : written
    return `The number ${shown} cannot be read without changing it. Write it as a text where the schema takes a string, or round it.`
  }
  return undefined
}

/** Returns true if a number would become another one. Digits behind the point are rounded by every reader, and are taken as they come. */
function isChanged(written: string): boolean {
  const value = Number(written)
  if (!Number.isFinite(value)) return true
  if (value === 0) return /[1-9]/.test(written.split(/[eE]/)[0] as string)
  if (Number.isSafeInteger(value) || /[eE]/.test(written)) return false
  // A number that another program wrote from a double is read as that double.
  if (String(value) === written) return false
  const [whole, fraction = ''] = written.split('.') as [string, string?]
  return (
    Math.abs(value) > Number.MAX_SAFE_INTEGER && (/[1-9]/.test(fraction) || BigInt(whole) !== BigInt(value))
  )
}

/**
 * A fault of a value that someone else has read from JSON already, as `readJson` words it: what was written is gone, so
 * any whole number that may have been rounded counts.
 */
export function findParsedFault(value: unknown): string | undefined {
  if (!isJson(value))
    return 'The input holds a number that is too large, or is nested deeper than 500 levels.'
  return findRoundedFault(value)
}

/**
 * A fault of a value with a whole number beyond 2^53, which may have been rounded when it was read. Numbers that stand in
 * `known` are taken as they are.
 */
export function findRoundedFault(value: unknown, known?: unknown): string | undefined {
  const before = known === undefined ? [] : listUnsafeNumbers(known)
  const rounded = listUnsafeNumbers(value).find((found) => !before.includes(found))
  if (rounded === undefined) return undefined
  return `The number ${rounded} may have been rounded, since it is larger than 2^53. Write it as a text where the schema takes a string.`
}

function listUnsafeNumbers(value: unknown): readonly number[] {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value) ? [value] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(listUnsafeNumbers)
}

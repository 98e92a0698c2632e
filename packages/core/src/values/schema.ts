import { isJson, type Json, type JsonObject } from './json.ts'
import { findNearestName } from './text.ts'

/** A fault of a value: a sentence without its subject, and a path such as `limits.maxTurns` or `parts[0]`. */
export interface Fault {
  /** From the value that was checked; empty if it is at fault itself. */
  readonly path: string
  /**
   * Such as `is missing; expected a text`. Contains no text of the value, unless the schema allows it: it may be a secret.
   */
  readonly what: string
  /** Returns `what` as it is said from outside of a place: for one that names another field. */
  readonly within?: (place: string) => string
}

/**
 * The one form in which values are checked: options that a program gives, and what comes from ledgers, models and tools. A
 * function that returns the first fault of a value, if there is one, and that calls nothing of what it is given.
 */
export interface Schema<T = unknown> {
  (value: unknown): Fault | undefined
  /** The same as data, for those who make other schemas from it. Absent if only the function itself can tell. */
  readonly kind?: Kind
  /** For the compiler alone. */
  readonly of?: T
}

/** A schema of a field that may be missing. */
export interface OptionalSchema<T = unknown> extends Schema<T> {
  readonly isOptional: true
  /** The schema of the field where it is there. */
  readonly present: Schema<T>
}

/** The schemas of fields, by their names. */
export type Shape = Readonly<Record<string, Schema & Partial<Pick<OptionalSchema, 'isOptional' | 'present'>>>>

/** The check of a schema, as data. */
export type Kind =
  | { readonly is: 'text' | 'flag' }
  | { readonly is: 'number'; readonly min: number; readonly max: number; readonly whole: boolean }
  | { readonly is: 'one_of'; readonly values: readonly (string | boolean)[] }
  | { readonly is: 'list' | 'record'; readonly item: Schema }
  | { readonly is: 'object'; readonly fields: Shape }
  | { readonly is: 'choice'; readonly schemas: readonly Schema[]; readonly field?: string }

function withKind<T>(check: Schema, kind: Kind): Schema<T> {
  return Object.assign(check, { kind }) as Schema<T>
}

/** A fault, as seen from the object or list that holds the value at fault. */
export function placeFault<F extends Fault | undefined>(place: string, fault: F): F {
  if (fault === undefined) return fault
  const { path, what, within } = fault
  const outer = within && ((outside: string) => within(joinPath(outside, place)))
  return { path: joinPath(place, path), what: within?.(place) ?? what, ...(outer && { within: outer }) } as F
}

/** The path of a field below another path. */
export function joinPath(place: string, path: string): string {
  return place === '' || path === '' || path.startsWith('[') || path.startsWith(' ')
    ? place + path
    : `${place}.${path}`
}

/** Returns a fault as a sentence, without its full stop. */
export function formatFault({ path, what }: Fault): string {
  return `${path || 'it'} ${what}`
}

/** The fault of a value that is not what was expected. `showsText` has it show a text: only where none can be a secret. */
export function createUnfitFault(value: unknown, expected: string, showsText = false): Fault {
  if (value === undefined) return { path: '', what: `is missing: give ${expected}` }
  const text = showsText && typeof value === 'string' && value !== '' ? `, ${quote(value)}` : ''
  return { path: '', what: `is ${describe(value)}${text}; expected ${expected}` }
}

/** As much of a text as tells which it is. */
function quote(text: string): string {
  return `'${text.slice(0, 40)}'`
}

/** A value in words that hold none of its content, since that may be a key. */
function describe(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return value === '' ? 'an empty text' : 'a text'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'function') return isAsync(value) ? 'an async function' : 'a function'
  if (isThenable(value)) return 'a promise (await it first)'
  if (typeof value !== 'object') return typeof value
  if (value instanceof Map) return 'a Map'
  if (value instanceof Set) return 'a Set'
  if (!(value instanceof Date)) return 'an object'
  return Number.isNaN(Number(value)) ? 'an invalid Date' : 'a Date'
}

/** Returns true for a function that is written as async. Any other one may return a promise all the same. */
export function isAsync(code: unknown): boolean {
  return /Async/.test(Object.prototype.toString.call(code))
}

/** Returns true for a value that has to be awaited. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

/** Returns true for an object that says what it holds by its fields: a `Map` would be taken for one without any. */
export function isPlain(value: unknown): value is { readonly [name: string]: unknown } {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !isThenable(value) &&
    !(value instanceof Map || value instanceof Set || value instanceof Date)
  )
}

/** A value for which `fits` is true; `expected` says in words which that are. `showsText`: see `createUnfitFault`. */
export function valueThat<T>(
  expected: string,
  fits: (value: unknown) => boolean,
  { showsText = false }: { readonly showsText?: boolean } = {},
): Schema<T> {
  return (value) => (fits(value) ? undefined : createUnfitFault(value, expected, showsText))
}

export const text: Schema<string> = withKind(
  (value) => (typeof value === 'string' ? undefined : createUnfitFault(value, 'a text')),
  { is: 'text' },
)

export const flag: Schema<boolean> = withKind(
  valueThat('true or false', (value) => typeof value === 'boolean', { showsText: true }),
  { is: 'flag' },
)

/** A finite number within bounds, both included; a whole one that is safe to count with where so asked. */
export function numberFrom(
  min: number,
  { whole = false, max = Infinity }: { readonly whole?: boolean; readonly max?: number } = {},
): Schema<number> {
  const fits = whole ? Number.isSafeInteger : Number.isFinite
  const bounds = max < Infinity ? ` from ${min} to ${max}` : min > -Infinity ? ` of at least ${min}` : ''
  const expected = `${whole ? 'a whole' : 'a finite'} number${bounds}`
  const check: Schema = (value) =>
    fits(value) && (value as number) >= min && (value as number) <= max
      ? undefined
      : createUnfitFault(value, expected, true)
  return withKind(check, { is: 'number', min, max, whole })
}

/** Any finite number. */
export const amount: Schema<number> = numberFrom(-Infinity)
/** From 1: numbers in a row, such as attempts. */
export const ordinal: Schema<number> = numberFrom(1, { whole: true })
/** From 0: places in a reply, and counts. */
export const count: Schema<number> = numberFrom(0, { whole: true })

/** One of these texts. The fault names the nearest one, and shows the text that was given where `showsText` says so. */
export function wordOf<const Words extends readonly string[]>(
  words: Words,
  { showsText = false }: { readonly showsText?: boolean } = {},
): Schema<Words[number]> {
  const known = new Set<unknown>(words)
  const expected = `use one of ${words.map((each) => `'${each}'`).join(', ')}`
  const check: Schema = (value) => {
    if (known.has(value)) return undefined
    if (value === undefined) return { path: '', what: `is missing; ${expected}` }
    const shown = showsText && typeof value === 'string'
    const nearest = shown ? findNearestName(value, words) : undefined
    const hint = nearest === undefined ? '' : `. Did you mean '${nearest}'?`
    return { path: '', what: `is ${shown ? quote(value) : describe(value)}; ${expected}${hint}` }
  }
  return withKind(check, { is: 'one_of', values: words })
}

export function exactly<const Value extends string | boolean>(value: Value): Schema<Value> {
  const expected = typeof value === 'string' ? `'${value}'` : String(value)
  return withKind(
    valueThat(expected, (given) => given === value),
    { is: 'one_of', values: [value] },
  )
}

/** Any value; only for what is not recorded. */
export const anything: Schema = () => undefined
/** Any value that JSON can carry. */
export const json: Schema<Json> = valueThat('a JSON value', isJson)
export const jsonObject: Schema<JsonObject> = valueThat(
  'a JSON object',
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && isJson(value),
)

/** A field that may be missing. */
export function maybe<T>(schema: Schema<T>): OptionalSchema<T> {
  const { kind } = schema
  const check: Schema<T> = (value) => (value === undefined ? undefined : schema(value))
  return Object.assign(check, { ...(kind && { kind }), isOptional: true as const, present: schema })
}

/** A list whose items pass the check. */
export function listOf<T>(item: Schema<T>): Schema<T[]> {
  const check: Schema = (value) => {
    if (!Array.isArray(value)) return createUnfitFault(value, 'a list, as in [ … ]')
    for (let index = 0; index < value.length; index++) {
      const fault = item(value[index])
      if (fault !== undefined) return placeFault(`[${index}]`, fault)
    }
    return undefined
  }
  return withKind(check, { is: 'list', item })
}

/** An object of any names, whose values pass the check. */
export function recordOf<T>(item: Schema<T>): Schema<Record<string, T>> {
  const check: Schema = (value) => {
    if (!isPlain(value)) return createUnfitFault(value, 'an object')
    for (const name of Object.keys(value)) {
      const fault = item(value[name])
      if (fault !== undefined) return placeFault(name, fault)
    }
    return undefined
  }
  return withKind(check, { is: 'record', item })
}

type OptionalKey<T, K extends keyof T> = object extends Pick<T, K> ? true : false

/** A schema for each field of `T`: the compiler wants every field, and wants optional ones to be optional. */
export type ShapeOf<T> = {
  readonly [K in keyof T]-?: OptionalKey<T, K> extends true
    ? OptionalSchema<Exclude<T[K], undefined>>
    : Schema<T[K]> & { readonly isOptional?: never }
}

/**
 * An object with these fields, as a ledger holds it. What else it holds is kept, since a newer writer may have more to say. A
 * field that is `undefined` is not the same as one that is missing: JSON would lose it.
 */
export function objectOf<T extends object>(fields: ShapeOf<NoInfer<T>>): Schema<T> {
  return withShape(fields as Shape)
}

/** The same, from shapes that are joined. */
export function withShape<T extends object>(fields: Shape): Schema<T> {
  const entries = Object.entries(fields)
  const check: Schema = (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return createUnfitFault(value, 'an object')
    for (const [name, schema] of entries) {
      const held = (value as Record<string, unknown>)[name]
      const isEmpty = held === undefined && name in value
      const fault = (isEmpty ? (schema.present ?? schema) : schema)(held)
      if (fault !== undefined)
        return placeFault(name, isEmpty ? { path: '', what: 'is undefined; leave it out' } : fault)
    }
    return undefined
  }
  return withKind(check, { is: 'object', fields })
}

/**
 * One of several objects, told apart by the word in one of their fields. The compiler wants the other fields of each, by its
 * word.
 */
export function variantOf<T extends { readonly [P in Field]: string }, Field extends string>(
  field: Field,
  variants: NoInfer<{
    readonly [Word in T[Field]]: ShapeOf<Omit<Extract<T, { readonly [P in Field]: Word }>, Field>>
  }>,
): Schema<T> {
  const schemas = new Map(
    Object.entries<Shape>(variants).map(([word, fields]) => [
      word,
      withShape({ [field]: exactly(word), ...fields }),
    ]),
  )
  const known = wordOf([...schemas.keys()])
  const check: Schema = (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      return createUnfitFault(value, 'an object')
    const word = (value as Record<string, unknown>)[field]
    const schema = schemas.get(word as string)
    if (schema !== undefined) return schema(value)
    const fault = known(word)
    return fault && placeFault(field, fault)
  }
  return withKind(check, { is: 'choice', schemas: [...schemas.values()], field })
}

/** A value that one of these takes; `expected` names them in words. */
export function anyOf<T>(expected: string, ...schemas: readonly Schema<NoInfer<T>>[]): Schema<T> {
  const check = valueThat(expected, (value) => schemas.some((schema) => schema(value) === undefined))
  return withKind(check, { is: 'choice', schemas })
}

/** A value that a schema takes and JSON can carry: fields that no schema names are kept, and have to be stored. */
export function storable<T>(schema: Schema<T>): Schema<T> {
  return (value) => schema(value) ?? json(value)
}

import * as z from 'zod'
import { isJson, type Json, type JsonObject } from './json.ts'

/** Returns true only for values that the schema accepts. False says nothing: zod has to decide. */
export type QuickCheck = (value: unknown) => boolean

/** What a schema says of itself, so that those built on it can be checked without zod. */
export interface QuickSchema {
  /** Builds the check when it is first asked for; absent where only zod can tell. */
  readonly quick?: () => QuickCheck
  /** Present on the schema of a field that may be missing. */
  readonly isOptional?: true
  /** Present on the schema of an object: those of its fields. */
  readonly fields?: Shape
}

/** The schemas of fields, by their names. */
export type Shape = Readonly<Record<string, QuickSchema>>

/** Leaves every value to zod. */
const cannotTell: QuickCheck = () => false

/** The check of a schema. */
export function quickCheckOf({ quick }: QuickSchema): QuickCheck {
  return quick?.() ?? cannotTell
}

/** Plain values. */
export const isText: QuickCheck = (value) => typeof value === 'string'
export const isFlag: QuickCheck = (value) => typeof value === 'boolean'

/** A finite number within bounds, both included. */
export function isAmountWithin(min: number, max: number): QuickCheck {
  if (min === -Infinity && max === Infinity) return Number.isFinite
  return (value) => typeof value === 'number' && value >= min && value <= max && Number.isFinite(value)
}

/** A whole number that is safe to count with, from a least one on. */
export function isWholeFrom(min: number): QuickCheck {
  return (value) => typeof value === 'number' && value >= min && Number.isSafeInteger(value)
}

/** One of these values. */
export function isOneOf(values: readonly unknown[]): QuickCheck {
  const [only] = values
  if (values.length === 1) return (value) => value === only
  const all = new Set(values)
  return (value) => all.has(value)
}

/** A value that one of these checks takes. */
export function isAnyOf(schemas: readonly QuickSchema[]): QuickCheck {
  const checks = schemas.map(quickCheckOf)
  return (value) => {
    for (const check of checks) if (check(value)) return true
    return false
  }
}

/** A list of these. */
export function isListOf(schema: QuickSchema): QuickCheck {
  const check = quickCheckOf(schema)
  return (value) => {
    if (!Array.isArray(value)) return false
    for (let index = 0; index < value.length; index++) if (!check(value[index])) return false
    return true
  }
}

/** A field of an object, and its check. */
interface CheckedField {
  readonly isHeld: QuickCheck
  /** 1 where the field may not be missing. */
  readonly needed: 0 | 1
}

/** An object with these fields, and whatever else. A field that is `undefined` is not the same as one that is missing. */
export function isObjectOf(shape: Shape): QuickCheck {
  const fields = new Map<string, CheckedField>()
  let needed = 0
  for (const name of Object.keys(shape)) {
    const schema = shape[name] as QuickSchema
    const field: CheckedField = { isHeld: quickCheckOf(schema), needed: schema.isOptional ? 0 : 1 }
    fields.set(name, field)
    needed += field.needed
  }
  // An object has few of the fields that it may have, so it is asked for those that it has: the others need not be looked for.
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
    let found = 0
    for (const name in value) {
      const field = fields.get(name)
      if (field === undefined) continue
      const held: unknown = (value as Record<string, unknown>)[name]
      if (held === undefined || !field.isHeld(held)) return false
      found += field.needed
    }
    return found === needed
  }
}

/** An object without a class: one that was written as a literal, or that has no prototype. */
export const isPlainObject: QuickCheck = (value) => {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** An object with these values under any names. */
export function isRecordOf(schema: QuickSchema): QuickCheck {
  const check = quickCheckOf(schema)
  return (value) => {
    if (!isPlainObject(value)) return false
    for (const name of Reflect.ownKeys(value as object)) {
      if (typeof name !== 'string') return false
      if (!check((value as Record<string, unknown>)[name])) return false
    }
    return true
  }
}

/**
 * Builds a schema when it is first asked for. A process checks few of the shapes that there are, and most take long to build.
 * Where it has a quick check, values that this takes are never shown to zod.
 */
export interface Schema<T> extends QuickSchema {
  (): z.ZodType<T>
}

/** A schema of a field that may be missing, but not `undefined`. */
export interface OptionalSchema<T> extends QuickSchema {
  (): z.ZodExactOptional<z.ZodType<T>>
  readonly isOptional: true
}

type OptionalKey<T, K extends keyof T> = object extends Pick<T, K> ? true : false

/** A schema for each field of `T`: the compiler wants every field, and wants optional ones to be optional. */
type ShapeOf<T> = {
  readonly [K in keyof T]-?: OptionalKey<T, K> extends true
    ? OptionalSchema<Exclude<T[K], undefined>>
    : Schema<T[K]>
}

/** Builds once what a function builds. */
export function lazily<Built>(build: () => Built): () => Built {
  let built: Built | undefined
  return () => (built ??= build())
}

/** A schema and its quick check, which may accept fewer values: both are built once, when they are first asked for. */
export function schemaOf<T>(build: () => z.ZodType<T>, quick: () => QuickCheck): Schema<T> {
  return Object.assign(lazily(build), { quick: lazily(quick) })
}

/** An object with these fields. What else it holds is kept: a newer writer may have more to say. */
export function objectOf<T extends object>(shape: ShapeOf<T>): Schema<T> {
  const fields = shape as Shape
  const schema = schemaOf(
    () => {
      const built = Object.entries<Schema<unknown>>(shape).map(([name, field]) => [name, field()] as const)
      return z.looseObject(Object.fromEntries(built)) as unknown as z.ZodType<T>
    },
    () => isObjectOf(fields),
  )
  return Object.assign(schema, { fields })
}

/** One of several objects, told apart by `type`. The compiler wants one schema for each. */
export function variantOf<T extends { readonly type: string }>(variants: {
  readonly [K in T['type']]: Schema<Extract<T, { readonly type: K }>>
}): Schema<T> {
  return discriminatedBy<T>('type', Object.values<Schema<T>>(variants))
}

/** One of several objects, told apart by the word in one of their fields. */
export function discriminatedBy<T>(field: string & keyof T, variants: readonly Schema<T>[]): Schema<T> {
  return schemaOf(
    () => {
      const schemas = variants.map((variant) => variant()) as unknown
      const options = schemas as Parameters<typeof z.discriminatedUnion>[1]
      return z.discriminatedUnion(field, options) as unknown as z.ZodType<T>
    },
    // Each demands another word in the field, so no more than one takes a value.
    () => isAnyOf(variants),
  )
}

/** A value that one of these takes. */
export function anyOf<T>(...schemas: readonly Schema<T>[]): Schema<T> {
  return schemaOf(
    () => z.union(schemas.map((schema) => schema())),
    () => isAnyOf(schemas),
  )
}

/** A field that may be missing, but not `undefined`. */
export function optional<T>(schema: Schema<T>): OptionalSchema<T> {
  const field = lazily(() => z.exactOptional(schema()))
  return Object.assign(field, { quick: () => quickCheckOf(schema), isOptional: true } as const)
}

/** A list of these. */
export function listOf<T>(schema: Schema<T>): Schema<T[]> {
  return schemaOf(
    () => z.array(schema()),
    () => isListOf(schema),
  )
}

/** An object with these values under any names. */
export function recordOf<T>(schema: Schema<T>): Schema<Record<string, T>> {
  return schemaOf(
    () => z.record(text(), schema()),
    () => isRecordOf(schema),
  )
}

/** One of these words. */
export function wordOf<const Words extends readonly string[]>(words: Words): Schema<Words[number]> {
  return schemaOf(
    () => z.enum(words) as unknown as z.ZodType<Words[number]>,
    () => isOneOf(words),
  )
}

/** This value. */
export function exactly<const Value extends string | boolean>(value: Value): Schema<Value> {
  return schemaOf(
    () => z.literal(value) as unknown as z.ZodType<Value>,
    () => isOneOf([value]),
  )
}

/** A value that a function knows; `expected` says of others what was expected. */
export function valueWhere<T>(isValid: (value: unknown) => boolean, expected: string): Schema<T> {
  return schemaOf(
    () => z.custom<T>(isValid, `Invalid input: expected ${expected}`),
    () => isValid,
  )
}

/** What a schema takes, where it is JSON as well: fields that no schema names are kept. */
export function storable<T>(schema: Schema<T>): Schema<T> {
  return schemaOf(
    () => schema().refine(isJson, 'Invalid input: expected a JSON value'),
    () => {
      const check = quickCheckOf(schema)
      return (value) => check(value) && isJson(value)
    },
  )
}

/** What two schemas take, one after the other: an intersection would merge copies of what both have read. */
export function bothOf<T>(first: Schema<Partial<T>>, second: Schema<unknown>): Schema<T> {
  return schemaOf(
    () => first().pipe(second() as z.ZodType<T, Partial<T>>),
    () => {
      const [checkFirst, checkSecond] = [quickCheckOf(first), quickCheckOf(second)]
      // The second schema is shown a copy of the value, which has no inherited fields.
      return (value) => isPlainObject(value) && checkFirst(value) && checkSecond(value)
    },
  )
}

/** Finite numbers within bounds, both included. */
export function amountWithin(min: number, max: number = Infinity): Schema<number> {
  return schemaOf(
    () => (max === Infinity ? z.number().min(min) : z.number().min(min).max(max)),
    () => isAmountWithin(min, max),
  )
}

/** Plain values. */
export const text: Schema<string> = schemaOf(
  () => z.string(),
  () => isText,
)
export const flag: Schema<boolean> = schemaOf(
  () => z.boolean(),
  () => isFlag,
)
/** Finite, as JSON has them. */
export const amount: Schema<number> = schemaOf(
  () => z.number(),
  () => isAmountWithin(-Infinity, Infinity),
)
/** Any whole number. */
export const whole: Schema<number> = schemaOf(
  () => z.int(),
  () => isWholeFrom(-Infinity),
)
/** From 1: numbers in a row, such as attempts. */
export const ordinal: Schema<number> = schemaOf(
  () => z.int().positive(),
  () => isWholeFrom(1),
)
/** From 0: places in a reply, and counts. */
export const count: Schema<number> = schemaOf(
  () => z.int().nonnegative(),
  () => isWholeFrom(0),
)

/** Any value; only for what is not recorded. */
export const anything: Schema<unknown> = schemaOf(
  () => z.unknown(),
  () => () => true,
)
/** Any value that JSON can carry. */
export const json: Schema<Json> = valueWhere(isJson, 'a JSON value')
/** Any JSON object. */
export const jsonObject: Schema<JsonObject> = valueWhere(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && isJson(value),
  'a JSON object',
)

/** What is wrong with a value, and where; `undefined` where it fits. The value itself is not shown. */
export function faultOf(
  schema: Schema<unknown>,
  value: unknown,
): { readonly path: string; readonly what: string } | undefined {
  if (quickCheckOf(schema)(value)) return undefined
  const issue = schema().safeParse(value).error?.issues[0]
  return issue && { path: issue.path.join('.') || 'its root', what: issue.message }
}

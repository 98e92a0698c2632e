import * as z from 'zod'
import { isJson, type Json, type JsonObject } from './json.ts'

/** Builds a schema when it is first asked for. A process checks few of the shapes that there are, and most take long to build. */
export type Schema<T> = () => z.ZodType<T>

/** A schema of a field that may be missing, but not `undefined`. */
export type OptionalSchema<T> = () => z.ZodExactOptional<z.ZodType<T>>

type OptionalKey<T, K extends keyof T> = object extends Pick<T, K> ? true : false

/** A schema for each field of `T`: the compiler wants every field, and wants optional ones to be optional. */
export type ShapeOf<T> = {
  readonly [K in keyof T]-?: OptionalKey<T, K> extends true
    ? OptionalSchema<Exclude<T[K], undefined>>
    : Schema<T[K]>
}

/** Builds once what a function builds. */
export function lazily<Built>(build: () => Built): () => Built {
  let built: Built | undefined
  return () => (built ??= build())
}

/** An object with these fields. What else it holds is kept: a newer writer may have more to say. */
export function objectOf<T extends object>(shape: ShapeOf<T>): Schema<T> {
  return lazily(() => {
    const fields = Object.entries<Schema<unknown>>(shape).map(([name, field]) => [name, field()] as const)
    return z.looseObject(Object.fromEntries(fields)) as unknown as z.ZodType<T>
  })
}

/** One of several objects, told apart by `type`. The compiler wants one schema for each. */
export function variantOf<T extends { readonly type: string }>(variants: {
  readonly [K in T['type']]: Schema<Extract<T, { readonly type: K }>>
}): Schema<T> {
  return discriminatedBy<T>('type', Object.values<Schema<T>>(variants))
}

/** One of several objects, told apart by the word in one of their fields. */
export function discriminatedBy<T>(field: string & keyof T, variants: readonly Schema<T>[]): Schema<T> {
  return lazily(() => {
    const schemas = variants.map((variant) => variant()) as unknown
    const options = schemas as Parameters<typeof z.discriminatedUnion>[1]
    return z.discriminatedUnion(field, options) as unknown as z.ZodType<T>
  })
}

/** A value that one of these takes. */
export function anyOf<T>(...schemas: readonly Schema<T>[]): Schema<T> {
  return lazily(() => z.union(schemas.map((schema) => schema())))
}

/** A field that may be missing, but not `undefined`. */
export function optional<T>(schema: Schema<T>): OptionalSchema<T> {
  return lazily(() => z.exactOptional(schema()))
}

/** A list of these. */
export function listOf<T>(schema: Schema<T>): Schema<T[]> {
  return lazily(() => z.array(schema()))
}

/** An object with these values under any names. */
export function recordOf<T>(schema: Schema<T>): Schema<Record<string, T>> {
  return lazily(() => z.record(text(), schema()))
}

/** One of these words. */
export function wordOf<const Words extends readonly string[]>(words: Words): Schema<Words[number]> {
  return lazily(() => z.enum(words))
}

/** This value. */
export function exactly<const Value extends string | boolean>(value: Value): Schema<Value> {
  return lazily(() => z.literal(value))
}

/** A value that a function knows; `expected` says of others what was expected. */
export function valueWhere<T>(isValid: (value: unknown) => boolean, expected: string): Schema<T> {
  return lazily(() => z.custom<T>(isValid, `Invalid input: expected ${expected}`))
}

/** Plain values. */
export const text: Schema<string> = lazily(() => z.string())
export const flag: Schema<boolean> = lazily(() => z.boolean())
/** Finite, as JSON has them. */
export const amount: Schema<number> = lazily(() => z.number())
/** Any whole number. */
export const whole: Schema<number> = lazily(() => z.int())
/** From 1: numbers in a row, such as attempts. */
export const ordinal: Schema<number> = lazily(() => z.int().positive())
/** From 0: places in a reply, and counts. */
export const count: Schema<number> = lazily(() => z.int().nonnegative())

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
  const issue = schema().safeParse(value).error?.issues[0]
  return issue && { path: issue.path.join('.') || 'its root', what: issue.message }
}

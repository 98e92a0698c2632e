import * as z from 'zod'
import { isJson, type Json, type JsonObject } from './json.ts'

type OptionalKey<T, K extends keyof T> = object extends Pick<T, K> ? true : false

/** A schema for each field of `T`: the compiler wants every field, and wants optional ones to be optional. */
export type ShapeOf<T> = {
  readonly [K in keyof T]-?: OptionalKey<T, K> extends true
    ? z.ZodExactOptional<z.ZodType<Exclude<T[K], undefined>>>
    : z.ZodType<T[K]>
}

/** An object with these fields. What else it holds is kept: a newer writer may have more to say. */
export function objectOf<T extends object>(shape: ShapeOf<T>): z.ZodType<T> {
  return z.looseObject(shape) as unknown as z.ZodType<T>
}

/** One of several objects, told apart by `type`. The compiler wants one schema for each. */
export function variantOf<T extends { readonly type: string }>(variants: {
  readonly [K in T['type']]: z.ZodType<Extract<T, { readonly type: K }>>
}): z.ZodType<T> {
  const schemas = Object.values(variants) as unknown as Parameters<typeof z.discriminatedUnion>[1]
  return z.discriminatedUnion('type', schemas) as unknown as z.ZodType<T>
}

/** A field that may be missing, but not `undefined`. */
export function optional<T>(schema: z.ZodType<T>): z.ZodExactOptional<z.ZodType<T>> {
  return z.exactOptional(schema)
}

/** Plain values. */
export const text: z.ZodType<string> = z.string()
export const flag: z.ZodType<boolean> = z.boolean()
/** Finite, as JSON has them. */
export const amount: z.ZodType<number> = z.number()
/** From 1: numbers in a row, such as attempts. */
export const ordinal: z.ZodType<number> = z.int().positive()
/** From 0: places in a reply, and counts. */
export const count: z.ZodType<number> = z.int().nonnegative()

/** Any value that JSON can carry. */
export const json: z.ZodType<Json> = z.custom<Json>(isJson, 'Invalid input: expected a JSON value')
/** Any JSON object. */
export const jsonObject: z.ZodType<JsonObject> = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && isJson(value),
  'Invalid input: expected a JSON object',
)

/** What is wrong with a value, and where; `undefined` where it fits. The value itself is not shown. */
export function faultOf(
  schema: z.ZodType,
  value: unknown,
): { readonly path: string; readonly what: string } | undefined {
  const issue = schema.safeParse(value).error?.issues[0]
  return issue && { path: issue.path.join('.') || 'its root', what: issue.message }
}

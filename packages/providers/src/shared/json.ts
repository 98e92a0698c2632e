import { isJsonObject } from '@tallystick/core/internal'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'

/** Parses JSON; `undefined` for any other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The text at `key`, if there is one. */
export function getText(object: unknown, key: string): string | undefined {
  const value = isJsonObject(object) ? object[key] : undefined
  return typeof value === 'string' ? value : undefined
}

/** The number at `key`, if there is one. */
export function getNumber(object: unknown, key: string): number | undefined {
  const value = isJsonObject(object) ? object[key] : undefined
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** The count at `key`, if there is one: negative or unsafe numbers say nothing. */
export function getCount(object: unknown, key: string): number | undefined {
  const value = getNumber(object, key)
  return value !== undefined && isCount(value) ? value : undefined
}

/** True for a number that may count tokens, or anything else. */
export function isCount(value: number): boolean {
  return value >= 0 && value <= Number.MAX_SAFE_INTEGER
}

/** The object at `key`, if there is one. */
export function getObject(object: unknown, key: string): JsonObject | undefined {
  const value = isJsonObject(object) ? object[key] : undefined
  return isJsonObject(value) ? value : undefined
}

/** The list at `key`, or an empty list. */
export function getList(object: unknown, key: string): readonly Json[] {
  return isJsonObject(object) ? toItems(object[key]) : []
}

/** The items of a list; any other value has none. */
export function toItems(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? (value as readonly Json[]) : []
}

/** Copies an object without the named fields, and without empty ones (`null`, `undefined`, an empty list). */
export function omitFields(object: JsonObject, without: readonly string[]): JsonObject {
  const rest: { [key: string]: Json } = {}
  for (const [key, value] of Object.entries(object)) {
    if (without.includes(key) || value === null || value === undefined) continue
    if (Array.isArray(value) && value.length === 0) continue
    rest[key] = value
  }
  return rest
}

/**
 * Replaces lone surrogates by U+FFFD. Vendors refuse a body that holds one, and since it would stay in the history, they
 * would refuse every later request, too.
 */
export function mendText<T extends Json>(value: T): T {
  return mend(value) as T
}

function mend(value: Json): Json {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(mend)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key.toWellFormed(), mend(field)]))
}

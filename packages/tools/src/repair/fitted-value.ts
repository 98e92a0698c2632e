import { isJsonObject } from '@tallystick/core/kit'
import type { Json } from '@tallystick/core/vocabulary'

/** A value whose texts were read as what a schema expects, and where. */
export interface FittedValue {
  readonly value: Json
  readonly repairs: readonly string[]
}

const maxDepth = 32

/**
 * Reads texts as the numbers, truth values, objects and lists that a JSON Schema expects in their place, where the text says
 * exactly that. References and choices between schemas are left alone, and so is whatever fits as it is.
 */
export function fittedValue(schema: Json | undefined, value: Json): FittedValue {
  const repairs: string[] = []
  return { value: fitted(schema, value, [], repairs), repairs }
}

function fitted(schema: Json | undefined, value: Json, path: readonly string[], repairs: string[]): Json {
  if (path.length > maxDepth || !isJsonObject(schema)) return value
  const types = [schema['type']].flat()
  const read = typeof value === 'string' && !types.includes('string') ? readAs(types, value) : undefined
  if (read !== undefined) repairs.push(`${placeOf(path)} was a text and was read as ${read.kind}`)
  const own = read === undefined ? value : read.value
  if (Array.isArray(own)) {
    const { items } = schema
    return own.map((item: Json, index) => fitted(items, item, [...path, String(index)], repairs))
  }
  if (!isJsonObject(own)) return own
  const { properties } = schema
  return Object.fromEntries(
    Object.entries(own).map(([key, item]) => {
      // What every object inherits says nothing as a schema.
      const inner = isJsonObject(properties) ? properties[key] : undefined
      return [key, fitted(inner, item, [...path, key], repairs)]
    }),
  )
}

/** What a text says, where that is of one of the types. */
function readAs(
  types: readonly (Json | undefined)[],
  text: string,
): { readonly kind: string; readonly value: Json } | undefined {
  const value = parsed(text)
  if (typeof value === 'number') {
    const isOfType = types.includes('number') || (types.includes('integer') && Number.isInteger(value))
    return isOfType && isExact(value, text) ? { kind: 'a number', value } : undefined
  }
  if (typeof value === 'boolean' && types.includes('boolean')) return { kind: 'true or false', value }
  if (Array.isArray(value) && types.includes('array')) return { kind: 'a list', value }
  return isJsonObject(value) && types.includes('object') ? { kind: 'an object', value } : undefined
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return null
  }
}

/** Whether a number is what its text says, to the last digit. */
function isExact(value: number, text: string): boolean {
  return String(value) === text || isShort(text)
}

/** Numbers of so few digits lose none. */
function isShort(text: string): boolean {
  return text.replaceAll(/\D/g, '').length <= 15 && !/e/i.test(text)
}

function placeOf(path: readonly string[]): string {
  return path.length === 0 ? 'it' : path.map((key) => (/^[\w-]{1,60}$/.test(key) ? key : '…')).join('.')
}

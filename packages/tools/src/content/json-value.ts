import type { Json } from '@tallystick/core/vocabulary'

const maxDepth = 200

/** A value that JSON cannot carry; the message names the place, as in `$.items[2] is a bigint, …`. */
class NotJsonError extends TypeError {
  override readonly name: string = 'NotJsonError'
}

/**
 * A copy of a value as JSON carries it. Keys whose value is `undefined` are left out and `toJSON` is called, as
 * `JSON.stringify` does; what `JSON.stringify` would lose without a word (a Map, a Response, NaN, a function) is a
 * `NotJsonError` instead.
 */
export function jsonOf(value: unknown): Json {
  return copy(value, '$', [])
}

function copy(value: unknown, path: string, ancestors: readonly object[]): Json {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new NotJsonError(`${path} is ${value}, which JSON cannot carry`)
    // JSON has one zero: what is shown now has to be what is read back later.
    return value === 0 ? 0 : value
  }
  if (typeof value === 'object') return copyObject(value, path, ancestors)
  const kind = value === undefined ? 'undefined' : `a ${typeof value}`
  throw new NotJsonError(`${path} is ${kind}, which JSON cannot carry`)
}

function copyObject(value: object, path: string, ancestors: readonly object[]): Json {
  if (ancestors.includes(value)) throw new NotJsonError(`${path} holds itself, which JSON cannot carry`)
  if (ancestors.length >= maxDepth)
    throw new NotJsonError(`${path.slice(0, 80)}… is nested deeper than ${maxDepth} levels`)
  const within = [...ancestors, value]
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    return copy(value.toJSON(), `${path}.toJSON()`, within)
  }
  if (Array.isArray(value)) return Array.from(value, (item, index) => copy(item, `${path}[${index}]`, within))
  assertPlain(value, path)
  const entries: [string, Json][] = []
  for (const [key, item] of Object.entries(value)) {
    if (item !== undefined) entries.push([key, copy(item, `${path}.${key}`, within)])
  }
  return Object.fromEntries(entries)
}

/**
 * Throws for objects whose content is not in their own enumerable keys: their JSON would be empty without any error.
 */
function assertPlain(value: object, path: string): void {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return
  const hidden = value instanceof Error || Symbol.iterator in value || Symbol.asyncIterator in value
  if (!hidden && Object.keys(value).length > 0) return
  const kind = value.constructor?.name
  throw new NotJsonError(`${path} is an instance of ${kind || 'a class'}, which JSON cannot carry`)
}

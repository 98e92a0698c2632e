/** A value that JSON can carry. Everything in the ledger is one. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject
export interface JsonObject {
  readonly [key: string]: Json
}

/**
 * The one text form of a value: object keys in code-unit order, no white space, numbers as ECMAScript
 * prints them (RFC 8785). Unlike RFC 8785 a lone surrogate is kept, as a `\uXXXX` escape, because what a
 * model or a tool said has to be stored as it was. Keys whose value is `undefined` are left out.
 *
 * Throws a `TypeError` that names the place for what JSON cannot carry: NaN, infinities, functions, bigint.
 */
export function canonicalJson(value: Json): string {
  return write(value, '$')
}

function write(value: unknown, path: string): string {
  if (value === null) return 'null'
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  if (typeof value === 'number') return writeNumber(value, path)
  if (Array.isArray(value)) return writeArray(value, path)
  if (typeof value === 'object') return writeObject(value as JsonObject, path)
  throw new TypeError(`${path} is a ${typeof value}, which JSON cannot carry`)
}

function writeNumber(value: number, path: string): string {
  if (!Number.isFinite(value)) throw new TypeError(`${path} is ${value}, which JSON cannot carry`)
  return JSON.stringify(value)
}

function writeArray(items: readonly unknown[], path: string): string {
  let text = '['
  for (let index = 0; index < items.length; index++) {
    if (index > 0) text += ','
    text += write(items[index], `${path}[${index}]`)
  }
  return text + ']'
}

function writeObject(object: JsonObject, path: string): string {
  let text = '{'
  for (const key of Object.keys(object).sort()) {
    const value = object[key]
    if (value === undefined) continue
    if (text.length > 1) text += ','
    text += JSON.stringify(key) + ':' + write(value, `${path}.${key}`)
  }
  return text + '}'
}

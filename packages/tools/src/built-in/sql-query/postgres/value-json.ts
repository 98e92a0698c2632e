import type { Json } from '@tallystick/core/vocabulary'

const types = { boolean: 16, bytes: 17, int8: 20, int2: 21, int4: 23, oid: 26, float4: 700, float8: 701 }
const numbers: ReadonlySet<number> = new Set([
  types.int2,
  types.int4,
  types.int8,
  types.oid,
  types.float4,
  types.float8,
])

/**
 * How the text of a value is read, by the number of its type: integers beyond 2^53 stay digits, infinities text, and bytes
 * are `{ base64, bytes }`. All else, `numeric`, times and JSON included, is shown as Postgres writes it, so that nothing is
 * rounded.
 */
export function valueJson(type: number): (text: string) => Json {
  if (type === types.boolean) return (text) => text === 't'
  if (type === types.bytes) return bytesJson
  return numbers.has(type) ? numberJson : (text) => text
}

function numberJson(text: string): Json {
  const number = Number(text)
  if (!Number.isFinite(number)) return text
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? text : number
}

function bytesJson(text: string): Json {
  const bytes = Buffer.from(text.slice('\\x'.length), 'hex')
  return { base64: bytes.toString('base64'), bytes: bytes.length }
}

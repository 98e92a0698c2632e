import { omitUndefined } from '@tallystick/core/kit'
import { canonicalJson, type Json, type JsonObject } from '@tallystick/core/vocabulary'

/** A text of this many bytes, in UTF-8, or more is kept once, by its digest, beside the body that holds it. */
export const largeBytesMin: number = 16 * 1024

/** Where in a body a text stood: object keys, and places in arrays from 0. */
type Path = readonly (string | number)[]

/** A large text that was taken out of a body. */
export interface LargeText {
  readonly path: Path
  readonly text: string
}

/** A body without its large texts. */
export interface ExternalizedPayload {
  readonly body: JsonObject
  readonly large: readonly LargeText[]
}

/** Takes the large texts out of a body and leaves an empty text in place of each. The body itself where it has none. */
export function externalizedPayload(body: JsonObject): ExternalizedPayload {
  const large: LargeText[] = []
  if (!mayHoldLarge(body)) return { body, large }
  return { body: externalized(body, [], large) as JsonObject, large }
}

/** Whether any text may be large, as far as its length tells: a code unit is at most three bytes of UTF-8. */
function mayHoldLarge(value: Json): boolean {
  if (typeof value === 'string') return 3 * value.length >= largeBytesMin
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(mayHoldLarge)
  for (const key of Object.keys(value)) if (mayHoldLarge((value as JsonObject)[key] as Json)) return true
  return false
}

function externalized(value: Json, path: Path, large: LargeText[]): Json {
  if (typeof value === 'string') {
    // Half of a surrogate pair is not to be had as UTF-8.
    if (Buffer.byteLength(value) < largeBytesMin || !value.isWellFormed()) return value
    large.push({ path, text: value })
    return ''
  }
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value))
    return value.map((item: Json, index) => externalized(item, [...path, index], large))
  const copy: Record<string, Json> = {}
  for (const [key, item] of Object.entries(value as JsonObject)) {
    define(copy, key, externalized(item, [...path, key], large))
  }
  return copy
}

/** What is stored beside a body: large texts, and the messages that a run begins with, by the name of the history. */
export interface Referred {
  readonly references: readonly Reference[]
  readonly history?: string
}

/** A body of which a part is stored elsewhere, as bytes: a JSON array, which no body is. */
export function referringText(body: JsonObject, { references, history }: Referred): string {
  const places = references.map(({ path, digest }) => [path, digest])
  return canonicalJson(history === undefined ? [body, places] : [body, places, history])
}

/** Where a large text belongs, and the SHA-256 of its bytes as they are stored, in hex. */
export interface Reference {
  readonly path: Path
  readonly digest: string
}

/** Reads what `referringText` wrote. */
export function parseReferring(text: string): Referred & { readonly body: JsonObject } {
  const [body, places, history] = JSON.parse(text) as [JsonObject, readonly [Path, string][], string?]
  const references = places.map(([path, digest]) => ({ path, digest }))
  return { body, references, ...omitUndefined({ history }) }
}

/** Puts a large text back in its place, in a body that no other code holds. Throws if the body has no such place. */
export function putBack(body: JsonObject, path: Path, text: string): void {
  let holder: unknown = body
  for (const key of path.slice(0, -1)) holder = ownField(holder, key)
  const last = path.at(-1)
  if (last === undefined || ownField(holder, last) !== '') throw new Error('no such place')
  define(holder as Record<string, Json>, last, text)
}

function ownField(holder: unknown, key: string | number): unknown {
  if (typeof holder !== 'object' || holder === null || !Object.hasOwn(holder, key)) return undefined
  return (holder as Record<string | number, unknown>)[key]
}

/** A key named `__proto__` would set the prototype instead of a field. */
function define(holder: Record<string, Json>, key: string | number, value: Json): void {
  Object.defineProperty(holder, key, { value, enumerable: true, writable: true, configurable: true })
}

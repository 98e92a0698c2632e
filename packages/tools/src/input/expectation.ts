import { isJsonObject, getOwn } from '@tallystick/core/kit'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'

const maxDepth = 16

/** What a JSON Schema asks of the value at one place; each part is absent where the schema does not say it plainly. */
export interface Expectation {
  /** JSON types, such as `string`, `integer`. */
  readonly types?: readonly string[]
  /** The only values allowed. */
  readonly values?: readonly Json[]
  /** The only keys allowed. */
  readonly keys?: readonly string[]
}

/** Reads from a JSON Schema what it expects at a path, through local references and choices. */
export function expectationAt(root: JsonObject, path: readonly PropertyKey[]): Expectation {
  let places: readonly JsonObject[] = branches(root, root, 0)
  for (const key of path) {
    places = places.flatMap((schema) => below(schema, key)).flatMap((schema) => branches(root, schema, 0))
  }
  if (places.length === 0) return {}
  const types = places.map(typesOf)
  const values = places.map(valuesOf)
  const [only] = places
  const keys = places.length === 1 && only ? keysOf(only) : undefined
  return {
    ...(types.every((known) => known !== undefined) && { types: [...new Set(types.flat())] }),
    ...(values.every((known) => known !== undefined) && { values: values.flat() }),
    ...(keys && { keys }),
  }
}

/** A schema, or the schemas that it is a choice of. */
function branches(root: JsonObject, schema: JsonObject, depth: number): readonly JsonObject[] {
  if (depth > maxDepth) return [{}]
  const target = typeof schema.$ref === 'string' ? resolve(root, schema.$ref) : undefined
  if (schema.$ref !== undefined) return target ? branches(root, target, depth + 1) : [{}]
  const choice = schema.anyOf ?? schema.oneOf
  if (!Array.isArray(choice) || schema.type !== undefined) return [schema]
  return choice.flatMap((branch: Json) => (isJsonObject(branch) ? branches(root, branch, depth + 1) : [{}]))
}

function resolve(root: JsonObject, reference: string): JsonObject | undefined {
  if (!reference.startsWith('#')) return undefined
  let place: Json | undefined = root
  for (const segment of reference.split('/').slice(1)) {
    const key = decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~')
    place = isJsonObject(place) ? getOwn(place, key) : undefined
  }
  return isJsonObject(place) ? place : undefined
}

function below(schema: JsonObject, key: PropertyKey): readonly JsonObject[] {
  if (typeof key === 'symbol') return []
  const { properties, prefixItems, items, additionalProperties } = schema
  const named = isJsonObject(properties) ? getOwn(properties, String(key)) : undefined
  // Before 2020-12 a list of schemas by place stood under `items`.
  const tuple: unknown = prefixItems ?? items
  const placed = Array.isArray(tuple) ? (tuple as readonly Json[])[Number(key)] : undefined
  const found = named ?? placed ?? (schema.type === 'array' ? items : additionalProperties)
  return isJsonObject(found) ? [found] : []
}

function typesOf(schema: JsonObject): readonly string[] | undefined {
  const { type } = schema
  if (typeof type === 'string') return [type]
  if (Array.isArray(type)) return type.filter((name) => typeof name === 'string')
  const values = valuesOf(schema)
  return values && [...new Set(values.map(kindOf))]
}

function valuesOf(schema: JsonObject): readonly Json[] | undefined {
  if (schema.const !== undefined) return [schema.const]
  return Array.isArray(schema.enum) ? schema.enum : undefined
}

function keysOf(schema: JsonObject): readonly string[] | undefined {
  const { properties, additionalProperties, patternProperties } = schema
  if (additionalProperties !== false || patternProperties !== undefined) return undefined
  return isJsonObject(properties) ? Object.keys(properties) : []
}

/** The JSON kind of a value, as an explanation names it. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** Whether a value is of one of the JSON types. */
export function isOfTypes(value: unknown, types: readonly string[]): boolean {
  return types.some((type) => (type === 'integer' ? Number.isInteger(value) : type === kindOf(value)))
}

import { isJsonObject, type Json, type JsonObject } from '../values/json.ts'
import { getOwn } from '../values/get-own.ts'

/**
 * Whether a schema, of the document `root`, allows `null`. `undefined` is a place that the document does not describe:
 * it allows any value.
 */
export function acceptsNull(schema: Json | undefined, root: JsonObject): boolean {
  return isNullIn(schema, root, new Set())
}

/** `seen` holds the schemas that have been looked at: a choice that leads back to one of them adds nothing. */
function isNullIn(schema: Json | undefined, root: JsonObject, seen: Set<JsonObject>): boolean {
  const node = isJsonObject(schema) && '$ref' in schema ? resolved(schema, root) : schema
  if (!isJsonObject(node)) return node !== false
  if (seen.has(node)) return false
  seen.add(node)
  const choices = node['anyOf'] ?? node['oneOf']
  if (Array.isArray(choices)) return choices.some((choice: Json) => isNullIn(choice, root, seen))
  if (Array.isArray(node['enum'])) return node['enum'].includes(null)
  if ('const' in node) return node['const'] === null
  const types = [node['type'] ?? []].flat()
  return types.length === 0 ? !('properties' in node || 'items' in node) : types.includes('null')
}

/**
 * A value without the nulls that stand for properties which the schema lets be left out, and does not let be `null`.
 * Vendors that demand every property of an object let a model say so that it left one out.
 */
export function withoutAddedNulls<Value extends Json>(schema: JsonObject, value: Value): Value {
  return stripped(schema, schema, value) as Value
}

function stripped(schema: Json | undefined, root: JsonObject, value: Json): Json {
  const node = resolved(schema, root)
  if (node === undefined || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: Json) => stripped(node['items'], root, item))
  const properties = isJsonObject(node['properties']) ? node['properties'] : {}
  const required = [node['required']].flat()
  const entries = Object.entries(value as JsonObject).flatMap(([name, field]): [string, Json][] => {
    const inner = getOwn(properties, name)
    const added = field === null && !required.includes(name) && !acceptsNull(inner, root)
    return added ? [] : [[name, stripped(inner, root, field)]]
  })
  return Object.fromEntries(entries)
}

/** References that lead to references are followed so far. */
const maxSteps = 20

/** The schema that a reference, a single `allOf`, or the one choice beside `null` stands for. */
function resolved(schema: Json | undefined, root: JsonObject, steps = 0): JsonObject | undefined {
  if (!isJsonObject(schema) || steps > maxSteps) return undefined
  const reference = schema['$ref']
  if (typeof reference === 'string') return resolved(targetOf(reference, root), root, steps + 1)
  const choices = schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf']
  if (!Array.isArray(choices)) return schema
  const inner = choices.filter((choice: Json) => !acceptsOnlyNull(choice))
  return inner.length === 1 ? resolved(inner[0], root, steps) : schema
}

function targetOf(reference: string, root: JsonObject): Json | undefined {
  const keys = reference.replace(/^#\/?/, '').split('/')
  return keys
    .filter((key) => key !== '')
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<Json | undefined>((node, key) => (isJsonObject(node) ? getOwn(node, key) : undefined), root)
}

function acceptsOnlyNull(schema: Json): boolean {
  return isJsonObject(schema) && (schema['type'] === 'null' || schema['const'] === null)
}

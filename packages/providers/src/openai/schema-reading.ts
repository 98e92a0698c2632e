import type { Json, JsonObject } from '@tallystick/core'
import { isJsonObject, objectAt, textAt } from '../shared/json-reading.ts'

/** The types that a schema names. */
export function typesOf(node: JsonObject): readonly Json[] {
  const type = node['type']
  return Array.isArray(type) ? (type as readonly Json[]) : type === undefined ? [] : [type]
}

/** The properties that a schema demands. */
export function requiredOf(node: JsonObject): ReadonlySet<Json> {
  const required = node['required']
  return new Set(Array.isArray(required) ? (required as readonly Json[]) : [])
}

/** Whether a schema is one of objects, as far as can be seen. */
export function isObjectSchema(schema: Json): boolean {
  if (!isJsonObject(schema)) return false
  return '$ref' in schema || 'properties' in schema || typesOf(schema).includes('object')
}

/** Whether a schema, of the document `root`, lets `null` stand. */
export function acceptsNull(schema: Json | undefined, root: JsonObject): boolean {
  const node = isJsonObject(schema) && '$ref' in schema ? resolved(schema, root) : schema
  if (!isJsonObject(node)) return node !== false
  const choices = node['anyOf'] ?? node['oneOf']
  if (Array.isArray(choices)) return choices.some((choice: Json) => acceptsNull(choice, root))
  if (Array.isArray(node['enum'])) return node['enum'].includes(null)
  if ('const' in node) return node['const'] === null
  const types = typesOf(node)
  return types.length === 0 ? !('properties' in node || 'items' in node) : types.includes('null')
}

/** The schema that a reference, a single `allOf`, or the one choice beside `null` stands for. */
function resolved(schema: Json | undefined, root: JsonObject, steps = 0): JsonObject | undefined {
  if (!isJsonObject(schema) || steps > 20) return undefined
  const reference = textAt(schema, '$ref')
  if (reference !== undefined) return resolved(targetOf(reference, root), root, steps + 1)
  const choices = schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf']
  if (!Array.isArray(choices)) return schema
  const inner = choices.filter((choice: Json) => !acceptsOnlyNull(choice))
  return inner.length === 1 ? resolved(inner[0], root, steps + 1) : schema
}

function targetOf(reference: string, root: JsonObject): Json | undefined {
  const keys = reference.replace(/^#\/?/, '').split('/')
  return keys
    .filter((key) => key !== '')
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<Json | undefined>((node, key) => (isJsonObject(node) ? node[key] : undefined), root)
}

function acceptsOnlyNull(schema: Json): boolean {
  return isJsonObject(schema) && (schema['type'] === 'null' || schema['const'] === null)
}

/** An input without the nulls that stand for properties which the given schema lets be left out. */
export function withoutAddedNulls(schema: JsonObject, input: JsonObject): JsonObject {
  return stripped(schema, schema, input) as JsonObject
}

function stripped(schema: Json | undefined, root: JsonObject, value: Json): Json {
  const node = resolved(schema, root)
  if (node === undefined || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: Json) => stripped(node['items'], root, item))
  const properties = objectAt(node, 'properties') ?? {}
  const required = requiredOf(node)
  const entries = Object.entries(value as JsonObject).flatMap(([name, field]): [string, Json][] => {
    const inner = Object.hasOwn(properties, name) ? properties[name] : undefined
    const added = field === null && inner !== undefined && !required.has(name) && !acceptsNull(inner, root)
    return added ? [] : [[name, stripped(inner, root, field)]]
  })
  return Object.fromEntries(entries)
}

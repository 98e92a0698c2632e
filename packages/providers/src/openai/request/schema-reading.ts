import { isJsonObject } from '@tallystick/core/kit'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { listAt } from '../../shared/json/json-reading.ts'

/** The types that a schema names. */
export function typesOf(node: JsonObject): readonly Json[] {
  const type = node['type']
  return Array.isArray(type) ? (type as readonly Json[]) : type === undefined ? [] : [type]
}

/** The properties that a schema demands. */
export function requiredOf(node: JsonObject): ReadonlySet<Json> {
  return new Set(listAt(node, 'required'))
}

/** Whether a schema is one of objects, as far as can be seen. */
export function isObjectSchema(schema: Json): boolean {
  if (!isJsonObject(schema)) return false
  return '$ref' in schema || 'properties' in schema || typesOf(schema).includes('object')
}

import { isJsonObject } from '@tallystick/core/internal'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { getObject } from './json.ts'

/** Keywords that both fitters handle by their names. */
export const handledKeywords: readonly string[] = [
  ...['$ref', '$defs', 'definitions', 'properties', 'required', 'additionalProperties', 'items'],
  ...['anyOf', 'oneOf', 'allOf', 'format'],
]
/** Keywords that constrain nothing. */
export const silentKeywords: readonly string[] = [
  ...['$schema', '$id', '$comment', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
]
/** Without these a schema would mean something else, not just more. */
export const essentialKeywords: readonly string[] = [
  ...['patternProperties', '$dynamicRef', '$recursiveRef', '$anchor', '$dynamicAnchor'],
]
/** Formats that both vendors enforce. */
export const knownFormats: readonly string[] = [
  ...['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'],
]

/** The schema does not fit a vendor's subset. The message says why, in a few words. */
export class NotStrictError extends Error {}

/** Merges a single schema in `allOf` into the node. Of two, each would close the other out. */
export function unwrapAllOf(node: JsonObject, path: string): JsonObject {
  const { allOf, ...rest } = node
  const [only, ...more] = allOf as readonly Json[]
  if (!isJsonObject(only) || more.length > 0) throw new NotStrictError(`allOf at ${path}`)
  return { ...only, ...rest }
}

/** Returns the properties of an object that may be closed without refusing anything. */
export function readClosedProperties(node: JsonObject, path: string): JsonObject {
  const properties = getObject(node, 'properties')
  const more = node['additionalProperties']
  const isOpen = more === undefined ? properties === undefined : more !== false
  if (isOpen) throw new NotStrictError(`properties of any name are allowed at ${path}`)
  return properties ?? {}
}

/** Throws for a node that says nothing about its values. */
export function requireShape(node: JsonObject, path: string): void {
  const says = ['type', 'enum', 'const'].some((keyword) => keyword in node)
  if (!says && !Array.isArray(node['anyOf'] ?? node['oneOf']))
    throw new NotStrictError(`anything is allowed at ${path}`)
}

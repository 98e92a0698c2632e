import { getOwn, isJsonObject, type Json, type JsonObject } from '../values/json.ts'
import type { OutputDefinition } from './agent-definition.ts'

/**
 * Returns whether a schema, of the document `root`, allows `null`. `undefined` is a place that the document does not describe:
 * it allows any value.
 */
export function acceptsNull(schema: Json | undefined, root: JsonObject): boolean {
  return isNullIn(schema, root, new Set())
}

/** `seen` holds the schemas that have been looked at: a choice that leads back to one of them adds nothing. */
function isNullIn(schema: Json | undefined, root: JsonObject, seen: Set<JsonObject>): boolean {
  const node = isJsonObject(schema) && '$ref' in schema ? resolveSchema(schema, root) : schema
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
 * Removes nulls of optional properties that the schema does not allow to be `null`. Where a vendor requires every property
 * of an object, models write `null` for one that they leave out.
 */
export function withoutAddedNulls<Value extends Json>(schema: JsonObject, value: Value): Value {
  return stripNulls(schema, schema, value) as Value
}

function stripNulls(schema: Json | undefined, root: JsonObject, value: Json): Json {
  const node = resolveSchema(schema, root)
  if (node === undefined || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: Json) => stripNulls(node['items'], root, item))
  const properties = isJsonObject(node['properties']) ? node['properties'] : {}
  const required = [node['required']].flat()
  const entries = Object.entries(value as JsonObject).flatMap(([name, field]): [string, Json][] => {
    const inner = getOwn(properties, name)
    const added = field === null && !required.includes(name) && !acceptsNull(inner, root)
    return added ? [] : [[name, stripNulls(inner, root, field)]]
  })
  return Object.fromEntries(entries)
}

/** References that lead to references are followed so far. */
const maxSteps = 20

/** The schema that a reference, a single `allOf`, or the one choice beside `null` stands for. */
function resolveSchema(schema: Json | undefined, root: JsonObject, steps = 0): JsonObject | undefined {
  if (!isJsonObject(schema) || steps > maxSteps) return undefined
  const reference = schema['$ref']
  if (typeof reference === 'string') return resolveSchema(findReferred(reference, root), root, steps + 1)
  const choices = schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf']
  if (!Array.isArray(choices)) return schema
  const inner = choices.filter((choice: Json) => !acceptsOnlyNull(choice))
  return inner.length === 1 ? resolveSchema(inner[0], root, steps) : schema
}

/** The schema that a reference within `root` leads to, such as `#/$defs/a~1b`; `undefined` if there is none. */
export function findReferred(reference: string, root: JsonObject): JsonObject | undefined {
  const target = reference === '#' || reference.startsWith('#/') ? findPointed(reference, root) : undefined
  return isJsonObject(target) ? target : undefined
}

/** The value that a JSON pointer leads to within `root`. */
export function findPointed(pointer: string, root: Json): Json | undefined {
  return readPointer(pointer).reduce<Json | undefined>(
    (holder, key) => getOwn(Object(holder) as JsonObject, key),
    root,
  )
}

/** Reads a JSON pointer: `#/items/0/a~1b` is `items`, `0`, `a/b`. Where a `%` encodes nothing, it stands for itself. */
export function readPointer(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => {
      let text = segment
      try {
        text = decodeURIComponent(segment)
      } catch {
        // Pointers come from outside.
      }
      return text.replaceAll('~1', '/').replaceAll('~0', '~')
    })
}

function acceptsOnlyNull(schema: Json): boolean {
  return isJsonObject(schema) && (schema['type'] === 'null' || schema['const'] === null)
}

/** The one field of an object that wraps an answer which is not an object. */
const FIELD = 'answer'

/** The schema that models are given: that of the answer itself, or of an object that wraps it. */
type AskedSchema = Pick<OutputDefinition, 'schema' | 'wrapped'>

/**
 * The schema that models are asked for. Vendors hold a model to objects only: an answer of any other kind (a list, a
 * choice of objects, a text) is asked for as the one field of an object.
 */
export function toAskedSchema(schema: JsonObject): AskedSchema {
  if (isPlainObject(schema)) return { schema }
  const { $defs, definitions, ...own } = schema
  const inner = moveReferences(own, schema)
  const defs = moveReferences({ ...($defs && { $defs }), ...(definitions && { definitions }) }, schema)
  const isReferred = canReach(schema)
  return {
    wrapped: true,
    schema: {
      type: 'object',
      properties: { [FIELD]: isReferred ? { $ref: `#/$defs/${nameRoot(schema)}` } : inner },
      required: [FIELD],
      additionalProperties: false,
      ...defs,
      ...(isReferred && {
        $defs: { ...(defs['$defs'] as JsonObject | undefined), [nameRoot(schema)]: inner },
      }),
    },
  }
}

/** Keywords with which a root is a choice or a reference, whatever its type. */
const choosing = ['anyOf', 'oneOf', 'allOf', '$ref', 'enum', 'const', 'not', 'if']

function isPlainObject(schema: JsonObject): boolean {
  if (choosing.some((keyword) => keyword in schema)) return false
  return schema['type'] === 'object' || (schema['type'] === undefined && 'properties' in schema)
}

/** Returns whether anything in a schema refers to its root, or to a place in it that is not a definition. */
function canReach(schema: JsonObject): boolean {
  return listReferences(schema).some((reference) => moveReference(reference, schema) !== reference)
}

function listReferences(value: Json): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : listReferences(inner),
  )
}

/** A schema whose references lead to where the root has moved. */
function moveReferences(value: JsonObject, root: JsonObject): JsonObject {
  const moved = (inner: Json): Json => {
    if (Array.isArray(inner)) return inner.map(moved)
    return typeof inner === 'object' && inner !== null ? moveReferences(inner as JsonObject, root) : inner
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string' ? moveReference(inner, root) : moved(inner),
    ]),
  )
}

function moveReference(reference: string, root: JsonObject): string {
  if (reference !== '#' && !reference.startsWith('#/')) return reference
  if (/^#\/(\$defs|definitions)\//.test(reference)) return reference
  return `#/$defs/${nameRoot(root)}${reference.slice(1)}`
}

/** A name for the root among the definitions, which none of them has. */
function nameRoot({ $defs }: JsonObject): string {
  const taken = new Set(Object.keys(($defs as JsonObject | undefined) ?? {}))
  let name = FIELD
  while (taken.has(name)) name += '_'
  return name
}

/**
 * Returns the possible answers in the JSON of a reply, the likeliest first: the value unwrapped, or as it is if the model
 * left the wrapping object out. Nulls that stand for absent fields are removed.
 */
export function readAnswers({ schema, wrapped }: AskedSchema, value: Json): readonly Json[] {
  if (!wrapped) return [withoutAddedNulls(schema, value)]
  const bare = withoutAddedNulls(schema, { [FIELD]: value })[FIELD]
  if (!isWrapping(value)) return [bare]
  return [withoutAddedNulls(schema, value)[FIELD] as Json, bare]
}

function isWrapping(value: Json): value is JsonObject {
  return value !== null && Object.keys(value).join() === FIELD
}

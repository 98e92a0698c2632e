import type { OutputDefinition } from './agent-definition.ts'
import { withoutAddedNulls } from './added-nulls.ts'
import type { Json, JsonObject } from '../values/json.ts'

/** The one field of an object that wraps an answer which is not an object. */
const FIELD = 'answer'

/** What models are asked for: the schema of the answer itself, or of an object that wraps it. */
export type AskedSchema = Pick<OutputDefinition, 'schema' | 'wrapped'>

/**
 * The schema that models are asked for. Vendors hold a model to objects only: an answer of any other kind (a list, a
 * choice of objects, a text) is asked for as the one field of an object.
 */
export function askedSchema(schema: JsonObject): AskedSchema {
  if (isPlainObject(schema)) return { schema }
  const { $defs, definitions, ...own } = schema
  const inner = movedReferences(own, schema)
  const defs = movedReferences({ ...($defs && { $defs }), ...(definitions && { definitions }) }, schema)
  const isReferred = canReach(schema)
  return {
    wrapped: true,
    schema: {
      type: 'object',
      properties: { [FIELD]: isReferred ? { $ref: `#/$defs/${rootName(schema)}` } : inner },
      required: [FIELD],
      additionalProperties: false,
      ...defs,
      ...(isReferred && {
        $defs: { ...(defs['$defs'] as JsonObject | undefined), [rootName(schema)]: inner },
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

/** Whether anything in a schema refers to its root, or to a place in it that is no definition. */
function canReach(schema: JsonObject): boolean {
  return referencesIn(schema).some((reference) => movedReference(reference, schema) !== reference)
}

function referencesIn(value: Json): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' && typeof inner === 'string' ? [inner] : referencesIn(inner),
  )
}

/** A schema whose references lead to where the root has moved. */
function movedReferences(value: JsonObject, root: JsonObject): JsonObject {
  const moved = (inner: Json): Json => {
    if (Array.isArray(inner)) return inner.map(moved)
    return typeof inner === 'object' && inner !== null ? movedReferences(inner as JsonObject, root) : inner
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string' ? movedReference(inner, root) : moved(inner),
    ]),
  )
}

function movedReference(reference: string, root: JsonObject): string {
  if (reference !== '#' && !reference.startsWith('#/')) return reference
  if (/^#\/(\$defs|definitions)\//.test(reference)) return reference
  return `#/$defs/${rootName(root)}${reference.slice(1)}`
}

/** A name for the root among the definitions, which none of them has. */
function rootName({ $defs }: JsonObject): string {
  const taken = new Set(Object.keys(($defs as JsonObject | undefined) ?? {}))
  let name = FIELD
  while (taken.has(name)) name += '_'
  return name
}

/**
 * What the JSON of a reply may be as an answer, the likeliest first: out of the object that wraps it, or as it is, for a
 * model that left the object out; without the nulls that stand for what was left out.
 */
export function answersIn({ schema, wrapped }: AskedSchema, value: Json): readonly Json[] {
  if (!wrapped) return [withoutAddedNulls(schema, value)]
  const bare = withoutAddedNulls(schema, { [FIELD]: value })[FIELD]
  if (!isWrapping(value)) return [bare]
  return [withoutAddedNulls(schema, value)[FIELD] as Json, bare]
}

function isWrapping(value: Json): value is JsonObject {
  return value !== null && Object.keys(value).join() === FIELD
}

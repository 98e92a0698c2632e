import type { ModelRequest } from '@tallystick/core'
import { findReferred, isJsonObject } from '@tallystick/core/internal'
import type { Json, JsonObject, ToolDefinition } from '@tallystick/core/vocabulary'
import { toItems, getList, getObject, getText } from '../shared/json.ts'
import type { ToolNames } from '../shared/request.ts'
import type { RenderSettings } from './options.ts'

/** The wire can neither forbid tools nor demand one: tools that may not be called are not offered. */
export function selectTools({ tools, toolChoice }: ModelRequest): readonly ToolDefinition[] {
  if (toolChoice.type === 'none') return []
  return toolChoice.type === 'tool' ? tools.filter(({ name }) => name === toolChoice.name) : tools
}

/** Renders a tool, and warns of what its schema loses. */
export function renderTool(
  { name, description, inputSchema }: ToolDefinition,
  names: ToolNames,
  warn: RenderSettings['warn'],
): JsonObject {
  const { schema, inWords } = toToolSchema(inputSchema)
  if (inWords.length > 0) {
    const what = `${inWords.join(', ')} in the schema of the tool ${name}`
    warn({
      what: 'schema',
      message: `Ollama has no word for ${what}: told in descriptions instead.`,
    })
  }
  return {
    type: 'function',
    function: { name: names.toWire(name), description: description.toWellFormed(), parameters: schema },
  }
}

/** The keywords that the server reads. It silently drops all others. */
const known = new Set(['type', 'anyOf', 'items', 'description', 'enum', 'properties', 'required'])
/** Keywords that the model does not need. */
const silent = new Set([
  '$schema',
  '$id',
  '$anchor',
  '$comment',
  '$defs',
  'definitions',
  'title',
  'default',
  'examples',
])
// A schema that refers to itself is unfolded so many times; deeper ones are described by name only.
const maxUnfoldings = 3

/**
 * Puts a tool's schema into keywords that the server knows: references are resolved, `const` becomes an `enum` of one, `oneOf`
 * becomes `anyOf`, parts of `allOf` are merged. Others, such as bounds and patterns, go into the description, so that the
 * model still reads them; `inWords` lists their keywords.
 */
export function toToolSchema(given: JsonObject): {
  readonly schema: JsonObject
  readonly inWords: readonly string[]
} {
  const inWords = new Set<string>()
  const whole = rewrite(given, { root: given, unfolded: [], inWords })
  return {
    schema: { ...whole, type: 'object', properties: whole['properties'] ?? {} },
    inWords: [...inWords],
  }
}

interface Place {
  readonly root: JsonObject
  /** The references that led here. */
  readonly unfolded: readonly string[]
  /** Gathers the keywords that end up in words. */
  readonly inWords: Set<string>
}

function rewrite(given: Json | undefined, place: Place): JsonObject {
  // `true` and `false` are schemas too, and the server takes objects only.
  if (!isJsonObject(given)) return {}
  const { schema, place: inside } = unfold(given, place)
  const { const: only, oneOf, allOf, ...rest } = schema
  const plain: { [key: string]: Json } = { ...rest }
  if (only !== undefined) plain['enum'] = [only]
  if (Array.isArray(oneOf)) plain['anyOf'] = [...toItems(plain['anyOf']), ...oneOf]
  const { anyOf, items, properties } = plain
  if (anyOf !== undefined) plain['anyOf'] = toItems(anyOf).map((one) => rewrite(one, inside))
  if (items !== undefined) plain['items'] = rewrite(items, inside)
  if (isJsonObject(properties)) {
    const all = Object.entries(properties)
    plain['properties'] = Object.fromEntries(all.map(([name, one]) => [name, rewrite(one, inside)]))
  }
  const merged = toItems(allOf).reduce<JsonObject>(
    (left, right) => mergeSchemas(left, rewrite(right, inside)),
    plain,
  )
  return describeDropped(merged, inside)
}

/** Resolves the `$ref` of a schema, unless that goes in circles. */
function unfold(schema: JsonObject, place: Place): { readonly schema: JsonObject; readonly place: Place } {
  const reference = getText(schema, '$ref')
  if (reference === undefined) return { schema, place }
  const { $ref: _, ...rest } = schema
  const times = place.unfolded.filter((before) => before === reference).length
  const target = times < maxUnfoldings ? findReferred(reference, place.root) : undefined
  if (target === undefined) {
    const name = reference.split('/').at(-1) ?? reference
    place.inWords.add('$ref')
    return { schema: { description: `A ${name}, as above.`, ...rest }, place }
  }
  return unfold({ ...target, ...rest }, { ...place, unfolded: [...place.unfolded, reference] })
}

/** Merges two schemas that must both match, as far as one schema can express both. */
function mergeSchemas(left: JsonObject, right: JsonObject): JsonObject {
  const properties = { ...getObject(left, 'properties'), ...getObject(right, 'properties') }
  const required = [...new Set([...getList(left, 'required'), ...getList(right, 'required')])]
  const description = [getText(left, 'description'), getText(right, 'description')].filter(Boolean).join(' ')
  return {
    ...right,
    ...left,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
    ...(description !== '' && { description }),
  }
}

/** Describes what the server would drop. */
function describeDropped(schema: JsonObject, { inWords }: Place): JsonObject {
  const kept: { [key: string]: Json } = {}
  const rules: { [key: string]: Json } = {}
  for (const [key, value] of Object.entries(schema)) {
    if (known.has(key)) kept[key] = value
    else if (!silent.has(key)) rules[key] = value
  }
  if (rules['additionalProperties'] === false) delete rules['additionalProperties']
  if (Object.keys(rules).length === 0) return kept
  for (const key of Object.keys(rules)) inWords.add(key)
  const rulesText = `Rules: ${JSON.stringify(rules)}`
  const description = getText(kept, 'description')
  return { ...kept, description: description ? `${description} ${rulesText}` : rulesText }
}

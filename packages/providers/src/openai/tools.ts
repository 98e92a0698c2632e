import { acceptsNull, getOwn, isJsonObject } from '@tallystick/core/internal'
import type { Json, JsonObject, ToolChoice, ToolDefinition } from '@tallystick/core/vocabulary'
import { getList, getObject, getText } from '../shared/json.ts'
import type { Warn } from '../shared/options.ts'
import { describeSchemaMove, type ToolNames } from '../shared/request.ts'
import {
  essentialKeywords,
  handledKeywords,
  knownFormats,
  NotStrictError,
  readClosedProperties,
  requireShape,
  silentKeywords,
  unwrapAllOf,
} from '../shared/strict-schema.ts'
import type { OpenAICustomTool, OpenAIWarning } from './options.ts'

function listTypes(node: JsonObject): readonly Json[] {
  const type = node['type']
  return Array.isArray(type) ? (type as readonly Json[]) : type === undefined ? [] : [type]
}

/** A schema as the vendor can enforce it. */
export interface FittedSchema {
  readonly schema: JsonObject
  /** True if it is in the vendor's strict subset. Otherwise the schema is the given one. */
  readonly strict: boolean
  /** Why it is not strict, or which keywords and places were removed to make it strict; a few words each. */
  readonly notes: readonly string[]
}

const maxDepth = 10
const maxProperties = 5000

const kept = new Set([
  'type',
  'title',
  'description',
  'enum',
  'const',
  'pattern',
  'minLength',
  'maxLength',
  'multipleOf',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minItems',
  'maxItems',
])
const silent = new Set([...handledKeywords, ...silentKeywords, 'default'])

interface Place {
  readonly path: string
  readonly depth: number
}

interface Fitting {
  /**
   * The strict subset knows required properties only. For an optional one the model writes `null`, which
   * `withoutAddedNulls` removes; or the schema is not strict.
   */
  readonly optional: 'nulled' | 'refused'
  readonly root: JsonObject
  readonly notes: string[]
  readonly count: { properties: number }
}

/**
 * Puts a schema into the vendor's strict subset if that refuses nothing that it allows: objects are closed, optional
 * properties may be `null`, keywords that only narrow are left out (the runtime checks them). Any other schema is
 * returned unchanged, not strict.
 */
export function fitSchema(schema: JsonObject): FittedSchema {
  const given: JsonObject = { type: 'object', ...schema }
  const fitting: Fitting = { optional: 'nulled', root: given, notes: [], count: { properties: 0 } }
  try {
    if (given['type'] !== 'object' || ['anyOf', 'oneOf', '$ref'].some((keyword) => keyword in given)) {
      throw new NotStrictError('its root is not a plain object')
    }
    return { schema: fitNode(given, { path: '#', depth: 0 }, fitting), strict: true, notes: fitting.notes }
  } catch (error) {
    if (!(error instanceof NotStrictError)) throw error
    return { schema: given, strict: false, notes: [`not strict: ${error.message}`] }
  }
}

/** True if the vendor takes the schema for an answer, strict or not: its root has to be an object. */
export function isAnswerSchema(schema: JsonObject): boolean {
  const chooses = ['anyOf', 'oneOf', 'allOf', '$ref', 'enum', 'const'].some((keyword) => keyword in schema)
  return !chooses && (schema['type'] === undefined || schema['type'] === 'object')
}

/** Fits the schema of an answer, and warns of what it loses; `undefined` if the vendor does not take it. */
export function fitAnswer(
  given: JsonObject,
  knowsStrict: boolean,
  warn: Warn<OpenAIWarning>,
): Pick<FittedSchema, 'schema' | 'strict'> | undefined {
  if (!isAnswerSchema(given)) {
    const message = describeSchemaMove('it is not one of an object, which is all that the vendor takes')
    warn({ what: 'output_schema', message })
    return undefined
  }
  if (!knowsStrict) return { schema: { type: 'object', ...given }, strict: false }
  const { schema, strict, notes } = fitSchema(given)
  for (const note of notes) warn({ what: 'output_schema', message: `The schema of the answer: ${note}.` })
  return { schema, strict }
}

function fitNode(node: Json | undefined, place: Place, fitting: Fitting): JsonObject {
  if (!isJsonObject(node)) throw new NotStrictError(`anything is allowed at ${place.path}`)
  if (place.depth > maxDepth) {
    throw new NotStrictError(`it is nested deeper than ${maxDepth} levels at ${place.path}`)
  }
  const reference = getText(node, '$ref')
  if (reference !== undefined) {
    if (!reference.startsWith('#')) throw new NotStrictError(`${place.path} refers to another document`)
    // Beside a reference the vendor takes nothing.
    return { $ref: reference, ...fitAllDefinitions(node, place, fitting) }
  }
  if (Array.isArray(node['allOf'])) return fitNode(unwrapAllOf(node, place.path), place, fitting)
  const keywords: { [keyword: string]: Json } = {}
  for (const [keyword, value] of Object.entries(node)) {
    if (essentialKeywords.includes(keyword)) throw new NotStrictError(`${keyword} at ${place.path}`)
    if (kept.has(keyword)) keywords[keyword] = value
    else if (!silent.has(keyword)) fitting.notes.push(`${keyword} at ${place.path} was left out`)
  }
  const format = getText(node, 'format')
  if (format !== undefined && knownFormats.includes(format)) keywords['format'] = format
  else if (format !== undefined) fitting.notes.push(`format ${format} at ${place.path} was left out`)
  return { ...keywords, ...shape(node, place, fitting), ...fitAllDefinitions(node, place, fitting) }
}

/** Returns the keywords for the content of a node: its choices, items or properties. */
function shape(node: JsonObject, place: Place, fitting: Fitting): JsonObject {
  const { path, depth } = place
  const choices = node['anyOf'] ?? node['oneOf']
  const types = listTypes(node)
  requireShape(node, path)
  const inside = { path: `${path}/items`, depth: depth + 1 }
  const listed = types.includes('array') ? { items: fitNode(node['items'], inside, fitting) } : {}
  const closed = types.includes('object') && closeObject(node, place, fitting)
  if (!Array.isArray(choices)) return { ...listed, ...closed }
  if (node['anyOf'] === undefined) fitting.notes.push(`oneOf at ${path} was sent as anyOf`)
  const isObject = (schema: Json): boolean =>
    isJsonObject(schema) &&
    ('$ref' in schema || 'properties' in schema || listTypes(schema).includes('object'))
  // With several objects nobody could tell afterwards whose null it was.
  const within = choices.filter(isObject).length > 1 ? { ...fitting, optional: 'refused' as const } : fitting
  const anyOf = (choices as readonly Json[]).map((choice, index) =>
    fitNode(choice, { path: `${path}/anyOf/${index}`, depth: depth + 1 }, within),
  )
  return { anyOf, ...listed, ...closed }
}

function fitAllDefinitions(node: JsonObject, { path }: Place, fitting: Fitting): JsonObject {
  const named = ['$defs', 'definitions'].flatMap((keyword) => {
    const all = getObject(node, keyword)
    if (all === undefined) return []
    const entries = Object.entries(all).map(([name, schema]): [string, JsonObject] => [
      name,
      fitNode(schema, { path: `${path}/${keyword}/${name}`, depth: 1 }, fitting),
    ])
    return [[keyword, Object.fromEntries(entries)] as const]
  })
  return Object.fromEntries(named)
}

function closeObject(node: JsonObject, { path, depth }: Place, fitting: Fitting): JsonObject {
  const properties = readClosedProperties(node, path)
  const required = new Set(getList(node, 'required'))
  const entries = Object.entries(properties).map(([name, schema]): [string, JsonObject] => {
    const at = `${path}/properties/${name}`
    fitting.count.properties += 1
    if (fitting.count.properties > maxProperties)
      throw new NotStrictError(`more than ${maxProperties} properties`)
    const inner = fitNode(schema, { path: at, depth: depth + 1 }, fitting)
    if (required.has(name)) return [name, inner]
    if (fitting.optional === 'refused') throw new NotStrictError(`${at} may be left out`)
    return [name, acceptsNull(schema, fitting.root) ? inner : { anyOf: [inner, { type: 'null' }] }]
  })
  return {
    properties: Object.fromEntries(entries),
    required: entries.map(([name]) => name),
    additionalProperties: false,
  }
}

/** The settings that decide how a tool is offered. */
export interface OfferSettings {
  readonly customTools: Readonly<Record<string, OpenAICustomTool>>
  readonly toolFields: Readonly<Record<string, JsonObject>>
  readonly strictTools: boolean
  /** The server knows strict tools. */
  readonly knowsStrict: boolean
  readonly warn: Warn<OpenAIWarning>
}

/** A tool as both wires of OpenAI know it, each in its own layout. */
export interface OfferedTool {
  readonly type: 'function' | 'custom'
  /** The name, the description, and the parameters of a function or the format of a custom tool. */
  readonly fields: JsonObject
  /** Absent for a custom tool, which has no schema. */
  readonly strict?: boolean
  /** The fields that the options add to this tool. */
  readonly more: JsonObject
}

/** Renders a tool, and warns of what its schema loses. */
export function toOfferedTool(tool: ToolDefinition, names: ToolNames, settings: OfferSettings): OfferedTool {
  const more = getOwn(settings.toolFields, tool.name) ?? {}
  const described: JsonObject = {
    name: names.toWire(tool.name),
    ...(tool.description.trim() !== '' && { description: tool.description.toWellFormed() }),
  }
  const custom = getOwn(settings.customTools, tool.name)
  if (custom) {
    return { type: 'custom', fields: { ...described, ...(custom.format && { format: custom.format }) }, more }
  }
  const plain = { schema: { type: 'object', ...tool.inputSchema }, strict: false }
  const { schema, strict, notes } = !settings.strictTools
    ? { ...plain, notes: [] }
    : settings.knowsStrict
      ? fitSchema(tool.inputSchema)
      : { ...plain, notes: ['the server knows no strict tools'] }
  for (const note of notes)
    settings.warn({ what: 'schema', message: `The schema of the tool ${tool.name}: ${note}.` })
  return { type: 'function', fields: { ...described, parameters: schema }, strict, more }
}

/** Returns the choice of tools, named as a function or a custom tool; `undefined` leaves it to the model. */
export function toOfferedChoice(
  choice: ToolChoice,
  names: ToolNames,
  { customTools }: Pick<OfferSettings, 'customTools'>,
): 'required' | 'none' | { readonly type: 'function' | 'custom'; readonly name: string } | undefined {
  switch (choice.type) {
    case 'auto':
      return undefined
    case 'any':
      return 'required'
    case 'none':
      return 'none'
    case 'tool': {
      const type = getOwn(customTools, choice.name) ? 'custom' : 'function'
      return { type, name: names.toWire(choice.name) }
    }
  }
}

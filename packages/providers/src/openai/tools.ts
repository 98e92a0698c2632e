import { acceptsNull, getOwn, isJsonObject } from '@tallystick/core/internal'
import type { Json, JsonObject, ToolChoice, ToolDefinition } from '@tallystick/core/vocabulary'
import { listAt, objectAt, textAt } from '../shared/json.ts'
import type { Warn } from '../shared/options.ts'
import { schemaInWords, type ToolNames } from '../shared/request.ts'
import type { OpenAICustomTool, OpenAIWarning } from './options.ts'

/** The types that a schema names. */
function typesOf(node: JsonObject): readonly Json[] {
  const type = node['type']
  return Array.isArray(type) ? (type as readonly Json[]) : type === undefined ? [] : [type]
}

/** The properties that a schema demands. */
function requiredOf(node: JsonObject): ReadonlySet<Json> {
  return new Set(listAt(node, 'required'))
}

/** Whether a schema is one of objects, as far as can be seen. */
function isObjectSchema(schema: Json): boolean {
  if (!isJsonObject(schema)) return false
  return '$ref' in schema || 'properties' in schema || typesOf(schema).includes('object')
}

/** A schema as the vendor will hold a model to it. */
export interface FittedSchema {
  readonly schema: JsonObject
  /** Whether it is in the vendor's strict subset. If not, the schema is what was given. */
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
/** Keywords that are handled by name, or that constrain nothing. */
const silent = new Set([
  '$ref',
  '$defs',
  'definitions',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'anyOf',
  'oneOf',
  'allOf',
  'format',
  '$schema',
  '$id',
  '$comment',
  'default',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
])
/** Without these a schema would mean something else, not just more. */
const essential = ['patternProperties', '$dynamicRef', '$recursiveRef', '$anchor', '$dynamicAnchor']
const formats = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'ipv6',
  'uuid',
])

class NotStrict extends Error {}

interface Fitting {
  /**
   * What becomes of a property that may be left out, where the strict subset knows required ones only: the model writes
   * `null` for it, which `withoutAddedNulls` takes away again; or the schema is not strict.
   */
  readonly optional: 'nulled' | 'refused'
  readonly root: JsonObject
  readonly notes: string[]
  readonly count: { properties: number }
}

/** Where in the schema: for the notes, and against schemas that are nested too deep. */
interface Place {
  readonly path: string
  readonly depth: number
}

/**
 * The schema in the vendor's strict subset, when it can be put there without refusing what it allows: objects are
 * closed, properties that may be left out may be `null`, keywords that only narrow are left out (the runtime checks them).
 * Anything else goes as it is, not strict.
 */
export function fitSchema(schema: JsonObject): FittedSchema {
  const given: JsonObject = { type: 'object', ...schema }
  const fitting: Fitting = { optional: 'nulled', root: given, notes: [], count: { properties: 0 } }
  try {
    if (given['type'] !== 'object' || ['anyOf', 'oneOf', '$ref'].some((keyword) => keyword in given)) {
      throw new NotStrict('its root is not a plain object')
    }
    return { schema: fitted(given, { path: '#', depth: 0 }, fitting), strict: true, notes: fitting.notes }
  } catch (error) {
    if (!(error instanceof NotStrict)) throw error
    return { schema: given, strict: false, notes: [`not strict: ${error.message}`] }
  }
}

/** Whether the vendor takes a schema for an answer at all: its root has to be an object, strict or not. */
export function isAnswerSchema(schema: JsonObject): boolean {
  const chooses = ['anyOf', 'oneOf', 'allOf', '$ref', 'enum', 'const'].some((keyword) => keyword in schema)
  return !chooses && (schema['type'] === undefined || schema['type'] === 'object')
}

/** The warning for an answer's schema that the vendor does not take. */
export const noAnswerSchema: string = schemaInWords(
  'it is not one of an object, which is all that the vendor takes',
)

function fitted(node: Json | undefined, place: Place, fitting: Fitting): JsonObject {
  if (!isJsonObject(node)) throw new NotStrict(`anything is allowed at ${place.path}`)
  if (place.depth > maxDepth) {
    throw new NotStrict(`it is nested deeper than ${maxDepth} levels at ${place.path}`)
  }
  const reference = textAt(node, '$ref')
  if (reference !== undefined) {
    if (!reference.startsWith('#')) throw new NotStrict(`${place.path} refers to another document`)
    // Beside a reference the vendor takes nothing.
    return { $ref: reference, ...definitions(node, place, fitting) }
  }
  if (Array.isArray(node['allOf'])) return fitted(alone(node, place), place, fitting)
  return {
    ...keywords(node, place, fitting),
    ...shape(node, place, fitting),
    ...definitions(node, place, fitting),
  }
}

/** A schema whose single `allOf` is a part of it like any other. */
function alone(node: JsonObject, { path }: Place): JsonObject {
  const { allOf, ...rest } = node
  const [only, ...more] = allOf as readonly Json[]
  if (!isJsonObject(only) || more.length > 0) throw new NotStrict(`allOf at ${path}`)
  return { ...only, ...rest }
}

function keywords(node: JsonObject, { path }: Place, { notes }: Fitting): JsonObject {
  const result: { [keyword: string]: Json } = {}
  for (const [keyword, value] of Object.entries(node)) {
    if (essential.includes(keyword)) throw new NotStrict(`${keyword} at ${path}`)
    if (kept.has(keyword)) result[keyword] = value
    else if (!silent.has(keyword)) notes.push(`${keyword} at ${path} was left out`)
  }
  const format = textAt(node, 'format')
  if (format === undefined) return result
  if (formats.has(format)) result['format'] = format
  else notes.push(`format ${format} at ${path} was left out`)
  return result
}

/** Returns the keywords for the content of a node: its choices, items or properties. */
function shape(node: JsonObject, place: Place, fitting: Fitting): JsonObject {
  const { path, depth } = place
  const choices = node['anyOf'] ?? node['oneOf']
  const types = typesOf(node)
  const chosen = Array.isArray(choices) ? { anyOf: chosenFrom(node, choices, place, fitting) } : {}
  if (!Array.isArray(choices) && !['type', 'enum', 'const'].some((keyword) => keyword in node)) {
    throw new NotStrict(`anything is allowed at ${path}`)
  }
  const inside = { path: `${path}/items`, depth: depth + 1 }
  const listed = types.includes('array') ? { items: fitted(node['items'], inside, fitting) } : {}
  return { ...chosen, ...listed, ...(types.includes('object') && closedObject(node, place, fitting)) }
}

function chosenFrom(
  node: JsonObject,
  choices: readonly Json[],
  { path, depth }: Place,
  fitting: Fitting,
): JsonObject[] {
  if (node['anyOf'] === undefined) fitting.notes.push(`oneOf at ${path} was sent as anyOf`)
  // Afterwards it would not be known whose null it was.
  const inside =
    choices.filter(isObjectSchema).length > 1 ? { ...fitting, optional: 'refused' as const } : fitting
  return choices.map((choice, index) =>
    fitted(choice, { path: `${path}/anyOf/${index}`, depth: depth + 1 }, inside),
  )
}

function definitions(node: JsonObject, { path }: Place, fitting: Fitting): JsonObject {
  const named = ['$defs', 'definitions'].flatMap((keyword) => {
    const all = objectAt(node, keyword)
    if (all === undefined) return []
    const entries = Object.entries(all).map(([name, schema]): [string, JsonObject] => [
      name,
      fitted(schema, { path: `${path}/${keyword}/${name}`, depth: 1 }, fitting),
    ])
    return [[keyword, Object.fromEntries(entries)] as const]
  })
  return Object.fromEntries(named)
}

function closedObject(node: JsonObject, { path, depth }: Place, fitting: Fitting): JsonObject {
  const properties = objectAt(node, 'properties')
  const more = node['additionalProperties']
  const open = more === undefined ? properties === undefined : more !== false
  if (open) throw new NotStrict(`properties of any name are allowed at ${path}`)
  const required = requiredOf(node)
  const entries = Object.entries(properties ?? {}).map(([name, schema]): [string, JsonObject] => {
    const at = `${path}/properties/${name}`
    fitting.count.properties += 1
    if (fitting.count.properties > maxProperties) throw new NotStrict(`more than ${maxProperties} properties`)
    const inner = fitted(schema, { path: at, depth: depth + 1 }, fitting)
    if (required.has(name)) return [name, inner]
    if (fitting.optional === 'refused') throw new NotStrict(`${at} may be left out`)
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
  /** Whether the server knows strict tools. */
  readonly knowsStrict: boolean
  readonly warn: Warn<OpenAIWarning>
}

/** A tool as both wires of OpenAI know it. Each wire lays these parts out in its own way. */
export interface OfferedTool {
  readonly type: 'function' | 'custom'
  /** The name, the description, and the parameters of a function or the format of a custom tool. */
  readonly fields: JsonObject
  /** Whether the model is held to the schema; absent for a custom tool, which has none. */
  readonly strict?: boolean
  /** The fields that the options add to this tool. */
  readonly more: JsonObject
}

/** Returns a tool as the wire offers it. Warns of what its schema loses. */
export function offeredTool(tool: ToolDefinition, names: ToolNames, settings: OfferSettings): OfferedTool {
  const more = getOwn(settings.toolFields, tool.name) ?? {}
  const described: JsonObject = {
    name: names.toWire(tool.name),
    ...(tool.description.trim() !== '' && { description: tool.description.toWellFormed() }),
  }
  const custom = getOwn(settings.customTools, tool.name)
  if (custom) {
    return { type: 'custom', fields: { ...described, ...(custom.format && { format: custom.format }) }, more }
  }
  const { schema, strict } = parametersOf(tool, settings)
  return { type: 'function', fields: { ...described, parameters: schema }, strict, more }
}

function parametersOf(
  { name, inputSchema }: ToolDefinition,
  { strictTools, knowsStrict, warn }: OfferSettings,
): { readonly schema: JsonObject; readonly strict: boolean } {
  const plain = { schema: { type: 'object', ...inputSchema }, strict: false }
  if (!strictTools) return plain
  const { notes, ...fitted } = knowsStrict
    ? fitSchema(inputSchema)
    : { ...plain, notes: ['the server knows no strict tools'] }
  for (const note of notes) warn({ what: 'schema', message: `The schema of the tool ${name}: ${note}.` })
  return fitted
}

/** Which tools may be called: a word, or the one tool that has to be; `undefined` leaves it to the model. */
export type OfferedChoice =
  | 'required'
  | 'none'
  | { readonly type: 'function' | 'custom'; readonly name: string }
  | undefined

/** Returns the choice of tools as both wires of OpenAI say it. */
export function offeredChoice(
  choice: ToolChoice,
  names: ToolNames,
  { customTools }: Pick<OfferSettings, 'customTools'>,
): OfferedChoice {
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

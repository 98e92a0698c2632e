import { isJsonObject } from '@tallystick/core/kit'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { listAt, objectAt, textAt } from '../../shared/json/json-reading.ts'

/** A schema as the vendor can hold a model to it. */
export interface FittedSchema {
  readonly schema: JsonObject
  /** Keywords and places that moved into descriptions, or are expressed in another way; a few words each. */
  readonly notes: readonly string[]
  /** Of what the vendor takes only so many in one request. */
  readonly size: SchemaSize
}

/** Properties that may be left out, and places where more than one type is allowed. */
export interface SchemaSize {
  readonly optional: number
  readonly unions: number
}

/** The schema cannot be put into the vendor's subset. The message says why, in a few words. */
export class NotStrictError extends Error {}

/** Keywords that are handled by name. */
const handled = new Set([
  'type',
  'title',
  'description',
  'enum',
  'const',
  'format',
  'minItems',
  'items',
  'properties',
  'required',
  'additionalProperties',
  'anyOf',
  'oneOf',
  'allOf',
  '$ref',
  '$defs',
  'definitions',
])
/** Keywords that constrain nothing. */
const silent = new Set(['$schema', '$id', '$comment', 'examples', 'deprecated', 'readOnly', 'writeOnly'])
/** Without these a schema would mean something else, not just more. */
const essential = [
  'patternProperties',
  'prefixItems',
  '$dynamicRef',
  '$recursiveRef',
  '$anchor',
  '$dynamicAnchor',
]
const formats = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
])

interface Fitting {
  readonly root: JsonObject
  readonly notes: string[]
  readonly size: { optional: number; unions: number }
  /** The definitions that each definition refers to, those of the root under the empty name. */
  readonly references: Map<string, Set<string>>
  /** The definition that is being looked at. */
  inside: string
}

/**
 * Returns the schema in the subset that the vendor compiles, if that refuses nothing that the schema allows: objects
 * are closed; keywords that only narrow (bounds, patterns) go into the description, and the runtime checks them. Throws
 * `NotStrictError` if that is not possible.
 */
export function fitSchema(given: JsonObject): FittedSchema {
  const root: JsonObject = { type: 'object', ...given }
  if (root['type'] !== 'object' || ['anyOf', 'oneOf', 'allOf', '$ref'].some((keyword) => keyword in root)) {
    throw new NotStrictError('its root is not a plain object')
  }
  const fitting: Fitting = {
    root,
    notes: [],
    size: { optional: 0, unions: 0 },
    references: new Map(),
    inside: '',
  }
  const schema = fitted(root, '#', fitting)
  return { schema: { ...schema, ...definitions(fitting) }, notes: fitting.notes, size: fitting.size }
}

function fitted(node: Json | undefined, path: string, fitting: Fitting): JsonObject {
  if (!isJsonObject(node)) throw new NotStrictError(`anything is allowed at ${path}`)
  const reference = textAt(node, '$ref')
  if (reference !== undefined) return referring(reference, node, path, fitting)
  if (Array.isArray(node['allOf'])) return fitted(alone(node, path), path, fitting)
  const { kept, inWords } = keywords(node, path, fitting)
  const description = [textAt(node, 'description'), rulesText(inWords)].filter(Boolean).join(' ')
  return { ...kept, ...(description !== '' && { description }), ...shape(node, path, fitting) }
}

function referring(reference: string, node: JsonObject, path: string, fitting: Fitting): JsonObject {
  if (!/^#\/(\$defs|definitions)\/[^/]+$/.test(reference)) {
    throw new NotStrictError(`${path} refers to something that is not among its definitions`)
  }
  const from = fitting.references.get(fitting.inside) ?? new Set()
  fitting.references.set(fitting.inside, from.add(reference))
  const beside = Object.keys(node).filter((keyword) => !['$ref', 'description', 'title'].includes(keyword))
  // Beside a reference the vendor takes nothing.
  fitting.notes.push(...beside.map((keyword) => `${keyword} beside the reference at ${path} was left out`))
  return { $ref: reference }
}

/** A schema whose single `allOf` is a part of it like any other. Of two, each would close the other out. */
function alone(node: JsonObject, path: string): JsonObject {
  const { allOf, ...rest } = node
  const [only, ...more] = allOf as readonly Json[]
  if (!isJsonObject(only) || more.length > 0) throw new NotStrictError(`allOf at ${path}`)
  return { ...only, ...rest }
}

interface Keywords {
  readonly kept: JsonObject
  readonly inWords: JsonObject
}

/** The keywords that are no schemas themselves: those that the vendor knows, and those to be described in words. */
function keywords(node: JsonObject, path: string, { notes }: Fitting): Keywords {
  const kept: { [keyword: string]: Json } = {}
  const inWords: { [keyword: string]: Json } = {}
  for (const [keyword, value] of Object.entries(node)) {
    if (essential.includes(keyword)) throw new NotStrictError(`${keyword} at ${path}`)
    if (isKnown(keyword, value, path)) kept[keyword] = value
    else if (keyword === 'format' || keyword === 'minItems' || !(handled.has(keyword) || silent.has(keyword)))
      inWords[keyword] = value
  }
  for (const keyword of Object.keys(inWords)) {
    // A default narrows nothing.
    if (keyword !== 'default') notes.push(`${keyword} at ${path} was put into the description`)
  }
  return { kept, inWords }
}

function isKnown(keyword: string, value: Json, path: string): boolean {
  switch (keyword) {
    case 'type':
    case 'title':
      return true
    case 'const':
    case 'enum':
      if ((keyword === 'enum' && Array.isArray(value) ? value : [value]).some(isComposite)) {
        throw new NotStrictError(`${keyword} of objects at ${path}`)
      }
      return true
    case 'format':
      return typeof value === 'string' && formats.has(value)
    case 'minItems':
      return value === 0 || value === 1
    default:
      return false
  }
}

function isComposite(value: Json): boolean {
  return typeof value === 'object' && value !== null
}

function rulesText(inWords: JsonObject): string {
  return Object.keys(inWords).length === 0 ? '' : `Rules: ${JSON.stringify(inWords)}`
}

/** Returns the keywords for the content of a node: its choices, items or properties. */
function shape(node: JsonObject, path: string, fitting: Fitting): JsonObject {
  const choices = node['anyOf'] ?? node['oneOf']
  const types = [node['type'] ?? []].flat()
  if (!Array.isArray(choices) && !['type', 'enum', 'const'].some((keyword) => keyword in node)) {
    throw new NotStrictError(`anything is allowed at ${path}`)
  }
  if (Array.isArray(choices) || types.length > 1) fitting.size.unions += 1
  if (Array.isArray(choices) && node['anyOf'] === undefined)
    fitting.notes.push(`oneOf at ${path} was sent as anyOf`)
  return {
    ...(Array.isArray(choices) && {
      anyOf: choices.map((choice, index) => fitted(choice, `${path}/anyOf/${index}`, fitting)),
    }),
    ...(types.includes('array') && { items: fitted(node['items'], `${path}/items`, fitting) }),
    ...(types.includes('object') && closedObject(node, path, fitting)),
  }
}

function closedObject(node: JsonObject, path: string, fitting: Fitting): JsonObject {
  const properties = objectAt(node, 'properties')
  const more = node['additionalProperties']
  const open = more === undefined ? properties === undefined : more !== false
  if (open) throw new NotStrictError(`properties of any name are allowed at ${path}`)
  const required = listAt(node, 'required')
  const names = Object.keys(properties ?? {})
  if (required.some((name) => typeof name !== 'string' || !names.includes(name))) {
    throw new NotStrictError(`a property without a schema is required at ${path}`)
  }
  fitting.size.optional += names.filter((name) => !required.includes(name)).length
  const entries = Object.entries(properties ?? {}).map(([name, schema]): [string, JsonObject] => [
    name,
    fitted(schema, `${path}/properties/${name}`, fitting),
  ])
  return { properties: Object.fromEntries(entries), required: [...required], additionalProperties: false }
}

/** The definitions that the schema refers to, from wherever. One that leads back to itself cannot be compiled. */
function definitions(fitting: Fitting): JsonObject {
  const found: { [keyword: string]: { [name: string]: JsonObject } } = {}
  const seen = new Set<string>()
  for (let open = referredBy('', fitting); open.length > 0;) {
    const reference = open.pop()!
    if (seen.has(reference)) continue
    seen.add(reference)
    const [, keyword = '', name = ''] = reference.split('/')
    const key = name.replaceAll('~1', '/').replaceAll('~0', '~')
    fitting.inside = reference
    const target = objectAt(fitting.root, keyword)?.[key]
    found[keyword] = { ...found[keyword], [key]: fitted(target, reference, fitting) }
    open.push(...referredBy(reference, fitting))
  }
  for (const reference of seen) {
    if (leadsTo(reference, reference, fitting)) throw new NotStrictError(`${reference} refers to itself`)
  }
  return found
}

function referredBy(reference: string, { references }: Fitting): string[] {
  return [...(references.get(reference) ?? [])]
}

function leadsTo(from: string, goal: string, fitting: Fitting, seen = new Set<string>()): boolean {
  return referredBy(from, fitting).some((next) => {
    if (next === goal) return true
    if (seen.has(next)) return false
    seen.add(next)
    return leadsTo(next, goal, fitting, seen)
  })
}

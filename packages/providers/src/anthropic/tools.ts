import type { Message, ModelRequest } from '@tallystick/core'
import { findReferred, getOwn, isJsonObject } from '@tallystick/core/internal'
import type { Json, JsonObject, ToolDefinition } from '@tallystick/core/vocabulary'
import { toItems, getList, getObject, getText } from '../shared/json.ts'
import { type Binding, describeSchemaMove, type ToolNames } from '../shared/request.ts'
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
import { readOpaque, type WireBlock } from './client.ts'
import type { RenderSettings } from './request.ts'

/** A schema as the vendor can enforce it. */
export interface FittedSchema {
  readonly schema: JsonObject
  /** Keywords and places that moved into descriptions, or are expressed in another way; a few words each. */
  readonly notes: readonly string[]
  /** Counts of what the vendor limits in one request. */
  readonly size: SchemaSize
}

/** Numbers of optional properties, and of places that allow more than one type. */
interface SchemaSize {
  readonly optional: number
  readonly unions: number
}

const handled = new Set([
  ...handledKeywords,
  ...silentKeywords,
  ...['type', 'title', 'description', 'enum', 'const', 'minItems'],
])
const essential = [...essentialKeywords, 'prefixItems']
const formats = [...knownFormats, 'uri']

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
 * Puts a schema into the subset that the vendor compiles, if that refuses nothing that the schema allows: objects are
 * closed; keywords that only narrow (bounds, patterns) go into the description, and the runtime checks them. Throws
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
  const schema = fitNode(root, '#', fitting)
  return { schema: { ...schema, ...fitDefinitions(fitting) }, notes: fitting.notes, size: fitting.size }
}

function fitNode(node: Json | undefined, path: string, fitting: Fitting): JsonObject {
  if (!isJsonObject(node)) throw new NotStrictError(`anything is allowed at ${path}`)
  const reference = getText(node, '$ref')
  if (reference !== undefined) {
    if (!/^#\/(\$defs|definitions)\/[^/]+$/.test(reference)) {
      throw new NotStrictError(`${path} refers to something that is not among its definitions`)
    }
    const from = fitting.references.get(fitting.inside) ?? new Set()
    fitting.references.set(fitting.inside, from.add(reference))
    // Beside a reference the vendor takes nothing.
    const beside = Object.keys(node).filter((key) => !['$ref', 'description', 'title'].includes(key))
    fitting.notes.push(...beside.map((key) => `${key} beside the reference at ${path} was left out`))
    return { $ref: reference }
  }
  if (Array.isArray(node['allOf'])) return fitNode(unwrapAllOf(node, path), path, fitting)
  // The vendor knows some keywords; others are described in words.
  const kept: { [keyword: string]: Json } = {}
  const inWords: { [keyword: string]: Json } = {}
  for (const [keyword, value] of Object.entries(node)) {
    if (essential.includes(keyword)) throw new NotStrictError(`${keyword} at ${path}`)
    if (isKnown(keyword, value, path)) kept[keyword] = value
    else if (keyword === 'format' || keyword === 'minItems' || !handled.has(keyword)) {
      inWords[keyword] = value
      // A default narrows nothing.
      if (keyword !== 'default') fitting.notes.push(`${keyword} at ${path} was put into the description`)
    }
  }
  const rules = Object.keys(inWords).length === 0 ? '' : `Rules: ${JSON.stringify(inWords)}`
  const description = [getText(node, 'description'), rules].filter(Boolean).join(' ')
  return { ...kept, ...(description !== '' && { description }), ...shape(node, path, fitting) }
}

function isKnown(keyword: string, value: Json, path: string): boolean {
  switch (keyword) {
    case 'type':
    case 'title':
      return true
    case 'const':
    case 'enum':
      for (const one of keyword === 'enum' && Array.isArray(value) ? (value as readonly Json[]) : [value]) {
        if (typeof one === 'object' && one !== null)
          throw new NotStrictError(`${keyword} of objects at ${path}`)
      }
      return true
    case 'format':
      return typeof value === 'string' && formats.includes(value)
    case 'minItems':
      return value === 0 || value === 1
    default:
      return false
  }
}

/** Returns the keywords for the content of a node: its choices, items or properties. */
function shape(node: JsonObject, path: string, fitting: Fitting): JsonObject {
  const choices = node['anyOf'] ?? node['oneOf']
  const types = [node['type'] ?? []].flat()
  requireShape(node, path)
  if (Array.isArray(choices) || types.length > 1) fitting.size.unions += 1
  if (Array.isArray(choices) && node['anyOf'] === undefined)
    fitting.notes.push(`oneOf at ${path} was sent as anyOf`)
  return {
    ...(Array.isArray(choices) && {
      anyOf: choices.map((choice, index) => fitNode(choice, `${path}/anyOf/${index}`, fitting)),
    }),
    ...(types.includes('array') && { items: fitNode(node['items'], `${path}/items`, fitting) }),
    ...(types.includes('object') && closeObject(node, path, fitting)),
  }
}

function closeObject(node: JsonObject, path: string, fitting: Fitting): JsonObject {
  const properties = readClosedProperties(node, path)
  const required = getList(node, 'required')
  const names = Object.keys(properties)
  if (required.some((name) => typeof name !== 'string' || !names.includes(name))) {
    throw new NotStrictError(`a property without a schema is required at ${path}`)
  }
  fitting.size.optional += names.filter((name) => !required.includes(name)).length
  const entries = Object.entries(properties).map(([name, schema]): [string, JsonObject] => [
    name,
    fitNode(schema, `${path}/properties/${name}`, fitting),
  ])
  return { properties: Object.fromEntries(entries), required: [...required], additionalProperties: false }
}

/** The definitions that the schema refers to. One that leads back to itself cannot be compiled. */
function fitDefinitions(fitting: Fitting): JsonObject {
  const found: { [keyword: string]: { [name: string]: JsonObject } } = {}
  const seen = new Set<string>()
  const listReferences = (from: string): string[] => [...(fitting.references.get(from) ?? [])]
  for (let open = listReferences(''); open.length > 0;) {
    const reference = open.pop()!
    if (seen.has(reference)) continue
    seen.add(reference)
    const [, keyword = '', name = ''] = reference.split('/')
    const key = name.replaceAll('~1', '/').replaceAll('~0', '~')
    fitting.inside = reference
    const target = getObject(fitting.root, keyword)?.[key]
    found[keyword] = { ...found[keyword], [key]: fitNode(target, reference, fitting) }
    open.push(...listReferences(reference))
  }
  for (const reference of seen) {
    const reached = new Set(listReferences(reference))
    for (const next of reached) for (const further of listReferences(next)) reached.add(further)
    if (reached.has(reference)) throw new NotStrictError(`${reference} refers to itself`)
  }
  return found
}

/** The keywords that the vendor refuses at the root of a tool's schema. */
const refused = ['anyOf', 'oneOf', 'allOf', '$ref'] as const

/**
 * Puts a plain object at the root of a tool's schema. A choice of objects there becomes one object with all their
 * properties; it requires those that each of them requires. The description states the choice.
 */
export function fitToolSchema(given: JsonObject): Pick<FittedSchema, 'schema' | 'notes'> {
  const used = refused.filter((keyword) => keyword in given)
  if (used.length === 0) return { schema: { ...given, type: 'object' }, notes: [] }
  const { anyOf, oneOf, allOf, $ref, ...rest } = given
  const parts = [...toItems(allOf), ...($ref === undefined ? [] : [{ $ref }])]
  const every = [rest, ...parts.map((part) => resolveReference(part, given))]
  const choices = [anyOf, oneOf].map((choice) => toItems(choice).map((one) => resolveReference(one, given)))
  const required = new Set(every.flatMap(listRequired))
  for (const [first, ...others] of choices) {
    const shared = first === undefined ? [] : listRequired(first)
    for (const name of shared) if (others.every((one) => listRequired(one).includes(name))) required.add(name)
  }
  const rules = `Rules: ${JSON.stringify(Object.fromEntries(used.map((keyword) => [keyword, given[keyword]])))}`
  const description = [getText(rest, 'description'), rules].filter(Boolean).join(' ')
  const properties = new Map<string, Json[]>()
  for (const schema of [...every, ...choices.flat()]) {
    for (const [name, property] of Object.entries(getObject(schema, 'properties') ?? {})) {
      const before = properties.get(name) ?? []
      if (!before.some((one) => JSON.stringify(one) === JSON.stringify(property))) before.push(property)
      properties.set(name, before)
    }
  }
  return {
    schema: {
      ...rest,
      type: 'object',
      properties: Object.fromEntries(
        [...properties].map(([name, all]): [string, Json] => [
          name,
          all.length > 1 ? { anyOf: all } : all[0]!,
        ]),
      ),
      description,
      ...(required.size > 0 && { required: [...required] }),
    },
    notes: used.map((keyword) => `${keyword} at # was put into the description`),
  }
}

/** Follows references to definitions. */
function resolveReference(schema: Json, root: JsonObject, steps = 0): JsonObject {
  if (!isJsonObject(schema) || steps > 20) return {}
  const reference = getText(schema, '$ref')
  if (reference === undefined) return schema
  return resolveReference(findReferred(reference, root) ?? {}, root, steps + 1)
}

function listRequired(schema: JsonObject): string[] {
  return getList(schema, 'required').filter((name) => typeof name === 'string')
}

/** The most that the vendor compiles in one request, the schema of the answer included. */
const bounds = { tools: 20, optional: 24, unions: 16 }

type Warn = RenderSettings['warn']

/**
 * Renders the tools, and whether they may be called. Tools that may not be called stay in the request: the vendor demands
 * them if the history has calls, and the prompt's cached beginning stays the same. `answer` is the share of the vendor's bounds
 * that the schema of the answer takes.
 */
export function offerTools(
  request: ModelRequest,
  settings: RenderSettings,
  { names, calls }: Binding,
  answer: SchemaSize | undefined,
): Partial<Pick<PlacedTools, 'changes' | 'toKeep'>> & {
  readonly fields: { readonly tools?: readonly JsonObject[]; readonly tool_choice?: JsonObject }
} {
  const { toolChoice } = request
  const schemas = settings.strictTools
    ? renderStrict(request.tools, answer, settings.warn)
    : request.tools.map((tool) => renderPlain(tool, settings.warn))
  const { eagerToolInputs, toolFields = {} } = settings
  const own = request.tools.map(({ name, description }, place): JsonObject => ({
    name: names.toWire(name),
    ...(description.trim() !== '' && { description: description.toWellFormed() }),
    ...schemas[place],
    ...(eagerToolInputs && { eager_input_streaming: true }),
    ...getOwn(toolFields, name),
  }))
  const vendors = [
    ...(settings.providerTools ?? []),
    ...(settings.mcpServers ?? []).map(({ name, toolset }) => ({
      type: 'mcp_toolset',
      mcp_server_name: name,
      ...toolset,
    })),
  ]
  const placed = settings.midConversationTools ? placeToolChanges(request.messages, own) : undefined
  const tools = [...(placed?.tools ?? own), ...vendors]
  if (tools.length > 0) {
    const choice = renderChoice(request, names, [...own, ...vendors], settings.warn)
    return { ...placed, fields: { tools, ...(choice && { tool_choice: choice }) } }
  }
  if (toolChoice.type === 'any' || toolChoice.type === 'tool') warnOfChoice(settings.warn)
  if (calls.length === 0) return { ...placed, fields: {} }
  const past = [...new Set(calls.map((call) => call.name))].map((name) => ({
    name: names.toWire(name),
    input_schema: { type: 'object' },
  }))
  return { ...placed, fields: { tools: past, tool_choice: { type: 'none' } } }
}

function renderPlain({ name, inputSchema }: ToolDefinition, warn: Warn): JsonObject {
  const { schema, notes } = fitToolSchema(inputSchema)
  for (const note of notes) warnOfSchema(warn, name, note)
  return { input_schema: schema }
}

/**
 * Makes as many tools strict as the vendor takes, from the front, so that a tool added after others changes nothing before
 * it.
 */
function renderStrict(
  tools: readonly ToolDefinition[],
  answer: SchemaSize | undefined,
  warn: Warn,
): readonly JsonObject[] {
  const used = { tools: 0, optional: answer?.optional ?? 0, unions: answer?.unions ?? 0 }
  return tools.map((tool) => {
    try {
      const fits = fitSchema(tool.inputSchema)
      const wanted = {
        tools: used.tools + 1,
        optional: used.optional + fits.size.optional,
        unions: used.unions + fits.size.unions,
      }
      checkBounds(wanted)
      Object.assign(used, wanted)
      for (const note of fits.notes) warnOfSchema(warn, tool.name, note)
      return { input_schema: fits.schema, strict: true }
    } catch (error) {
      if (!(error instanceof NotStrictError)) throw error
      warnOfSchema(warn, tool.name, `not strict: ${error.message}`)
      return renderPlain(tool, warn)
    }
  })
}

function checkBounds({ tools, optional, unions }: typeof bounds): void {
  if (tools > bounds.tools) throw new NotStrictError(`the vendor takes ${bounds.tools} strict tools`)
  if (optional > bounds.optional) {
    throw new NotStrictError(`the vendor takes ${bounds.optional} properties that may be left out`)
  }
  if (unions > bounds.unions) throw new NotStrictError(`the vendor takes ${bounds.unions} choices of types`)
}

/** Fits the schema of the answer; `undefined` if the vendor cannot enforce it. */
export function fitAnswerSchema(schema: JsonObject | undefined, warn: Warn): FittedSchema | undefined {
  if (schema === undefined) return undefined
  try {
    const fits = fitSchema(schema)
    checkBounds({ tools: 0, ...fits.size })
    for (const note of fits.notes)
      warn({ what: 'output_schema', message: `The schema of the answer: ${note}.` })
    return fits
  } catch (error) {
    if (!(error instanceof NotStrictError)) throw error
    warn({ what: 'output_schema', message: describeSchemaMove(error.message) })
    return undefined
  }
}

function warnOfSchema(warn: Warn, tool: string, note: string): void {
  warn({ what: 'schema', message: `The schema of the tool ${tool}: ${note}.` })
}

function warnOfChoice(warn: Warn): void {
  const message = 'A call was demanded of a tool that the request does not offer, so none is.'
  warn({ what: 'tool_choice', message })
}

function renderChoice(
  { toolChoice: choice, parallelToolCalls: parallel }: ModelRequest,
  names: ToolNames,
  tools: readonly JsonObject[],
  warn: Warn,
): JsonObject | undefined {
  const alone = parallel ? {} : { disable_parallel_tool_use: true }
  if (choice.type === 'none') return { type: 'none' }
  if (choice.type === 'any') return { type: 'any', ...alone }
  const isOffered = (name: string): boolean => tools.some((tool) => tool['name'] === name)
  // It is one of ours, or else one of the vendor's.
  const named = choice.type === 'tool' ? [names.toWire(choice.name), choice.name].find(isOffered) : undefined
  if (named !== undefined) return { type: 'tool', name: named, ...alone }
  if (choice.type === 'tool') warnOfChoice(warn)
  return parallel ? undefined : { type: 'auto', ...alone }
}

/** The kind of the part of a reply that keeps which tools its request offered, if they had changed. */
export const offeredTools = 'offered_tools'

/** The tools of one request, as an unchanging list and the changes to it. */
interface PlacedTools {
  /** Those that the first request of the history offered. */
  readonly tools: readonly JsonObject[]
  /** System blocks that change what is offered, by the place of the message that they stand before. */
  readonly changes: ReadonlyMap<number, readonly WireBlock[]>
  /** The tools that the reply has to keep for later requests; `undefined` if they have not changed. */
  readonly toKeep: readonly JsonObject[] | undefined
}

/**
 * Places each change of the offered tools where it happened, so that no earlier byte of the request changes: the
 * vendor's cache and the thinking of bound models depend on that. Earlier offers come from the replies of the history.
 */
function placeToolChanges(messages: readonly Message[], offered: readonly JsonObject[]): PlacedTools {
  const unchanged = { tools: offered, changes: new Map<number, readonly WireBlock[]>() }
  let first: readonly JsonObject[] | undefined
  let last: readonly JsonObject[] = []
  const changes = new Map<number, readonly WireBlock[]>()
  messages.forEach((message, place) => {
    const parts = message.role === 'assistant' ? message.parts : []
    const kept = parts.findLast((part) => part.type === 'provider' && part.kind === offeredTools)
    const note = readOpaque(kept?.opaque)?.note
    if (note === undefined) return
    const then = getList(note, 'tools').filter(isJsonObject)
    if (first !== undefined) changes.set(place, diffTools(last, then))
    first ??= then
    last = then
  })
  if (first === undefined) return { ...unchanged, toKeep: offered }
  const now = diffTools(last, offered)
  if (now.length === 0) return { tools: first, changes, toKeep: undefined }
  // The vendor takes no change between a reply that paused and its continuation.
  if ((messages.at(-1)?.role ?? 'assistant') === 'assistant') return { ...unchanged, toKeep: undefined }
  return { tools: first, changes: changes.set(messages.length, now), toKeep: offered }
}

/** By value, since the vendor takes a definition again without harm, and a reference only to one that it has. */
function diffTools(before: readonly JsonObject[], after: readonly JsonObject[]): readonly WireBlock[] {
  const byName = (tools: readonly JsonObject[]): Map<string | undefined, string> =>
    new Map(tools.map((tool) => [getText(tool, 'name'), JSON.stringify(tool)]))
  const [had, has] = [byName(before), byName(after)]
  const removed = before.filter((tool) => !has.has(getText(tool, 'name')))
  const added = after.filter((tool) => had.get(getText(tool, 'name')) !== JSON.stringify(tool))
  return [
    ...removed.map(({ name = '' }) => ({ type: 'tool_removal', tool: { type: 'tool_reference', name } })),
    ...added.map((definition) => ({ type: 'tool_addition', tool: { type: 'tool_definition', definition } })),
  ]
}

import { findReferred, getOwn, isJsonObject } from '@tallystick/core/internal'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { boundText } from './text.ts'

/** One thing that is wrong with an input, as any validator reports it. */
export interface InputIssue {
  /** Keys and places from the input's root down to what is wrong. */
  readonly path: readonly PropertyKey[]
  /** The validator's own words. */
  readonly message: string
  /** Keys of the object at `path` that the schema does not allow. */
  readonly unknownKeys?: readonly string[]
}

/** An input that was checked: the value as the schema gives it out (defaults, conversions), or what is wrong. */
export type Parsed<Input> =
  | { readonly ok: true; readonly value: Input }
  | { readonly ok: false; readonly issues: readonly InputIssue[] }

/** Checks an input: at once where the schema does. Throws or rejects only if the schema itself is at fault. */
export type Parse<Input> = (input: JsonObject) => Parsed<Input> | Promise<Parsed<Input>>

const maxLines = 8
const maxLineCharacters = 200
const maxValuesShown = 12

/**
 * Tells a model what is wrong with its input so that it can correct it: one line an issue, with the path, what was
 * expected and what kind of value was given. Bounded in lines and in their length.
 */
export function explainIssues(
  tool: { readonly name: string; readonly inputSchema: JsonObject },
  input: JsonObject,
  issues: readonly InputIssue[],
): string {
  const lines = new Set<string>()
  for (const issue of issues) {
    for (const line of writeLines(tool.inputSchema, input, issue))
      lines.add(boundText(line, maxLineCharacters))
  }
  const shown = [...lines].slice(0, maxLines).map((line) => `- ${line}`)
  if (lines.size > maxLines) shown.push(`- and ${lines.size - maxLines} more`)
  return (
    `The input does not fit the schema of ${tool.name}. Nothing was run. ` +
    `Correct it and call the tool again:\n${shown.join('\n')}`
  )
}

function writeLines(schema: JsonObject, input: JsonObject, issue: InputIssue): readonly string[] {
  if (issue.unknownKeys)
    return issue.unknownKeys.map((key) => explainUnknownKey(schema, input, [...issue.path, key]))
  const label = writePath(input, issue.path)
  const parentPath = issue.path.slice(0, -1)
  const key = issue.path.at(-1)
  const parent = readAt(input, parentPath)
  const value = readAt(input, issue.path)
  if (key !== undefined && holdsKeys(parent) && !Object.hasOwn(parent, key)) {
    return [`${label}: missing${explainExpected(schema, issue.path, ', ')}`]
  }
  const allowed = readExpectation(schema, parentPath).keys
  if (key !== undefined && allowed && !allowed.includes(String(key)))
    return [explainUnknownKey(schema, input, issue.path)]
  const { types, values } = readExpectation(schema, issue.path)
  if (types && !isOfTypes(value, types))
    return [`${label}:${explainExpected(schema, issue.path)}, received ${readKind(value)}`]
  if (values && !values.some((known) => known === value)) {
    return [`${label}:${explainExpected(schema, issue.path)}, received another ${readKind(value)}`]
  }
  return [`${label}: ${tidyMessage(issue.message, label)}`]
}

function explainUnknownKey(schema: JsonObject, input: JsonObject, path: readonly PropertyKey[]): string {
  const keys = readExpectation(schema, path.slice(0, -1)).keys
  const known = keys && keys.length > 0 ? `; the keys are ${keys.slice(0, maxValuesShown).join(', ')}` : ''
  return `${writePath(input, path)}: unknown key${known}`
}

function explainExpected(schema: JsonObject, path: readonly PropertyKey[], lead = ' '): string {
  const { types, values } = readExpectation(schema, path)
  if (values && values.length > 0) {
    const shown = values.slice(0, maxValuesShown).map((value) => JSON.stringify(value))
    const more = values.length > maxValuesShown ? ', …' : ''
    return `${lead}expected ${values.length > 1 ? 'one of ' : ''}${shown.join(', ')}${more}`
  }
  return types && types.length > 0 ? `${lead}expected ${types.join(' or ')}` : ''
}

/** A validator's message without what the line says already: a category in front, or the path (arktype). */
function tidyMessage(message: string, label: string): string {
  const withoutPath = message.startsWith(`${label} `) ? message.slice(label.length + 1) : message
  const bare = withoutPath.replace(/^Invalid (?:input|type|value|option): /, '')
  const text = bare === '' || bare === 'Invalid input' ? 'does not fit the schema' : bare
  return text.replaceAll(/\s+/g, ' ')
}

/** `items[2].name`; keys that are not plain words in quotes; the input itself as `input`. */
function writePath(input: JsonObject, path: readonly PropertyKey[]): string {
  let label = ''
  path.forEach((key, index) => {
    if (Array.isArray(readAt(input, path.slice(0, index)))) label += `[${String(key)}]`
    else if (/^[\w$-]+$/.test(String(key))) label += `${label && '.'}${String(key)}`
    else label += `[${JSON.stringify(String(key))}]`
  })
  return label || 'input'
}

function readAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input
  for (const key of path) value = holdsKeys(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return value
}

function holdsKeys(value: unknown): value is Readonly<Record<PropertyKey, unknown>> {
  return typeof value === 'object' && value !== null
}

const maxDepth = 16

/** The demands of a JSON Schema on the value at one place; a part is absent if the schema does not state it plainly. */
export interface Expectation {
  /** JSON types, such as `string`, `integer`. */
  readonly types?: readonly string[]
  /** The only values allowed. */
  readonly values?: readonly Json[]
  /** The only keys allowed. */
  readonly keys?: readonly string[]
}

/** Reads from a JSON Schema what it expects at a path, through local references and choices. */
export function readExpectation(root: JsonObject, path: readonly PropertyKey[]): Expectation {
  let places: readonly JsonObject[] = listBranches(root, root, 0)
  for (const key of path) {
    places = places
      .flatMap((schema) => listBelow(schema, key))
      .flatMap((schema) => listBranches(root, schema, 0))
  }
  if (places.length === 0) return {}
  const types = places.map(readTypes)
  const values = places.map(readValues)
  const [only] = places
  const isClosed =
    places.length === 1 && only?.additionalProperties === false && only.patternProperties === undefined
  const keys = isClosed ? Object.keys(Object(only.properties) as object) : undefined
  return {
    ...(types.every((known) => known !== undefined) && { types: [...new Set(types.flat())] }),
    ...(values.every((known) => known !== undefined) && { values: values.flat() }),
    ...(keys && { keys }),
  }
}

/** A schema, or the schemas that it is a choice of. */
function listBranches(root: JsonObject, schema: JsonObject, depth: number): readonly JsonObject[] {
  if (depth > maxDepth) return [{}]
  const target = typeof schema.$ref === 'string' ? findReferred(schema.$ref, root) : undefined
  if (schema.$ref !== undefined) return target ? listBranches(root, target, depth + 1) : [{}]
  const choice = schema.anyOf ?? schema.oneOf
  if (!Array.isArray(choice) || schema.type !== undefined) return [schema]
  return choice.flatMap((branch: Json) =>
    isJsonObject(branch) ? listBranches(root, branch, depth + 1) : [{}],
  )
}

function listBelow(schema: JsonObject, key: PropertyKey): readonly JsonObject[] {
  if (typeof key === 'symbol') return []
  const { properties, prefixItems, items, additionalProperties } = schema
  const named = isJsonObject(properties) ? getOwn(properties, String(key)) : undefined
  // Before 2020-12 a list of schemas by place stood under `items`.
  const tuple: unknown = prefixItems ?? items
  const placed = Array.isArray(tuple) ? (tuple as readonly Json[])[Number(key)] : undefined
  const found = named ?? placed ?? (schema.type === 'array' ? items : additionalProperties)
  return isJsonObject(found) ? [found] : []
}

function readTypes(schema: JsonObject): readonly string[] | undefined {
  const { type } = schema
  if (typeof type === 'string') return [type]
  if (Array.isArray(type)) return type.filter((name) => typeof name === 'string')
  const values = readValues(schema)
  return values && [...new Set(values.map(readKind))]
}

function readValues(schema: JsonObject): readonly Json[] | undefined {
  if (schema.const !== undefined) return [schema.const]
  return Array.isArray(schema.enum) ? schema.enum : undefined
}

/** The JSON kind of a value, as an explanation names it. */
export function readKind(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

export function isOfTypes(value: unknown, types: readonly string[]): boolean {
  return types.some((type) => (type === 'integer' ? Number.isInteger(value) : type === readKind(value)))
}

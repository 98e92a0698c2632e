import {
  dereference,
  type OutputUnit,
  type Schema,
  schemaArrayKeyword,
  schemaKeyword,
  schemaMapKeyword,
  Validator,
} from '@cfworker/json-schema'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { isJsonObject, type Json, type JsonObject } from '../values/json.ts'

/** Returns what of a value does not fit; nothing where all of it does. */
export type JsonSchemaCheck = (value: Json) => readonly StandardSchemaV1.Issue[]

/**
 * Reads a JSON Schema of draft 2020-12, without `eval`. Throws a `TypeError` where no value can be checked against it: a
 * keyword holds no schema, a `$ref` leads nowhere, a pattern is not a regular expression.
 */
export function readJsonSchema(schema: JsonObject): JsonSchemaCheck {
  requireSchema(schema, 'it')
  // The validator writes into the schema that it is given.
  const copy = JSON.parse(JSON.stringify(schema)) as Schema
  requireTargets(copy)
  const validator = new Validator(copy, '2020-12', false)
  return (value) => {
    const { valid, errors } = validator.validate(value)
    return valid ? [] : issuesOf(errors)
  }
}

const types: ReadonlySet<unknown> = new Set([
  ...['null', 'boolean', 'number', 'integer', 'string', 'array', 'object'],
])

/** Finds what the validator would only meet at some value, or never. */
function requireSchema(schema: Json | undefined, place: string): void {
  if (typeof schema === 'boolean') return
  if (!isJsonObject(schema)) throw new TypeError(`${place} is neither an object nor true or false`)
  const { type, required, enum: values } = schema
  if (type !== undefined && ![type].flat().every((each) => types.has(each)))
    throw new TypeError(`type of ${place} names no type of JSON`)
  for (const [name, list] of Object.entries({ required, enum: values })) {
    if (list !== undefined && !Array.isArray(list)) throw new TypeError(`${name} of ${place} is not a list`)
  }
  for (const [keyword, value] of Object.entries(schema)) {
    if (Object.hasOwn(schemaMapKeyword, keyword)) {
      if (!isJsonObject(value)) throw new TypeError(`${keyword} of ${place} is not an object of schemas`)
      for (const [name, each] of Object.entries(value)) requireSchema(each, `${name} of ${keyword}`)
    } else if (Array.isArray(value) && Object.hasOwn(schemaArrayKeyword, keyword)) {
      for (const each of value as readonly Json[]) requireSchema(each, `an item of ${keyword}`)
    } else if (Object.hasOwn(schemaKeyword, keyword)) requireSchema(value, keyword)
    else if (Object.hasOwn(schemaArrayKeyword, keyword))
      throw new TypeError(`${keyword} of ${place} is not a list of schemas`)
  }
}

function requireTargets(schema: Schema): void {
  const known = dereference(schema)
  for (const part of Object.values(known)) {
    if (typeof part === 'boolean') continue
    const { $ref, __absolute_ref__: target, pattern, patternProperties = {} } = part
    if ($ref !== undefined && known[target ?? $ref] === undefined)
      throw new TypeError(`$ref "${$ref}" leads to nothing in it`)
    for (const source of [...(pattern === undefined ? [] : [pattern]), ...Object.keys(patternProperties)]) {
      try {
        RegExp(source, 'u')
      } catch (cause) {
        throw new TypeError(`"${source}" is not a regular expression`, { cause })
      }
    }
  }
}

/** Keywords whose error only says that something below is wrong; the errors below say what. */
const wrappers: ReadonlySet<string> = new Set([
  ...['$ref', 'allOf', 'if', 'then', 'else', 'dependentSchemas', 'items', 'prefixItems', 'unevaluatedItems'],
  ...['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties'],
])

function issuesOf(errors: readonly OutputUnit[]): readonly StandardSchemaV1.Issue[] {
  const issues: StandardSchemaV1.Issue[] = []
  let choice: string | undefined
  for (const { keyword, keywordLocation, instanceLocation, error } of errors) {
    // What each branch of a choice has against the value would contradict the others.
    if (choice !== undefined && keywordLocation.startsWith(`${choice}/`)) continue
    choice = keyword === 'anyOf' || keyword === 'oneOf' || keyword === 'not' ? keywordLocation : undefined
    if (!wrappers.has(keyword)) issues.push(toIssue(instanceLocation, error))
  }
  return issues.length > 0 ? issues : [{ message: 'does not fit' }]
}

/** The validator calls the value "Instance"; the path names it already. A missing field is named where it should be. */
function toIssue(instanceLocation: string, error: string): StandardSchemaV1.Issue {
  const path = instanceLocation
    .split('/')
    .slice(1)
    .map((segment) => decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~'))
  const missing = /^Instance does not have required property "(.*)"\.$/s.exec(error)?.[1]
  if (missing !== undefined) return { path: [...path, missing], message: 'is missing' }
  if (error === 'False boolean schema.') return { path, message: 'is not allowed' }
  return { path, message: error.replace(/^Instance /, '').replace(/\.$/, '') }
}

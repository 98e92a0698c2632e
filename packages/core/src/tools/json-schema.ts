import type { OutputUnit, Schema, Validator } from '@cfworker/json-schema'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { findPointed, readPointer } from '../events/answer-schema.ts'
import { isJsonObject, type Json, type JsonObject } from '../values/json.ts'

/** Resolves to what of a value does not fit: nothing if all of it does. */
export type JsonSchemaCheck = (value: Json) => Promise<readonly StandardSchemaV1.Issue[]>

/**
 * Reads a JSON Schema of draft 2020-12, which is checked without `eval`. Throws a `TypeError` if no value can be checked
 * against it: a keyword holds no schema, a `$ref` leads nowhere, a pattern is not a regular expression.
 */
export function readJsonSchema(schema: JsonObject): JsonSchemaCheck {
  requireSchema(schema, 'it', schema)
  const validator = createValidator(schema)
  // Whoever checks a value learns of a failure.
  validator.catch(() => {})
  return async (value) => {
    const { valid, errors } = (await validator).validate(value)
    return valid ? [] : toIssues(errors)
  }
}

/** Most programs give no JSON Schema, so the validator is loaded with the first one. */
async function createValidator(schema: JsonObject): Promise<Validator> {
  const { Validator: Of } = await import('@cfworker/json-schema')
  // It writes into the schema that it is given.
  return new Of(JSON.parse(JSON.stringify(schema)) as Schema, '2020-12', false)
}

const types: ReadonlySet<unknown> = new Set([
  ...['null', 'boolean', 'number', 'integer', 'string', 'array', 'object'],
])

/** Keywords that hold a schema, a list of schemas, or schemas by name. */
const schemaKeywords: ReadonlySet<string> = new Set([
  ...['items', 'unevaluatedItems', 'contains', 'additionalProperties', 'unevaluatedProperties'],
  ...['propertyNames', 'not', 'if', 'then', 'else'],
])
const listKeywords: ReadonlySet<string> = new Set(['prefixItems', 'allOf', 'anyOf', 'oneOf'])
const mapKeywords: ReadonlySet<string> = new Set([
  ...['$defs', 'definitions', 'properties', 'patternProperties', 'dependentSchemas'],
])

/** Finds what the validator would only meet at some value, or never. `place` names the schema, `root` holds it. */
function requireSchema(schema: Json | undefined, place: string, root: JsonObject): void {
  if (typeof schema === 'boolean') return
  if (!isJsonObject(schema)) throw new TypeError(`${place} is neither an object nor true or false`)
  const { type, required, enum: values, pattern, patternProperties, $ref } = schema
  if (type !== undefined && ![type].flat().every((each) => types.has(each)))
    throw new TypeError(`type of ${place} is not a type of JSON`)
  for (const [name, list] of Object.entries({ required, enum: values })) {
    if (list !== undefined && !Array.isArray(list)) throw new TypeError(`${name} of ${place} is not a list`)
  }
  if (typeof $ref === 'string' && $ref.startsWith('#/') && findPointed($ref, root) === undefined)
    throw new TypeError(`$ref "${$ref}" leads to nothing in it`)
  for (const [keyword, value] of Object.entries(schema)) {
    if (schemaKeywords.has(keyword)) requireSchema(value, keyword, root)
    else if (listKeywords.has(keyword)) {
      if (!Array.isArray(value)) throw new TypeError(`${keyword} of ${place} is not a list of schemas`)
      for (const each of value as readonly Json[]) requireSchema(each, `an item of ${keyword}`, root)
    } else if (mapKeywords.has(keyword)) {
      if (!isJsonObject(value)) throw new TypeError(`${keyword} of ${place} is not an object of schemas`)
      for (const [name, each] of Object.entries(value)) requireSchema(each, `${name} of ${keyword}`, root)
    }
  }
  for (const source of [pattern ?? '', ...Object.keys(Object(patternProperties) as object)])
    requirePattern(source)
}

function requirePattern(source: Json): void {
  try {
    RegExp(source as string, 'u')
  } catch (cause) {
    throw new TypeError(`${JSON.stringify(source)} is not a regular expression`, { cause })
  }
}

/** Keywords whose error only says that something below is wrong; the errors below say what. */
const wrappers: ReadonlySet<string> = new Set([
  ...['$ref', 'allOf', 'if', 'then', 'else', 'dependentSchemas', 'items', 'prefixItems', 'unevaluatedItems'],
  ...['properties', 'patternProperties', 'additionalProperties', 'unevaluatedProperties'],
])

function toIssues(errors: readonly OutputUnit[]): readonly StandardSchemaV1.Issue[] {
  const issues: StandardSchemaV1.Issue[] = []
  let choice: string | undefined
  for (const { keyword, keywordLocation, instanceLocation, error } of errors) {
    // The errors of a choice's branches would contradict each other.
    if (choice !== undefined && keywordLocation.startsWith(`${choice}/`)) continue
    choice = keyword === 'anyOf' || keyword === 'oneOf' || keyword === 'not' ? keywordLocation : undefined
    if (!wrappers.has(keyword)) issues.push(toIssue(instanceLocation, error))
  }
  return issues.length > 0 ? issues : [{ message: 'does not fit' }]
}

/** The validator calls the value "Instance"; the path names it already. A missing field is named where it should be. */
function toIssue(instanceLocation: string, error: string): StandardSchemaV1.Issue {
  const path = readPointer(instanceLocation)
  const missing = /^Instance does not have required property "(.*)"\.$/s.exec(error)?.[1]
  if (missing !== undefined) return { path: [...path, missing], message: 'is missing' }
  if (error === 'False boolean schema.') return { path, message: 'is not allowed' }
  return { path, message: error.replace(/^Instance /, '').replace(/\.$/, '') }
}

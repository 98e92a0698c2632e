import {
  dereference,
  format,
  type OutputUnit,
  type Schema,
  type SchemaDraft,
  Validator,
} from '@cfworker/json-schema'
import { ConfigurationError } from '@tallystick/core'
import { option } from '@tallystick/core/kit'
import { type Json, type JsonObject } from '@tallystick/core/vocabulary'
import { boundedTest } from './bounded-test.ts'
import type { InputIssue, Parse } from './input-issue.ts'

/** Keywords whose error only says that something below is wrong; the errors below say what. */
const wrappers = new Set([
  '$ref',
  '$recursiveRef',
  'allOf',
  'if',
  'then',
  'else',
  'properties',
  'patternProperties',
  'additionalProperties',
  'unevaluatedProperties',
  'dependentSchemas',
  'prefixItems',
  'items',
  'additionalItems',
  'unevaluatedItems',
])

/** Checks inputs against a plain JSON Schema, without `eval`. Throws `ConfigurationError` for a broken schema. */
export function jsonSchemaParse(toolName: string, jsonSchema: JsonObject): Parse<JsonObject> {
  // The validator writes into the schema that it is given.
  const schema: Schema = structuredClone(jsonSchema)
  assertSound(toolName, schema)
  const namesPatterns = boundPatterns(toolName, schema)
  const validator = new Validator(schema, draftOf(jsonSchema), false)
  return (input) => {
    const long = namesPatterns ? longNameIn(input) : undefined
    if (long !== undefined) return { ok: false, issues: [long] }
    const { valid, errors } = validator.validate(input)
    return valid ? { ok: true, value: input } : { ok: false, issues: issuesOf(errors) }
  }
}

function draftOf({ $schema }: { readonly $schema?: Json }): SchemaDraft {
  if (typeof $schema !== 'string') return '2020-12'
  if (/draft-0?4\b/.test($schema)) return '4'
  // Draft 7 reads what draft 6 says.
  if (/draft-0?[67]\b/.test($schema)) return '7'
  return $schema.includes('2019-09') ? '2019-09' : '2020-12'
}

/** Finds at definition what the validator would only meet at some call: references to nowhere, broken patterns. */
function assertSound(toolName: string, schema: Schema): void {
  const broken = (detail: string): ConfigurationError =>
    new ConfigurationError(
      `The JSON Schema of the tool ${toolName} cannot be checked against: ${detail}. Correct it.`,
    )
  const unfit = option.maybe(option.anyObject)(schema.properties, 'its properties')
  if (unfit) throw broken('its properties are no object of schemas by name')
  const known = dereference(schema)
  for (const part of Object.values(known)) {
    if (typeof part === 'boolean') continue
    const { $ref, __absolute_ref__: target, pattern } = part
    if ($ref !== undefined && known[target ?? $ref] === undefined) {
      throw broken(`$ref "${$ref}" leads to nothing in this schema`)
    }
    const sources = [
      ...(pattern === undefined ? [] : [pattern]),
      ...Object.keys(part.patternProperties ?? {}),
    ]
    const unreadable = sources.find((source) => !isPattern(source))
    if (unreadable !== undefined) throw broken(`"${unreadable}" is no regular expression`)
  }
}

/** What the name of a format begins with that stands for a pattern; the pattern follows. */
const patternFormat = 'pattern: '

/**
 * Has patterns tried in time that grows with the text alone: a regular expression of JavaScript may need longer than any
 * process lives for thirty characters, which a model writes. The validator tries `pattern` with such a one, so each
 * becomes a format, of which it calls a function. Throws for those that cannot be tried so. Returns whether the schema has
 * patterns for names of properties, which the validator tries itself.
 */
function boundPatterns(toolName: string, schema: Schema): boolean {
  let namesPatterns = false
  for (const part of Object.values(dereference(schema))) {
    if (typeof part === 'boolean') continue
    const { pattern, patternProperties = {} } = part
    for (const source of Object.keys(patternProperties)) {
      namesPatterns = true
      if (!isQuickPattern(source)) throw endlessPattern(toolName, source)
    }
    if (typeof pattern !== 'string') continue
    const name = `${patternFormat}${pattern}`
    if (!Object.hasOwn(format, name)) format[name] = testOf(toolName, pattern)
    delete part.pattern
    part.allOf = [...(part.allOf ?? []), { format: name }]
  }
  return namesPatterns
}

function testOf(toolName: string, source: string): (text: string) => boolean {
  const test = boundedTest(source)
  if (test === undefined) throw endlessPattern(toolName, source)
  return test
}

function endlessPattern(toolName: string, source: string): ConfigurationError {
  return new ConfigurationError(
    `The JSON Schema of the tool ${toolName} has the pattern "${source}", and to try it on what a model wrote could take longer than any process lives: it looks ahead or behind, refers back, repeats more than 1,000 times, or, for names of properties, repeats in several places. Write it without that, or give a Standard Schema with a check of your own.`,
  )
}

/**
 * Whether JavaScript tries a pattern in time that grows with the square of a text at most: nothing in it repeats but single
 * characters, and in one place. Classes and escapes count as single characters.
 */
function isQuickPattern(source: string): boolean {
  const bare = source
    .replaceAll(/\\(?:u\{[^}\\]*\}|[pP]\{[^}\\]*\}|.)/gu, 'x')
    .replaceAll(/\[[^\]]*\]?/gu, 'x')
  if (/\)[*+?{]|\(\?[=!<]/.test(bare) || /\\[1-9k]/.test(source)) return false
  return (
    bare
      .replaceAll('(?', '(')
      .replaceAll(/\{\d+\}/g, '')
      .split(/[*+?{]\??/).length <= 2
  )
}

/** The longest name of a property that a pattern is tried on. */
const maxName = 1_000

function longNameIn(value: Json, path: readonly string[] = []): InputIssue | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, field] of Object.entries(value)) {
    if (name.length > maxName)
      return { path, message: `has the name of a property that is longer than ${maxName} characters` }
    const below = longNameIn(field, [...path, name])
    if (below) return below
  }
  return undefined
}

function isPattern(source: string): boolean {
  try {
    return RegExp(source, 'u') instanceof RegExp
  } catch {
    return false
  }
}

function issuesOf(errors: readonly OutputUnit[]): readonly InputIssue[] {
  const issues: InputIssue[] = []
  let choice: string | undefined
  for (const { keyword, keywordLocation, instanceLocation, error } of errors) {
    // What each branch of a choice has against the input would contradict the others.
    if (choice !== undefined && keywordLocation.startsWith(`${choice}/`)) continue
    choice = keyword === 'anyOf' || keyword === 'oneOf' || keyword === 'not' ? keywordLocation : undefined
    if (wrappers.has(keyword)) continue
    issues.push({ path: pathOf(instanceLocation, error), message: plain(error) })
  }
  if (issues.length === 0) issues.push({ path: [], message: plain(errors[0]?.error ?? '') })
  return issues
}

/** Returns the path of the invalid value; for a missing key, the path where it should be. */
function pathOf(instanceLocation: string, error: string): readonly string[] {
  const path = keysOf(instanceLocation)
  const missing = /^Instance does not have required property "(.*)"\.$/s.exec(error)?.[1]
  return missing === undefined ? path : [...path, missing]
}

/** The validator calls the value "Instance"; the line that this lands in names the value already. */
function plain(error: string): string {
  return error
    .replace(`format "${patternFormat}`, 'pattern "')
    .replace(/^Instance /, '')
    .replace(/\.$/, '')
}

/** `#/items/0/a~1b` → `items`, `0`, `a/b`. */
function keysOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((segment) => decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~'))
}

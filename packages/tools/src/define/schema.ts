import {
  dereference,
  format,
  type OutputUnit,
  type Schema,
  type SchemaDraft,
  Validator,
} from '@cfworker/json-schema'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { ConfigurationError } from '@tallystick/core'
import { option, formatErrorSentence } from '@tallystick/core/internal'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { RE2JS } from 're2js'
import { toJson } from './content.ts'
import type { InputIssue, Parse, Parsed } from './input-issues.ts'

/** Schema of a tool's input: a Standard Schema that also gives JSON Schema, or a JSON Schema of type object. */
export type InputSchema = StandardSchemaV1 | JsonObject

/** Input of `execute`: a Standard Schema's output type, or any JSON object. */
export type InputOf<Schema extends InputSchema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Schema>
  : JsonObject

/** The two uses of a schema: the JSON Schema for the model, and the check of an input. */
export interface ReadSchema<Input> {
  readonly jsonSchema: JsonObject
  readonly parse: Parse<Input>
}

/** Checks what a tool returned. Throws or rejects only if the schema itself is at fault. */
export type OutputCheck = (value: unknown) => Parsed<unknown> | Promise<Parsed<unknown>>

/** Reads the `input` of a tool's definition. Throws `ConfigurationError` for one that cannot serve. */
export function readSchema<Schema extends InputSchema>(
  toolName: string,
  input: Schema,
): ReadSchema<InputOf<Schema>> {
  if (isStandard(input)) return readStandard(toolName, input) as ReadSchema<InputOf<Schema>>
  requireSchema(toolName, 'input', input)
  const jsonSchema = readSchemaObject(toolName, input)
  return { jsonSchema, parse: createSchemaParse(toolName, jsonSchema) } as ReadSchema<InputOf<Schema>>
}

/** Reads the `output` of a tool's definition. Throws `ConfigurationError` for one that cannot serve. */
export function readOutput(toolName: string, output: InputSchema): OutputCheck {
  if (isStandard(output)) return createStandardParse(output)
  requireSchema(toolName, 'output', output)
  const parse = createSchemaParse(toolName, output)
  // As JSON, which the schema describes and the ledger records.
  return (value) => parse(toJson(value) as JsonObject)
}

function requireSchema(toolName: string, part: 'input' | 'output', schema: unknown): void {
  if (typeof schema === 'object' && schema !== null && !Array.isArray(schema)) return
  throw new ConfigurationError(
    `The ${part} of the tool ${toolName} is not a schema. Give a Standard Schema (such as z.object({ … })) or a JSON Schema object.`,
  )
}

// arktype's schemas are functions.
function isStandard(input: unknown): input is StandardSchemaV1 {
  return (typeof input === 'object' || typeof input === 'function') && input !== null && '~standard' in input
}

function readStandard(toolName: string, schema: StandardSchemaV1): ReadSchema<unknown> {
  const standard = schema['~standard']
  const { jsonSchema: converter, vendor } = standard as typeof standard & {
    readonly jsonSchema?: { readonly input: (options: { readonly target: 'draft-2020-12' }) => unknown }
  }
  if (typeof converter?.input !== 'function') {
    const remedy =
      vendor === 'valibot'
        ? 'Wrap it: input: toStandardJsonSchema(schema), from the package @valibot/to-json-schema.'
        : vendor === 'zod'
          ? 'Update zod to 4.2 or later, whose schemas do.'
          : `Wrap it with ${vendor}'s own converter to Standard JSON Schema if it has one, or give a plain JSON Schema object.`
    throw new ConfigurationError(
      `The input schema of the tool ${toolName} (${vendor}) gives no JSON Schema, so a model cannot be told what to send. ${remedy}`,
    )
  }
  let raw: unknown
  try {
    raw = converter.input({ target: 'draft-2020-12' })
  } catch (error) {
    throw new ConfigurationError(
      `The input schema of the tool ${toolName} (${vendor}) cannot be described to a model: ${formatErrorSentence(error)} ` +
        'Use only what JSON can carry (text for dates, say), and convert it in a transform or in execute.',
      { cause: error },
    )
  }
  const { $schema: _dialect, ...jsonSchema } = readSchemaObject(toolName, raw)
  return { jsonSchema, parse: createStandardParse(schema) }
}

function readSchemaObject(toolName: string, raw: unknown): JsonObject & { readonly $schema?: string } {
  let schema: unknown
  try {
    schema = toJson(raw)
  } catch (error) {
    throw new ConfigurationError(
      `The JSON Schema of the tool ${toolName} is not JSON: ${formatErrorSentence(error)} Give plain objects, arrays, strings and numbers.`,
      { cause: error },
    )
  }
  if (typeof schema === 'object' && schema !== null && 'type' in schema && schema.type === 'object') {
    return schema as JsonObject
  }
  throw new ConfigurationError(
    `The input schema of the tool ${toolName} is not of type object, and models send objects only. ` +
      'Wrap what you have in an object with one key per value; put a choice between objects below a key of its own.',
  )
}

function createStandardParse(schema: StandardSchemaV1): OutputCheck {
  return (input) => {
    const result = schema['~standard'].validate(input)
    return option.isThenable(result) ? result.then(readStandardResult) : readStandardResult(result)
  }
}

/** Throws a `TypeError` if a schema says neither: every value would pass it. */
function readStandardResult(result: StandardSchemaV1.Result<unknown>): Parsed<unknown> {
  const { issues } = Object(result) as Partial<StandardSchemaV1.FailureResult>
  if (issues === undefined ? !('value' in Object(result)) : !Array.isArray(issues))
    throw new TypeError('its validate returned neither a value nor issues')
  return result.issues
    ? { ok: false, issues: result.issues.map(readStandardIssue) }
    : { ok: true, value: result.value }
}

/** Vendors differ: a path is of keys, or of objects that hold one; zod names unknown keys in a list beside it. */
function readStandardIssue(issue: StandardSchemaV1.Issue): InputIssue {
  const path = Array.from(issue.path ?? [], (segment) =>
    typeof segment === 'object' ? segment.key : segment,
  )
  const keys: unknown = 'keys' in issue ? issue.keys : undefined
  const unknownKeys = Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : []
  return { path, message: issue.message, ...(unknownKeys.length > 0 && { unknownKeys }) }
}

/** Checks inputs against a plain JSON Schema, without `eval`. Throws `ConfigurationError` for a broken schema. */
export function createSchemaParse(toolName: string, jsonSchema: JsonObject): Parse<JsonObject> {
  // The validator writes into the schema that it is given.
  const schema: Schema = structuredClone(jsonSchema)
  assertSound(toolName, schema)
  const namesPatterns = boundPatterns(toolName, schema)
  const validator = new Validator(schema, readDraft(jsonSchema), false)
  return (input) => {
    const long = namesPatterns ? findLongName(input) : undefined
    if (long !== undefined) return { ok: false, issues: [long] }
    const { valid, errors } = validator.validate(input)
    return valid ? { ok: true, value: input } : { ok: false, issues: readIssues(errors) }
  }
}

/** Keywords whose error only says that something below is wrong; the errors below say what. */
const wrappers: ReadonlySet<string> = new Set(
  (
    '$ref $recursiveRef allOf if then else properties patternProperties additionalProperties unevaluatedProperties ' +
    'dependentSchemas prefixItems items additionalItems unevaluatedItems'
  ).split(' '),
)

function readDraft({ $schema }: { readonly $schema?: Json }): SchemaDraft {
  if (typeof $schema !== 'string') return '2020-12'
  if (/draft-0?4\b/.test($schema)) return '4'
  // Draft 7 reads what draft 6 says.
  if (/draft-0?[67]\b/.test($schema)) return '7'
  return $schema.includes('2019-09') ? '2019-09' : '2020-12'
}

/**
 * Tries a regular expression of JavaScript on texts, in time that grows with the text alone: thirty characters, which a
 * model wrote, can keep JavaScript's own engine busy longer than any process lives. `undefined` for an expression that
 * cannot be tried so: one that looks ahead or behind, refers back, or repeats more than 1,000 times.
 */
export function createBoundedTest(
  source: string,
  { ignoresCase = false }: { readonly ignoresCase?: boolean } = {},
): ((text: string) => boolean) | undefined {
  // It would take a named reference back for the letters of its name.
  if (/\\k</.test(source)) return undefined
  try {
    const flags = ignoresCase ? RE2JS.CASE_INSENSITIVE : 0
    const pattern = RE2JS.compile(RE2JS.translateRegExp(translateClasses(source)), flags)
    return (text) => pattern.matcher(text).find()
  } catch {
    return undefined
  }
}

/** `.` and `\s` as JavaScript reads them: the other engine knows fewer line ends and spaces. */
const lineEnds = '\\n\\r\\x{2028}\\x{2029}'
const spaces = `\\t\\v\\f \\x{a0}\\x{feff}\\p{Zs}${lineEnds}`

function translateClasses(source: string): string {
  return source.replaceAll(/\\.|\[\^?(?:\\.|[^\]\\])*\]?|\./gsu, (token) => {
    if (token === '.') return `[^${lineEnds}]`
    if (token === '\\s') return `[${spaces}]`
    if (token === '\\S') return `[^${spaces}]`
    return token.startsWith('[')
      ? token.replaceAll(/\\./gsu, (each) => (each === '\\s' ? spaces : each))
      : token
  })
}

/** Finds at definition what the validator would only meet at some call: references to nowhere, broken patterns. */
function assertSound(toolName: string, schema: Schema): void {
  const broken = (detail: string): ConfigurationError =>
    new ConfigurationError(
      `The JSON Schema of the tool ${toolName} cannot be checked against: ${detail}. Correct it.`,
    )
  const unfit = option.maybe(option.anyObject)(schema.properties)
  if (unfit) throw broken('its properties are not an object of schemas by name')
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
    for (const source of sources) {
      try {
        RegExp(source, 'u')
      } catch {
        throw broken(`"${source}" is not a regular expression`)
      }
    }
  }
}

/** Prefix of the name of a format that stands for a pattern. */
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
      if (!isQuickPattern(source)) throw createEndlessPattern(toolName, source)
    }
    if (typeof pattern !== 'string') continue
    const name = `${patternFormat}${pattern}`
    if (!Object.hasOwn(format, name)) {
      const test = createBoundedTest(pattern)
      if (test === undefined) throw createEndlessPattern(toolName, pattern)
      format[name] = test
    }
    delete part.pattern
    part.allOf = [...(part.allOf ?? []), { format: name }]
  }
  return namesPatterns
}

function createEndlessPattern(toolName: string, source: string): ConfigurationError {
  return new ConfigurationError(
    `The JSON Schema of the tool ${toolName} has the pattern "${source}", and matching it against text of a model could take longer than any process lives: it looks ahead or behind, refers back, repeats more than 1,000 times, or, for names of properties, repeats in several places. Write it without that, or give a Standard Schema with a check of your own.`,
  )
}

/**
 * True if JavaScript tries a pattern in time that grows with the square of a text at most: nothing in it repeats but single
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

function findLongName(value: Json, path: readonly string[] = []): InputIssue | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, field] of Object.entries(value)) {
    if (name.length > maxName)
      return { path, message: `has the name of a property that is longer than ${maxName} characters` }
    const below = findLongName(field, [...path, name])
    if (below) return below
  }
  return undefined
}

function readIssues(errors: readonly OutputUnit[]): readonly InputIssue[] {
  const issues: InputIssue[] = []
  let choice: string | undefined
  for (const { keyword, keywordLocation, instanceLocation, error } of errors) {
    // The errors of the branches of a choice would contradict each other.
    if (choice !== undefined && keywordLocation.startsWith(`${choice}/`)) continue
    choice = keyword === 'anyOf' || keyword === 'oneOf' || keyword === 'not' ? keywordLocation : undefined
    if (wrappers.has(keyword)) continue
    const path = instanceLocation
      .split('/')
      .slice(1)
      .map((segment) => decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~'))
    // A missing key is reported at the path where it should be.
    const missing = /^Instance does not have required property "(.*)"\.$/s.exec(error)?.[1]
    issues.push({
      path: missing === undefined ? path : [...path, missing],
      message: shortenError(error),
    })
  }
  if (issues.length === 0) issues.push({ path: [], message: shortenError(errors[0]?.error ?? '') })
  return issues
}

/** The validator calls the value "Instance"; the line that this lands in names the value already. */
function shortenError(error: string): string {
  return error
    .replace(`format "${patternFormat}`, 'pattern "')
    .replace(/^Instance /, '')
    .replace(/\.$/, '')
}

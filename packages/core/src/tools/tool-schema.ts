import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { CallVerdict } from '../events/signals.ts'
import { ConfigurationError } from '../values/errors.ts'
import { copyJson, isJson, type Json, type JsonObject, readJson } from '../values/json.ts'
import { ignoreRejection, isThenable, type Schema, valueThat } from '../values/option.ts'
import { jsonObject } from '../values/schema.ts'
import { formatErrorSentence } from '../values/text.ts'
import { readJsonSchema } from './json-schema.ts'

/** The schema of an agent's answer: a Standard Schema that also gives JSON Schema, or a JSON Schema. */
export type OutputSchema<Output = unknown> = StandardSchemaV1<unknown, Output> | JsonObject

export interface OutputReader<Output> {
  readonly jsonSchema: JsonObject
  /** Returns the value as the schema parses it, or an error text that tells the model what does not fit. */
  readonly read: (value: Json) => Promise<{ readonly output: Output } | { readonly error: string }>
}

interface JsonSchemaConverter {
  readonly input?: (options: { readonly target: 'draft-2020-12' }) => unknown
}

/**
 * Reads values by a schema; `subject` says of what it is, such as `output of agent desk`. Throws `ConfigurationError` for a
 * schema that cannot be used.
 */
export function createSchemaReader<Output>(subject: string, schema: OutputSchema): OutputReader<Output> {
  const standard = isStandard<Output>(schema)
    ? schema
    : parseJsonSchema<Output>(subject, schema as JsonObject)
  const jsonSchema = isStandard(schema) ? toJsonSchema(subject, schema) : schema
  return {
    jsonSchema,
    async read(value) {
      const result = await askValidator(subject, standard, value)
      if (result.issues === undefined) return { output: result.value }
      return { error: result.issues.map((issue) => describeIssue(issue)).join('; ') }
    },
  }
}

/** Asks a schema about a value. One that throws, or answers neither value nor issues, is at fault itself. */
async function askValidator<Output>(
  subject: string,
  standard: StandardSchemaV1<unknown, Output>,
  value: Json,
): Promise<StandardSchemaV1.Result<Output>> {
  let result: unknown
  try {
    result = await standard['~standard'].validate(copyJson(value))
  } catch (cause) {
    throw new ConfigurationError(
      `validate of the ${subject} threw: ${formatErrorSentence(cause)} Correct the schema.`,
      {
        cause,
      },
    )
  }
  const { issues } = Object(result) as { readonly issues?: unknown }
  const isResult = issues === undefined ? 'value' in Object(result) : Array.isArray(issues)
  if (isResult) return result as StandardSchemaV1.Result<Output>
  throw new ConfigurationError(
    `validate of the ${subject} returned neither a value nor issues. Correct the schema.`,
  )
}

// arktype's schemas are functions.
function isStandard<Output>(schema: unknown): schema is StandardSchemaV1<unknown, Output> {
  return (
    (typeof schema === 'object' || typeof schema === 'function') && schema !== null && '~standard' in schema
  )
}

function parseJsonSchema<Output>(subject: string, schema: JsonObject): StandardSchemaV1<unknown, Output> {
  if (jsonObject(schema)) {
    throw new ConfigurationError(
      `The ${subject} is not a schema. Give a Standard Schema (such as z.object({ … })) or a JSON Schema.`,
    )
  }
  requireKeyword(subject, schema)
  const endless = listPatterns(schema).find(repeatsWithinRepeats)
  if (endless !== undefined) {
    throw new ConfigurationError(
      `The JSON Schema of the ${subject} has the pattern "${endless}", which repeats within what it repeats: matching it against thirty characters of a model could take longer than any process lives. Write it with one repeat, or give a Standard Schema with a check of your own.`,
    )
  }
  try {
    const check = readJsonSchema(schema)
    const validate = async (value: unknown): Promise<StandardSchemaV1.Result<Output>> => {
      const issues = await check(value as Json)
      return issues.length > 0 ? { issues } : { value: value as Output }
    }
    return { '~standard': { version: 1, vendor: 'json-schema', validate } }
  } catch (cause) {
    throw new ConfigurationError(
      `The JSON Schema of the ${subject} cannot be checked against: ${formatErrorSentence(cause)} Give a Standard Schema instead.`,
      { cause },
    )
  }
}

/** The regular expressions of a JSON Schema, wherever they stand. */
function listPatterns(schema: Json): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return []
  if (Array.isArray(schema)) return schema.flatMap((each: Json) => listPatterns(each))
  return Object.entries(schema).flatMap(([name, value]) => [
    ...(name === 'pattern' && typeof value === 'string' ? [value] : []),
    ...(name === 'patternProperties' ? Object.keys(Object(value) as object) : []),
    ...listPatterns(value),
  ])
}

/**
 * Returns true if a regular expression repeats a group that repeats or chooses itself: JavaScript may try every way to divide a text
 * among these, and their number doubles with each character.
 */
function repeatsWithinRepeats(source: string): boolean {
  const bare = source
    .replaceAll(/\\./gs, 'x')
    .replaceAll(/\[[^\]]*\]?/g, 'x')
    .replaceAll('(?', '(')
  const varies = [false]
  for (let at = 0; at < bare.length; at++) {
    const character = bare[at] ?? ''
    if (character === '(') varies.push(false)
    else if (character === ')') {
      const inner = varies.pop() === true
      const isRepeated = /[*+{]/.test(bare[at + 1] ?? '')
      if (inner && isRepeated) return true
      varies[varies.length - 1] ||= inner
    } else if ('*+?{|'.includes(character)) varies[varies.length - 1] = true
  }
  return false
}

/** Keywords at the root of a JSON Schema that restrict a value. */
const keywords: ReadonlySet<string> = new Set([
  'type',
  'enum',
  'const',
  'properties',
  'required',
  'additionalProperties',
  'patternProperties',
  'items',
  'prefixItems',
  'anyOf',
  'oneOf',
  'allOf',
  'not',
  'if',
  '$ref',
  '$defs',
  'definitions',
])

/** Refuses an object without any JSON Schema keyword: it would let every answer pass. */
function requireKeyword(subject: string, schema: JsonObject): void {
  const names = Object.keys(schema)
  if (names.length === 0 || names.some((name) => keywords.has(name))) return
  throw new ConfigurationError(
    `The ${subject} has the fields ${names.slice(0, 5).join(', ')}, but none that a JSON Schema has, so every value would pass. Give z.object({ … }) or { type: 'object', properties: { … } }.`,
  )
}

function toJsonSchema(subject: string, schema: StandardSchemaV1): JsonObject {
  const standard = schema['~standard']
  const converter = 'jsonSchema' in standard ? (standard.jsonSchema as JsonSchemaConverter) : {}
  try {
    // The model writes what goes into the schema.
    const raw = converter.input?.({ target: 'draft-2020-12' })
    ignoreRejection(raw)
    if (!isThenable(raw) && jsonObject(raw) === undefined) {
      const { $schema: _dialect, ...rest } = raw as JsonObject
      return rest
    }
  } catch (cause) {
    throw new ConfigurationError(
      `The schema of the ${subject} (${standard.vendor}) cannot be described to a model: ${formatErrorSentence(cause)} Use only what JSON can carry.`,
      { cause },
    )
  }
  const remedy =
    standard.vendor === 'valibot'
      ? 'Wrap it: toStandardJsonSchema(schema), from the package @valibot/to-json-schema.'
      : 'Use zod 4.2 or later, or give a JSON Schema.'
  throw new ConfigurationError(
    `The schema of the ${subject} (${standard.vendor}) gives no JSON Schema, so a model cannot be told what to write. ${remedy}`,
  )
}

/** An issue as a sentence; `root` is what the value itself is called, if it is named. */
function describeIssue({ path = [], message }: StandardSchemaV1.Issue, root = ''): string {
  const place = path.map((segment) => String(typeof segment === 'object' ? segment.key : segment)).join('.')
  const subject = place || root
  return subject === '' ? message : `${subject}: ${message}`
}

/**
 * Returns the JSON of an answer: the whole text, or the one fenced block in it, which some models cannot leave out.
 * `undefined` if there is no JSON.
 */
export function extractJson(text: string): Json | undefined {
  for (const candidate of [text, findFencedBlock(text)]) {
    if (candidate === undefined) continue
    try {
      const value = readJson(candidate)
      if (isJson(value)) return value
    } catch {
      // Not this one.
    }
  }
  return undefined
}

const fence = '```'

/**
 * Returns the text between the first fence and the last, without the rest of the first line, which may name JSON.
 * Reads each character a fixed number of times, since a model wrote the text.
 */
function findFencedBlock(text: string): string | undefined {
  const start = text.indexOf(fence)
  const end = text.lastIndexOf(fence)
  if (start === end) return undefined
  const block = text.slice(start + fence.length, end)
  const firstLine = block.slice(0, block.indexOf('\n') + 1)
  return ['', 'json'].includes(firstLine.trim().toLowerCase()) ? block.slice(firstLine.length) : undefined
}

/** The input that an agent needs: a Standard Schema of an object that also gives JSON Schema, or a JSON Schema. */
export type InputSchema = StandardSchemaV1 | JsonObject

/** The input as a model writes it. */
export type WrittenInput<Schema> = Schema extends StandardSchemaV1<infer Input, unknown> ? Input : JsonObject

export type ReadInput<Schema> = Schema extends StandardSchemaV1<unknown, infer Output> ? Output : JsonObject

/** Checks that an input schema was given; whether it can be used, its reader says. */
export const someInputSchema: Schema = valueThat(
  'a schema: z.object({ … }), another Standard Schema, or a JSON Schema',
  (value) => (typeof value === 'object' || typeof value === 'function') && value !== null,
)

/** Reads the input of a tool that `subject` makes. Throws `ConfigurationError` for a schema of anything but an object. */
export function createInputReader(subject: string, schema: InputSchema): OutputReader<unknown> {
  const reader = createSchemaReader<unknown>(`input of ${subject}`, schema)
  if (reader.jsonSchema['type'] === 'object') return reader
  throw new ConfigurationError(
    `The schema of the input of ${subject} allows values that are not objects, and tools are called with objects only. Give z.object({ … }) or { type: 'object', properties: { … } }.`,
  )
}

export async function judgeInput(reader: OutputReader<unknown>, input: JsonObject): Promise<CallVerdict> {
  const read = await reader.read(input)
  if (!('error' in read)) return { kind: 'run' }
  return { kind: 'refuse', outcome: 'invalid_input', text: read.error }
}

const maxIssues = 8

/**
 * Returns where an input does not fit a tool's recorded JSON Schema; `undefined` if all of it fits, or if the schema
 * cannot be used. It does not check patterns, since one from an unknown author may run for ever.
 */
export async function findInputFault(schema: JsonObject, input: JsonObject): Promise<string | undefined> {
  let issues: readonly StandardSchemaV1.Issue[]
  try {
    issues = await readJsonSchema(withoutPatterns(schema) as JsonObject)(input)
  } catch {
    return undefined
  }
  const sentences = issues.slice(0, maxIssues).map((issue) => describeIssue(issue, 'input'))
  return sentences.length > 0 ? sentences.join('; ') : undefined
}

const patternKeywords: ReadonlySet<string> = new Set(['pattern', 'patternProperties', 'format'])

/** Names of properties stay, whatever they are: only keywords go. */
function withoutPatterns(schema: Json | undefined, isKeywords = true): Json {
  if (Array.isArray(schema)) return schema.map((each) => withoutPatterns(each))
  if (typeof schema !== 'object' || schema === null) return schema ?? null
  const entries = Object.entries(schema as JsonObject)
    .filter(([name]) => !isKeywords || !patternKeywords.has(name))
    .map(([name, value]) => [
      name,
      isValue(name, isKeywords) ? value : withoutPatterns(value, !isKeywords || !holdsNames(name)),
    ])
  return Object.fromEntries(entries) as JsonObject
}

/** `const` and `enum` hold values, not schemas. */
function isValue(name: string, isKeywords: boolean): boolean {
  return isKeywords && (name === 'const' || name === 'enum')
}

function holdsNames(keyword: string): boolean {
  return ['properties', '$defs', 'definitions', 'dependentSchemas'].includes(keyword)
}

import type { StandardSchemaV1 } from '@standard-schema/spec'
import { ConfigurationError } from '@tallystick/core'
import { option, sentenceOfError } from '@tallystick/core/kit'
import { type JsonObject } from '@tallystick/core/vocabulary'
import { jsonOf } from '../content/json-value.ts'
import type { InputIssue, Parse, Parsed } from './input-issue.ts'
import { jsonSchemaParse } from './json-schema.ts'

/** What `defineTool` takes as `input`: a Standard Schema that also gives JSON Schema, or a JSON Schema of type object. */
export type InputSchema = StandardSchemaV1 | JsonObject

/** What `execute` receives for a schema: a Standard Schema's output type, or any JSON object. */
export type InputOf<Schema extends InputSchema> = Schema extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Schema>
  : JsonObject

/** The two uses of a schema: the JSON Schema for the model, and the check of an input. */
export interface ReadSchema<Input> {
  readonly jsonSchema: JsonObject
  readonly parse: Parse<Input>
}

/** Checks what a tool returned. Throws or rejects only where the schema itself is at fault. */
export type OutputCheck = (value: unknown) => Parsed<unknown> | Promise<Parsed<unknown>>

/** Reads the `output` of a tool's definition. Throws `ConfigurationError` for one that cannot serve. */
export function readOutput(toolName: string, output: InputSchema): OutputCheck {
  if (isStandard(output)) return standardParse(output)
  if (typeof output !== 'object' || output === null || Array.isArray(output)) {
    throw new ConfigurationError(
      `The output of the tool ${toolName} is no schema. Give a Standard Schema (such as z.object({ … })) or a JSON Schema object.`,
    )
  }
  const parse = jsonSchemaParse(toolName, output)
  // As JSON, since that is what the schema speaks of, and what is recorded.
  return (value) => parse(jsonOf(value) as JsonObject)
}

interface JsonSchemaConverter {
  readonly input: (options: { readonly target: 'draft-2020-12' }) => unknown
}

/** Reads the `input` of a tool's definition. Throws `ConfigurationError` for one that cannot serve. */
export function readSchema<Schema extends InputSchema>(
  toolName: string,
  input: Schema,
): ReadSchema<InputOf<Schema>> {
  if (isStandard(input)) return readStandard(toolName, input) as ReadSchema<InputOf<Schema>>
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw new ConfigurationError(
      `The input of the tool ${toolName} is no schema. Give a Standard Schema (such as z.object({ … })) or a JSON Schema object.`,
    )
  }
  const jsonSchema = jsonSchemaObject(toolName, input)
  return { jsonSchema, parse: jsonSchemaParse(toolName, jsonSchema) } as ReadSchema<InputOf<Schema>>
}

// arktype's schemas are functions.
function isStandard(input: unknown): input is StandardSchemaV1 {
  return (typeof input === 'object' || typeof input === 'function') && input !== null && '~standard' in input
}

function readStandard(toolName: string, schema: StandardSchemaV1): ReadSchema<unknown> {
  const standard = schema['~standard']
  const converter =
    'jsonSchema' in standard ? (standard.jsonSchema as JsonSchemaConverter | undefined) : undefined
  if (typeof converter?.input !== 'function') throw noJsonSchema(toolName, standard.vendor)
  let raw: unknown
  try {
    raw = converter.input({ target: 'draft-2020-12' })
  } catch (error) {
    throw new ConfigurationError(
      `The input schema of the tool ${toolName} (${standard.vendor}) cannot be described to a model: ${sentenceOfError(error)} ` +
        'Use only what JSON can carry (text for dates, say), and convert it in a transform or in execute.',
      { cause: error },
    )
  }
  const { $schema: _dialect, ...jsonSchema } = jsonSchemaObject(toolName, raw)
  return { jsonSchema, parse: standardParse(schema) }
}

function noJsonSchema(toolName: string, vendor: string): ConfigurationError {
  const remedy =
    vendor === 'valibot'
      ? 'Wrap it: input: toStandardJsonSchema(schema), from the package @valibot/to-json-schema.'
      : vendor === 'zod'
        ? 'Update zod to 4.2 or later, whose schemas do.'
        : `Wrap it with ${vendor}'s own converter to Standard JSON Schema if it has one, or give a plain JSON Schema object.`
  return new ConfigurationError(
    `The input schema of the tool ${toolName} (${vendor}) gives no JSON Schema, so a model cannot be told what to send. ${remedy}`,
  )
}

function jsonSchemaObject(toolName: string, raw: unknown): JsonObject & { readonly $schema?: string } {
  let schema: unknown
  try {
    schema = jsonOf(raw)
  } catch (error) {
    throw new ConfigurationError(
      `The JSON Schema of the tool ${toolName} is not JSON: ${sentenceOfError(error)} Give plain objects, arrays, strings and numbers.`,
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

function standardParse(schema: StandardSchemaV1): OutputCheck {
  return (input) => {
    const result = schema['~standard'].validate(input)
    return option.isThenable(result) ? result.then(parsedOf) : parsedOf(result)
  }
}

/** Throws a `TypeError` where a schema says neither: every value would pass it. */
function parsedOf(result: StandardSchemaV1.Result<unknown>): Parsed<unknown> {
  const { issues } = Object(result) as Partial<StandardSchemaV1.FailureResult>
  if (issues === undefined ? !('value' in Object(result)) : !Array.isArray(issues))
    throw new TypeError('its validate answered neither a value nor issues')
  return result.issues ? { ok: false, issues: result.issues.map(issueOf) } : { ok: true, value: result.value }
}

/** Vendors differ: a path is of keys, or of objects that hold one; zod names unknown keys in a list beside it. */
function issueOf(issue: StandardSchemaV1.Issue): InputIssue {
  const path = Array.from(issue.path ?? [], (segment) =>
    typeof segment === 'object' ? segment.key : segment,
  )
  const keys: unknown = 'keys' in issue ? issue.keys : undefined
  const unknownKeys = Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : []
  return { path, message: issue.message, ...(unknownKeys.length > 0 && { unknownKeys }) }
}

import type { StandardSchemaV1 } from '@standard-schema/spec'
import { ConfigurationError } from '../../values/errors.ts'
import { valueThat, type OptionCheck } from '../../values/option.ts'
import type { CallVerdict } from '../../events/signals.ts'
import type { JsonObject } from '../../values/json.ts'
import { schemaReader, type OutputReader } from './output-schema.ts'

/** What an agent needs to be told: a Standard Schema of an object that also gives JSON Schema, or a JSON Schema. */
export type InputSchema = StandardSchemaV1 | JsonObject

/** The input as a model writes it. */
export type WrittenInput<Schema> = Schema extends StandardSchemaV1<infer Input, unknown> ? Input : JsonObject

/** The input as its schema reads it. */
export type ReadInput<Schema> = Schema extends StandardSchemaV1<unknown, infer Output> ? Output : JsonObject

/** Checks that an input schema was given; whether it can be used, its reader says. */
export const someInputSchema: OptionCheck = valueThat(
  'a schema: z.object({ … }), another Standard Schema, or a JSON Schema',
  (value) => (typeof value === 'object' || typeof value === 'function') && value !== null,
)

/** Reads the input of a tool that `subject` makes. Throws `ConfigurationError` for a schema of anything but an object. */
export function inputReader(subject: string, schema: InputSchema): OutputReader<unknown> {
  const reader = schemaReader<unknown>(`input of ${subject}`, schema)
  if (reader.jsonSchema['type'] === 'object') return reader
  throw new ConfigurationError(
    `The schema of the input of ${subject} allows values that are no objects, and tools are called with objects only. Give z.object({ … }) or { type: 'object', properties: { … } }.`,
  )
}

/** Returns whether a call with this input may run. */
export async function inputVerdict(reader: OutputReader<unknown>, input: JsonObject): Promise<CallVerdict> {
  const read = await reader.read(input)
  if (!('error' in read)) return { kind: 'run' }
  return { kind: 'refuse', outcome: 'invalid_input', text: read.error }
}

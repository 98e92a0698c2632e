import * as z from 'zod'
import type { Json, JsonObject } from '../../vocabulary/values/json.ts'

const maxIssues = 8

/**
 * Returns where an input does not fit a tool's recorded JSON Schema. `undefined` if all of it fits, or if the schema
 * cannot be used. Patterns are left out: one from an unknown author may run for ever.
 */
export function inputFaultOf(schema: JsonObject, input: JsonObject): string | undefined {
  let parsed: ReturnType<z.ZodType['safeParse']>
  try {
    parsed = z.fromJSONSchema(withoutPatterns(schema) as JsonObject).safeParse(input)
  } catch {
    return undefined
  }
  if (parsed.success) return undefined
  const issues = parsed.error.issues.slice(0, maxIssues)
  return issues.map(({ path, message }) => `${path.map(String).join('.') || 'input'}: ${message}`).join('; ')
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
      isKeywords && isData(name) ? value : withoutPatterns(value, !isKeywords || !holdsNames(name)),
    ])
  return Object.fromEntries(entries) as JsonObject
}

function isData(keyword: string): boolean {
  return ['const', 'enum', 'default', 'examples', 'required'].includes(keyword)
}

function holdsNames(keyword: string): boolean {
  return ['properties', '$defs', 'definitions', 'dependentSchemas'].includes(keyword)
}

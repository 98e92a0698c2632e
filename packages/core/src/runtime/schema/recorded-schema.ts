import * as z from 'zod'
import type { Json, JsonObject } from '../../values/json.ts'

const maxIssues = 8

/**
 * Returns where an input does not fit a tool's recorded JSON Schema; `undefined` if all of it fits, or if the schema
 * cannot be used. It does not check patterns, since one from an unknown author may run for ever, nor equality with
 * objects and lists, which zod compares by identity.
 */
export function inputFaultOf(schema: JsonObject, input: JsonObject): string | undefined {
  let parsed: ReturnType<z.ZodType['safeParse']>
  try {
    parsed = z.fromJSONSchema(usable(schema) as JsonObject).safeParse(input)
  } catch {
    return undefined
  }
  if (parsed.success) return undefined
  const issues = parsed.error.issues.slice(0, maxIssues)
  return issues.map(({ path, message }) => `${path.map(String).join('.') || 'input'}: ${message}`).join('; ')
}

const patternKeywords: ReadonlySet<string> = new Set(['pattern', 'patternProperties', 'format'])

/** Names of properties stay, whatever they are: only keywords go. */
function usable(schema: Json | undefined, isKeywords = true): Json {
  if (Array.isArray(schema)) return schema.map((each) => usable(each))
  if (typeof schema !== 'object' || schema === null) return schema ?? null
  const entries = Object.entries(schema as JsonObject)
    .filter(([name, value]) => !isKeywords || !(patternKeywords.has(name) || namesObjects(name, value)))
    .map(([name, value]) => [name, usable(value, !isKeywords || !holdsNames(name))])
  return Object.fromEntries(entries) as JsonObject
}

/** Whether a keyword names values that have to be equal, an object or a list among them. */
function namesObjects(keyword: string, value: Json | undefined): boolean {
  const values = keyword === 'const' ? [value] : keyword === 'enum' && Array.isArray(value) ? value : []
  return values.some((each) => typeof each === 'object' && each !== null)
}

function holdsNames(keyword: string): boolean {
  return ['properties', '$defs', 'definitions', 'dependentSchemas'].includes(keyword)
}

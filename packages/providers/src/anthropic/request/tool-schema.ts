import { isJsonObject } from '@tallystick/core/kit'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { itemsOf, listAt, objectAt, textAt } from '../../shared/json/json-reading.ts'

/** The keywords that the vendor refuses at the root of a tool's schema. */
const refused = ['anyOf', 'oneOf', 'allOf', '$ref'] as const

/** A tool's schema as the vendor takes it. */
export interface ToolSchema {
  readonly schema: JsonObject
  /** What had to be said in another way: keywords, each with a few words. */
  readonly notes: readonly string[]
}

/**
 * Returns a tool's schema with a plain object at its root. A choice of objects there becomes one object with all their
 * properties; required are those that each of them requires. The description states the choice.
 */
export function toolSchema(given: JsonObject): ToolSchema {
  const used = refused.filter((keyword) => keyword in given)
  if (used.length === 0) return { schema: { ...given, type: 'object' }, notes: [] }
  const { anyOf, oneOf, allOf, $ref, ...rest } = given
  const parts = [...itemsOf(allOf), ...($ref === undefined ? [] : [{ $ref }])]
  const every = [rest, ...parts.map((part) => resolved(part, given))]
  const choices = [anyOf, oneOf].map((choice) => itemsOf(choice).map((one) => resolved(one, given)))
  const required = new Set(every.flatMap(requiredOf))
  for (const [first, ...others] of choices) {
    const shared = first === undefined ? [] : requiredOf(first)
    for (const name of shared) if (others.every((one) => requiredOf(one).includes(name))) required.add(name)
  }
  const rules = `Rules: ${JSON.stringify(Object.fromEntries(used.map((keyword) => [keyword, given[keyword]])))}`
  const description = [textAt(rest, 'description'), rules].filter(Boolean).join(' ')
  return {
    schema: {
      ...rest,
      type: 'object',
      properties: propertiesOf([...every, ...choices.flat()]),
      description,
      ...(required.size > 0 && { required: [...required] }),
    },
    notes: used.map((keyword) => `${keyword} at # was put into the description`),
  }
}

/** The schema that a reference to a definition stands for, or the schema itself. */
function resolved(schema: Json, root: JsonObject, steps = 0): JsonObject {
  if (!isJsonObject(schema) || steps > 20) return {}
  const reference = textAt(schema, '$ref')
  if (reference === undefined) return schema
  const [, keyword = '', name = ''] = reference.split('/')
  const key = name.replaceAll('~1', '/').replaceAll('~0', '~')
  return resolved(objectAt(root, keyword)?.[key] ?? {}, root, steps + 1)
}

function propertiesOf(schemas: readonly JsonObject[]): JsonObject {
  const found = new Map<string, Json[]>()
  for (const schema of schemas) {
    for (const [name, property] of Object.entries(objectAt(schema, 'properties') ?? {})) {
      const before = found.get(name) ?? []
      if (!before.some((one) => JSON.stringify(one) === JSON.stringify(property))) before.push(property)
      found.set(name, before)
    }
  }
  const merged = [...found].map(([name, all]): [string, Json] => [
    name,
    all.length > 1 ? { anyOf: all } : all[0]!,
  ])
  return Object.fromEntries(merged)
}

function requiredOf(schema: JsonObject): string[] {
  return listAt(schema, 'required').filter((name) => typeof name === 'string')
}

import { isJsonObject, getOwn } from '@tallystick/core/kit'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'

/** Levels of a schema that are checked; what is below them is the server's to check. */
const maxDepth = 32

/** What is checked for a keyword; `undefined`: nothing. */
type Checked = (value: Json, depth: number, schema: JsonObject) => Json | undefined

const ifNumber: Checked = (value) => (typeof value === 'number' ? value : undefined)
const ifTexts: Checked = (value) => (isTexts(value) ? value : undefined)
const ifList: Checked = (value) => (Array.isArray(value) ? value : undefined)
const eachBelow: Checked = (value, depth) =>
  Array.isArray(value) ? value.map((each: Json) => below(each, depth)) : undefined

/**
 * The keywords that are checked: they take time in proportion to schema and value, and where less is checked below them,
 * they refuse less. Each is taken in the form that it has today; older drafts have others.
 */
const keywords: Readonly<Record<string, Checked>> = {
  type: (value) => (typeof value === 'string' || isTexts(value) ? value : undefined),
  enum: ifList,
  const: (value) => value,
  required: ifTexts,
  minimum: ifNumber,
  maximum: ifNumber,
  exclusiveMinimum: ifNumber,
  exclusiveMaximum: ifNumber,
  multipleOf: ifNumber,
  minLength: ifNumber,
  maxLength: ifNumber,
  minItems: ifNumber,
  maxItems: ifNumber,
  minProperties: ifNumber,
  maxProperties: ifNumber,
  allOf: eachBelow,
  anyOf: eachBelow,
  prefixItems: eachBelow,
  items: (value, depth) => (Array.isArray(value) ? undefined : below(value, depth)),
  properties: (value, depth) =>
    isJsonObject(value)
      ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, below(each, depth)]))
      : undefined,
  additionalProperties: (value, depth, schema) =>
    schema['patternProperties'] === undefined ? below(value, depth) : undefined,
}

/**
 * Returns the part of a server's schema that is checked here: less than the schema says, never more, and nothing that a
 * hostile one could make expensive. Patterns (which may backtrack), references (which may multiply), `not` and what depends
 * on other keywords are left to the server. So a usual mistake is explained without asking it.
 */
export function checkedSchema(schema: JsonObject, depth = 0): JsonObject {
  const checked: Record<string, Json> = {}
  for (const [keyword, value] of Object.entries(schema)) {
    const part = getOwn(keywords, keyword)?.(value, depth, schema)
    if (part !== undefined) checked[keyword] = part
  }
  // Only one of them may fit, but with less checked more than one may seem to.
  const { oneOf } = schema
  const choice =
    oneOf !== undefined && checked['anyOf'] === undefined ? eachBelow(oneOf, depth, schema) : undefined
  return choice === undefined ? checked : { ...checked, anyOf: choice }
}

function below(schema: Json, depth: number): Json {
  if (typeof schema === 'boolean') return schema
  return isJsonObject(schema) && depth < maxDepth ? checkedSchema(schema, depth + 1) : true
}

function isTexts(value: Json): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

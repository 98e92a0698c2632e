import * as fc from 'fast-check'
import { option, requireOptions } from '@tallystick/core/internal'
import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { hostileTexts } from '../hostile/texts.ts'

/** Deeper than this a schema gets the smallest value that fits. */
const MAX_DEPTH = 4

/** Inputs as a schema asks for them, in so far as JSON Schema says it in its usual words; a tool's own check has the last one. */
export function randomInput(schema: JsonObject): fc.Arbitrary<JsonObject> {
  requireOptions('randomInput', option.anyObject, schema, 'the schema')
  return randomObject(schema, 0)
}

/** Texts as people write them, and such as attack. */
const randomText: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.string({ maxLength: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom(...hostileTexts.map(({ text }) => text)) },
)

function randomObject(schema: JsonObject, depth: number): fc.Arbitrary<JsonObject> {
  const properties = readObject(schema['properties'])
  const listed = schema['required']
  const required = Array.isArray(listed) ? listed.filter((name) => typeof name === 'string') : []
  const names = Object.keys(properties).filter((name) => depth < MAX_DEPTH || required.includes(name))
  const model = Object.fromEntries(
    names.map((name) => [name, randomValue(readObject(properties[name]), depth + 1)]),
  )
  const requiredKeys = required.filter((name) => names.includes(name))
  return fc.record(model, { requiredKeys, noNullPrototype: true })
}

function randomValue(schema: JsonObject, depth: number): fc.Arbitrary<Json> {
  const choices = schema['enum'] ?? ('const' in schema ? [schema['const']] : undefined)
  if (Array.isArray(choices) && choices.length > 0) return fc.constantFrom(...choices)
  const variants = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(variants) && variants.length > 0)
    return fc.oneof(...variants.map((variant) => randomValue(readObject(variant), depth)))
  const types = [schema['type'] ?? []].flat()
  if (types.length > 1) return fc.oneof(...types.map((type) => randomValue({ ...schema, type }, depth)))
  const [least, most] = [
    schema['minimum'] ?? schema['exclusiveMinimum'],
    schema['maximum'] ?? schema['exclusiveMaximum'],
  ]
  const min = typeof least === 'number' ? least : -1_000
  const max = Math.max(min, typeof most === 'number' ? most : min + 2_000)
  switch (typeof types[0] === 'string' ? types[0] : '') {
    case 'string':
      return randomText
    case 'integer':
      return fc.integer({ min: Math.ceil(min), max: Math.max(Math.ceil(min), Math.floor(max)) })
    case 'number':
      return fc.double({ min, max, noNaN: true }).map((number) => (Object.is(number, -0) ? 0 : number))
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array': {
      const minLength = typeof schema['minItems'] === 'number' ? schema['minItems'] : 0
      return fc.array(randomValue(readObject(schema['items']), depth + 1), {
        minLength,
        maxLength: minLength + (depth < MAX_DEPTH ? 3 : 0),
      }) as fc.Arbitrary<Json>
    }
    case 'object':
      return randomObject(schema, depth)
    default:
      return fc.oneof(randomText, fc.integer(), fc.boolean(), fc.constant(null))
  }
}

function readObject(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}

import { withoutAddedNulls } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { fitSchema } from '../src/openai/tools.ts'
import { brokenSchema } from './kit/strict-rules.ts'

const object = (
  properties: JsonObject,
  required = Object.keys(properties),
  more: JsonObject = {},
): JsonObject => ({
  ...{ type: 'object', properties, required },
  ...more,
})
const text = { type: 'string' }

describe('a schema that fits', () => {
  it('is closed, and otherwise as it was', () => {
    const given = object({
      city: { type: 'string', description: 'Where', minLength: 1, pattern: '^S' },
      days: { type: 'integer', minimum: 1, maximum: 7 },
      kinds: { type: 'array', items: { enum: ['rain', 'sun'] }, maxItems: 3 },
      near: { anyOf: [object({ x: { type: 'number' } }), { type: 'null' }] },
      when: { type: 'string', format: 'date-time' },
    })
    const { schema, strict, notes } = fitSchema(given)
    expect([strict, notes]).toEqual([true, []])
    expect(schema).toMatchObject(given)
    expect(schema).toMatchObject({ additionalProperties: false })
    expect(brokenSchema(schema)).toEqual([])
  })

  it('may be empty, and may refer to itself', () => {
    expect(fitSchema({ properties: {} })).toMatchObject({
      strict: true,
      schema: { type: 'object' },
    })
    const node = object({ next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } })
    const { schema, strict } = fitSchema(
      object({ first: { $ref: '#/$defs/node', description: 'x' } }, undefined, { $defs: { node } }),
    )
    expect(strict).toBe(true)
    expect(schema).toMatchObject({ properties: { first: { $ref: '#/$defs/node' } } })
    expect(brokenSchema(schema)).toEqual([])
  })

  it.each([
    [
      'uniqueItems',
      { type: 'array', items: text, uniqueItems: true },
      'uniqueItems at #/properties/x was left out',
    ],
    ['format uri', { type: 'string', format: 'uri' }, 'format uri at #/properties/x was left out'],
    ['not', { type: 'string', not: { const: '' } }, 'not at #/properties/x was left out'],
    ['oneOf', { oneOf: [text, { type: 'null' }] }, 'oneOf at #/properties/x was sent as anyOf'],
  ])('loses %s, and says so', (_, inner, note) => {
    const { schema, strict, notes } = fitSchema(object({ x: inner }))
    expect([strict, notes]).toEqual([true, [note]])
    expect(brokenSchema(schema)).toEqual([])
  })

  it('loses what constrains nothing, without a word', () => {
    const given = object({ x: { type: 'string', default: 'a', examples: ['b'] } }, undefined, {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
    })
    const { schema, strict, notes } = fitSchema(given)
    expect([strict, notes, brokenSchema(schema)]).toEqual([true, [], []])
  })

  it('may be in an allOf of one', () => {
    const { schema, strict } = fitSchema(object({ x: { allOf: [text], description: 'x' } }))
    expect(strict).toBe(true)
    expect(schema).toMatchObject({ properties: { x: { type: 'string', description: 'x' } } })
  })
})

describe('a schema that does not fit', () => {
  it.each([
    ['properties of any name', object({ x: { type: 'object' } })],
    ['a record', object({ x: { type: 'object', additionalProperties: text } })],
    ['patternProperties', object({ x: { type: 'object', properties: {}, patternProperties: { a: text } } })],
    ['anything', object({ x: {} })],
    ['true', object({ x: true })],
    ['items of any kind', object({ x: { type: 'array' } })],
    ['an allOf of two', object({ x: { allOf: [text, { minLength: 1 }] } })],
    ['a reference to another document', object({ x: { $ref: 'https://example.org/x.json' } })],
    ['a root that is a choice', { anyOf: [object({ x: text }), object({ y: text })] }],
    ['a root that is not an object', { type: 'array', items: text }],
  ])('because of %s goes as it is, and says why', (_, given) => {
    const { schema, strict, notes } = fitSchema(given)
    expect(strict).toBe(false)
    expect(schema).toEqual({ type: 'object', ...given })
    expect(notes).toEqual([expect.stringMatching(/^not strict: ./)])
  })
})

describe('properties that may be left out', () => {
  const given = object(
    {
      city: text,
      days: { type: 'integer' },
      note: { type: ['string', 'null'] },
      near: object({ x: { type: 'number' }, y: { type: 'number' } }, ['x']),
      list: { type: 'array', items: object({ a: text }, []) },
    },
    ['city'],
  )

  it('become properties that may be null, and the nulls are taken away again', () => {
    const { schema, strict } = fitSchema(given)
    expect(strict).toBe(true)
    expect(brokenSchema(schema)).toEqual([])
    expect(schema).toMatchObject({
      properties: {
        days: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
        note: { type: ['string', 'null'] },
      },
    })
    const input = {
      city: 'Seoul',
      days: null,
      note: null,
      near: { x: 1, y: null },
      list: [{ a: null }, { a: 'b' }],
    }
    expect(withoutAddedNulls(given, input)).toEqual({
      ...{ city: 'Seoul', note: null, near: { x: 1 }, list: [{}, { a: 'b' }] },
    })
  })

  it('after references are found too', () => {
    const schema = object({ first: { $ref: '#/$defs/node' } }, undefined, {
      $defs: { node: object({ a: text, next: { $ref: '#/$defs/node' } }, ['a']) },
    })
    const { schema: sent } = fitSchema(schema)
    expect(brokenSchema(sent)).toEqual([])
    const input = { first: { a: 'x', next: { a: 'y', next: null } } }
    expect(withoutAddedNulls(schema, input)).toEqual({ first: { a: 'x', next: { a: 'y' } } })
  })
})

const schemas = fc.letrec<{ node: JsonObject; leaf: JsonObject }>((tie) => ({
  leaf: fc.constantFrom<JsonObject>(
    ...[text, { type: 'integer', minimum: 0 }, { enum: ['a', null] }, { type: ['string', 'null'] }],
    ...[
      {},
      { type: 'object' },
      { type: 'string', format: 'uri' },
      { const: 1 },
      { type: 'boolean', default: true },
    ],
  ),
  node: fc.oneof(
    { maxDepth: 4 },
    tie('leaf'),
    fc.record({ type: fc.constant('array'), items: tie('node'), uniqueItems: fc.boolean() }),
    fc.record({ anyOf: fc.array(tie('node'), { minLength: 1, maxLength: 2 }) }),
    fc.record({ oneOf: fc.array(tie('node'), { minLength: 1, maxLength: 2 }) }),
    fc
      .record({
        properties: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('node')),
        required: fc.subarray(['a', 'b', 'c']),
        additionalProperties: fc.constantFrom(true, false),
      })
      .map((given): JsonObject => ({ type: 'object', ...given })),
  ),
})).node

it('whatever the schema, one that is called strict breaks no rule of strict schemas', () => {
  fc.assert(
    fc.property(schemas, (inner) => {
      const given = { type: 'object', properties: { x: inner }, required: ['x'] }
      const { schema, strict, notes } = fitSchema(given)
      // One that is not strict goes as it came, and says why.
      const found = strict ? brokenSchema(schema) : [schema, notes.length, notes[0]?.slice(0, 10)]
      expect(found).toEqual(strict ? [] : [given, 1, 'not strict'])
    }),
    { numRuns: tries(1000) },
  )
})

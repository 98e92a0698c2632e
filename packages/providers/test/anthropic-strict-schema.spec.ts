import type { JsonObject } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { fitSchema, fitToolSchema } from '../src/anthropic/tools.ts'
import { NotStrictError } from '../src/shared/strict-schema.ts'
import { brokenSchema } from './kit/anthropic-schema-rules.ts'

const object = (
  properties: JsonObject,
  required = Object.keys(properties),
  more: JsonObject = {},
): JsonObject => ({ ...{ type: 'object', properties, required }, ...more })
const text = { type: 'string' }

describe('a schema that the vendor can compile', () => {
  it('is closed, and otherwise as it was', () => {
    const given = object(
      {
        city: { type: 'string', title: 'City', description: 'Where' },
        kinds: { type: 'array', items: { enum: ['rain', 'sun', null] }, minItems: 1 },
        near: { anyOf: [object({ x: { type: 'number' } }), { type: 'null' }] },
        when: { type: 'string', format: 'date-time' },
        fixed: { const: 1 },
        unit: { $ref: '#/$defs/unit' },
      },
      ['city', 'kinds', 'when'],
      { $defs: { unit: { type: ['string', 'null'] } } },
    )
    const { schema, notes, size } = fitSchema(given)
    expect(notes).toEqual([])
    expect(schema).toMatchObject(given)
    expect(schema).toMatchObject({
      additionalProperties: false,
      properties: { near: { anyOf: [{ additionalProperties: false }, {}] } },
    })
    expect(brokenSchema(schema)).toMatchObject({ broken: [], ...size })
    expect(size).toEqual({ optional: 3, unions: 2 })
  })

  it.each([
    [
      'a bound',
      { type: 'integer', minimum: 1, description: 'Days.' },
      ['minimum'],
      'Days. Rules: {"minimum":1}',
    ],
    [
      'a pattern',
      { type: 'string', pattern: '^S', maxLength: 9 },
      ['pattern', 'maxLength'],
      'Rules: {"pattern":"^S","maxLength":9}',
    ],
    ['a format of its own', { type: 'string', format: 'iban' }, ['format'], 'Rules: {"format":"iban"}'],
    ['a number of items', { type: 'array', items: text, minItems: 2 }, ['minItems'], 'Rules: {"minItems":2}'],
  ])('tells the model of %s in words, and says so', (_, inner, keywords, description) => {
    const { schema, notes } = fitSchema(object({ x: inner }))
    expect(notes).toEqual(
      keywords.map((keyword) => `${keyword} at #/properties/x was put into the description`),
    )
    expect(schema).toMatchObject({ properties: { x: { type: inner.type, description } } })
    expect(brokenSchema(schema).broken).toEqual([])
  })

  it('tells of a default without a warning, and loses what constrains nothing', () => {
    const given = object({ x: { type: 'string', default: 'a', examples: ['b'] } }, undefined, {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
    })
    const { schema, notes } = fitSchema(given)
    expect(notes).toEqual([])
    expect(schema).toEqual(
      object({ x: { type: 'string', description: 'Rules: {"default":"a"}' } }, undefined, {
        additionalProperties: false,
      }),
    )
  })

  it('has choices where another choice stood, and one part where an allOf of one stood', () => {
    const { schema, notes } = fitSchema(
      object({ x: { oneOf: [text, { type: 'null' }] }, y: { allOf: [text], description: 'y' } }),
    )
    expect(notes).toEqual(['oneOf at #/properties/x was sent as anyOf'])
    expect(schema).toMatchObject({
      properties: { x: { anyOf: [text, { type: 'null' }] }, y: { type: 'string', description: 'y' } },
    })
  })

  it('keeps only the definitions that it refers to, however far away', () => {
    const { schema } = fitSchema(
      object({ x: { $ref: '#/$defs/a', description: 'x', minLength: 1 } }, undefined, {
        $defs: { a: object({ b: { $ref: '#/definitions/b' } }), lost: {} },
        definitions: { b: text },
      }),
    )
    expect(schema).toMatchObject({
      properties: { x: { $ref: '#/$defs/a' } },
      $defs: { a: { additionalProperties: false } },
      definitions: { b: text },
    })
    expect(Object.keys(schema['$defs'] as object)).toEqual(['a'])
    expect(brokenSchema(schema).broken).toEqual([])
  })
})

describe('a schema that it cannot compile', () => {
  const node = object({ next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } })
  const leadingTo = (last: JsonObject): JsonObject =>
    object({ x: { $ref: '#/$defs/first' } }, undefined, {
      $defs: { first: object({ y: { $ref: '#/$defs/node' } }), node: last },
    })
  it.each([
    ['properties of any name', object({ x: { type: 'object' } }), '#/properties/x'],
    ['a record', object({ x: { type: 'object', additionalProperties: text } }), '#/properties/x'],
    ['patterns of names', object({}, [], { patternProperties: { a: text } }), 'patternProperties at #'],
    ['anything', object({ x: {} }), 'anything is allowed at #/properties/x'],
    ['true', object({ x: true }), 'anything is allowed at #/properties/x'],
    ['items of any kind', object({ x: { type: 'array' } }), '#/properties/x/items'],
    ['a tuple', object({ x: { type: 'array', prefixItems: [text] } }), 'prefixItems at #/properties/x'],
    ['an allOf of two', object({ x: { allOf: [text, { minLength: 1 }] } }), 'allOf at #/properties/x'],
    ['objects to choose from', object({ x: { enum: [{ a: 1 }] } }), 'enum of objects at #/properties/x'],
    ['another document', object({ x: { $ref: 'https://example.org/x.json' } }), '#/properties/x refers'],
    ['a lost reference', object({ x: { $ref: '#/$defs/x' } }), 'anything is allowed at #/$defs/x'],
    ['itself', object({ x: { $ref: '#/$defs/node' } }, undefined, { $defs: { node } }), 'refers to itself'],
    ['a definition that leads to one that refers to itself', leadingTo(node), 'refers to itself'],
    ['a required property without a schema', object({}, ['x']), 'is required at #'],
    ['a choice at its root', { anyOf: [object({ x: text }), object({ y: text })] }, 'plain object'],
    ['a root that is not an object', { type: 'array', items: text }, 'plain object'],
  ])('because of %s is recognised, and says why', (_, given, why) => {
    expect(() => fitSchema(given)).toThrow(NotStrictError)
    expect(() => fitSchema(given)).toThrow(why)
  })
})

const leaf: fc.Arbitrary<JsonObject> = fc.constantFrom<JsonObject>(
  text,
  { type: 'integer', maximum: 3 },
  { type: ['string', 'null'] },
  { enum: ['a', null] },
  { const: true },
  { type: 'string', format: 'uuid', pattern: 'x' },
  { $ref: '#/$defs/one' },
  { $ref: '#/$defs/two' },
  { $ref: '#' },
  {},
  { type: 'object' },
)
const { schema: anySchema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    leaf,
    fc.array(tie('schema'), { minLength: 1, maxLength: 2 }).map((anyOf) => ({ anyOf })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 2 }).map((oneOf) => ({ oneOf })),
    fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(2) }),
    fc
      .tuple(fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('schema'), { maxKeys: 3 }), fc.nat(3))
      .map(([properties, kept]) => object(properties, Object.keys(properties).slice(0, kept))),
  ),
}))
const documents = fc
  .tuple(anySchema, anySchema, anySchema)
  .map(([root, one, two]): JsonObject => ({ ...root, $defs: { one, two } }))

describe('any schema', () => {
  it('is either in the vendor’s subset afterwards, and counted right, or told apart', () => {
    fc.assert(
      fc.property(documents, (given) => {
        const before = structuredClone(given)
        try {
          const { schema, size } = fitSchema(given)
          expect(brokenSchema(schema)).toMatchObject({ broken: [], ...size })
        } catch (error) {
          if (!(error instanceof NotStrictError)) throw error
        }
        expect(given).toEqual(before)
      }),
      { numRuns: tries(500) },
    )
  })

  it('of a tool has a plain object at its root', () => {
    fc.assert(
      fc.property(documents, (given) => {
        const { schema } = fitToolSchema(given)
        expect(schema['type']).toBe('object')
        expect(Object.keys(schema)).not.toEqual(
          expect.arrayContaining([expect.stringMatching(/Of$|^\$ref$/)]),
        )
      }),
      { numRuns: tries(500) },
    )
  })
})

describe('a tool’s schema that is a choice', () => {
  const circle = object({ kind: { const: 'circle' }, radius: { type: 'number' } })
  const square = object({ kind: { const: 'square' }, side: { type: 'number' } })

  it('becomes one object, which requires what all of them require, and tells of the choice', () => {
    const given = { anyOf: [{ $ref: '#/$defs/circle' }, square], $defs: { circle } }
    const { schema, notes } = fitToolSchema(given)
    expect(schema).toEqual({
      $defs: { circle },
      type: 'object',
      properties: {
        kind: { anyOf: [{ const: 'circle' }, { const: 'square' }] },
        radius: { type: 'number' },
        side: { type: 'number' },
      },
      required: ['kind'],
      description: `Rules: ${JSON.stringify({ anyOf: given.anyOf })}`,
    })
    expect(notes).toEqual(['anyOf at # was put into the description'])
  })

  it('or made of parts requires what any part requires', () => {
    const { schema } = fitToolSchema({ allOf: [circle, object({ note: text }, [])], description: 'A shape.' })
    expect(schema).toMatchObject({
      properties: { kind: { const: 'circle' }, radius: {}, note: text },
      required: ['kind', 'radius'],
      description: expect.stringMatching(/^A shape\. Rules: \{"allOf":/),
    })
  })

  it.each<[how: string, $ref: string, definitions: JsonObject]>([
    ['to a definition', '#/$defs/circle', { $defs: { circle } }],
    [
      'to one that refers on',
      '#/$defs/a',
      { $defs: { a: { $ref: '#/definitions/b' } }, definitions: { b: circle } },
    ],
    ['to a name with signs', '#/$defs/a~1b~0c', { $defs: { 'a/b~c': circle } }],
  ])('or refers %s has the properties of what it means, and what it requires', (_, $ref, definitions) => {
    const { schema, notes } = fitToolSchema({ $ref, ...definitions })
    expect(schema).toEqual({
      ...{ ...definitions, type: 'object', properties: circle['properties'], required: ['kind', 'radius'] },
      description: `Rules: ${JSON.stringify({ $ref })}`,
    })
    expect(notes).toEqual(['$ref at # was put into the description'])
  })

  it.each<[string, JsonObject]>([
    ['to nothing', { $ref: '#/$defs/lost' }],
    ['to itself', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }],
    ['to what is not a schema', { $ref: '#/$defs/a', $defs: { a: 7 } }],
  ])('or refers %s has no properties', (_, given) => {
    const { schema } = fitToolSchema(given)
    expect([schema['properties'], 'required' in schema]).toEqual([{}, false])
  })

  it('twice requires what all of either choice require, and says a property once that is the same', () => {
    const given = {
      anyOf: [circle, object({ kind: { const: 'circle' } })],
      oneOf: [square, object({ side: { type: 'number' }, kind: text }, ['side'])],
    }
    expect(fitToolSchema(given)).toMatchObject({
      schema: {
        properties: {
          kind: { anyOf: [{ const: 'circle' }, { const: 'square' }, text] },
          side: { type: 'number' },
        },
        required: ['kind', 'side'],
      },
      notes: ['anyOf at # was put into the description', 'oneOf at # was put into the description'],
    })
  })

  it('is left alone where it is a plain object already', () => {
    expect(fitToolSchema(circle)).toEqual({ schema: circle, notes: [] })
    expect(fitToolSchema({}).schema).toEqual({ type: 'object' })
  })
})

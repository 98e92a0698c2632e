import type { JsonObject } from '@tallystick/core/vocabulary'
import { file, image } from '@tallystick/tools'
import { describe, expect, it } from 'vitest'
import { toJson } from '../src/define/content.ts'
import { readExpectation, isOfTypes, readKind } from '../src/define/input-issues.ts'
import { createSchemaParse } from '../src/define/schema.ts'

describe('what a schema expects at a place', () => {
  it.each<[string, JsonObject, readonly PropertyKey[], object]>([
    ['a type', { type: 'string' }, [], { types: ['string'] }],
    ['several types', { type: ['string', 1, 'null'] }, [], { types: ['string', 'null'] }],
    [
      'values',
      { enum: ['a', 1, null, []] },
      [],
      { types: ['string', 'number', 'null', 'array'], values: ['a', 1, null, []] },
    ],
    ['a constant', { const: null, enum: [1] }, [], { types: ['null'], values: [null] }],
    ['values of one type', { enum: ['a', 'b'] }, [], { types: ['string'], values: ['a', 'b'] }],
    ['nothing plain', {}, [], {}],
    ['a property', { properties: { a: { type: 'string' } } }, ['a'], { types: ['string'] }],
    ['any other property', { additionalProperties: { type: 'string' } }, ['a'], { types: ['string'] }],
    [
      'a property by its own schema',
      { properties: { a: { type: 'number' } }, additionalProperties: { type: 'string' } },
      ['a'],
      { types: ['number'] },
    ],
    [
      'a property by the name of what objects inherit',
      { properties: {}, additionalProperties: { type: 'number' } },
      ['toString'],
      { types: ['number'] },
    ],
    ['nothing of a choice of itself', { anyOf: [{ $ref: '#' }] }, [], {}],
    ['an item', { type: 'array', items: { type: 'string' } }, [3], { types: ['string'] }],
    ['no item of an object', { items: { type: 'string' } }, [0], {}],
    [
      'an item by its place',
      { type: 'array', prefixItems: [{ type: 'string' }, { type: 'null' }] },
      [1],
      { types: ['null'] },
    ],
    [
      'an item by its place, of old',
      { type: 'array', items: [{ type: 'string' }, { type: 'null' }] },
      ['0'],
      { types: ['string'] },
    ],
    [
      'an item after those with places',
      { type: 'array', prefixItems: [{ type: 'null' }], items: { type: 'string' } },
      [1],
      { types: ['string'] },
    ],
    ['nothing below a symbol', { additionalProperties: { type: 'string' } }, [Symbol('a')], {}],
    ['nothing below what is inherited', { properties: {}, additionalProperties: false }, ['toString'], {}],
    [
      'the only keys',
      { properties: { a: {}, b: {} }, additionalProperties: false },
      [],
      { keys: ['a', 'b'] },
    ],
    ['no keys', { additionalProperties: false }, [], { keys: [] }],
    ['any keys', { properties: { a: {} } }, [], {}],
    [
      'keys by a pattern',
      { properties: { a: {} }, additionalProperties: false, patternProperties: {} },
      [],
      {},
    ],
    [
      'a choice',
      { anyOf: [{ type: 'string' }, { type: 'null' }, { type: 'string' }] },
      [],
      { types: ['string', 'null'] },
    ],
    ['one of a choice', { oneOf: [{ const: 1 }, { const: 2 }] }, [], { types: ['number'], values: [1, 2] }],
    ['a choice with a type of its own', { type: 'string', anyOf: [{ const: 1 }] }, [], { types: ['string'] }],
    ['a choice of anything', { anyOf: [{ type: 'string' }, true] }, [], {}],
    [
      'a choice without its keys',
      { anyOf: [{ additionalProperties: false }, { additionalProperties: false }] },
      [],
      {},
    ],
    ['a reference', { $ref: '#/$defs/a', $defs: { a: { type: 'string' } } }, [], { types: ['string'] }],
    [
      'a reference with escapes',
      { $ref: '#/$defs/a~1b%20c~0d', $defs: { 'a/b c~d': { type: 'null' } } },
      [],
      { types: ['null'] },
    ],
    [
      'the whole again',
      { type: 'object', properties: { a: { $ref: '#' } } },
      ['a', 'a'],
      { types: ['object'] },
    ],
    [
      'a % that encodes nothing',
      { $ref: '#/$defs/9%', $defs: { '9%': { type: 'null' } } },
      [],
      { types: ['null'] },
    ],
    ['nothing at a lost reference', { $ref: '#/$defs/a' }, [], {}],
    ['nothing at what is inherited', { $ref: '#/toString' }, [], {}],
    ['nothing in another document', { $ref: 'other#/a', a: { type: 'string' } }, [], {}],
    ['nothing at a reference that is not text', { $ref: 1, type: 'string' }, [], {}],
  ])('is %s', (_, schema, path, expected) => {
    expect(readExpectation(schema, path)).toEqual(expected)
  })

  it('is looked for through sixteen references, and no further', () => {
    const chain = (length: number): JsonObject => ({
      $ref: '#/$defs/1',
      $defs: Object.fromEntries(
        Array.from({ length }, (_, index) => [
          `${index + 1}`,
          index + 1 === length ? { type: 'string' } : { $ref: `#/$defs/${index + 2}` },
        ]),
      ),
    })
    expect([16, 17].map((length) => readExpectation(chain(length), []))).toEqual([{ types: ['string'] }, {}])
    expect(readExpectation({ $ref: '#' }, [])).toEqual({})
  })
})

describe('a kind of value', () => {
  it('is that of JSON', () => {
    expect([null, [], {}, 'a', 1, true, undefined].map(readKind)).toEqual([
      ...['null', 'array', 'object', 'string', 'number', 'boolean', 'undefined'],
    ])
    expect([1, 1.5, '1'].map((value) => isOfTypes(value, ['integer']))).toEqual([true, false, false])
    expect([null, 1.5, 'a'].map((value) => isOfTypes(value, ['null', 'number']))).toEqual([true, true, false])
  })
})

describe('what a JSON Schema has against an input', () => {
  const issues = async (schema: JsonObject, input: JsonObject): Promise<unknown> => {
    const parsed = await createSchemaParse('t', schema)(input)
    return parsed.ok ? [] : parsed.issues.map(({ path }) => path.join('.'))
  }
  const text = { type: 'string' }

  it.each<[string, JsonObject, JsonObject, readonly string[]]>([
    ['a property', { properties: { a: text } }, { a: 1 }, ['a']],
    ['a property by a pattern', { patternProperties: { '^a': text } }, { ab: 1 }, ['ab']],
    ['any other property', { additionalProperties: text }, { a: 1 }, ['a']],
    ['a property that nothing has seen', { unevaluatedProperties: text }, { a: 1 }, ['a']],
    ['an item', { properties: { a: { items: text } } }, { a: ['x', 1] }, ['a.1']],
    ['an item by its place', { properties: { a: { prefixItems: [text] } } }, { a: [1] }, ['a.0']],
    ['an item that nothing has seen', { properties: { a: { unevaluatedItems: text } } }, { a: [1] }, ['a.0']],
    ['a part of all', { allOf: [{ properties: { a: text } }] }, { a: 1 }, ['a']],
    ['a reference', { properties: { a: { $ref: '#/$defs/t' } }, $defs: { t: text } }, { a: 1 }, ['a']],
    [
      'a condition',
      JSON.parse('{"if":{"required":["a"]},"then":{"properties":{"a":{"type":"string"}}}}') as JsonObject,
      { a: 1 },
      ['a'],
    ],
    ['another condition', { if: { required: ['b'] }, else: { properties: { a: text } } }, { a: 1 }, ['a']],
    ['what another key asks', { dependentSchemas: { a: { properties: { a: text } } } }, { a: 1 }, ['a']],
    ['a missing key', { properties: { a: { required: ['b'] } } }, { a: {} }, ['a.b']],
    ['a choice, as one', { properties: { a: { anyOf: [text, { type: 'null' }] } } }, { a: 1 }, ['a']],
    [
      'a choice and another place',
      { properties: { a: { oneOf: [text] }, b: text } },
      { a: 1, b: 1 },
      ['a', 'b'],
    ],
    ['a key with escapes', { properties: { 'a/b~c': text } }, { 'a/b~c': 1 }, ['a/b~c']],
  ])('is named at its place, once: %s', async (_, schema, input, paths) => {
    expect(await issues(schema, input)).toEqual(paths)
  })

  it('of an older draft is that of its words', async () => {
    const tuple = { properties: { a: { items: [text], additionalItems: text } } }
    for (const draft of [
      'http://json-schema.org/draft-07/schema#',
      'https://json-schema.org/draft/2019-09/schema',
    ]) {
      expect(await issues({ $schema: draft, ...tuple }, { a: ['x', 1] })).toEqual(['a.1'])
    }
    const bound = { properties: { a: { maximum: 3, exclusiveMaximum: true } } }
    expect(await issues({ $schema: 'http://json-schema.org/draft-04/schema#', ...bound }, { a: 3 })).toEqual([
      'a',
    ])
    const least = { properties: { a: { exclusiveMinimum: 3 } } }
    for (const draft of ['draft-06/schema#', 'draft-6', 'draft-07/schema#'])
      expect(await issues({ $schema: `http://json-schema.org/${draft}`, ...least }, { a: 3 })).toEqual(['a'])
    const sibling = { definitions: { t: text }, properties: { a: { $ref: '#/definitions/t', maxLength: 1 } } }
    expect(
      await issues({ $schema: 'http://json-schema.org/draft-07/schema#', ...sibling }, { a: 'xx' }),
    ).toEqual([])
    expect(await issues(sibling, { a: 'xx' })).toEqual(['a'])
    const placed = { properties: { a: { prefixItems: [text] } } }
    expect(
      await issues({ $schema: 'https://json-schema.org/draft/2020-12/schema', ...placed }, { a: [1] }),
    ).toEqual(['a.0'])
  })
})

describe('a value as JSON', () => {
  it('is nested 200 levels deep, and no deeper', () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) })
    expect(JSON.stringify(toJson(nested(200)))).toHaveLength(200 * 6 + 1)
    expect(() => toJson(nested(201))).toThrow('is nested deeper than 200 levels')
  })
})

describe('a part under other names', () => {
  it.each([
    [() => image({ mimeType: 'image/png' } as never), 'mediaType'],
    [() => image({ mime: 'image/png' } as never), 'mediaType'],
    [() => image({ bytes: 'x' } as never), 'data'],
    [() => file({ base64: 'x' } as never), 'data'],
    [() => file({ href: 'x' } as never), 'url'],
    [() => file({ filename: 'x' } as never), 'name'],
    [() => file({ fileName: 'x' } as never), 'name'],
    [() => file({ mimeType: 'x' } as never), 'mediaType'],
  ])('is refused with the name that it has here: %#', (make, known) => {
    expect(make).toThrow(`Did you mean ${known}?`)
  })

  it('has bytes of any length, as they are', () => {
    for (const length of [0, 1, 8191, 8192, 8193, 20_000]) {
      const bytes = Uint8Array.from({ length }, (_, index) => index % 256)
      const part = image({ mediaType: 'image/png', data: bytes })
      expect(Uint8Array.from(atob(part.data ?? '?'), (character) => character.charCodeAt(0))).toEqual(bytes)
    }
  })
})

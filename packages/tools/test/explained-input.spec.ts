import type { Json, JsonObject } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import {
  readExpectation,
  explainIssues,
  type InputIssue,
  isOfTypes,
  readKind,
} from '../src/define/input-issues.ts'
import { createSchemaParse } from '../src/define/schema.ts'

/** The lines for some issues, without the sentence before them. */
function lines(inputSchema: JsonObject, input: JsonObject, issues: readonly InputIssue[]): readonly string[] {
  const [first, ...rest] = explainIssues({ name: 'plan', inputSchema }, input, issues).split('\n')
  expect(first).toBe(
    'The input does not fit the schema of plan. Nothing was run. Correct it and call the tool again:',
  )
  return rest.map((line) => line.slice(2))
}

const at = (path: readonly PropertyKey[], message = 'no'): InputIssue => ({ path, message })
const ofKeys = (properties: JsonObject): JsonObject => ({ type: 'object', properties })
const letters = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => String.fromCharCode(97 + index))

describe('an explained input', () => {
  it('has every line up to eight, and then says how many more there are', () => {
    const issues = (count: number) => letters(count).map((key) => at([], key))
    expect(lines({}, {}, issues(8))).toEqual(letters(8).map((key) => `input: ${key}`))
    expect(lines({}, {}, issues(9)).slice(7)).toEqual(['input: h', 'and 1 more'])
    expect(lines({}, {}, [at([], 'same'), at([], 'same')])).toEqual(['input: same'])
  })

  it('names the keys that an unknown key is not, at most twelve of them', () => {
    const closed = (count: number): JsonObject => ({
      ...ofKeys(Object.fromEntries(letters(count).map((key) => [key, {}]))),
      additionalProperties: false,
    })
    expect(lines(closed(0), { z: 1 }, [at(['z'])])).toEqual(['z: unknown key'])
    expect(lines(closed(1), { z: 1 }, [at(['z'])])).toEqual(['z: unknown key; the keys are a'])
    expect(lines(closed(13), { z: 1 }, [at(['z'])])).toEqual([
      `z: unknown key; the keys are ${letters(12).join(', ')}`,
    ])
    expect(lines({}, { z: 1 }, [{ ...at([]), unknownKeys: ['y', 'z'] }])).toEqual([
      'y: unknown key',
      'z: unknown key',
    ])
    const nested = { ...ofKeys({ a: closed(2) }), additionalProperties: false }
    expect(lines(nested, { a: { z: 1 } }, [at(['a', 'z'])])).toEqual(['a.z: unknown key; the keys are a, b'])
    expect(lines(closed(1), { a: 1 }, [at(['a'], 'too large')])).toEqual(['a: too large'])
    expect(lines(closed(1), { a: 1 }, [at([], 'too many')])).toEqual(['input: too many'])
    expect(lines(nested, { a: { z: 1 } }, [{ ...at(['a']), unknownKeys: ['z'] }])).toEqual([
      'a.z: unknown key; the keys are a, b',
    ])
  })

  it('names the values that are allowed, at most twelve of them', () => {
    const among = (...values: readonly string[]) => ofKeys({ unit: { enum: values } })
    expect(lines(among('a'), { unit: 'z' }, [at(['unit'])])).toEqual([
      'unit: expected "a", received another string',
    ])
    const quoted = letters(12).map((letter) => JSON.stringify(letter))
    expect(lines(among(...letters(12)), { unit: 'z' }, [at(['unit'])])).toEqual([
      `unit: expected one of ${quoted.join(', ')}, received another string`,
    ])
    expect(lines(among(...letters(13)), { unit: 'z' }, [at(['unit'])])).toEqual([
      `unit: expected one of ${quoted.join(', ')}, …, received another string`,
    ])
    expect(lines(among('a', 'b'), { unit: 'b' }, [at(['unit'], 'not today')])).toEqual(['unit: not today'])
    expect(lines(among(), {}, [at(['unit'])])).toEqual(['unit: missing'])
    expect(lines(ofKeys({ unit: { const: 'a' } }), {}, [at(['unit'])])).toEqual([
      'unit: missing, expected "a"',
    ])
  })

  it('names the types where there are any', () => {
    const typed = (type: readonly string[]) => ofKeys({ size: { type: [...type] } })
    expect(lines(typed(['string', 'null']), {}, [at(['size'])])).toEqual([
      'size: missing, expected string or null',
    ])
    expect(lines(typed([]), {}, [at(['size'])])).toEqual(['size: missing'])
    expect(lines(typed(['string', 'null']), { size: [1] }, [at(['size'])])).toEqual([
      'size: expected string or null, received array',
    ])
  })

  it('says once where it is, and keeps what else the library says', () => {
    const said = (message: string) => lines({}, { size: 1 }, [at(['size'], message)])
    expect(said('size must be above 3')).toEqual(['size: must be above 3'])
    expect(said('sizes must be above 3')).toEqual(['size: sizes must be above 3'])
    expect(said('Invalid option: one of "a"|"b"')).toEqual(['size: one of "a"|"b"'])
    expect(said('Must not be an Invalid value: 3')).toEqual(['size: Must not be an Invalid value: 3'])
    for (const empty of ['', 'Invalid input', 'Invalid type: ']) {
      expect(said(empty)).toEqual(['size: does not fit the schema'])
    }
    expect(said('one\n  two\n three')).toEqual(['size: one two three'])
  })

  it('points at places in lists, below keys, and below what is not an object', () => {
    const input = { list: [{ deep: { 'odd key': 1 } }], text: 'x', none: null }
    expect(lines({}, input, [at(['list', 0, 'deep', 'odd key'])])).toEqual(['list[0].deep["odd key"]: no'])
    expect(lines({}, input, [at(['list', 0, 'deep', '$id-1'])])).toEqual(['list[0].deep.$id-1: missing'])
    expect(lines({}, input, [at(['text', 'length'])])).toEqual(['text.length: no'])
    expect(lines({}, input, [at(['none', 'x'])])).toEqual(['none.x: no'])
    expect(lines({}, input, [at(['list', 'map'])])).toEqual(['list[map]: missing'])
    expect(lines({}, input, [at([])])).toEqual(['input: no'])
    expect(lines({}, input, [at(['__proto__', 'x'])])).toEqual(['__proto__.x: no'])
  })
})

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

describe('what a plain schema has against an input', () => {
  const issues = async (schema: JsonObject, input: JsonObject) => {
    const verdict = await createSchemaParse('plan', { type: 'object', ...schema })(input)
    return verdict.ok ? [] : verdict.issues.map(({ path, message }) => `${path.join('/')}: ${message}`)
  }
  const number = { type: 'number' }
  const wrong = 'type "string" is invalid. Expected "number"'

  it.each<readonly [keyword: string, schema: JsonObject, input: JsonObject]>([
    ['$ref', { properties: { a: { $ref: '#/$defs/n' } }, $defs: { n: number } }, { a: 'x' }],
    ['allOf', { properties: { a: { allOf: [number] } } }, { a: 'x' }],
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    ['then', { if: { required: ['a'] }, then: { properties: { a: number } } }, { a: 'x' }],
    ['else', { if: { required: ['b'] }, else: { properties: { a: number } } }, { a: 'x' }],
    ['properties', { properties: { a: number } }, { a: 'x' }],
    ['patternProperties', { patternProperties: { '^a': number } }, { a: 'x' }],
    ['additionalProperties', { additionalProperties: number }, { a: 'x' }],
    ['unevaluatedProperties', { unevaluatedProperties: number }, { a: 'x' }],
    ['dependentSchemas', { dependentSchemas: { a: { properties: { a: number } } } }, { a: 'x' }],
  ])('is said where it is wrong and not again by %s', async (_keyword, schema, input) => {
    expect(await issues(schema, input)).toEqual([`a: ${wrong}`])
  })

  it.each<readonly [keyword: string, list: JsonObject, draft: string, given: readonly Json[]]>([
    ['prefixItems', { prefixItems: [number] }, '2020-12/schema', ['x']],
    ['items', { items: number }, '2020-12/schema', ['x']],
    ['additionalItems', { items: [{}], additionalItems: number }, 'draft-07/schema', [{}, 'x']],
    ['unevaluatedItems', { unevaluatedItems: number }, '2020-12/schema', ['x']],
  ])('is said of an element and not again by %s', async (_keyword, list, draft, given) => {
    const schema = { $schema: `http://json-schema.org/${draft}#`, properties: { list } }
    expect(await issues(schema, { list: [...given] })).toEqual([`list/${given.length - 1}: ${wrong}`])
  })

  it('names a missing key with quotes in it, and a key with a slash', async () => {
    expect(await issues({ required: ['a"b'] }, {})).toEqual(['a"b: does not have required property "a"b"'])
    expect(await issues({ properties: { 'a/b~é': number } }, { 'a/b~é': 'x' })).toEqual([`a/b~é: ${wrong}`])
  })

  it('names a choice as one, and what is wrong elsewhere as well', async () => {
    const text = { type: 'string' }
    const places = async (schema: JsonObject, input: JsonObject) =>
      (await issues(schema, input)).map((issue) => issue.split(':')[0])
    expect(await places({ properties: { a: { anyOf: [text, { type: 'null' }] } } }, { a: 1 })).toEqual(['a'])
    expect(await places({ properties: { a: { oneOf: [text] }, b: text } }, { a: 1, b: 1 })).toEqual([
      ...['a', 'b'],
    ])
  })

  it.each<readonly [draft: string, property: JsonObject, given: Json, wrong: readonly string[]]>([
    ['draft-04', { maximum: 3, exclusiveMaximum: true }, 3, ['a']],
    ['draft-06', { exclusiveMinimum: 3 }, 3, ['a']],
    ['draft-6', { exclusiveMinimum: 3 }, 3, ['a']],
    ['draft-07', { exclusiveMinimum: 3 }, 3, ['a']],
    // Beside a reference, only the later drafts read other keywords.
    ['draft-07', { $ref: '#/$defs/n', maximum: 1 }, 2, []],
    ['2019-09', { $ref: '#/$defs/n', maximum: 1 }, 2, ['a']],
    ['2019-09', { items: [{}], additionalItems: number }, [1, 'x'], ['a/1']],
    ['2020-12', { prefixItems: [number] }, ['x'], ['a/0']],
  ])('is by the words of its draft: %s, %j', async (draft, a, given, wrong) => {
    const schema = { $schema: `http://json-schema.org/${draft}/schema#`, $defs: { n: number } }
    const found = await issues({ ...schema, properties: { a } }, { a: given })
    expect(found.map((issue) => issue.split(':')[0])).toEqual(wrong)
  })
})

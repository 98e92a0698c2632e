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
  const text = { type: 'string' }

  it('is unknown below a reference that leads back to itself, in circles, or to nothing', () => {
    const circle = { ...ofKeys({ a: { anyOf: [text, { $ref: '#/x' }] } }), x: { $ref: '#/x' } }
    expect(readExpectation(circle, ['a'])).toEqual({})
    expect(readExpectation(ofKeys({ a: { anyOf: [text, { $ref: '#/nowhere' }] } }), ['a'])).toEqual({})
    expect(readExpectation(ofKeys({ a: { anyOf: [text, { $ref: 'other.json' }] } }), ['a'])).toEqual({})
    expect(readExpectation(ofKeys({ a: { anyOf: [text, true] } }), ['a'])).toEqual({})
  })

  it('follows references with escaped names, and choices', () => {
    const schema = { ...ofKeys({ a: { $ref: '#/x~1y~0z/%C3%A9' } }), 'x/y~z': { é: text } }
    expect(readExpectation(schema, ['a'])).toEqual({ types: ['string'] })
    const choice = ofKeys({ a: { oneOf: [text, { type: 'null' }, text] } })
    expect(readExpectation(choice, ['a'])).toEqual({ types: ['string', 'null'] })
    expect(readExpectation(ofKeys({ a: { type: 'number', anyOf: [text] } }), ['a'])).toEqual({
      types: ['number'],
    })
  })

  it('follows lists by place, lists of one kind, and further keys', () => {
    const list = (more: JsonObject) => ofKeys({ list: { type: 'array', ...more } })
    expect(readExpectation(list({ prefixItems: [{}, text] }), ['list', 1])).toEqual({ types: ['string'] })
    expect(readExpectation(list({ items: [text] }), ['list', 0])).toEqual({ types: ['string'] })
    expect(readExpectation(list({ items: text }), ['list', 7])).toEqual({ types: ['string'] })
    expect(readExpectation({ type: 'object', additionalProperties: text }, ['any'])).toEqual({
      types: ['string'],
    })
    expect(readExpectation(list({ additionalProperties: text }), ['list', 0])).toEqual({})
    expect(readExpectation(ofKeys({ a: text }), [Symbol('a')])).toEqual({})
    expect(readExpectation(ofKeys({}), ['toString'])).toEqual({})
  })

  it('knows the keys of an object that is closed, and only of one', () => {
    const closed = { ...ofKeys({ a: text }), additionalProperties: false }
    expect(readExpectation(closed, [])).toEqual({ types: ['object'], keys: ['a'] })
    expect(readExpectation({ type: 'object', additionalProperties: false }, [])).toMatchObject({ keys: [] })
    expect(readExpectation({ ...closed, patternProperties: {} }, [])).not.toHaveProperty('keys')
    expect(readExpectation({ anyOf: [closed, closed] }, [])).not.toHaveProperty('keys')
  })

  it('takes the types from the values where only these are given', () => {
    expect(readExpectation({ enum: ['a', 1, 'b', null, [1]] }, [])).toEqual({
      types: ['string', 'number', 'null', 'array'],
      values: ['a', 1, 'b', null, [1]],
    })
    expect(readExpectation({ anyOf: [{ const: 'a' }, text] }, [])).toEqual({ types: ['string'] })
  })

  it('tells kinds and types apart', () => {
    expect([null, [], {}, 'a', 1, true].map(readKind)).toEqual([
      ...['null', 'array', 'object', 'string', 'number', 'boolean'],
    ])
    expect([1, 1.5, '1'].map((value) => isOfTypes(value, ['integer']))).toEqual([true, false, false])
    expect(isOfTypes('a', ['number', 'string'])).toBe(true)
    expect(isOfTypes('a', [])).toBe(false)
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
})

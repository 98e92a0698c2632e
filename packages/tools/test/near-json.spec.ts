import { hostileTexts } from '@tallystick/testkit'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { fitValue, readNearJson, repairUnfit } from '../src/define/repair.ts'

const fence = 'a code fence around it was removed'
const comments = 'comments were removed'
const commas = 'commas before closing brackets were removed'
const quotes = 'single quotes were read as double quotes'
const keys = 'names without quotes were read as names'
const words = 'True, False and None were read as true, false and null'
const breaks = 'line breaks within texts were kept'
const brackets = 'closing brackets at its end that belong to nothing were removed'
const cut = 'closing brackets that were missing at its end were added'
const text = 'a text that holds an object was read as that object'

describe('a text that is nearly JSON', () => {
  it.each<[string, unknown, readonly string[]]>([
    ['{"a": 1}', { a: 1 }, []],
    [' [] ', [], []],
    [
      '{"a":[1,-2.5e3,true,false,null,"\\u00e9\\n\\"\\/\\\\\\b\\f\\r\\t"]}',
      { a: [1, -2500, true, false, null, 'é\n"/\\\b\f\r\t'] },
      [],
    ],
    ['```json\n{"a":1}\n```', { a: 1 }, [fence]],
    ['```\n{"a":1}```', { a: 1 }, [fence]],
    ['{"a":1,}', { a: 1 }, [commas]],
    ['{"a":[1,2,],}', { a: [1, 2] }, [commas]],
    ["{'a':'it\\'s'}", { a: "it's" }, [quotes]],
    ['{a:1,$b_2:2}', { a: 1, $b_2: 2 }, [keys]],
    ['{"a":True,"b":False,"c":None}', { a: true, b: false, c: null }, [words]],
    ['{"a":1 // one, }\n}', { a: 1 }, [comments]],
    ['/* first */{"a":/**/1}', { a: 1 }, [comments]],
    ['{"a":"one\ntwo\tthree"}', { a: 'one\ntwo\tthree' }, [breaks]],
    ['{"a":[1]}]} }', { a: [1] }, [brackets]],
    ['{"a":{"b":[1,2', { a: { b: [1, 2] } }, [cut]],
    ['{"a":1,', { a: 1 }, [commas, cut]],
    ['{', {}, [cut]],
    ['["a"', ['a'], [cut]],
    ['"{\\"a\\":1}"', { a: 1 }, [text]],
    ["```json\n{a:'x',}\n```", { a: 'x' }, [fence, keys, quotes, commas]],
    ['{"a" : 1}', { a: 1 }, []],
    ['{"a":1 /*/ 2 */}', { a: 1 }, [comments]],
    [' ```json\n{"a":1}\n``` \n', { a: 1 }, [fence]],
    ['{"__proto__":{"x":1}}', JSON.parse('{"__proto__":{"x":1}}'), []],
  ])('%j is read', (given, value, repairs) => {
    expect(readNearJson(given)).toEqual({ value, repairs, isCut: repairs.includes(cut) })
  })

  it.each([
    ['a text without an end', '{"a":"one'],
    ['a name without a value', '{"a"'],
    ['a name without a value after its colon', '{"a":'],
    ['a name without a colon', '{"a" 1}'],
    ['another sign for a colon', '{"a"=1}'],
    ['the same name twice', '{"a":1,"a":2}'],
    ['an escape that JSON does not know', '{"a":"C:\\dir"}'],
    ['half an escape', '{"a":"\\u00"}'],
    ['an escape of no digits', '{"a":"\\uZZZZ"}'],
    ['an escape at the end', '"\\'],
    ['a number that reading would round', '{a: 2512292042121000001}'],
    ['words before it', 'Here it is: {"a":1}'],
    ['words after it', '{"a":1} is it'],
    ['two values', '{"a":1}{"b":2}'],
    ['no comma', '{"a":1 "b":2}'],
    ['two commas', '[1,,2]'],
    ['a comma alone', '[,]'],
    ['an apostrophe that ends a text', "{'a':'it's'}"],
    ['an unknown word', '{"a":undefined}'],
    ['a word that goes on', '{"a":trueish}'],
    ['a number with a leading zero', '{"a":012}'],
    ['a number without an end', '{"a":-}'],
    ['a number that is too large', '{"a":1e999}'],
    ['a comment without an end', '{"a":1 /* b }'],
    ['a line comment without an end', '{"a":1 // b }'],
    ['a line comment alone', '// {"a":1}'],
    ['a name that is a number', '{1:2}'],
    ['a name that is missing', '{:2}'],
    ['the wrong closing bracket', '{"a":[1}]'],
    ['a fence without an end', '```json\n{"a":1}'],
    ['a fence with brackets for its end', '```json\n{"a":1}]]]'],
    ['a fence alone', '```json ```'.slice(0, 10)],
    ['a text that holds no JSON', '"plain"'],
    ['nothing', ''],
    ['only brackets', ']]'],
    ['too many brackets', '['.repeat(66)],
    ['too many names in each other', `${'{"a":'.repeat(65)}{`],
    ['too much', `["${'x'.repeat(199_997)}"]`],
  ])('%s is not guessed at', (_what, given) => {
    expect(readNearJson(given)).toBeUndefined()
  })

  it('as deep and as long as is allowed is read', () => {
    expect(readNearJson('['.repeat(65))?.isCut).toBe(true)
    expect(readNearJson(`${'{"a":'.repeat(64)}{`)?.isCut).toBe(true)
    expect(readNearJson(`["${'x'.repeat(199_996)}"]`)?.repairs).toEqual([])
  })

  it('that is JSON is read as what it is, or left alone, and any text ends', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.integer({ min: 0, max: 3 }), (value, space) => {
        const given = JSON.stringify({ value }, undefined, space)
        expect(readNearJson(given)).toEqual({ value: JSON.parse(given), repairs: [], isCut: false })
      }),
      { numRuns: tries(200) },
    )
    for (const { text: hostile } of hostileTexts) {
      const read = readNearJson(hostile.slice(0, 100_000))
      expect(JSON.stringify(read?.value ?? null)).toBeTypeOf('string')
    }
  })
})

describe('a value that nearly fits a schema', () => {
  const of = (type: unknown) => ({ type: 'object', properties: { a: { type } } })
  it.each<[string, unknown, unknown, unknown, string?]>([
    ['a number', 'number', '1.50', 1.5, 'a number'],
    ['a number among blanks', 'number', ' 5 ', 5, 'a number'],
    ['an integer', 'integer', '-12', -12, 'a number'],
    ['a large integer', ['integer', 'null'], '9007199254740991', 9007199254740991, 'a number'],
    [
      'a number of seventeen digits that it keeps',
      'number',
      '0.30000000000000004',
      0.30000000000000004,
      'a number',
    ],
    ['a number of few digits among blanks', 'number', '  1234567890.50  ', 1234567890.5, 'a number'],
    ['a number of fifteen digits', 'number', '12345678901234.0', 12345678901234, 'a number'],
    ['a number of sixteen digits', 'number', '123456789012345.0', '123456789012345.0'],
    ['a truth value', 'boolean', 'false', false, 'true or false'],
    ['a truth value for a number', 'number', 'true', 'true'],
    ['nothing for an object', 'object', null, null],
    ['a list', 'array', '[1,"b"]', [1, 'b'], 'a list'],
    ['an object', 'object', '{"b":1}', { b: 1 }, 'an object'],
    ['no integer', 'integer', '1.5', '1.5'],
    ['an integer that loses digits', 'integer', '9007199254740993', '9007199254740993'],
    ['a number that loses digits', 'number', '0.3000000000000000001', '0.3000000000000000001'],
    ['a number with an exponent that is not kept', 'number', '1e400', '1e400'],
    ['a number written with an exponent', 'number', '1E3', '1E3'],
    ['a number with leading zeros', 'number', '007', '007'],
    ['an empty text', 'number', '', ''],
    ['a word', 'number', 'five', 'five'],
    ['a truth value as a word', 'boolean', 'yes', 'yes'],
    ['a number for a truth value', 'boolean', '1', '1'],
    ['a list for an object', 'object', '[1]', '[1]'],
    ['an object for a list', 'array', '{"b":1}', '{"b":1}'],
    ['null', 'null', 'null', 'null'],
    ['a text that may be one', ['string', 'number'], '5', '5'],
    ['a text without a type', undefined, '5', '5'],
    ['a number for a text', 'string', 5, 5],
  ])('%s', (_what, type, ...[given, value, kind]) => {
    const fits = fitValue(of(type) as never, { a: given } as never)
    expect(fits.value).toEqual({ a: value })
    expect(fits.repairs).toEqual(kind === undefined ? [] : [`a was a text and was read as ${kind}`])
  })

  it('is looked through, and what is read as an object or a list as well', () => {
    const row = { type: 'object', properties: { n: { type: 'integer' }, 'odd\nname': { type: 'boolean' } } }
    const schema = { type: 'object', properties: { rows: { type: 'array', items: row }, row } }
    const given = {
      rows: '[{"n":"1"},{"n":2}]',
      row: { n: '3', 'odd\nname': 'true', more: '4' },
      toString: '5',
    }
    expect(fitValue(schema as never, given as never)).toEqual({
      value: { rows: [{ n: 1 }, { n: 2 }], row: { n: 3, 'odd\nname': true, more: '4' }, toString: '5' },
      repairs: [
        'rows was a text and was read as a list',
        'rows.0.n was a text and was read as a number',
        'row.n was a text and was read as a number',
        'row.… was a text and was read as true or false',
      ],
    })
    expect(fitValue({ type: 'object' }, '{}')).toEqual({
      ...{ value: {}, repairs: ['it was a text and was read as an object'] },
    })
    expect(fitValue(undefined, '{}').value).toBe('{}')
    expect(fitValue({ properties: { a: null } }, { a: '{}' }).value).toEqual({ a: '{}' })
  })

  it('is left alone deeper than any input', () => {
    let schema: object = { type: 'number' }
    let value: unknown = '1'
    for (let depth = 0; depth < 33; depth++) {
      schema = { type: 'array', items: schema }
      value = [value]
    }
    expect(fitValue(schema as never, value as never).repairs).toEqual([])
    const [inner] = value as unknown[]
    const { items } = schema as { items: object }
    expect(fitValue(items as never, inner as never).repairs).toHaveLength(1)
  })
})

describe('a repaired input', () => {
  const inputSchema = { type: 'object', properties: { n: { type: 'number' } } }
  const repaired = (text: string) =>
    repairUnfit({ inputSchema }, { malformed: { text, bytes: text.length, truncated: false } } as never)

  it.each(['[1,]', "'5'", '5 /* five */', 'None', 'five', '{"n":'])(
    '%j is not an object that can be read',
    (given) => {
      expect(repaired(given)).toBeUndefined()
    },
  )

  it('holds what was made of it, and that its end was guessed', () => {
    expect(repaired('{"n":"1"')).toEqual({
      ...{ input: { n: 1 }, isGuess: true },
      repairs: [cut, 'n was a text and was read as a number'],
    })
    expect(repaired('{"n":1,}')).toEqual({ input: { n: 1 }, repairs: [commas], isGuess: false })
  })

  it('is given where something had to be repaired alone', () => {
    expect(repairUnfit({ inputSchema }, { input: { n: true } })).toBeUndefined()
  })
})

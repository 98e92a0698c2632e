import { describe, expect, it } from 'vitest'
import { isJson } from '../src/values/json.ts'
import {
  anyOf,
  exactly,
  flag,
  listOf,
  maybe,
  numberFrom,
  recordOf,
  type Schema,
  text,
  variantOf,
  withShape,
  wordOf,
  amount,
  count,
  json,
  jsonObject,
  objectOf,
  ordinal,
} from '../src/values/schema.ts'

/** Which values a schema takes. */
const taken = (schema: Schema, ...values: readonly unknown[]): readonly unknown[] =>
  values.filter((value) => schema(value) === undefined)

describe('a schema', () => {
  it('takes texts, and flags, and nothing like them', () => {
    const values = ['', 'a', true, false, 0, 1, null, undefined, ['a'], Object('a')]
    expect(taken(text, ...values)).toEqual(['', 'a'])
    expect(taken(flag, ...values)).toEqual([true, false])
  })

  it.each<readonly [number, number, readonly unknown[]]>([
    [0, 10, [0, 5, 10]],
    [-Infinity, 5, [-1e300, -1, 0, 5]],
    [5, Infinity, [5, 10, 11, 1e300]],
    [-Infinity, Infinity, [-1e300, -1, 0, 5, 10, 11, 1e300]],
    [11, 10, []],
  ])('takes finite numbers from %d to %d', (min, max, due) => {
    const values = [-Infinity, -1e300, -1, 0, 5, 10, 11, 1e300, Infinity, Number.NaN, '5', 5n, null, [5]]
    expect(taken(numberFrom(min, { max }), ...values)).toEqual(due)
  })

  it('takes whole numbers that are safe to count with, from the least one on', () => {
    const largest = Number.MAX_SAFE_INTEGER
    const values = [-1, 0, 0.5, 1, 2, 2.5, largest, largest + 1, Infinity, Number.NaN, '2', 2n, null, [2]]
    expect(taken(numberFrom(1, { whole: true }), ...values)).toEqual([1, 2, largest])
    expect(taken(numberFrom(-1, { whole: true }), ...values)).toEqual([-1, 0, 1, 2, largest])
  })

  it('takes one value, or one of several, and nothing that equals it only loosely', () => {
    const values = ['a', 'b', 'ab', 1, '1', true, null, undefined, ['a']]
    expect(taken(exactly('a'), ...values)).toEqual(['a'])
    expect(taken(exactly(true), ...values)).toEqual([true])
    expect(taken(wordOf(['ab', 'b']), ...values)).toEqual(['b', 'ab'])
    expect(taken(wordOf([]), ...values)).toEqual([])
  })

  it('takes what any of several schemas takes', () => {
    const values = ['a', true, 1, null]
    expect(taken(anyOf<unknown>('a text or a flag', text, flag), ...values)).toEqual(['a', true])
    expect(taken(anyOf('nothing'), ...values)).toEqual([])
  })

  it('takes objects that a word tells apart, each by its own fields', () => {
    type Either = { readonly kind: 'plain' } | { readonly kind: 'named'; readonly name: string }
    const either: Schema<Either> = variantOf('kind', { plain: {}, named: { name: text } })
    const sound = [{ kind: 'plain' }, { kind: 'named', name: 'a' }]
    expect(taken(either, ...sound, { kind: 'named' }, { kind: 'other' }, {}, null, [], 'plain')).toEqual(
      sound,
    )
    expect(either({ kind: 'named' })).toEqual({ path: 'name', what: 'is missing: give a text' })
    expect(either({ kind: 'secret' })).toEqual({
      path: 'kind',
      what: "is a text; use one of 'plain', 'named'",
    })
  })

  it('takes lists of what it takes, from the first item to the last', () => {
    const values = [
      [],
      ['a'],
      ['a', 'b'],
      [1, 'a'],
      ['a', 1],
      ['a', 1, 'b'],
      'a',
      { length: 0 },
      null,
      undefined,
    ]
    expect(taken(listOf(text), ...values)).toEqual([[], ['a'], ['a', 'b']])
  })

  it('takes objects by their fields, whatever else they hold', () => {
    const check = withShape({ a: text, b: maybe(flag), c: text })
    const [whole, without] = [
      { a: '', b: true, c: '' },
      { a: '', c: '' },
    ]
    const refused = [
      ...[{}, { a: '' }, { c: '' }, { ...whole, a: 1 }, { ...whole, b: 1 }, { ...whole, c: 1 }],
      ...[
        { ...whole, a: undefined },
        { ...whole, b: undefined },
        { ...whole, c: undefined },
      ],
      ...[[], Object.assign([], whole), 'a', 1, null, undefined, Object.assign(() => 1, whole)],
    ]
    expect(taken(check, whole, without, { ...whole, more: 1 }, ...refused)).toEqual([
      ...[whole, without, { ...whole, more: 1 }],
    ])
    expect(taken(withShape({}), {}, { a: 1 }, [], null)).toEqual([{}, { a: 1 }])
  })

  it('takes records whose values it takes, under names that are texts', () => {
    const values = [{}, { a: '' }, { a: '', b: 'c' }]
    const refused = [
      ...[{ a: 1 }, { a: '', b: 1 }, { b: 1, a: '' }, { a: undefined }],
      ...[new Map(), [], ['a'], null, undefined, 'a'],
    ]
    expect(taken(recordOf(text), ...values, ...refused)).toEqual(values)
  })
})

const kinds: Readonly<Record<string, Schema>> = { text, flag, amount, ordinal, count, json, jsonObject }

/** An object within an object, so often. */
function nested(depth: number): object {
  let value: object = {}
  for (let level = 1; level < depth; level++) value = { value }
  return value
}

describe('a value that an event may hold', () => {
  it.each<readonly [string, readonly unknown[], readonly unknown[]]>([
    ['text', ['', 'a'], [1, null, undefined]],
    ['flag', [true, false], [0, 'true', null]],
    ['amount', [0, -1.5, 1e300], [Infinity, Number.NaN, '1', null]],
    ['ordinal', [1, 2], [0, -1, 1.5, '1']],
    ['count', [0, 1], [-1, 0.5, null]],
    [
      'json',
      [null, 'a', 1, true, [], {}, { a: [null] }, { a: undefined }],
      [undefined, Number.NaN, () => 1, [undefined], { a: 1n }],
    ],
    [
      'jsonObject',
      [{}, { a: 1 }, { a: undefined }],
      [null, [], 'a', 1, undefined, { a: () => 1 }, { a: [Infinity] }],
    ],
  ])('as %s is one of its kind', (kind, taken, refused) => {
    expect(taken.filter((value) => kinds[kind]?.(value) !== undefined)).toEqual([])
    expect(refused.filter((value) => kinds[kind]?.(value) === undefined)).toEqual([])
  })

  it('is nested as deep as every store can read, and no deeper', () => {
    expect([nested(500), nested(501)].map(isJson)).toEqual([true, false])
    // What is at the bottom counts for nothing more.
    expect(isJson([nested(499)])).toBe(true)
  })

  it('is named where it is at fault, and not shown', () => {
    const shape = objectOf<{ readonly a: string; readonly b?: number }>({
      ...{ a: text, b: maybe(amount) },
    })
    const list = objectOf<{ readonly list: { readonly a: string; readonly b?: number } }>({ list: shape })
    expect(shape({ a: 'a', c: 1 })).toBeUndefined()
    expect(shape({ a: 'a', b: undefined })).toMatchObject({ path: 'b' })
    expect(list({ list: { a: 1 } })).toMatchObject({ path: 'list.a' })
    expect(shape('sk-secret')).toEqual({
      path: '',
      what: expect.not.stringContaining('sk-secret'),
    })
  })
})

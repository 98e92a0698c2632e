import { describe, expect, it } from 'vitest'
import {
  isAmountWithin,
  isAnyOf,
  isFlag,
  isListOf,
  isObjectOf,
  isOneOf,
  isPlainObject,
  isRecordOf,
  isText,
  isWholeFrom,
  quickCheckOf,
  type QuickCheck,
  type QuickSchema,
} from '../src/values/schema.ts'

const schemaOf = (check: QuickCheck): QuickSchema => ({ quick: () => check })
const [text, flag] = [schemaOf(isText), schemaOf(isFlag)]
/** Which values a check takes. */
const taken = (check: QuickCheck, ...values: readonly unknown[]): readonly unknown[] => values.filter(check)

describe('a quick check', () => {
  it('of a schema that has none takes nothing', () => {
    expect(taken(quickCheckOf({}), undefined, null, 0, '', {}, [])).toEqual([])
    expect(quickCheckOf(text)).toBe(isText)
  })

  it('takes texts, and flags, and nothing like them', () => {
    const values = ['', 'a', true, false, 0, 1, null, undefined, ['a'], Object('a')]
    expect(taken(isText, ...values)).toEqual(['', 'a'])
    expect(taken(isFlag, ...values)).toEqual([true, false])
  })

  it.each<readonly [number, number, readonly unknown[]]>([
    [0, 10, [0, 5, 10]],
    [-Infinity, 5, [-1e300, -1, 0, 5]],
    [5, Infinity, [5, 10, 11, 1e300]],
    [-Infinity, Infinity, [-1e300, -1, 0, 5, 10, 11, 1e300]],
    [11, 10, []],
  ])('takes finite numbers from %d to %d', (min, max, due) => {
    const values = [-Infinity, -1e300, -1, 0, 5, 10, 11, 1e300, Infinity, Number.NaN, '5', 5n, null, [5]]
    expect(taken(isAmountWithin(min, max), ...values)).toEqual(due)
  })

  it('takes whole numbers that are safe to count with, from the least one on', () => {
    const largest = Number.MAX_SAFE_INTEGER
    const values = [-1, 0, 0.5, 1, 2, 2.5, largest, largest + 1, Infinity, Number.NaN, '2', 2n, null, [2]]
    expect(taken(isWholeFrom(1), ...values)).toEqual([1, 2, largest])
    expect(taken(isWholeFrom(-1), ...values)).toEqual([-1, 0, 1, 2, largest])
  })

  it('takes one value, or one of several, and nothing that equals it only loosely', () => {
    const values = ['a', 'b', 'ab', 1, '1', true, null, undefined, ['a']]
    expect(taken(isOneOf(['a']), ...values)).toEqual(['a'])
    expect(taken(isOneOf([1, 'b']), ...values)).toEqual(['b', 1])
    expect(taken(isOneOf([1, true, 'ab']), ...values)).toEqual(['ab', 1, true])
    expect(taken(isOneOf([]), ...values)).toEqual([])
  })

  it('takes what any of several checks takes', () => {
    const values = ['a', true, 1, null]
    expect(taken(isAnyOf([text, flag]), ...values)).toEqual(['a', true])
    expect(taken(isAnyOf([{}, flag]), ...values)).toEqual([true])
    expect(taken(isAnyOf([]), ...values)).toEqual([])
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
    expect(taken(isListOf(text), ...values)).toEqual([[], ['a'], ['a', 'b']])
    expect(taken(isListOf({}), ...values)).toEqual([[]])
  })

  it('takes objects by their fields, whatever else they hold', () => {
    const check = isObjectOf({ a: text, b: { ...flag, isOptional: true }, c: text })
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
    expect(taken(isObjectOf({}), {}, { a: 1 }, [], null)).toEqual([{}, { a: 1 }])
  })

  it('takes as plain what has no class', () => {
    const [literal, bare] = [{ a: 1 }, Object.create(null) as object]
    const others = [[], new Date(0), Object.create({ a: 1 }), null, undefined, 'a', 1, () => 1]
    expect(taken(isPlainObject, literal, bare, ...others)).toEqual([literal, bare])
  })

  it('takes records whose values it takes, under names that are texts', () => {
    const values = [{}, { a: '' }, { a: '', b: 'c' }]
    const refused = [
      ...[{ a: 1 }, { a: '', b: 1 }, { b: 1, a: '' }, { a: undefined }, { [Symbol('a')]: 'a' }],
      ...[new Map(), [], ['a'], null, undefined, 'a'],
    ]
    expect(taken(isRecordOf(text), ...values, ...refused)).toEqual(values)
    const hidden = Object.defineProperty({}, 'a', { value: 1, enumerable: false })
    expect(isRecordOf(text)(hidden)).toBe(false)
  })
})

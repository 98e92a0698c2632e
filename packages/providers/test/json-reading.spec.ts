import { isJsonObject } from '@tallystick/core/internal'
import { describe, expect, it } from 'vitest'
import { getCount, getNumber, getObject, omitFields, getText, mendText } from '../src/shared/json.ts'

describe('what came off a wire', () => {
  const values = { text: 'x', empty: '', zero: 0, half: 0.5, less: -1, nan: Number.NaN, list: [], none: null }
  const numbers = { endless: Infinity, most: Number.MAX_SAFE_INTEGER, more: 2 ** 53, object: {}, truth: true }
  const wire = { ...values, ...numbers }
  const readings = { getText, getNumber, getCount, getObject }
  const found = {
    getText: { text: 'x', empty: '' },
    getNumber: { zero: 0, half: 0.5, less: -1, most: Number.MAX_SAFE_INTEGER, more: 2 ** 53 },
    getCount: { zero: 0, half: 0.5, most: Number.MAX_SAFE_INTEGER },
    getObject: { object: {} },
  }

  it.each(Object.keys(readings) as (keyof typeof readings)[])('is read by %s where it is one', (name) => {
    const read = readings[name]
    const all = Object.keys({ ...wire, absent: 0 }).map((key) => [key, read(wire, key)] as const)
    expect(Object.fromEntries(all.filter(([, value]) => value !== undefined))).toEqual(found[name])
    for (const other of [undefined, null, 'text', 3, ['x']]) expect(read(other, 'length')).toBeUndefined()
    expect(read([{ a: 1 }], '0')).toBeUndefined()
  })

  it.each<[unknown, boolean]>([
    [{}, true],
    [{ a: 1 }, true],
    [null, false],
    [[], false],
    ['x', false],
    [undefined, false],
    [() => 1, false],
  ])('is an object or not: %j', (value, is) => {
    expect(isJsonObject(value)).toBe(is)
  })

  it('is copied without what says nothing', () => {
    const given = { type: 'x', none: null, unsaid: undefined, list: [], one: [1], no: false, empty: '', n: 0 }
    expect(omitFields(given as never, ['type', 'absent'])).toStrictEqual({
      one: [1],
      no: false,
      empty: '',
      n: 0,
    })
  })
})

describe('lone surrogates', () => {
  it('are replaced in texts and in names, at any depth, and the rest stays the same', () => {
    const kept = { a: [1, null, 'ä👋'] }
    const given = { kept, '\ud83d': 'x', list: ['\udc4b', true], deep: { text: 'a\ud83d' } }
    expect(mendText(given)).toEqual({ kept, '�': 'x', list: ['�', true], deep: { text: 'a�' } })
  })

  it.each([[{ a: [{ b: 'x' }] }], [['x', {}]], ['x'], [null], [7]])(
    'that are not there change nothing: %j',
    (given) => {
      expect(mendText(given)).toEqual(given)
    },
  )
})

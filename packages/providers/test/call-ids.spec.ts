import { isJsonObject } from '@tallystick/core/internal'
import { describe, expect, it } from 'vitest'
import { nineAlphanumeric } from '../src/openai/chat-messages.ts'
import { getCount, getNumber, getObject, omitFields, getText, mendText } from '../src/shared/json.ts'
import { createCallIds, fitIdentifier, type IdentifiedCall, isIdentifier } from '../src/shared/request.ts'
import { id } from './kit/history.ts'

const call = (ordinal: number, ownId?: string): IdentifiedCall => ({
  toolCallId: id(ordinal),
  ...(ownId !== undefined && { ownId }),
})
/** An id that is too long for the vendor. */
const long = (name: string): IdentifiedCall => ({ toolCallId: `${name}${'x'.repeat(64)}` as never })

const rules = [
  {
    name: 'up to 64 characters',
    idsOf: (calls: readonly IdentifiedCall[]) => createCallIds(calls),
    fits: /^[\w-]{1,64}$/,
    own: ['toolu_1', 'a', '-'.repeat(64)],
    unfit: ['', 'a b', 'a'.repeat(65), 'ä'],
  },
  {
    name: 'nine letters and digits',
    idsOf: (calls: readonly IdentifiedCall[]) => createCallIds(calls, nineAlphanumeric),
    fits: /^[a-zA-Z0-9]{9}$/,
    own: ['abcDEF123', '000000000', 'zzzzzzzzz'],
    unfit: ['', 'abcDEF12', 'abcDEF1234', 'abcDEF12_'],
  },
]

describe.each(rules)('the ids of calls: $name', ({ idsOf, fits, own, unfit }) => {
  const idIn = (calls: readonly IdentifiedCall[], place: number) => idsOf(calls).get(calls[place]!.toolCallId)

  it('are the vendor’s own where they fit, and fit in any case', () => {
    for (const ownId of own) expect(idIn([call(1, ownId)], 0)).toBe(ownId)
    for (const ownId of unfit) {
      expect(idIn([call(1, ownId)], 0)).toMatch(fits)
      expect(idIn([call(1, ownId)], 0)).toBe(idIn([call(1)], 0))
    }
    for (const name of ['read', 'read more', '']) expect(idIn([long(name)], 0)).toMatch(fits)
  })

  it('are all different, and those of earlier calls stay as more calls come', () => {
    const made = idIn([call(1)], 0)!
    const calls = [
      ...[call(1), call(2, own[0]), call(3, own[0]), call(4, made), call(2, own[1])],
      ...[long('read'), long('read more'), long('read'), call(5, own[1])],
    ]
    const whole = idsOf(calls)
    expect(whole.size).toBe(7)
    expect(new Set(whole.values()).size).toBe(7)
    expect([whole.get(id(1)), whole.get(id(2)), whole.get(id(5))]).toEqual([made, own[0], own[1]])
    calls.forEach((_, place) => {
      for (const [name, wireId] of idsOf(calls.slice(0, place))) expect(whole.get(name)).toBe(wireId)
    })
  })
})

it('a call keeps our id where the vendor gave none that fits', () => {
  expect(createCallIds([call(1, 'a b'), call(2)])).toEqual(
    new Map([
      [id(1), id(1)],
      [id(2), id(2)],
    ]),
  )
})

it('what is made of a text is the same in every version, so that requests on record stay as they were', () => {
  expect([fitIdentifier('a', 64, 0), fitIdentifier('read/天気', 64, 0), fitIdentifier('a', 12, 1)]).toEqual([
    'a_2b24d044',
    'read____4ba840cd',
    'a_be3d645d',
  ])
  const nine = createCallIds([call(1), call(2)], nineAlphanumeric)
  expect([...nine.values()]).toEqual(['0e0tcgp1g', '0d6ujds1g'])
})

it.each([
  ['a', 1, true],
  ['ab', 1, false],
  ['', 1, false],
  ['a-_Z9', 5, true],
  ['a b', 5, false],
  ['a\n', 5, false],
])('%j of at most %i characters is an identifier: %s', (text, maxLength, is) => {
  expect(isIdentifier(text, maxLength)).toBe(is)
})

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

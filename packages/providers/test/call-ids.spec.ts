import { describe, expect, it } from 'vitest'
import { nineAlphanumeric } from '../src/openai/chat-messages.ts'
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

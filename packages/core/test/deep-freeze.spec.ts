import { describe, expect, it } from 'vitest'
import { deepFreeze, deepFreezeOnce, isFrozenOnce } from '../src/values/json.ts'

describe('a deeply frozen copy', () => {
  it('is frozen to its bottom, and shares nothing that its giver can change', () => {
    const given = { list: [{ a: 'a' }], inner: { b: [1] } }
    const frozen = deepFreeze(given)
    given.list[0]!.a = 'forged'
    given.inner.b.push(2)
    expect(frozen).toStrictEqual({ list: [{ a: 'a' }], inner: { b: [1] } })
    const objects = [frozen, frozen.list, frozen.list[0], frozen.inner, frozen.inner.b]
    expect(objects.filter((object) => !Object.isFrozen(object))).toEqual([])
    expect([given, given.list, given.inner].filter((object) => Object.isFrozen(object))).toEqual([])
  })

  it('has no zero with a sign, at no depth', () => {
    const zeros = deepFreeze({ a: -0, b: [-0, { c: -0 }] })
    expect(zeros).toStrictEqual({ a: 0, b: [0, { c: 0 }] })
    expect(deepFreeze(-0)).toBe(0)
    expect([1, -1, 0.5].map(deepFreeze)).toEqual([1, -1, 0.5])
  })

  it('has the texts, truths and nulls of what was given, and what it holds nothing of', () => {
    const given = { a: 'a', b: true, c: null, d: undefined }
    expect(deepFreeze(given)).toStrictEqual(given)
  })

  it('has no fields named by symbols, and none that were inherited', () => {
    const given = Object.assign(Object.create({ inherited: [1] }) as object, { [Symbol('s')]: 1, own: 1 })
    const frozen = deepFreeze(given)
    expect(Object.getOwnPropertySymbols(frozen)).toEqual([])
    expect({ ...frozen }).toStrictEqual({ own: 1 })
    expect('inherited' in frozen).toBe(false)
  })

  it('is copied again, unless it was made to be handed on', () => {
    const [once, again] = [deepFreezeOnce({ a: [1] }), deepFreeze({ a: [1] })]
    expect(deepFreeze(once)).toBe(once)
    expect(deepFreeze({ once }).once).toBe(once)
    expect(deepFreeze(again)).not.toBe(again)
    expect([once, again].map(isFrozenOnce)).toEqual([true, false])
  })
})

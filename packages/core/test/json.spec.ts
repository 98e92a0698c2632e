import { describe, expect, it } from 'vitest'
import { copyJson } from '@tallystick/core/internal'
import { toCanonicalJson } from '@tallystick/core/vocabulary'

describe('toCanonicalJson', () => {
  it('orders keys by code unit and leaves out undefined', () => {
    expect(
      toCanonicalJson({ b: 1, a: [true, null, 'x'], é: undefined as never, A: { z: 1e21, y: -0 } }),
    ).toBe('{"A":{"y":0,"z":1e+21},"a":[true,null,"x"],"b":1}')
  })
  it('orders any number of keys, in whichever order they were set', () => {
    const names = Array.from({ length: 60 }, (_, index) => `k${String(index).padStart(2, '0')}`)
    for (const count of [2, 23, 24, 25, 26, 60]) {
      const sorted = names.slice(0, count)
      const text = `{${sorted.map((name) => `"${name}":1`).join(',')}}`
      const mixed = sorted.toSorted((a, b) => (a.slice(2) + a < b.slice(2) + b ? -1 : 1))
      for (const order of [sorted, sorted.toReversed(), mixed]) {
        expect(toCanonicalJson(Object.fromEntries(order.map((name) => [name, 1])))).toBe(text)
      }
    }
    expect(toCanonicalJson({ undefined: 1, '': 2 })).toBe('{"":2,"undefined":1}')
  })
  it('takes no square of the time for many keys', () => {
    const count = 200_000
    const falling = Array.from({ length: count }, (_, index) => [`k${2 * count - index}`, 1])
    expect(toCanonicalJson(Object.fromEntries(falling))).toMatch(
      /^\{"k200001":1,"k200002":1,.*"k400000":1\}$/,
    )
  })
  it('keeps a lone surrogate as an escape', () => {
    expect(toCanonicalJson('\ud800')).toBe('"\\ud800"')
  })
  it('names the place of what JSON cannot carry', () => {
    const wrong: readonly (readonly [unknown, string])[] = [
      [{ a: [1, Number.NaN] }, '$.a[1] is NaN'],
      [{ a: null, b: undefined, c: [{}, null, { d: 1n }], z: Infinity }, '$.c[2].d is a bigint'],
      [{ b: -Infinity, a: { c: () => 1 } }, '$.a.c is a function'],
      [[[true, 'a'], [undefined]], '$[1][0] is undefined'],
      [Symbol('s'), '$ is a symbol'],
    ]
    for (const [value, message] of wrong) {
      expect(() => toCanonicalJson(value as never)).toThrow(
        new TypeError(`${message}, which JSON cannot carry`),
      )
    }
    const circle: Record<string, unknown> = {}
    circle['itself'] = circle
    const before = { a: [() => 1], b: circle }
    expect(() => toCanonicalJson(before as never)).toThrow('$.a[0] is a function, which JSON cannot carry')
    const thrown = new Error('no such field')
    const failing = Object.defineProperty({}, 'a', {
      enumerable: true,
      get: () => {
        throw thrown
      },
    })
    expect(() => toCanonicalJson(failing as never)).toThrow(thrown)
  })
})

describe('copyJson', () => {
  it('has every key of its original, and shares nothing with it', () => {
    const inner = Object.freeze({
      list: Object.freeze([1, Object.freeze({ a: null })]),
      text: 'x',
      no: false,
    })
    const value = Object.freeze({ inner, ['__proto__']: inner, toJSON: 'a text', '': 0 })
    const copy = copyJson(value)
    expect(copy).toStrictEqual(value)
    expect(Object.keys(copy)).toEqual(Object.keys(value))
    expect(copy.inner).not.toBe(inner)
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
    for (const part of [copy, copy.inner, copy['__proto__'], copy.inner.list, copy.inner.list[1]])
      expect(Object.isFrozen(part)).toBe(false)
    expect(copyJson({ left: undefined as never, kept: 1 })).toStrictEqual({ kept: 1 })
  })

  it('keeps keys apart that V8 takes for each other when it reads them from a text', () => {
    const key = (name: string) => ({ x: 1, [name]: 3 })
    // Each order of the two: which one V8 gets wrong depends on what it has read before.
    const values = [
      [key('\\'), key('"')],
      [key('"'), key('\\')],
    ]
    for (const value of [...values, ...values]) expect(copyJson(value)).toStrictEqual(value)
  })
})

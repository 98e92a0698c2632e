import { describe, expect, it } from 'vitest'
import { findParsedFault, readJson } from '@tallystick/core/internal'

describe('a JSON text', () => {
  it.each([
    ['{"id": 9007199254740991}', { id: 9_007_199_254_740_991 }],
    ['{"id": "2512292042121000001"}', { id: '2512292042121000001' }],
    ['{"s": "\\" 1e400", "n": 1.5e10}', { s: '" 1e400', n: 1.5e10 }],
    ['{"size": 18014398509481984}', { size: 2 ** 54 }],
    ['{"ratio": 0.12345678901234567890}', { ratio: 0.123_456_789_012_345_68 }],
    ['[1e-5, 0e9, 0.0000000000000000]', [1e-5, 0, 0]],
  ])(
    'given only numbers that stay what they are, when it is read, then it is its value: %s',
    (text, value) => {
      expect(readJson(text)).toEqual(value)
    },
  )

  it.each(['{"id": 1e400}', '[-1e999]', '{"id": 2512292042121000001}', '[9007199254740993]', '[1e-400]'])(
    'given a number that would become another one, when it is read, then the error names it: %s',
    (text) => {
      const number = /-?[\de-]+(?=[\]}])/.exec(text)![0]
      expect(() => readJson(text)).toThrow(`The number ${number} cannot be read`)
    },
  )

  it('given nesting that no store reads, when it is read, then the error says so', () => {
    expect(() => readJson('['.repeat(600) + ']'.repeat(600))).toThrow('nested deeper than 500 levels')
  })

  it('given a value that was read elsewhere, when a whole number may have been rounded, then that is a fault', () => {
    expect(findParsedFault({ a: [{ id: 2 ** 60 }] })).toContain('may have been rounded')
    expect(findParsedFault({ a: Infinity })).toContain('too large')
    expect(findParsedFault({ a: 1.5, b: 2 ** 53 - 1 })).toBeUndefined()
  })
})

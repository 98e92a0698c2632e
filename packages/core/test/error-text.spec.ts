import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { formatNamedError, formatErrorSentence, formatError } from '../src/values/text.ts'

describe('what was thrown, in words', () => {
  const both = (thrown: unknown): readonly string[] => [formatError(thrown), formatNamedError(thrown)]

  it('is the message of an error, or its name where it has none', () => {
    expect(both(new RangeError('too far'))).toEqual(['too far', 'RangeError: too far'])
    expect(formatError(new RangeError(''))).toBe('RangeError')
  })

  it('is the text of anything else', () => {
    expect(both('no')).toEqual(['no', 'no'])
    expect(both(undefined)).toEqual(['undefined', 'undefined'])
    expect(both(Symbol('s'))).toEqual(['Symbol(s)', 'Symbol(s)'])
    expect(formatError([1, 2])).toBe('1,2')
    expect(formatError(new URL('https://example.com/a'))).toBe('https://example.com/a')
  })

  it('is the message of an object that is not an error but has one', () => {
    expect(both({ code: 402, message: 'The card was declined.' })).toEqual([
      'The card was declined.',
      'The card was declined.',
    ])
    expect(formatError(runInNewContext('new TypeError("no card")'))).toBe('no card')
  })

  it('is a sentence that ends in one mark', () => {
    expect(formatErrorSentence(new Error('The card was declined.'))).toBe('The card was declined.')
    expect(formatErrorSentence('Why?\n')).toBe('Why?')
    expect(formatErrorSentence(new RangeError('too far'))).toBe('too far.')
  })

  it('names the fields of an object without a message, and none of their values', () => {
    const thrown = { status: 403, headers: { authorization: 'secret' }, message: '' }
    expect(formatError(thrown)).toBe('an object without a message, with the fields status, headers, message')
    expect(formatError({})).toBe('an object without a message')
    const bare = Object.assign(Object.create(null) as object, { status: 403 })
    expect(formatError(bare)).toBe('an object without a message, with the fields status')
    const wide = Object.fromEntries(Array.from({ length: 12 }, (_, index) => [`f${index}`, index]))
    expect(formatError(wide)).toMatch(/ f9 and 2 more$/)
  })

  it('is cut after 2,000 characters', () => {
    const [whole, longer] = ['x'.repeat(2_000), 'x'.repeat(2_001)]
    expect(both(whole)).toEqual([whole, whole])
    expect(formatError(longer)).toBe(whole)
    expect(formatError(new Error(longer))).toBe(whole)
    expect(formatNamedError(new Error(longer))).toBe(`Error: ${whole}`.slice(0, 2_000))
  })

  it('says so where looking at it throws', () => {
    const hostile = {
      toString(): string {
        throw new Error('no')
      },
    }
    const unspeakable = 'something that cannot be put in words'
    expect(both(hostile)).toEqual([unspeakable, unspeakable])
  })
})

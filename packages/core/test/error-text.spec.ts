import { describe, expect, it } from 'vitest'
import { namedTextOfError, textOfError } from '../src/vocabulary/values/error-text.ts'

describe('what was thrown, in words', () => {
  const both = (thrown: unknown): readonly string[] => [textOfError(thrown), namedTextOfError(thrown)]

  it('is the message of an error, or its name where it has none', () => {
    expect(both(new RangeError('too far'))).toEqual(['too far', 'RangeError: too far'])
    expect(textOfError(new RangeError(''))).toBe('RangeError')
  })

  it('is the text of anything else', () => {
    expect(both('no')).toEqual(['no', 'no'])
    expect(both(undefined)).toEqual(['undefined', 'undefined'])
    expect(both(Symbol('s'))).toEqual(['Symbol(s)', 'Symbol(s)'])
  })

  it('is cut after 2,000 characters', () => {
    const [whole, longer] = ['x'.repeat(2_000), 'x'.repeat(2_001)]
    expect(both(whole)).toEqual([whole, whole])
    expect(textOfError(longer)).toBe(whole)
    expect(textOfError(new Error(longer))).toBe(whole)
    expect(namedTextOfError(new Error(longer))).toBe(`Error: ${whole}`.slice(0, 2_000))
  })

  it('says so where looking at it throws', () => {
    const hostile = {
      toString(): string {
        throw new Error('no')
      },
    }
    const unspeakable = 'something that cannot be put in words'
    expect(both(hostile)).toEqual([unspeakable, unspeakable])
    expect(textOfError(Object.create(null))).toBe(unspeakable)
  })
})

import { describe, expect, it } from 'vitest'
import { makeBatch } from '../src/machine/history.ts'
import { findPartPlace, withPart } from '../src/machine/calls.ts'

const many = Array.from({ length: 40 }, (_, place) => (place * 7) % 41)
const grown = (parts: readonly number[]): readonly number[] => parts.reduce<readonly number[]>(withPart, [])
const placesIn = (parts: readonly number[]): readonly number[] =>
  many.map((part) => findPartPlace(parts, part))

describe('the places of parts', () => {
  it('are those in which the parts first came, however many there are', () => {
    const parts = grown(many)
    expect(parts).toEqual(many)
    expect(placesIn(parts)).toEqual(many.map((_, place) => place))
    expect(findPartPlace(parts, 1_000)).toBe(-1)
    expect(withPart(parts, many[3] as number)).toBe(parts)
    expect(withPart(parts, many.at(-1) as number)).toBe(parts)
  })

  it('stay those of their parts when others grow from these', () => {
    const parts = grown(many)
    expect(findPartPlace(parts, 100)).toBe(-1)
    const [one, other] = [withPart(withPart(parts, 100), 101), withPart(parts, 101)]
    expect([findPartPlace(one, 101), findPartPlace(other, 101), findPartPlace(parts, 101)]).toEqual([
      41, 40, -1,
    ])
    expect([findPartPlace(one, 100), findPartPlace(other, 100), findPartPlace(parts, 100)]).toEqual([
      40, -1, -1,
    ])
  })

  it('are the same where a batch grows its parts in their place', () => {
    const before = grown(many.slice(0, 20))
    const parts = makeBatch(() => many.slice(20).reduce(withPart, before))
    expect(before).toEqual(many.slice(0, 20))
    expect(placesIn(parts)).toEqual(many.map((_, place) => place))
    expect(findPartPlace(before, many[30] as number)).toBe(-1)
  })
})

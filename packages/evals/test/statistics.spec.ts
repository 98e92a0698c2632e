import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findT, Sample } from '../src/statistics.ts'

function estimate(method: 'wilson' | 't', values: readonly number[]) {
  const sample = new Sample(method)
  for (const value of values) sample.add([value])
  return sample.estimate()
}

describe('an interval', () => {
  // Tables of Student's t distribution.
  it.each([
    [1, 12.706],
    [2, 4.303],
    [3, 3.182],
    [4, 2.776],
    [10, 2.228],
    [30, 2.042],
    [1_000, 1.962],
  ])('has the quantile of t with %i degrees of freedom', (freedom, quantile) => {
    expect(Math.abs(findT(freedom) / quantile - 1)).toBeLessThan(0.002)
  })

  it('is that of Wilson for shares', () => {
    const found = estimate('wilson', [...Array.from({ length: 8 }, () => 1), 0, 0])!
    expect(found.mean).toBeCloseTo(0.8)
    expect(found.low).toBeCloseTo(0.4902, 4)
    expect(found.high).toBeCloseTo(0.9433, 4)
    expect(estimate('wilson', [1, 1, 1])).toMatchObject({ mean: 1, high: 1 })
    expect(estimate('wilson', [1, 1, 1])!.low).toBeCloseTo(0.4385, 4)
  })

  it('is that of t for means', () => {
    const found = estimate('t', [1, 2, 3, 4])!
    expect(found.mean).toBe(2.5)
    expect(found.high - found.mean).toBeCloseTo(2.054, 2)
    expect(estimate('t', [7])).toMatchObject({ mean: 7, low: -Infinity, high: Infinity, cases: 1 })
    expect(estimate('t', [])).toBeUndefined()
  })

  it('counts cases, not their runs', () => {
    const [often, once] = [new Sample('wilson'), new Sample('wilson')]
    for (const value of [1, 0, 1]) {
      often.add([value, value, value, value])
      once.add([value])
    }
    expect(often.estimate()).toEqual(once.estimate())
  })

  it('holds the mean, within its bounds, for any scores', () => {
    const scores = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1 })
    fc.assert(
      fc.property(scores, (values) => {
        const { mean, low, high } = estimate('wilson', values)!
        expect(mean).toBeCloseTo(values.reduce((sum, each) => sum + each, 0) / values.length, 9)
        expect(low).toBeGreaterThanOrEqual(0)
        expect(high).toBeLessThanOrEqual(1)
        expect(low - 1e-12 <= mean && mean <= high + 1e-12).toBe(true)
      }),
    )
  })
})

import { describe, expect, it } from 'vitest'
import { listTicks, makeTimeScale } from '../src/page/views/timeline/time-scale.ts'

const hour = 3_600_000
/** 10 seconds of work, an hour of waiting for a person, and 10 seconds more. */
const run = {
  from: 1_000,
  to: 21_000 + hour,
  waits: [{ kind: 'people', from: 11_000, to: 11_000 + hour, seq: 5 }],
} as const

describe('the scale of a timeline', () => {
  it('draws waits shorter than they were, and work as long as it was', () => {
    const scale = makeTimeScale(run, false)
    expect(scale.toLength(11_000)).toBe(10_000)
    expect(scale.length - scale.toLength(11_000 + hour)).toBe(10_000)
    expect(scale.toLength(11_000 + hour) - scale.toLength(11_000)).toBeCloseTo(1_600)
  })

  it('leads back to the time', () => {
    const scale = makeTimeScale(run, false)
    for (const at of [1_000, 7_000, 11_000, 11_000 + hour / 2, 15_000 + hour, 21_000 + hour]) {
      expect(scale.toTime(scale.toLength(at))).toBeCloseTo(at)
    }
  })

  it('leaves waits as long as they were, if one asks for it', () => {
    expect(makeTimeScale(run, true).length).toBe(hour + 20_000)
  })

  it.each([
    ['no time at all', { from: 5, to: 5, waits: [] }],
    ['a wait alone', { from: 5, to: 9, waits: [{ kind: 'people', from: 5, seq: 1 }] }],
    [
      'waits that overlap',
      { from: 0, to: 9, waits: [0, 2, 4].map((from) => ({ kind: 'time' as const, from, to: 8, seq: 1 })) },
    ],
  ] as const)('has a length for a run with %s', (_, given) => {
    const scale = makeTimeScale(given, false)
    expect(scale.length).toBeGreaterThan(0)
    expect(scale.toLength(given.from)).toBe(0)
    expect(scale.toTime(scale.length)).toBeGreaterThanOrEqual(given.to)
  })

  it('has ticks that keep their distance, also over a shortened wait', () => {
    const scale = makeTimeScale(run, false)
    const ticks = listTicks(scale, run.from, 0, scale.length, 1_500)
    expect(ticks.length).toBeGreaterThan(5)
    const gaps = ticks.slice(1).map(({ length }, index) => length - ticks[index]!.length)
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_485)
  })
})

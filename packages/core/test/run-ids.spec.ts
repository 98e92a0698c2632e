import * as fc from 'fast-check'
import '../../../scripts/testing/seed.ts'
import { describe, expect, it } from 'vitest'
import { parseRunId, parseToolCallId, deriveToolCallId } from '@tallystick/core/vocabulary'
import { sampleRunId, seededRandom } from '@tallystick/testkit'
import { createRunIdMaker } from '../src/runtime/host.ts'

function clockOf(times: readonly number[]): { now: () => number; schedule: () => () => void } {
  let index = 0
  return { now: () => times[Math.min(index++, times.length - 1)]!, schedule: () => () => {} }
}

/** Ids made at these times, one each. */
function idsAt(times: readonly number[], random: () => number = seededRandom(1)): readonly string[] {
  const make = createRunIdMaker({ clock: clockOf(times), random })
  return times.map(() => make())
}

const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe('a run id', () => {
  it('is a UUID of version 7 that carries its millisecond', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 2 }), fc.nat(), (time, seed) => {
        const [id = ''] = idsAt([time], seededRandom(seed))
        expect(id).toMatch(uuid7)
        expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(time)
        expect(parseRunId(id)).toBe(id)
      }),
    )
  })

  it('is as RFC 9562 lays it out, to the letter', () => {
    // Its example time, and randomness of zeros.
    expect(idsAt([0x017f22e279b0], () => 0)).toEqual(['017f22e2-79b0-7000-8000-000000000000'])
    expect(idsAt([0x017f22e279b0], () => 0.999_999_999)).toEqual(['017f22e2-79b0-73ff-bfff-ffffffffffff'])
  })

  it('sorts after every id before it, within a millisecond and when the clock falls', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1_000, max: 1_003 }), { maxLength: 50 }),
        fc.nat(),
        (times, seed) => {
          const ids = idsAt(times, seededRandom(seed))
          expect(ids.toSorted()).toEqual(ids)
          expect(new Set(ids).size).toBe(ids.length)
        },
      ),
    )
  })

  it('counts on into the next millisecond when one is full', () => {
    const ids = idsAt(Array.from({ length: 10_000 }, () => 5))
    expect(new Set(ids).size).toBe(10_000)
    expect(ids.toSorted()).toEqual(ids)
    expect(ids.every((id) => uuid7.test(id))).toBe(true)
    expect(ids.at(-1)?.slice(0, 13)).toBe('00000000-0007')
  })
})

describe('reading ids from outside', () => {
  it('takes what the runtime makes, and nothing else', () => {
    const runId = sampleRunId(3)
    const callId = deriveToolCallId(runId, 12, 2, 31)
    expect(parseToolCallId(callId)).toBe(callId)
    expect(callId.length).toBeLessThanOrEqual(64)
    for (const text of ['', 'run', `${runId} `, runId.slice(1), `${runId}0`, runId.replaceAll('-', '')]) {
      expect(parseRunId(text)).toBeUndefined()
    }
    for (const text of ['', 'call_1', `${callId}_1`, callId.slice(5), callId.toUpperCase(), `${callId}\n`]) {
      expect(parseToolCallId(text)).toBeUndefined()
    }
  })

  it('gives each call of a run an id of its own, and each run its own', () => {
    const numbers = fc.integer({ min: 1, max: 30 })
    const place = fc.tuple(numbers, numbers, numbers)
    fc.assert(
      fc.property(place, place, (one, other) => {
        const [first, second] = [one, other].map((numbered) => deriveToolCallId(sampleRunId(1), ...numbered))
        expect(first === second).toBe(one.join() === other.join())
        expect(deriveToolCallId(sampleRunId(2), ...one)).not.toBe(first)
      }),
    )
  })
})

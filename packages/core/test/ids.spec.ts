import type { RunId, RuntimeEvent } from '@tallystick/core'
import {
  computeDigest,
  parseRunId,
  parseToolCallId,
  deriveToolCallId,
  eventTypes,
  type EventType,
} from '@tallystick/core/vocabulary'
import { sampleFacts, sampleCallId, sampleRunId, stampFacts, seededRandom } from '@tallystick/testkit'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import '../../../scripts/testing/seed.ts'
import { isMoment } from '../src/events/event-parts.ts'
import { findEventIdFault } from '../src/events/event.ts'
import { createRunIdMaker } from '../src/runtime/host.ts'
import { deriveChildRunId, deriveIdempotencyKey, extractRunId } from '../src/values/ids.ts'

const runId = '01932f00-abcd-7123-8456-0123456789ab' as RunId
const callId = deriveToolCallId(runId, 2, 3, 14)

describe('an id', () => {
  it('of a run is a UUID in small letters, and nothing around it', () => {
    expect(parseRunId(runId)).toBe(runId)
    const others = [
      ...[runId.toUpperCase(), `${runId}0`, `0${runId}`, runId.slice(1), runId.replaceAll('-', '')],
      ...[`${runId}\n`, runId.replace('a', 'g'), '', '../x'],
    ]
    expect(others.filter((text) => parseRunId(text) !== undefined)).toEqual([])
  })

  it('of a tool call names its run, turn, attempt and place', () => {
    expect(callId).toBe('call_01932f00abcd712384560123456789ab_2_3_14')
    expect(parseToolCallId(callId)).toBe(callId)
    expect(extractRunId(callId)).toBe(runId)
    expect(deriveIdempotencyKey(runId, callId)).toBe(`${runId}_2_3_14`)
    const others = [
      ...[`x${callId}`, `${callId}x`, callId.replace('call_', ''), callId.replace('_14', ''), `${callId}_1`],
      ...[callId.replace('ab', 'AB'), callId.replace('01932', '1932'), callId.replace('_2_', '_-2_'), runId],
    ]
    expect(others.filter((text) => parseToolCallId(text) !== undefined)).toEqual([])
    expect(others.filter((text) => extractRunId(text) !== undefined)).toEqual([])
  })
})

describe('the id of a child run', () => {
  /** The ids of many calls, each with the digest that it is made of. */
  const children = Array.from({ length: 40 }, (_, index) => {
    const call = deriveToolCallId(runId, 1, 1, index + 1)
    return { id: deriveChildRunId(runId, call), digest: computeDigest(`${runId}_1_1_${index + 1}`) }
  })

  it('is a UUID of version 7 with the time of its parent, and the same at every attempt', () => {
    for (const { id, digest } of children) {
      const variant = ['8', '9', 'a', 'b'][Number.parseInt(digest[3] ?? '', 16) % 4] ?? ''
      expect(id).toBe(
        `01932f00-abcd-7${digest.slice(0, 3)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 19)}`,
      )
      expect(parseRunId(id)).toBe(id)
    }
    expect(deriveChildRunId(runId, callId)).toBe(deriveChildRunId(runId, callId))
  })

  it('is another one for every call and every run', () => {
    expect(new Set(children.map(({ id }) => id)).size).toBe(40)
    expect(new Set(children.map(({ id }) => id[19]))).toEqual(new Set(['8', '9', 'a', 'b']))
    const other = '01932f00-abcd-7123-8456-0123456789ac' as RunId
    expect(deriveChildRunId(other, callId)).not.toBe(deriveChildRunId(runId, callId))
  })
})

describe('events', () => {
  const [runId, callId] = [sampleRunId(1), sampleCallId(sampleRunId(1))]
  const facts = sampleFacts(runId)
  const event = (type: EventType, more: object = {}): RuntimeEvent =>
    stampFacts(runId, [{ ...facts[type], ...more }])[0]!

  describe('an id in an event', () => {
    it.each<readonly [EventType, object, string | undefined]>([
      ['cancel_requested', { runId: 'x' }, 'runId'],
      ['cancel_requested', { toolCallId: 'x' }, 'toolCallId'],
      ['run_started', { parent: { runId: 'x' } }, 'parent.runId'],
      ['run_started', { parent: undefined }, undefined],
      ['run_resumed', { inDoubt: [callId, 'x'] }, 'inDoubt.1'],
      ['run_resumed', { inDoubt: undefined }, undefined],
      [
        'tool_requests_collected',
        { calls: [{ toolCallId: callId }, { toolCallId: 'x' }] },
        'calls.1.toolCallId',
      ],
      ['tool_requests_collected', { calls: [{ toolCallId: callId, recorded: 'x' }] }, 'calls.0.recorded'],
      ['tool_requests_collected', { calls: [{ toolCallId: callId, recorded: callId }] }, undefined],
      ['tool_requests_collected', { calls: [null] }, 'calls.0.toolCallId'],
      ['tool_requests_collected', { calls: undefined }, undefined],
      ['tool_started', { child: 'x' }, 'child'],
      ['tool_started', { recorded: 'x' }, 'recorded'],
      ['tool_started', { child: undefined, recorded: undefined }, undefined],
      ['tool_result', { child: { runId: 'x' } }, 'child.runId'],
      ['tool_result', { reused: 'x' }, 'reused'],
      ['tool_result', { child: undefined, reused: undefined }, undefined],
      ['tool_results_injected', { toolCallIds: [callId, 7] }, 'toolCallIds.1'],
    ])('of %s with %o is named if it is not an id: %s', (type, more, path) => {
      expect(findEventIdFault(event(type, more))?.path).toBe(path)
    })

    it('is sound in every sample, and content is not looked at', () => {
      expect(eventTypes.flatMap((type) => findEventIdFault(event(type)) ?? [])).toEqual([])
      expect(findEventIdFault({ ...event('cancel_requested'), type: 'constructor' } as never)).toBeUndefined()
    })
  })

  describe('a moment', () => {
    it('is a whole millisecond of the years 0 to 9999', () => {
      const [first, last] = [Date.parse('0000-01-01T00:00:00.000Z'), Date.parse('9999-12-31T23:59:59.999Z')]
      expect([first, last, 0].map(isMoment)).toEqual([true, true, true])
      expect([first - 1, last + 1, 0.5, Number.NaN, '0', undefined].map(isMoment)).toEqual([
        ...[false, false, false, false, false, false],
      ])
    })
  })
})

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

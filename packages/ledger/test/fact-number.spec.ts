import type { RuntimeEvent } from '@tallystick/core'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { describe, expect, it } from 'vitest'
import { factNumberOf, longCallId } from '../src/record/segments/fact-number.ts'

const runId = sampleRunId(1)
const facts = everyFact(runId)

/** An event about the call of a run with these numbers in its id. */
function about(short: string, fact: object, of: string = runId): RuntimeEvent {
  const [event] = stamped(runId, [facts.tool_started]) as readonly [RuntimeEvent]
  return { ...event, ...fact, toolCallId: longCallId(of, short) } as RuntimeEvent
}

const started = (attempt: number): object => ({ type: 'tool_started', attempt })
const ended = { type: 'tool_result' }

describe('the number of a fact about a call', () => {
  it.each([
    ['0_0_0', started(0), 0],
    ['0_0_0', started(510), 510],
    ['0_0_0', ended, 511],
    ['0_0_1', started(0), 512],
    ['0_1_0', started(0), 4096 * 512],
    ['1_0_0', started(0), 64 * 4096 * 512],
    // The largest of all is a whole number that JSON, SQLite and Postgres keep.
    ['16777215_63_4095', ended, 2 ** 51 - 1],
  ] as const)('of %s, %j is laid together of its parts: %i', (short, fact, number) => {
    expect(factNumberOf(about(short, fact))).toBe(number)
  })

  it.each([
    ['0_0_0', started(-1)],
    ['0_0_0', started(0.5)],
    ['0_0_0', started(511)],
    ['16777216_0_0', ended],
    ['0_64_0', ended],
    ['0_0_4096', ended],
    ['0_0_01', ended],
    ['0_0_0', { type: 'tool_progress' }],
  ] as const)('is left out for %s, %j', (short, fact) => {
    expect(factNumberOf(about(short, fact))).toBeUndefined()
  })

  it('is left out for a call of another run, also right after a call with the same numbers', () => {
    expect(factNumberOf(about('0_0_0', ended))).toBe(511)
    expect(factNumberOf(about('0_0_0', ended, sampleRunId(2)))).toBeUndefined()
  })
})

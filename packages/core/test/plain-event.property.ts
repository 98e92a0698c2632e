import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { callEventTypes, eventTypes, shapeFaultOf } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { callEnvelopeSchema, envelopeSchema, eventBodies } from '../src/vocabulary/events/event-schema.ts'
import { isPlainDelta, isPlainEnvelope } from '../src/vocabulary/events/plain-event.ts'

const runId = sampleRunId(1)
const events = stamped(runId, Object.values(everyFact(runId)))
const deltas = ['assistant_text_delta', 'assistant_reasoning_delta', 'tool_input_delta'] as const

const odd = fc.constantFrom<unknown>(
  ...[undefined, null, 0, -0, -1, 1, 0.5, Number.NaN, Infinity, 2 ** 53, 253_402_300_800_000],
  ...['', 'a', runId, `${runId}\n`, true, false, {}, [], [1]],
)

const fields = [
  ...['runId', 'seq', 'epoch', 'turn', 'at', 'v', 'toolCallId', 'cause', 'inboxKey', 'draining', 'removed'],
  ...['attempt', 'part', 'text', 'name', 'replaces'],
]

/** An event of any type, of which a field or two may hold something odd. */
const nearly = fc
  .tuple(fc.constantFrom(...events), fc.array(fc.tuple(fc.constantFrom(...fields), odd), { maxLength: 2 }))
  .map(([event, changes]) => ({ ...event, ...Object.fromEntries(changes) }))

describe('an event that is taken without its schemas', () => {
  it('is one that they take', () => {
    let plain = 0
    fc.assert(
      fc.property(nearly, fc.constantFrom(...deltas), (event, type) => {
        const isPlain = isPlainEnvelope(event)
        if (isPlain) plain++
        const takesCall = event.toolCallId === undefined || callEnvelopeSchema().safeParse(event).success
        expect(!isPlain || (envelopeSchema().safeParse(event).success && takesCall)).toBe(true)
        expect(!isPlainDelta(type, event) || eventBodies[type]().safeParse(event).success).toBe(true)
      }),
      { numRuns: tries(5_000) },
    )
    expect(plain).toBeGreaterThan(0)
  })

  it('is any with a plain envelope, and any plain delta', () => {
    const usual = events.filter((event) => !('cause' in event || 'inboxKey' in event || 'removed' in event))
    expect(usual.filter(isPlainEnvelope)).toEqual(usual)
    expect(usual.length).toBeGreaterThan(20)
    const pieces = events.filter(({ type }) => (deltas as readonly string[]).includes(type))
    const plain = pieces.map((event) => ({ ...event, type: event.type }))
    for (const event of plain) Reflect.deleteProperty(event, 'replaces')
    expect(plain.filter((event) => isPlainDelta(event.type, event))).toEqual(plain)
    expect(plain).toHaveLength(3)
  })

  it('still names its call where its type always does', () => {
    for (const event of events) {
      const { toolCallId: _gone, ...nameless } = event
      const fault = shapeFaultOf(nameless as typeof event)?.path
      const isOfCall = (callEventTypes as readonly string[]).includes(event.type)
      expect([event.type, fault]).toEqual([event.type, isOfCall ? 'toolCallId' : undefined])
    }
    expect(events.map(({ type }) => type).toSorted()).toEqual(eventTypes.toSorted())
  })
})

import { describe, expect, it } from 'vitest'
import { eventTypes, type EventType } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleCallId, sampleRunId, stampFacts } from '@tallystick/testkit'
import type { RuntimeEvent } from '@tallystick/core'
import { findEventIdFault } from '../src/events/event.ts'
import { isMoment } from '../src/events/event-parts.ts'

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

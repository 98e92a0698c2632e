// What is on record for good, and what stores and readers do with each type of event.
import { describe, expect, it } from 'vitest'
import { eventTraits, eventTypes, type EventType } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleRunId } from '@tallystick/testkit'
import { findCause, deriveCause, type EventTraits } from '../src/events/event.ts'

const words = (text: string): readonly string[] => text.trim().split(/\s+/).sort()
const typesWith = (fits: (traits: EventTraits) => boolean): readonly string[] =>
  eventTypes.filter((type) => fits(eventTraits[type] as EventTraits)).sort()

describe('a type of event', () => {
  it('is written in its first version', () => {
    expect(typesWith(({ v }) => v !== 1)).toEqual([])
  })

  it('adds to what the model is shown, as itself or as a part of the message', () => {
    expect(typesWith(({ modelHistory }) => modelHistory === 'yes')).toEqual(
      words(`history_carried history_edited session_edited input_received input_settled tool_request_ready
        assistant_message_finished tool_result background_ended context_compacted agent_handed_off guardrail_tripped output_checked`),
    )
    expect(typesWith(({ modelHistory }) => modelHistory === 'as_message')).toEqual(
      words('assistant_text_delta assistant_reasoning_delta'),
    )
  })

  it('only shows progress if it is a delta, which may be kept shorter', () => {
    expect(typesWith(({ retention }) => retention === 'deltas')).toEqual(
      words('assistant_text_delta assistant_reasoning_delta tool_input_delta tool_progress'),
    )
  })

  it('may be appended lazily if nothing follows from it that a crash could make untrue', () => {
    expect(typesWith(({ durability }) => durability === 'lazy')).toEqual(
      words(`assistant_started assistant_text_delta assistant_reasoning_delta tool_input_delta tool_request_ready
        usage_updated assistant_message_finished tool_requests_collected tool_progress tool_results_injected`),
    )
  })
})

describe('what decides an event', () => {
  const facts = sampleFacts(sampleRunId(1))
  const cause = (type: EventType, more: object = {}): string => deriveCause({ ...facts[type], ...more })

  it('is a command of the same name', () => {
    const commands = { run_started: 'start', run_resumed: 'resume', cancel_requested: 'cancel' }
    for (const [type, name] of Object.entries(commands)) expect(cause(type as EventType)).toBe(name)
    expect(cause('limit_raised')).toBe('raise_limit')
    expect([cause('history_carried'), cause('history_edited')]).toEqual(['start', 'start'])
    for (const delivery of ['start', 'steer', 'queue']) {
      expect(cause('input_received', { delivery })).toBe(delivery)
    }
    expect([true, false].map((approved) => cause('approval_decided', { approved }))).toEqual([
      ...['approve', 'deny'],
    ])
  })

  it('is a report about the model, a tool or a check', () => {
    const reports: { readonly [type in EventType]?: string } = {
      assistant_started: 'model_started',
      assistant_text_delta: 'model_text',
      assistant_reasoning_delta: 'model_reasoning',
      tool_input_delta: 'model_tool_input',
      tool_request_ready: 'model_tool_request',
      usage_updated: 'model_usage',
      model_stream_failed: 'model_failed',
      tool_requests_collected: 'calls_checked',
      tool_progress: 'tool_progressed',
      tool_deferred: 'tool_deferred',
      tool_attempt_failed: 'tool_ended',
      guardrails_checked: 'guardrails_checked',
      output_checked: 'output_checked',
    }
    for (const [type, report] of Object.entries(reports)) expect(cause(type as EventType)).toBe(report)
    expect(cause('assistant_message_finished', { partial: false })).toBe('model_finished')
    expect(cause('tool_result', { durationMs: 0 })).toBe('tool_ended')
    expect(['tool_input', 'tool_output'].map((on) => cause('guardrail_tripped', { on }))).toEqual([
      ...['calls_checked', 'guardrails_checked'],
    ])
  })

  it('is the controller where the state alone says what is due', () => {
    const own = words(`run_finished input_settled model_call_started approval_requested tool_started
      tool_results_injected compaction_started context_compacted agent_handed_off limit_reached`)
    expect(own.map((type) => cause(type as EventType))).toEqual(own.map(() => 'controller'))
    expect(cause('assistant_message_finished', { partial: true })).toBe('controller')
    expect(cause('tool_result', { durationMs: undefined })).toBe('controller')
  })

  it('is what is on record where that says otherwise', () => {
    const event = { ...facts.cancel_requested, runId: sampleRunId(1), seq: 2, epoch: 1, at: 0, v: 1 }
    expect(findCause(event)).toBe('cancel')
    expect(findCause({ ...event, cause: 'controller' })).toBe('controller')
  })
})

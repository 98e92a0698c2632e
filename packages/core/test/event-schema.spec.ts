import { LedgerDamagedError, UnknownEventError, type RuntimeEvent } from '@tallystick/core'
import { eventSchemas, outsideCommandSchema } from '@tallystick/core/schemas'
import { eventTypes, parseEvent, type EventType, type Json, eventTraits } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import '../../../scripts/testing/seed.ts'
import { findEventShapeFault, findCause, deriveCause, type EventTraits } from '../src/events/event.ts'
import { play, program } from './program.ts'

const runId = sampleRunId(1)
const facts = sampleFacts(runId)

function sample(type: EventType): RuntimeEvent {
  return stampFacts(runId, [facts[type]])[0]!
}

type Path = readonly (string | number)[]

/** Places whose value is the user's, the model's or the vendor's own: any JSON is legal there. */
const free = [
  ...[
    /\.input\b.+/,
    /\.inputSchema\b.+/,
    /\.models\.0\.options\b.+/,
    /\.output\.schema\b.+/,
    /\.opaque\.data\b/,
  ],
  ...[/^\.data\b/, /^\.raw\b/, /^\.output\b/],
]

/** Every place inside a value, from its fields down to its leaves. */
function placesOf(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  const own = path.length === 0 ? [] : [path]
  return [...own, ...Object.entries(value).flatMap(([key, item]) => placesOf(item, [...path, key]))]
}

function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<string, unknown>)[key], value)
}

/** A deep copy with another value at one place. */
function changed(value: RuntimeEvent, path: Path, replacement: unknown): unknown {
  const copy = JSON.parse(JSON.stringify(value)) as unknown
  const holder = at(copy, path.slice(0, -1)) as Record<string, unknown>
  holder[path.at(-1)!] = replacement
  return copy
}

/** A value of another type than the recorded one. */
function wrongFor(value: unknown): unknown {
  return typeof value === 'string' ? 4.5 : 'of another type'
}

/** A place as errors name it, such as `parts[0].text`. */
function written(path: Path): string {
  return path.reduce<string>(
    (before, key) =>
      typeof key === 'number' || /^\d+$/.test(key) ? `${before}[${key}]` : `${before}${before && '.'}${key}`,
    '',
  )
}

/** Which error a value is refused with, and where it says that the fault is. */
function refusalOf(value: unknown): string {
  try {
    parseEvent(value)
    return 'accepted'
  } catch (error) {
    if (!(error instanceof LedgerDamagedError)) return String(error)
    return `${error.name} at ${/is damaged at ([^ ]+):/.exec(error.message)?.[1]}`
  }
}

describe('parseEvent', () => {
  it.each(eventTypes)('takes %s with all that it may carry, as it is', (type) => {
    const event = sample(type)
    expect(parseEvent(event)).toBe(event)
  })

  it('takes every event of random runs, as it is', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events } = await play(random)
        const stored = JSON.parse(JSON.stringify(events)) as readonly RuntimeEvent[]
        expect(stored.map(parseEvent)).toEqual(events)
      }),
      { numRuns: 100 },
    )
  })

  it.each(eventTypes)('refuses %s with a value of a wrong type at any place, and names the place', (type) => {
    const event = sample(type)
    const places = placesOf(event).filter((path) => !free.some((place) => place.test(`.${path.join('.')}`)))
    const answers = places.map((path) => refusalOf(changed(event, path, wrongFor(at(event, path)))))
    expect(answers).toEqual(places.map((path) => `LedgerDamagedError at ${written(path)}`))
    expect(places.length).toBeGreaterThan(6)
  })

  it.each(eventTypes)('finds in %s every field missing that has to be there', (type) => {
    const { [type]: schema } = eventSchemas
    const required = Object.keys(facts[type]).filter((field) => {
      const { [field as never]: _gone, ...rest } = facts[type] as unknown as Record<string, Json>
      return !schema.safeParse(rest).success
    })
    expect({ [type]: required }).toEqual({ [type]: requiredFields[type] })
  })

  it('keeps fields that it does not know', () => {
    const event = { ...sample('tool_started'), since: 'the next release' }
    expect(parseEvent(event)).toHaveProperty('since', 'the next release')
  })

  it('says of an unknown type, or a later version, that a newer release is needed', () => {
    const unknown = { ...sample('tool_started'), type: 'tool_dreamt' }
    expect(() => parseEvent(unknown)).toThrow(UnknownEventError)
    expect(() => parseEvent(unknown)).toThrow(/Event 1 of run .* is tool_dreamt v1.*newer release/)
    expect(() => parseEvent({ ...sample('tool_started'), v: 2 })).toThrow(UnknownEventError)
    expect(() => parseEvent({ ...sample('tool_started'), type: 'constructor' })).toThrow(UnknownEventError)
  })

  it('refuses what is not an event at all', () => {
    for (const value of [null, undefined, 1, 'run_started', [], {}, { type: 'run_started' }]) {
      expect(() => parseEvent(value)).toThrow(LedgerDamagedError)
    }
  })

  it('holds call events to naming their call', () => {
    const { toolCallId: _gone, ...nameless } = sample('tool_started')
    expect(() => parseEvent(nameless)).toThrow(/at toolCallId/)
  })

  it('says nothing of what stood there', () => {
    const secret = 'sk-secret'
    const event = changed(sample('tool_started'), ['effect'], secret)
    expect(() => parseEvent(event)).toThrow(LedgerDamagedError)
    expect(() => parseEvent(event)).not.toThrow(secret)
  })
})

describe('a word of a closed list', () => {
  const takenAt = (type: EventType, more: (word: string) => object, words: readonly string[]) =>
    words.filter((word) => findEventShapeFault({ ...sample(type), ...more(word) }) === undefined)

  it('is taken wherever an earlier release may have written it, and no other is', () => {
    const removals = ['redacted', 'expired', 'erased', 'sealed']
    const kept = (kind: string) => refusalOf({ ...sample('run_started'), removed: { kind } })
    expect([...removals, 'lost'].map(kept)).toEqual([
      ...removals.map(() => 'accepted'),
      'LedgerDamagedError at removed.kind',
    ])
    const relations = ['fork', 'child', 'session', 'branch']
    const from = (relation: string) => ({ parent: { runId, seq: 1, relation } })
    expect(takenAt('run_started', from, [...relations, 'twin'])).toEqual(relations)
    const outcomes = ['success', 'failed']
    const executed = (outcome: string) => ({
      parts: [
        {
          ...{ type: 'provider', kind: 'x', part: 0, opaque: { provider: 'p', api: 'a', data: null } },
          executed: { id: '1', name: 'search', outcome },
        },
      ],
    })
    expect(takenAt('assistant_message_finished', executed, [...outcomes, 'timed_out'])).toEqual(outcomes)
    const histories = ['keep', 'leave_out']
    const { definition } = facts.run_started
    const onRefusal = (history: string) => ({ definition: { ...definition, onRefusal: { history } } })
    expect(takenAt('run_started', onRefusal, [...histories, 'drop'])).toEqual(histories)
    const settling = (outcome: string) => ({ type: 'settle', toolCallId: 'c', outcome, content: [] })
    const settled = ['success', 'failed', 'denied'].filter(
      (outcome) => outsideCommandSchema.safeParse(settling(outcome)).success,
    )
    expect(settled).toEqual(['success', 'failed'])
  })
})

describe('the shape of a stored event', () => {
  const event = sample('tool_started')
  const of = (more: object): string | undefined => findEventShapeFault({ ...event, ...more })?.path

  it('is at fault where a field of its envelope, its call or its body is', () => {
    expect(of({})).toBeUndefined()
    expect(of({ seq: 0 })).toBe('seq')
    expect(of({ toolCallId: undefined })).toBe('toolCallId')
    expect(of({ attempt: 'one' })).toBe('attempt')
    expect(findEventShapeFault({ ...sample('cancel_requested'), by: 7 } as never)?.path).toBe('by')
  })

  it('is sound whatever its body, where content was taken away or a newer release wrote it', () => {
    const removed = { kind: 'redacted', at: 1 }
    expect(of({ attempt: 'one', removed })).toBeUndefined()
    expect(of({ attempt: 'one', v: 2 })).toBeUndefined()
    expect(of({ type: 'tool_dreamt', attempt: 'one' })).toBeUndefined()
    expect(of({ seq: 0, removed })).toBe('seq')
    expect(of({ seq: 0, v: 2 })).toBe('seq')
    expect(of({ toolCallId: 'x', removed })).toBe('toolCallId')
  })
})

const requiredFields: Readonly<Record<EventType, readonly string[]>> = {
  run_started: ['agent', 'definition', 'limits', 'retry'],
  schedule_set: ['missed'],
  schedule_fired: ['scheduledAt'],
  session_edited: ['edit'],
  run_resumed: ['why', 'inDoubt'],
  run_finished: ['reason', 'turns', 'toolCalls', 'usage'],
  history_carried: ['messages'],
  history_edited: ['edits'],
  input_received: ['delivery', 'message'],
  input_settled: ['receipt', 'delivered'],
  model_call_started: ['attempt', 'model', 'requestDigest', 'toolChoice', 'finalizing', 'grant'],
  assistant_started: ['attempt'],
  assistant_text_delta: ['attempt', 'part', 'text'],
  assistant_reasoning_delta: ['attempt', 'part', 'text'],
  tool_input_delta: ['attempt', 'part', 'name', 'text'],
  tool_request_ready: ['attempt', 'part', 'providerCallId', 'name', 'input'],
  usage_updated: ['attempt', 'usage'],
  assistant_message_finished: ['attempt', 'stopReason', 'partial', 'parts'],
  model_stream_failed: ['attempt', 'failure'],
  tool_requests_collected: ['calls'],
  approval_requested: ['name', 'attempt', 'inputDigest'],
  approval_added: ['attempt', 'by', 'inputDigest'],
  approval_decided: ['attempt', 'approved', 'by', 'inputDigest'],
  approval_applied: ['attempt', 'inputDigest', 'by', 'standing'],
  approval_withdrawn: ['standing', 'by'],
  tool_started: ['name', 'attempt', 'effect', 'idempotencyKey'],
  tool_progress: ['attempt', 'data'],
  tool_deferred: ['attempt', 'receipt'],
  tool_attempt_failed: ['name', 'attempt', 'outcome', 'durationMs', 'content', 'retryAt'],
  tool_result: ['name', 'outcome', 'content'],
  background_ended: ['name', 'attempt', 'outcome', 'content'],
  tool_results_injected: ['toolCallIds'],
  compaction_started: ['model', 'replacedMessages', 'requestDigest', 'grant'],
  context_compacted: ['summary', 'replacedMessages'],
  agent_handed_off: ['from', 'to', 'definition'],
  guardrail_tripped: ['guardrail', 'on', 'action'],
  guardrails_checked: ['on', 'guardrails'],
  output_checked: ['valid'],
  limit_reached: ['limit', 'max', 'used', 'policy'],
  limit_raised: ['limit', 'max', 'by'],
  cancel_requested: [],
  feedback_given: ['by'],
}

// What is on record for good, and what stores and readers do with each type of event.

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

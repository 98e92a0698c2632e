import { describe, expect, it } from 'vitest'
import {
  modelSignalSchema,
  reconciliationSchema,
  toolSignalSchema,
  verdictSchema,
} from '../src/events/signals.ts'
import type { Schema } from '../src/values/schema.ts'

const taken = (schema: Schema, values: readonly unknown[]): readonly unknown[] =>
  values.filter((value) => schema(value) === undefined)

describe('a delta of a reply', () => {
  const delta = { type: 'model_text', part: 0, text: 'a' }
  const input = { type: 'model_tool_input', part: 3, name: 'look', text: '{' }
  const plain = [
    ...[delta, { ...delta, text: '' }, { ...delta, type: 'model_reasoning' }, input],
    { ...delta, more: 'of a later release' },
  ]
  const wrong = [
    ...[null, undefined, 'model_text', 7, [], {}],
    ...[
      { ...delta, type: 'model_texts' },
      { ...delta, type: undefined },
      { ...delta, type: 'model_tool_input' },
    ],
    ...[
      { ...delta, part: -1 },
      { ...delta, part: 0.5 },
      { ...delta, part: '0' },
      { ...delta, part: undefined },
    ],
    ...[
      { ...delta, text: 7 },
      { ...delta, text: undefined },
      { ...input, name: 7 },
      { ...input, name: undefined },
    ],
    ...[
      { ...delta, replaces: false },
      { ...delta, replaces: 1 },
    ],
  ]

  it('is taken if it is one', () => {
    expect(taken(modelSignalSchema, plain)).toEqual(plain)
  })

  it('is refused if its shape is another', () => {
    expect(taken(modelSignalSchema, wrong)).toEqual([])
  })

  it('may take text back', () => {
    const replacing = [
      { ...delta, replaces: true },
      { ...delta, type: 'model_reasoning', replaces: true },
    ]
    expect(taken(modelSignalSchema, replacing)).toEqual(replacing)
  })
})

describe('what is reported', () => {
  const text = { type: 'text', text: 'a' }
  const call = { type: 'tool_call', providerCallId: 'c', name: 'look', input: {} }

  it('of a model has parts that a store can keep, whatever else is in them', () => {
    const finished = (...parts: readonly unknown[]) => ({ type: 'model_finished', stopReason: 'end', parts })
    const sound = [
      finished(),
      finished({ ...text, part: 0 }, { ...call, part: 1 }),
      finished({ ...text, part: 0, later: [1, null] }),
      { ...finished(), rawStopReason: 'stop', providerMessageId: 'm' },
      { type: 'model_started', providerMessageId: 'm', servedModel: 's', warnings: ['w'] },
      { type: 'model_tool_request', part: 0, call },
      { type: 'model_usage', usage: { inputTokens: -1 }, contextTokens: 1, raw: [1] },
    ]
    const wrong = [
      finished(text),
      finished({ ...text, part: -1 }),
      finished({ ...text, part: 0, later: () => 1 }),
      finished({ type: 'hologram', part: 0 }),
      { ...finished(), stopReason: 'weary' },
      { ...finished(), rawStopReason: undefined },
      { type: 'model_started', warnings: [1] },
      { type: 'model_tool_request', part: 0, call: { ...call, later: 1n } },
      { type: 'model_usage', usage: { inputTokens: '1' } },
      { type: 'model_usage', usage: {}, raw: () => 1 },
    ]
    expect(taken(modelSignalSchema, [...sound, ...wrong])).toEqual(sound)
  })

  it('of a tool is progress, that it is settled later, or its end', () => {
    const sound = [
      { type: 'tool_progressed', data: null },
      { type: 'tool_deferred', externalId: 'job-1' },
      { type: 'tool_deferred', externalId: 'job-1', deadlineMs: 5 },
      { type: 'tool_ended', outcome: 'success', content: [] },
      { type: 'tool_ended', outcome: 'failed', content: [text] },
    ]
    const wrong = [
      { type: 'tool_progressed', data: undefined },
      { type: 'tool_deferred', externalId: 7 },
      { type: 'tool_ended', outcome: 'done', content: [] },
      { type: 'tool_ended', outcome: 'success', content: [call] },
      { type: 'tool_ended', outcome: 'success', content: [{ ...text, later: Number.NaN }] },
    ]
    expect(taken(toolSignalSchema, [...sound, ...wrong])).toEqual(sound)
  })

  it('of a check of a call is that it runs, is asked about, or is refused with an outcome that ran nothing', () => {
    const refusals = ['invalid_input', 'unknown_tool', 'denied', 'skipped'].map((outcome) => ({
      ...{ kind: 'refuse', outcome, text: 'No.' },
    }))
    const sound = [{ kind: 'run' }, { kind: 'ask' }, { kind: 'ask', reason: 'dear' }, ...refusals]
    const wrong = [
      ...[{ kind: 'runs' }, {}, null, { kind: 'ask', reason: 7 }, { kind: 'refuse', outcome: 'denied' }],
      ...['success', 'failed', 'timed_out'].map((outcome) => ({ kind: 'refuse', outcome, text: 'No.' })),
    ]
    expect(taken(verdictSchema, [...sound, ...wrong])).toEqual(sound)
  })

  it('of a call in doubt is its end, that it did not happen, or that nothing is known', () => {
    const done = (outcome: string) => ({ state: 'done', outcome, content: [text] })
    const sound = [
      ...['success', 'failed', 'cancelled'].map(done),
      { state: 'not_done' },
      { state: 'unknown' },
    ]
    const wrong = [done('denied'), done('skipped'), { state: 'done' }, { state: 'maybe' }, {}, null]
    expect(taken(reconciliationSchema, [...sound, ...wrong])).toEqual(sound)
  })
})

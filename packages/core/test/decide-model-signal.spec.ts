import { describe, expect, it } from 'vitest'
import { decide } from '@tallystick/core/machine'
import {
  type Fact,
  type ModelSignal,
  type RequestedCall,
  type Signal,
  type StopReason,
} from '@tallystick/core/vocabulary'
import { given, stampFacts } from '@tallystick/testkit'
import {
  begun,
  called,
  callId,
  endedCall,
  executing,
  failure,
  requested,
  runId,
  startedCall,
  wrote,
} from './pages.ts'

const streaming = [...begun(), called()]
const here = { turn: 1, attempt: 1 }
const at = stampFacts(runId, streaming).at(-1)!.at

/** A signal of the first attempt of the first turn. */
const received = (signal: ModelSignal): Signal => ({ ...signal, ...here })
const look: RequestedCall = { type: 'tool_call', providerCallId: 'c', name: 'look', input: { at: 'sky' } }

function finishedWith(
  parts: Extract<ModelSignal, { type: 'model_finished' }>['parts'],
  stopReason: StopReason = 'end',
): Signal {
  return received({ type: 'model_finished', stopReason, parts })
}

type Finished = Extract<Fact, { type: 'assistant_message_finished' }>
const finishedMessage = (parts: Finished['parts'], places?: Finished['places']): Fact => ({
  ...(places && { places }),
  ...{ type: 'assistant_message_finished', ...here, stopReason: 'end', partial: false, parts },
})

function broken(what: string): Fact {
  return {
    ...{ type: 'model_stream_failed', ...here },
    failure: {
      ...{ class: 'protocol', retryable: false },
      message: `The adapter of scripted broke its contract: ${what}.`,
    },
  }
}

describe('given a model call that is under way, when the model', () => {
  it('begins, that is noted, with what the provider says of itself', () => {
    given(streaming)
      .when(received({ type: 'model_started', providerMessageId: 'm1', servedModel: 'x' }))
      .then([{ type: 'assistant_started', ...here, providerMessageId: 'm1', servedModel: 'x' }])
    given(streaming)
      .when(received({ type: 'model_started' }))
      .then([{ type: 'assistant_started', ...here }])
  })

  it('writes or reasons, each piece is a delta, save an empty one', () => {
    given(streaming)
      .when(received({ type: 'model_text', part: 0, text: 'Hi' }))
      .then([{ type: 'assistant_text_delta', ...here, part: 0, text: 'Hi' }])
    given(streaming)
      .when(received({ type: 'model_reasoning', part: 1, text: 'Hm' }))
      .then([{ type: 'assistant_reasoning_delta', ...here, part: 1, text: 'Hm' }])
    given(streaming)
      .when(received({ type: 'model_text', part: 0, text: '' }))
      .then([])
    given(streaming)
      .when(received({ type: 'model_tool_input', part: 0, name: 'look', text: '' }))
      .then([])
  })

  it('writes the input of calls, each call gets its id where its place is first seen', () => {
    const input = (part: number): Signal =>
      received({ type: 'model_tool_input', part, name: 'look', text: '{' })
    const delta = (part: number, ordinal: number): Fact => ({
      ...{ type: 'tool_input_delta', ...here, toolCallId: callId(ordinal), part, name: 'look', text: '{' },
    })
    given(streaming)
      .when(input(5))
      .then([delta(5, 1)])
    given([...streaming, delta(5, 1)])
      .when(input(2))
      .then([delta(2, 2)])
    given([...streaming, delta(5, 1), delta(2, 2)])
      .when(input(5))
      .then([delta(5, 1)])
    given([...streaming, delta(5, 1), delta(2, 2)])
      .when(received({ type: 'model_tool_request', part: 2, call: look }))
      .then([
        {
          ...{ type: 'tool_request_ready', ...here, toolCallId: callId(2), part: 2 },
          ...{ providerCallId: 'c', name: 'look', input: { at: 'sky' } },
        },
      ])
  })

  it('asks for a call with input that is not JSON, and with what its wire needs back, both are kept', () => {
    const malformed = { text: '{"at":', error: 'cut' }
    const opaque = { provider: 'p', api: 'a', data: { signature: 's' } }
    given(streaming)
      .when(
        received({ type: 'model_tool_request', part: 0, call: { ...look, input: {}, malformed, opaque } }),
      )
      .then([{ ...requested(1), providerCallId: 'c', input: {}, malformed, opaque }])
  })

  it('reports usage, it is kept with the wire’s own object', () => {
    given(streaming)
      .when(received({ type: 'model_usage', usage: { outputTokens: 3 }, raw: { out: 3 } }))
      .then([{ type: 'usage_updated', ...here, usage: { outputTokens: 3 }, raw: { out: 3 } }])
  })

  it('reports usage piece by piece, each report keeps what was known before', () => {
    const first: Fact = { type: 'usage_updated', ...here, usage: { inputTokens: 10, outputTokens: 1 } }
    given([...streaming, first])
      .when(received({ type: 'model_usage', usage: { outputTokens: 3 } }))
      .then([{ ...first, usage: { inputTokens: 10, outputTokens: 3 } }])
    const failed: Fact = { type: 'model_stream_failed', ...here, failure: failure(), retryAt: 0 }
    given([...streaming, first, failed, called(1, 2)])
      .when({ type: 'model_usage', turn: 1, attempt: 2, usage: { outputTokens: 3 } })
      .then([{ ...first, attempt: 2, usage: { outputTokens: 3 } }])
  })

  it('finishes as it streamed, the message is recorded', () => {
    given([...streaming, wrote('Hel'), wrote('lo')])
      .when(finishedWith([{ part: 0, type: 'text', text: 'Hello' }]))
      .then([finishedMessage([{ type: 'text', text: 'Hello' }])])
  })

  it('finishes with more than it streamed, the rest becomes one more delta', () => {
    given([...streaming, wrote('Hel')])
      .when(
        finishedWith([
          { part: 0, type: 'text', text: 'Hello' },
          { part: 1, type: 'reasoning', text: 'Why?' },
          { part: 2, type: 'text', text: '' },
        ]),
      )
      .then([
        wrote('lo'),
        { type: 'assistant_reasoning_delta', ...here, part: 1, text: 'Why?' },
        finishedMessage([
          { type: 'text', text: 'Hello' },
          { type: 'reasoning', text: 'Why?' },
          { type: 'text', text: '' },
        ]),
      ])
  })

  it('finishes with calls that it never announced, they are requested in the order of the reply', () => {
    const { type: _type, ...call } = look
    given([...streaming, wrote('Hm.')])
      .when(
        finishedWith([
          { part: 0, type: 'text', text: 'Hm.' },
          { part: 1, ...look },
          { part: 4, ...look },
        ]),
      )
      .then([
        { type: 'tool_request_ready', ...here, toolCallId: callId(1), part: 1, ...call },
        { type: 'tool_request_ready', ...here, toolCallId: callId(2), part: 4, ...call },
        finishedMessage(
          [
            { type: 'text', text: 'Hm.' },
            { ...look, toolCallId: callId(1) },
            { ...look, toolCallId: callId(2) },
          ],
          [0, 1, 4],
        ),
      ])
  })

  it('finishes with something else than it streamed, the call has failed and is not tried again', () => {
    given([...streaming, wrote('Hello')])
      .when(finishedWith([{ part: 0, type: 'text', text: 'Goodbye' }]))
      .then([broken('part 0 is not what was streamed for it')])
    given([...streaming, wrote('Hello')])
      .when(finishedWith([]))
      .then([broken('part 0 was streamed and is missing in the finished reply')])
    given([...streaming, requested(1)])
      .when(finishedWith([]))
      .then([broken(`call ${callId(1)} is missing in the finished reply`)])
    given([...streaming, requested(1)])
      .when(received({ type: 'model_tool_request', part: 0, call: look }))
      .then([broken('part 0 was reported as a whole call twice')])
  })

  it('keeps what a wire needs back on the parts of the message', () => {
    const opaque = { provider: 'p', api: 'a', data: 'sig' }
    given(streaming)
      .when(
        finishedWith([
          { part: 0, type: 'reasoning', text: '', opaque },
          { part: 1, type: 'provider', kind: 'search', opaque },
        ]),
      )
      .then([
        finishedMessage([
          { type: 'reasoning', text: '', opaque },
          { type: 'provider', kind: 'search', opaque },
        ]),
      ])
  })

  it('fails, the failure is on record, with the time of the next attempt', () => {
    given(streaming)
      .when({ type: 'model_failed', ...here, failure: failure() })
      .then([{ type: 'model_stream_failed', ...here, failure: failure(), retryAt: at + 500 }])
  })
})

describe('given a model call that has ended, or was given up', () => {
  const signals: readonly Signal[] = [
    received({ type: 'model_started' }),
    received({ type: 'model_text', part: 0, text: 'late' }),
    received({ type: 'model_reasoning', part: 0, text: 'late' }),
    received({ type: 'model_tool_input', part: 0, name: 'look', text: '{' }),
    received({ type: 'model_tool_request', part: 3, call: look }),
    received({ type: 'model_usage', usage: { outputTokens: 9 } }),
    finishedWith([]),
    { type: 'model_failed', ...here, failure: failure() },
  ]
  const failed: Fact = { type: 'model_stream_failed', ...here, failure: failure(), retryAt: 0 }
  const pages: Readonly<Record<string, readonly Fact[]>> = {
    'it failed': [...streaming, failed],
    'its next attempt is under way': [...streaming, failed, called(1, 2)],
    'it has finished': [...streaming, finishedMessage([])],
    'its calls run': executing(),
    'its results are in the history': [
      ...executing(),
      startedCall(),
      endedCall(),
      { type: 'tool_results_injected', turn: 1, toolCallIds: [callId(1)] },
    ],
    'the next turn streams': [...streaming, finishedMessage([]), called(2)],
    'the run is done': [
      ...streaming,
      finishedMessage([]),
      { type: 'run_finished', turn: 1, reason: 'answered', turns: 1, toolCalls: 0, usage: {} },
    ],
  }

  it.each(Object.entries(pages))('nothing that it still reports counts when %s', (_name, page) => {
    for (const signal of signals) given(page).when(signal).then([])
    expect(signals).toHaveLength(8)
  })
})

describe('decide', () => {
  it('is pure: the same state, message and stamp give the same, and the state stays as it was', () => {
    const { state } = given([...streaming, wrote('Hel')])
    const before = JSON.stringify(state)
    const signal = finishedWith([{ part: 0, type: 'text', text: 'Hello' }])
    const stamp = { at: 5, random: 0.5 }
    expect(decide(state, signal, stamp)).toEqual(decide(state, signal, stamp))
    expect(JSON.stringify(state)).toBe(before)
  })
})

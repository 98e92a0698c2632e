import type { ProviderError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { callsOf, finished, lastUsage, textShown } from './kit/collect.ts'
import { fold } from './kit/fold.ts'
import { close, done, open, start, stop, text, textBlock, toolBlock } from './kit/streams.ts'

describe('a reply that was cut', () => {
  it.each(['max_tokens', 'model_context_window_exceeded', 'refusal'])(
    'by %s does not report its last call when its input cannot be read, though the block closed',
    (reason) => {
      const { signals } = fold([
        start(),
        ...toolBlock(0, 'toolu_1', 'write', '{"file": "a.txt"}'),
        ...toolBlock(1, 'toolu_2', 'write', '{"file": "b.t'),
        done(reason),
        stop,
      ])
      expect(callsOf(signals).map((call) => call.providerCallId)).toEqual(['toolu_1'])
      expect(finished(signals)?.parts).toHaveLength(1)
    },
  )
})

describe('usage', () => {
  it('is replaced by later totals, never added, and counts cached tokens into the prompt', () => {
    const { signals } = fold([
      start({
        usage: {
          input_tokens: 10,
          cache_read_input_tokens: 1000,
          cache_creation_input_tokens: 200,
          output_tokens: 1,
          service_tier: 'standard',
        },
      }),
      {
        type: 'message_delta',
        delta: { stop_reason: null },
        usage: { output_tokens: 7, input_tokens: null },
      },
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: {
          input_tokens: 11,
          cache_read_input_tokens: 1000,
          output_tokens: 50,
          output_tokens_details: { thinking_tokens: 30 },
        },
      },
      stop,
    ])
    expect(signals.flatMap((signal) => (signal.type === 'model_usage' ? [signal.usage] : []))).toEqual([
      { inputTokens: 1210, outputTokens: 1, cacheReadTokens: 1000, cacheWriteTokens: 200 },
      { inputTokens: 1210, outputTokens: 7, cacheReadTokens: 1000, cacheWriteTokens: 200 },
      {
        inputTokens: 1211,
        outputTokens: 50,
        cacheReadTokens: 1000,
        cacheWriteTokens: 200,
        reasoningTokens: 30,
      },
    ])
    expect(signals.findLast((signal) => signal.type === 'model_usage')?.raw).toEqual({
      input_tokens: 11,
      cache_read_input_tokens: 1000,
      cache_creation_input_tokens: 200,
      output_tokens: 50,
      output_tokens_details: { thinking_tokens: 30 },
      service_tier: 'standard',
    })
  })

  it('that the provider does not state stays unknown', () => {
    const { signals } = fold([start({ usage: null }), done('end_turn'), stop])
    expect(lastUsage(signals)).toEqual({ outputTokens: 20 })
  })
})

describe('the end', () => {
  it.each([
    ['end_turn', 'end'],
    ['stop_sequence', 'end'],
    ['max_tokens', 'max_tokens'],
    ['model_context_window_exceeded', 'context_exceeded'],
    ['refusal', 'refused'],
    ['pause_turn', 'paused'],
    ['compaction', 'compacted'],
    ['tired', 'other'],
    ['toString', 'other'],
  ])('%s is %s, and the word itself is kept', (raw, stopReason) => {
    expect(finished(fold([start(), ...textBlock(0, 'x'), done(raw), stop]).signals)).toMatchObject({
      stopReason,
      rawStopReason: raw,
    })
  })

  it('is final: what follows it says nothing', () => {
    const { signals } = fold([
      start(),
      done('end_turn'),
      stop,
      ...textBlock(0, 'late'),
      start({ id: 'msg_2' }),
      stop,
    ])
    expect(signals.at(-1)?.type).toBe('model_finished')
    expect(textShown(signals)).toBe('')
  })
})

describe('a stream that two replies share', () => {
  it('continues when only the start of the same message is repeated', () => {
    const { signals, error } = fold([
      start(),
      open(0, { type: 'text', text: '' }),
      text(0, 'o'),
      start(),
      text(0, 'k'),
      close(0),
      done('end_turn'),
      stop,
    ])
    expect(error).toBeUndefined()
    expect(signals.filter((signal) => signal.type === 'model_started')).toHaveLength(1)
    expect(finished(signals)?.parts).toEqual([{ type: 'text', text: 'ok', part: 0 }])
  })

  it.each([
    [
      'a block begins again before it ended',
      [open(0, { type: 'text', text: '' }), open(0, { type: 'text', text: '' })],
    ],
    ['a block continues that never began', [text(3, 'x')]],
    ['a block continues after its end', [...textBlock(0, 'x'), text(0, 'y')]],
    ['a block begins without a type', [open(0, {})]],
    ['a block begins as nothing', [{ type: 'content_block_start', index: 0 }]],
    [
      'a block continues that has no number',
      [{ type: 'content_block_delta', delta: { type: 'text_delta' } }],
    ],
  ])('fails where %s', (_, events) => {
    expect(fold([start(), ...events]).error).toMatchObject({ class: 'protocol', retryable: true })
  })
})

it('a block that ends twice, or never began, ends nothing', () => {
  const { signals, error } = fold([
    ...[start(), close(3), ...toolBlock(0, 'toolu_1', 'f', '{}'), close(0), { type: 'content_block_stop' }],
    ...[done('tool_use'), stop],
  ])
  expect([error, callsOf(signals).length, finished(signals)?.parts.length]).toEqual([undefined, 1, 1])
})

it.each([
  ['overloaded_error', 'Overloaded', 'overloaded', true],
  ['rate_limit_error', 'Slow down', 'rate_limited', true],
  ['api_error', 'Oops', 'server', true],
  ['timeout_error', 'Late', 'timeout', true],
  ['invalid_request_error', 'Output blocked by content filtering policy', 'content_filtered', false],
  ['some_new_error', 'What is this?', 'server', true],
])(
  'an event that says %s "%s" fails the stream as %s, retryable: %s',
  (type, message, failureClass, retryable) => {
    const { error } = fold([start(), { type: 'error', error: { type, message } }])
    expect(error).toMatchObject({ class: failureClass, retryable })
    expect((error as ProviderError).message).toContain(`(${type}): ${message.replace(/\.$/, '')}`)
  },
)

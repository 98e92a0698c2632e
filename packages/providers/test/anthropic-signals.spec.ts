import { describe, expect, it } from 'vitest'
import { finished, lastUsage, textShown } from './kit/collect.ts'
import { fold, opaque } from './kit/fold.ts'
import { close, done, open, start, stop, text, textBlock } from './kit/streams.ts'

describe('text', () => {
  it('streams as deltas of its part, and the finished part is their sum', () => {
    expect(fold([start(), ...textBlock(0, 'Hel', '', 'lo'), done('end_turn'), stop]).signals).toEqual([
      { type: 'model_started', providerMessageId: 'msg_1', servedModel: 'claude-test-1' },
      {
        type: 'model_usage',
        usage: { inputTokens: 12, outputTokens: 1 },
        raw: { input_tokens: 12, output_tokens: 1 },
      },
      { type: 'model_text', part: 0, text: 'Hel' },
      { type: 'model_text', part: 0, text: 'lo' },
      {
        type: 'model_usage',
        usage: { inputTokens: 12, outputTokens: 20 },
        raw: { input_tokens: 12, output_tokens: 20 },
      },
      {
        type: 'model_finished',
        stopReason: 'end',
        rawStopReason: 'end_turn',
        parts: [{ type: 'text', text: 'Hello', part: 0 }],
        providerMessageId: 'msg_1',
      },
    ])
  })

  it('in the start of its block is shown too', () => {
    const { signals } = fold([
      start(),
      open(0, { type: 'text', text: 'Al' }),
      text(0, 'so'),
      close(0),
      done('end_turn'),
      stop,
    ])
    expect(textShown(signals)).toBe('Also')
    expect(finished(signals)?.parts).toEqual([{ type: 'text', text: 'Also', part: 0 }])
  })
})

describe('a tool call', () => {
  it('that arrives whole in message_start is requested, with its stop reason', () => {
    const { signals } = fold([
      start({
        content: [{ type: 'tool_use', id: 'toolu_9', name: 'roll', input: { player: 'two' } }],
        stop_reason: 'tool_use',
        container: { id: 'container_1', expires_at: '2026-01-01T00:00:00Z' },
        usage: { input_tokens: 0, output_tokens: 0 },
      }),
      stop,
    ])
    const container = { id: 'container_1', expires_at: '2026-01-01T00:00:00Z' }
    const call = {
      type: 'tool_call',
      providerCallId: 'toolu_9',
      name: 'roll',
      input: { player: 'two' },
      opaque: opaque({}, { container }),
    }
    expect(signals).toContainEqual({ type: 'model_tool_request', part: 0, call })
    expect(finished(signals)).toMatchObject({ stopReason: 'tool_use', parts: [{ ...call, part: 0 }] })
    expect(lastUsage(signals)).toEqual({ inputTokens: 0, outputTokens: 0 })
  })
})

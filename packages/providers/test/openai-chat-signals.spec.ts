import { describe, expect, it } from 'vitest'
import { callsOf } from './kit/collect.ts'
import { carriedAs, foldChat } from './kit/openai-fold.ts'
import { callPieces, chatUsage, content, finish, piece, role } from './kit/openai-streams.ts'

describe('text', () => {
  it('streams as deltas of its part, and the finished part is their sum', () => {
    const { signals } = foldChat([
      role,
      content('Hel'),
      content(''),
      content('lo'),
      finish('stop'),
      chatUsage(12, 20),
    ])
    expect(signals).toEqual([
      { type: 'model_started', providerMessageId: 'chatcmpl-1', servedModel: 'gpt-test-1' },
      { type: 'model_text', part: 0, text: 'Hel' },
      { type: 'model_text', part: 0, text: 'lo' },
      {
        ...{ type: 'model_usage', usage: { inputTokens: 12, outputTokens: 20 } },
        raw: { prompt_tokens: 12, completion_tokens: 20 },
      },
      {
        ...{ type: 'model_finished', stopReason: 'end', rawStopReason: 'stop' },
        parts: [{ type: 'text', text: 'Hello', part: 0 }],
        providerMessageId: 'chatcmpl-1',
      },
    ])
  })
})

describe('calls', () => {
  const calls = (...chunks: object[]) =>
    callsOf(foldChat([role, ...chunks, finish('tool_calls')]).signals).map((call) => [
      ...[call.providerCallId, call.name, call.input],
    ])
  const whole = (index: number | undefined, id: string | undefined, name: string, text: string) =>
    piece({
      ...(index !== undefined && { index }),
      ...(id !== undefined && { id }),
      function: { name, arguments: text },
    })

  it('keep the first name and id that they were given, however often others follow', () => {
    expect(
      calls(
        whole(0, 'c1', 'a', ''),
        piece({ index: 0, id: 'c1', function: { name: '', arguments: '{}' } }),
        piece({ index: 0, id: '', function: { name: null, arguments: '' } }),
      ),
    ).toEqual([['c1', 'a', {}]])
  })

  it('without an id have an empty one, and without a name an empty one, which the runtime answers', () => {
    expect(calls(whole(0, undefined, 'a', '{}'), whole(1, 'c2', '', '{}'))).toEqual([
      ['', 'a', {}],
      ['c2', '', {}],
    ])
  })

  it('carry fields that only their server knows', () => {
    const extra_content = { google: { thought_signature: 'c2ln' } }
    const { signals } = foldChat([
      ...[role, piece({ index: 0, id: 'c1', function: { name: 'a', arguments: '{}' }, extra_content })],
      finish('tool_calls'),
    ])
    expect(callsOf(signals)[0]?.opaque).toEqual(carriedAs('chat', { call: { extra_content } }))
  })

  it('of custom tools get their text as one field of an object, streamed as the JSON that it becomes', () => {
    const { signals } = foldChat([
      ...[role, piece({ index: 0, id: 'c1', type: 'custom', custom: { name: 'query', input: 'SELECT' } })],
      ...[piece({ index: 0, custom: { input: ' "1"' } }), finish('tool_calls')],
    ])
    expect(callsOf(signals)).toEqual([
      {
        ...{ type: 'tool_call', providerCallId: 'c1', name: 'query', input: { sql: 'SELECT "1"' } },
        opaque: carriedAs('chat', { field: 'sql' }),
      },
    ])
    const streamed = signals.flatMap((signal) => (signal.type === 'model_tool_input' ? [signal.text] : []))
    expect(JSON.parse(streamed.join(''))).toEqual({ sql: 'SELECT "1"' })
  })

  it('of custom tools without a text stream nothing, and get an empty one', () => {
    const { signals } = foldChat([
      ...[
        role,
        piece({ index: 0, id: 'c1', type: 'custom', custom: { name: 'query' } }),
        finish('tool_calls'),
      ],
    ])
    expect(callsOf(signals)).toMatchObject([{ name: 'query', input: { sql: '' } }])
    expect(signals.map(({ type }) => type)).toEqual(['model_started', 'model_tool_request', 'model_finished'])
  })

  it('whose input is not JSON object are malformed', () => {
    const { signals } = foldChat([role, ...callPieces(0, 'c1', 'a', '{"x": '), finish('tool_calls')])
    expect(callsOf(signals)).toMatchObject([{ input: {}, malformed: { text: '{"x": ' } }])
  })
})

import { describe, expect, it } from 'vitest'
import { callsOf, deltasOf, finished, lastUsage, textShown } from './kit/collect.ts'
import { carriedAs, foldChat } from './kit/openai-fold.ts'
import {
  callPieces,
  chatUsage,
  choice,
  chunk,
  content,
  finish,
  piece,
  richChat,
  role,
} from './kit/openai-streams.ts'

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

  it('of other choices than the first is passed over', () => {
    const other = chunk([{ index: 1, delta: { content: 'No' }, finish_reason: 'stop' }])
    const { signals, whole } = foldChat([role, other, content('Yes'), other])
    expect(textShown(signals)).toBe('Yes')
    expect(whole).toBe(false)
  })

  it('that refuses is shown, and is how the reply ends', () => {
    const { signals } = foldChat([
      role,
      choice({ refusal: 'I wi' }),
      choice({ refusal: 'll not' }),
      finish('stop'),
    ])
    expect(textShown(signals)).toBe('I will not')
    expect(finished(signals)).toMatchObject({
      stopReason: 'refused',
      parts: [{ type: 'text', text: 'I will not', opaque: carriedAs('chat', { refusal: true }) }],
    })
  })
})

describe('reasoning', () => {
  it.each(['reasoning_content', 'reasoning'])(
    'in %s is a part of its own, and remembers the field',
    (field) => {
      const { signals } = foldChat([
        role,
        choice({ [field]: 'So' }),
        choice({ [field]: ' be it' }),
        content('Yes'),
        finish('stop'),
      ])
      expect(finished(signals)?.parts).toEqual([
        { type: 'reasoning', text: 'So be it', part: 0, opaque: carriedAs('chat', { reasoning: field }) },
        { type: 'text', text: 'Yes', part: 1 },
      ])
    },
  )

  it('that a server sends in both fields counts once', () => {
    const { signals } = foldChat([
      role,
      choice({ reasoning_content: 'So', reasoning: 'So' }),
      content('Yes'),
      finish('stop'),
    ])
    expect(deltasOf(signals).get(0)).toBe('So')
  })

  it('in pieces of the content is reasoning all the same', () => {
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }
    const { signals } = foldChat([
      ...[
        role,
        choice({ content: [thinking] }),
        choice({ content: [{ type: 'text', text: 'Yes' }] }),
        finish('stop'),
      ],
    ])
    expect(finished(signals)?.parts).toEqual([
      { type: 'reasoning', text: 'Hm', part: 0, opaque: carriedAs('chat', { reasoning: 'thinking' }) },
      { type: 'text', text: 'Yes', part: 1 },
    ])
  })

  it('keeps the signed details that come with it, and alone', () => {
    const step = (text: string) => ({ type: 'reasoning.text', text, signature: null })
    const sealed = { type: 'reasoning.encrypted', data: 'ZW5j' }
    const { signals } = foldChat([
      ...[role, choice({ reasoning: 'So', reasoning_details: [step('So')] })],
      ...[choice({ reasoning_details: [sealed] }), content('Yes'), finish('stop')],
    ])
    expect(finished(signals)?.parts[0]).toEqual({
      ...{ type: 'reasoning', text: 'So', part: 0 },
      opaque: carriedAs('chat', { reasoning: 'reasoning', details: [step('So'), sealed] }),
    })
  })

  it('that returns after text is another part', () => {
    const { signals } = foldChat([
      role,
      choice({ reasoning: 'a' }),
      content('b'),
      choice({ reasoning: 'c' }),
      finish('stop'),
    ])
    expect([...deltasOf(signals)]).toEqual([
      [0, 'a'],
      [1, 'b'],
      [2, 'c'],
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

  it('are requested when the reply has ended, in order, with their input put together', () => {
    const { signals } = foldChat(richChat)
    expect(callsOf(signals)).toEqual([
      { type: 'tool_call', providerCallId: 'call_1', name: 'get_weather', input: { city: 'Seoul', days: 3 } },
      { type: 'tool_call', providerCallId: 'call_2', name: 'get_time', input: {} },
    ])
    const order = signals.map(({ type }) => type)
    expect(order.indexOf('model_tool_request')).toBeGreaterThan(order.lastIndexOf('model_tool_input'))
    expect(lastUsage(signals)).toEqual({
      ...{ inputTokens: 120, outputTokens: 64, cacheReadTokens: 100, reasoningTokens: 32 },
    })
  })

  it.each([
    ['a text that is empty', callPieces(0, 'c1', 'now', '')],
    ['nothing', callPieces(0, 'c1', 'now')],
    ['an empty object', callPieces(0, 'c1', 'now', '{}')],
    ['no arguments field at all', [piece({ index: 0, id: 'c1', function: { name: 'now' } })]],
    ['null', [piece({ index: 0, id: 'c1', function: { name: 'now', arguments: null } })]],
  ])('without arguments, which the server gives as %s, have an empty input', (_, chunks) => {
    expect(calls(...chunks)).toEqual([['c1', 'now', {}]])
  })

  it.each([
    ['with the index 0 for both', whole(0, 'c1', 'a', '{"x":1}'), whole(0, 'c2', 'b', '{"y":2}')],
    ['without any index', whole(undefined, 'c1', 'a', '{"x":1}'), whole(undefined, 'c2', 'b', '{"y":2}')],
    ['with indices from 1', whole(1, 'c1', 'a', '{"x":1}'), whole(2, 'c2', 'b', '{"y":2}')],
    ['with indices that skip', whole(3, 'c1', 'a', '{"x":1}'), whole(7, 'c2', 'b', '{"y":2}')],
    [
      'both in one chunk',
      choice({
        tool_calls: [
          { index: 0, id: 'c1', function: { name: 'a', arguments: '{"x":1}' } },
          { index: 1, id: 'c2', function: { name: 'b', arguments: '{"y":2}' } },
        ],
      }),
    ],
  ])('that a server sends %s stay apart', (_, ...chunks) => {
    expect(calls(...(chunks as object[]))).toEqual([
      ['c1', 'a', { x: 1 }],
      ['c2', 'b', { y: 2 }],
    ])
  })

  it('that share an index continue by it, or by the id, or as the last one', () => {
    expect(
      calls(
        ...[whole(0, 'c1', 'a', '{"x"'), piece({ index: 0, function: { arguments: ':1}' } })],
        ...[whole(0, 'c2', 'b', '{"y"'), piece({ index: 0, function: { arguments: ':2}' } })],
        ...[whole(undefined, 'c3', 'c', '{"z"'), piece({ function: { arguments: ':' } })],
        piece({ id: 'c3', function: { arguments: '3}' } }),
      ),
    ).toEqual([
      ['c1', 'a', { x: 1 }],
      ['c2', 'b', { y: 2 }],
      ['c3', 'c', { z: 3 }],
    ])
  })

  it('interleaved by index are kept apart', () => {
    expect(
      calls(
        ...[whole(0, 'c1', 'a', '{"x"'), whole(1, 'c2', 'b', '{"y"')],
        ...[
          piece({ index: 0, function: { arguments: ':1}' } }),
          piece({ index: 1, function: { arguments: ':2}' } }),
        ],
      ),
    ).toEqual([
      ['c1', 'a', { x: 1 }],
      ['c2', 'b', { y: 2 }],
    ])
  })

  it('of one id, as servers that count from "0" in every turn give, are kept apart by their index', () => {
    expect(calls(whole(0, '0', 'a', '{"x":1}'), whole(1, '0', 'b', '{"y":2}'))).toEqual([
      ['0', 'a', { x: 1 }],
      ['0', 'b', { y: 2 }],
    ])
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

  it('whose arguments come as an object are read', () => {
    expect(calls(piece({ index: 0, id: 'c1', function: { name: 'a', arguments: { x: 1 } } }))).toEqual([
      ['c1', 'a', { x: 1 }],
    ])
  })

  it('without an id have an empty one, and without a name an empty one, which the runtime answers', () => {
    expect(calls(whole(0, undefined, 'a', '{}'), whole(1, 'c2', '', '{}'))).toEqual([
      ['', 'a', {}],
      ['c2', '', {}],
    ])
  })

  it('of the old kind are calls', () => {
    expect(
      calls(
        choice({ function_call: { name: 'a', arguments: '{"x"' } }),
        choice({ function_call: { arguments: ':1}' } }),
      ),
    ).toEqual([['', 'a', { x: 1 }]])
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

describe('odd chunks', () => {
  it('a first chunk of Azure, without choices, id or model, begins nothing', () => {
    const azure = { id: '', model: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }] }
    const { signals } = foldChat([azure, role, content('x'), finish('stop')])
    expect(signals[0]).toEqual({
      ...{ type: 'model_started', providerMessageId: 'chatcmpl-1', servedModel: 'gpt-test-1' },
    })
  })

  it('without a delta, or with unknown fields, say nothing', () => {
    const odd = [
      ...[chunk([{ index: 0, delta: null, finish_reason: null }]), chunk([{ index: 0 }]), chunk([null])],
      ...[
        chunk([], { moderation: { flagged: false } }),
        null,
        7,
        choice({ content: null, tool_calls: null }),
      ],
    ]
    const { signals, error } = foldChat([role, ...(odd as object[]), content('x'), finish('stop')])
    expect(error).toBeUndefined()
    expect(textShown(signals)).toBe('x')
  })

  it('a chunk without an index is of the first choice', () => {
    const { signals } = foldChat([chunk([{ delta: { content: 'x' }, finish_reason: 'stop' }])])
    expect(textShown(signals)).toBe('x')
    expect(finished(signals)?.stopReason).toBe('end')
  })
})

import { describe, expect, it } from 'vitest'
import { callsOf, deltasOf, finished, lastUsage, textShown } from './kit/collect.ts'
import { carriedAs, foldResponse } from './kit/openai-fold.ts'
import {
  added,
  args,
  completed,
  counted,
  created,
  delta,
  functionCall,
  itemDone,
  message,
  reasoning,
  richResponse,
  said,
  webSearch,
} from './kit/openai-streams.ts'

const remembered = (item: object, at: number, more: object = {}) =>
  carriedAs('responses', { item, at, ...more })

describe('text', () => {
  it('streams as deltas of its part, and the finished part is their sum', () => {
    const { signals } = foldResponse([created(), ...message(0, 'Hel', '', 'lo'), completed()])
    const item = { type: 'message', id: 'msg_0', role: 'assistant', status: 'completed' }
    expect(signals).toEqual([
      { type: 'model_started', providerMessageId: 'resp_1', servedModel: 'gpt-test-1' },
      { type: 'model_text', part: 0, text: 'Hel' },
      { type: 'model_text', part: 0, text: 'lo' },
      {
        ...{ type: 'model_usage', usage: { inputTokens: 12, outputTokens: 20 } },
        raw: { input_tokens: 12, output_tokens: 20 },
      },
      {
        ...{ type: 'model_finished', stopReason: 'end', rawStopReason: 'completed' },
        parts: [
          {
            ...{ type: 'text', text: 'Hello', part: 0 },
            opaque: remembered(item, 0, { content: { type: 'output_text' } }),
          },
        ],
        providerMessageId: 'resp_1',
      },
    ])
  })

  it('of one message in several pieces is several parts, each with its citations', () => {
    const cited = { type: 'url_citation', url: 'https://example.org/', start_index: 0, end_index: 1 }
    const item = {
      ...{ type: 'message', id: 'msg_0', phase: 'final_answer' },
      content: [
        { type: 'output_text', text: 'One', annotations: [cited], logprobs: [{ token: 'One' }] },
        { type: 'output_text', text: 'Two', annotations: [] },
      ],
    }
    const { signals } = foldResponse([
      ...[created(), added(0, { ...item, content: [] }), said(0, 'One'), said(0, 'Two', 1)],
      ...[itemDone(0, item), completed()],
    ])
    const kept = { type: 'message', id: 'msg_0', phase: 'final_answer' }
    expect(finished(signals)?.parts).toEqual([
      {
        ...{ type: 'text', text: 'One', part: 0 },
        citations: [{ url: 'https://example.org/', place: { from: 0, to: 1 } }],
        opaque: remembered(kept, 0, { content: { type: 'output_text', annotations: [cited] } }),
      },
      {
        ...{ type: 'text', text: 'Two', part: 1 },
        opaque: remembered(kept, 0, { content: { type: 'output_text' } }),
      },
    ])
  })

  it('that refuses is shown, and is how the reply ends', () => {
    const item = { type: 'message', id: 'msg_0', content: [{ type: 'refusal', refusal: 'I will not.' }] }
    const { signals } = foldResponse([
      ...[created(), added(0, { type: 'message', id: 'msg_0', content: [] })],
      ...[delta('refusal', 0, 'I will'), delta('refusal', 0, ' not.'), itemDone(0, item), completed()],
    ])
    expect(textShown(signals)).toBe('I will not.')
    expect(finished(signals)).toMatchObject({
      ...{ stopReason: 'refused', rawStopReason: 'completed' },
      parts: [{ text: 'I will not.', opaque: { data: { content: { type: 'refusal' } } } }],
    })
  })
})

describe('reasoning', () => {
  it('is one part with a paragraph for each summary, and its item is kept whole', () => {
    const { signals } = foldResponse([created(), ...reasoning(0, 'ZW5j', 'First.', 'Then.'), completed()])
    expect(deltasOf(signals).get(0)).toBe('First.\n\nThen.')
    expect(finished(signals)?.parts).toEqual([
      {
        ...{ type: 'reasoning', text: 'First.\n\nThen.', part: 0 },
        opaque: remembered(
          {
            ...{ type: 'reasoning', id: 'rs_0', encrypted_content: 'ZW5j' },
            summary: [
              { type: 'summary_text', text: 'First.' },
              { type: 'summary_text', text: 'Then.' },
            ],
          },
          0,
        ),
      },
    ])
  })

  it('without words is kept for its encrypted content, with a summary that is empty', () => {
    const { signals } = foldResponse([created(), ...reasoning(0, 'ZW5j'), completed()])
    expect(signals.map(({ type }) => type)).not.toContain('model_reasoning')
    expect(finished(signals)?.parts).toEqual([
      {
        ...{ type: 'reasoning', text: '', part: 0 },
        opaque: remembered({ type: 'reasoning', id: 'rs_0', encrypted_content: 'ZW5j', summary: [] }, 0),
      },
    ])
  })
})

describe('a function call', () => {
  it('is requested when its item ends, with its input put together', () => {
    const { signals } = foldResponse([
      ...[created(), ...functionCall(0, 'call_1', 'get_weather', '{"ci', 'ty":"Seoul"}'), completed()],
    ])
    const call = {
      ...{ type: 'tool_call', providerCallId: 'call_1', name: 'get_weather', input: { city: 'Seoul' } },
      opaque: remembered({ type: 'function_call', id: 'fc_0', status: 'completed' }, 0),
    }
    expect(signals.slice(1, -2)).toEqual([
      { type: 'model_tool_input', part: 0, name: 'get_weather', text: '{"ci' },
      { type: 'model_tool_input', part: 0, name: 'get_weather', text: 'ty":"Seoul"}' },
      { type: 'model_tool_request', part: 0, call },
    ])
    expect(finished(signals)).toMatchObject({ stopReason: 'tool_use', parts: [{ ...call, part: 0 }] })
  })

  it.each([
    ['nothing at all', []],
    ['an empty text', ['']],
    ['white space', [' \n']],
    ['an empty object', ['{}']],
  ])('without arguments, which the wire gives as %s, has an empty input', (_, pieces) => {
    const { signals } = foldResponse([created(), ...functionCall(0, 'call_1', 'now', ...pieces), completed()])
    expect(callsOf(signals)).toMatchObject([{ name: 'now', input: {} }])
    expect(callsOf(signals)[0]).not.toHaveProperty('malformed')
  })

  it.each([
    ['an object where a text belongs', { arguments: { city: 'Seoul' } }],
    ['no deltas, only its end', { arguments: '{"city":"Seoul"}' }],
  ])('that comes with %s is read all the same', (_, fields) => {
    const item = { type: 'function_call', id: 'fc_0', call_id: 'call_1', name: 'get_weather', ...fields }
    const { signals } = foldResponse([
      created(),
      added(0, { ...item, arguments: '' }),
      itemDone(0, item),
      completed(),
    ])
    expect(callsOf(signals)[0]?.input).toEqual({ city: 'Seoul' })
  })

  it.each([
    ['{"city": ', 'The input is not valid JSON.'],
    ['[1]', 'The input is valid JSON, but not an object.'],
    ['null', 'The input is valid JSON, but not an object.'],
  ])('with the input %s is malformed, and is reported so that the model can be told', (text, error) => {
    const { signals } = foldResponse([created(), ...functionCall(0, 'call_1', 'f', text), completed()])
    expect(callsOf(signals)).toMatchObject([{ input: {}, malformed: { text, error } }])
  })

  it('keeps two calls of one tool apart by their place, whatever ids their events give', () => {
    const rotated = richResponse.map((event, index) =>
      'item_id' in event ? { ...event, item_id: `rotating_${index}` } : event,
    )
    const { signals } = foldResponse(rotated)
    expect(callsOf(signals).map((call) => [call.providerCallId, call.name, call.input])).toEqual([
      ['call_1', 'get_weather', { city: 'Seoul', days: 3 }],
      ['call_2', 'get_time', {}],
    ])
    expect(lastUsage(signals)).toEqual({
      ...{
        inputTokens: 120,
        outputTokens: 64,
        cacheReadTokens: 100,
        cacheWriteTokens: 8,
        reasoningTokens: 32,
        webSearches: 1,
      },
    })
  })

  it('that interleaves with another one, and with a message, mixes nothing up', () => {
    const first = { type: 'function_call', id: 'fc_0', call_id: 'call_1', name: 'a' }
    const second = { type: 'function_call', id: 'fc_1', call_id: 'call_2', name: 'b' }
    const { signals } = foldResponse([
      ...[created(), added(0, first), added(1, second), args(0, '{"x"'), args(1, '{"y"')],
      ...[...message(2, 'Hm'), args(0, ':1}'), args(1, ':2}')],
      ...[itemDone(1, { ...second, arguments: '{"y":2}' }), itemDone(0, first), completed()],
    ])
    expect(callsOf(signals).map((call) => [call.name, call.input])).toEqual([
      ['b', { y: 2 }],
      ['a', { x: 1 }],
    ])
    expect(finished(signals)?.parts.map((part) => part.type)).toEqual(['tool_call', 'tool_call', 'text'])
  })
})

describe('other calls', () => {
  it('a custom tool gets its text as one field of an object, streamed as the JSON that it becomes', () => {
    const item = { type: 'custom_tool_call', id: 'ctc_0', call_id: 'call_1', name: 'query', input: '' }
    const text = 'SELECT "a"\nFROM b 🌦️'
    const { signals } = foldResponse([
      ...[created(), added(0, item)],
      ...[text.slice(0, 9), text.slice(9)].map((part) => delta('custom_tool_call_input', 0, part)),
      ...[itemDone(0, { ...item, input: text, status: 'completed' }), completed()],
    ])
    expect(callsOf(signals)).toEqual([
      {
        ...{ type: 'tool_call', providerCallId: 'call_1', name: 'query', input: { sql: text } },
        opaque: remembered({ type: 'custom_tool_call', id: 'ctc_0', status: 'completed' }, 0, {
          field: 'sql',
        }),
      },
    ])
    const streamed = signals.flatMap((signal) => (signal.type === 'model_tool_input' ? [signal.text] : []))
    expect(JSON.parse(streamed.join(''))).toEqual({ sql: text })
  })

  it('a question about a call to an MCP server comes as a call of the tool that stands for it', () => {
    const item = {
      ...{ type: 'mcp_approval_request', id: 'mcpr_0', server_label: 'wiki', name: 'edit' },
      arguments: '{"page":"Home"}',
    }
    const { signals } = foldResponse([created(), added(0, item), itemDone(0, item), completed()])
    expect(callsOf(signals)).toEqual([
      {
        ...{ type: 'tool_call', providerCallId: 'mcpr_0', name: 'mcp_approval' },
        input: { server: 'wiki', tool: 'edit', input: { page: 'Home' } },
        opaque: remembered(item, 0),
      },
    ])
    expect(finished(signals)?.stopReason).toBe('tool_use')
  })

  it('the vendor’s own tools are carried whole, and so are items of unknown kinds', () => {
    const news = { type: 'telepathy_call', id: 'tp_1', thought: { deep: [1, null] } }
    const { signals } = foldResponse([
      ...[created(), ...webSearch(0), added(1, news), itemDone(1, news), completed()],
    ])
    const search = { type: 'web_search_call', id: 'ws_0', status: 'completed', action: { query: 'weather' } }
    const executed = { id: 'ws_0', name: 'web_search', input: { query: 'weather' }, outcome: 'success' }
    expect(finished(signals)?.parts).toEqual([
      { type: 'provider', kind: 'web_search_call', opaque: remembered(search, 0), part: 0, executed },
      { type: 'provider', kind: 'telepathy_call', opaque: remembered(news, 1), part: 1 },
    ])
    expect(callsOf(signals)).toEqual([])
  })
})

describe('a server that leaves things out', () => {
  it('and never says that its items begin is understood', () => {
    const { signals, whole } = foldResponse([
      said(0, 'Hello'),
      itemDone(1, { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' }),
      completed(),
    ])
    expect(whole).toBe(true)
    expect(textShown(signals)).toBe('Hello')
    expect(callsOf(signals)).toHaveLength(1)
  })

  it('and never says that its items end is understood by what the response states', () => {
    const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{"a":1}' }
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'Hello' }] }, call]
    const { signals } = foldResponse([
      ...[created(), added(0, { type: 'message' }), said(0, 'Hel'), added(1, { ...call, arguments: '' })],
      completed({ output }),
    ])
    expect(textShown(signals)).toBe('Hello')
    expect(callsOf(signals)[0]?.input).toEqual({ a: 1 })
  })

  it('and states a response without any event before it is understood', () => {
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'Hello' }] }]
    const { signals } = foldResponse([completed({ output, model: 'm' })])
    expect(signals[0]).toEqual({ type: 'model_started', providerMessageId: 'resp_1', servedModel: 'm' })
    expect(finished(signals)?.parts).toMatchObject([{ type: 'text', text: 'Hello' }])
  })

  it('and says that arguments are whole, but not that their item is, is understood', () => {
    const item = { type: 'function_call', id: 'fc_0', call_id: 'call_1', name: 'f', arguments: '' }
    const done = { type: 'response.function_call_arguments.done', output_index: 0, arguments: '{"a":1}' }
    expect(callsOf(foldResponse([created(), added(0, item), done, completed()]).signals)).toMatchObject([
      { providerCallId: 'call_1', input: { a: 1 } },
    ])
  })
})

it('an event that comes twice counts once, where the server counts its events', () => {
  const twice = richResponse.flatMap((event) => [event, event])
  expect(foldResponse(twice).signals).toEqual(foldResponse(richResponse).signals)
  const uncounted = [created(), ...message(0, 'ha', 'ha'), completed()].map((event) => ({
    ...event,
    sequence_number: 0,
  }))
  expect(textShown(foldResponse(uncounted).signals)).toBe('haha')
  expect(textShown(foldResponse(counted(created(), message(0, 'ha', 'ha'), completed())).signals)).toBe(
    'haha',
  )
})

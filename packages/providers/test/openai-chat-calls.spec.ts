import { describe, expect, it } from 'vitest'
import { callsOf, finished, lastUsage, textShown } from './kit/collect.ts'
import { foldChat } from './kit/openai-fold.ts'
import { callPieces, choice, chunk, content, finish, piece, role } from './kit/openai-streams.ts'

const asked = (index: number, fields: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  piece({ index, ...more, function: fields })

/** The calls of a reply: name, input, and what is wrong with them. */
const readIn = (...pieces: readonly object[]) =>
  callsOf(foldChat([role, ...pieces, finish('tool_calls')]).signals).map(({ name, input, malformed }) =>
    malformed ? [name, malformed.error] : [name, input],
  )

describe('pieces of a call', () => {
  it('given a new id with each piece, then the index joins them', () => {
    const tail = ['{"city"', ':"Os', 'lo"}'].map((text, place) =>
      asked(0, { name: '', arguments: text }, { id: `other-${place}` }),
    )
    const whole = [['get_weather', { city: 'Oslo' }]]
    expect(readIn(asked(0, { name: 'get_weather', arguments: '' }, { id: 'c1' }), ...tail)).toEqual(whole)
    const named = ['{"city"', ':"Oslo"}'].map((text, place) =>
      asked(0, { name: 'get_weather', arguments: text }, { id: `other-${place}` }),
    )
    expect(readIn(...named)).toEqual(whole)
  })

  it('given an input under an index of its own, then the call that waits for one gets it', () => {
    expect(
      readIn(
        asked(0, { name: 'a', arguments: '{"x":1}' }, { id: 'c1' }),
        asked(0, { name: 'b', arguments: '' }, { id: 'c2' }),
        asked(1, { arguments: '{"y"' }),
        asked(1, { arguments: ':2}' }),
      ),
    ).toEqual([
      ['a', { x: 1 }],
      ['b', { y: 2 }],
    ])
    expect(
      readIn(
        asked(0, { name: 'a', arguments: '{"x"' }, { id: 'c1' }),
        asked(1, { arguments: ':1}' }, { id: 'c1' }),
      ),
    ).toEqual([['a', { x: 1 }]])
  })

  it('given whole calls under one index, then each is a call, with or without an id', () => {
    const oslo = { name: 'get_weather', arguments: '{"city":"Oslo"}' }
    const bern = { name: 'get_weather', arguments: '{"city":"Bern"}' }
    const both = [
      ['get_weather', { city: 'Oslo' }],
      ['get_weather', { city: 'Bern' }],
    ]
    expect(readIn(asked(0, oslo), asked(0, bern))).toEqual(both)
    expect(readIn(asked(0, oslo, { id: 'c' }), asked(0, bern, { id: 'c' }))).toEqual(both)
    expect(readIn(piece({ function: oslo }), piece({ function: bern }))).toEqual(both)
  })

  it('given a whole call that comes again under its id, then it is one call', () => {
    const call = asked(0, { name: 'a', arguments: '{"x":1}' }, { id: 'c1' })
    expect(readIn(call, call)).toEqual([['a', { x: 1 }]])
  })

  it('given a second call under the index of a whole one whose input never comes, then it cannot run', () => {
    expect(
      readIn(
        asked(0, { name: 'a', arguments: '{"x":1}' }, { id: 'c1' }),
        asked(0, { name: 'pay', arguments: '' }, { id: 'c2' }),
        asked(0, { name: 'get_time', arguments: '' }, { id: 'c3' }),
      ),
    ).toEqual([
      ['a', { x: 1 }],
      ['pay', 'The input never came.'],
      ['get_time', {}],
    ])
  })

  it('given a name in pieces, or the longer with each, then it is one name', () => {
    const weather = [['get_weather', { city: 'Oslo' }]]
    const input = asked(0, { arguments: '{"city":"Oslo"}' })
    expect(readIn(asked(0, { name: 'get_' }, { id: 'c' }), asked(0, { name: 'weather' }), input)).toEqual(
      weather,
    )
    expect(readIn(asked(0, { name: 'get_' }), asked(0, { name: 'get_weather' }), input)).toEqual(weather)
    expect(readIn(asked(0, { name: 'get_weather' }), asked(0, { name: 'get_weather' }), input)).toEqual(
      weather,
    )
  })

  it('given two names of tools under one index, neither with an input, then there are two calls', () => {
    expect(readIn(asked(0, { name: 'get_time' }), asked(0, { name: 'a', arguments: '{"x":1}' }))).toEqual([
      ['get_time', {}],
      ['a', { x: 1 }],
    ])
  })

  it.each(['null', 'None', 'undefined', ''])('given the id "%s", then the call has none', (id) => {
    const [call] = callsOf(
      foldChat([role, asked(0, { name: 'a', arguments: '{"x":1}' }, { id }), finish('tool_calls')]).signals,
    )
    expect(call).toMatchObject({ providerCallId: '', name: 'a' })
  })

  it.each<readonly [string, unknown, string, unknown]>([
    ['null for a tool without parameters', null, 'get_time', {}],
    ['the text null for a tool without parameters', 'null', 'get_time', {}],
    ['null for a tool with parameters', null, 'pay', 'The input is null.'],
    [
      'the text null for a tool with parameters',
      'null',
      'pay',
      'The input is valid JSON, but not an object.',
    ],
    ['nothing', '', 'pay', {}],
    ['an object', { amount: 5 }, 'pay', { amount: 5 }],
    ['a list', [5], 'pay', 'The input is valid JSON, but not an object.'],
    ['a number', 5, 'pay', 'The input is valid JSON, but not an object.'],
  ])('given %s as arguments', (_what, given, name, read) => {
    expect(readIn(asked(0, { name, arguments: given }, { id: 'c' }))).toEqual([[name, read]])
  })

  it('given a kind that is not a function, then the server ran it, and nobody here does', () => {
    const search = {
      id: 'ws_1',
      type: 'web_search_call',
      function: { name: 'web_search', arguments: '{"q":1}' },
    }
    const { signals } = foldChat([role, piece({ index: 0, ...search }), content('It rains.'), finish('stop')])
    expect(callsOf(signals)).toEqual([])
    expect(finished(signals)).toMatchObject({
      stopReason: 'end',
      parts: [
        { type: 'provider', kind: 'web_search_call', executed: { name: 'web_search', input: { q: 1 } } },
        { type: 'text', text: 'It rains.' },
      ],
    })
  })
})

describe('a reply that stops for tools', () => {
  it.each(['tool_calls', 'function_call'])(
    'given %s and no call, then it failed and may be tried again',
    (reason) => {
      const { error, whole } = foldChat([role, content('I look.'), finish(reason)])
      expect(whole).toBe(false)
      expect(error).toMatchObject({ class: 'server', retryable: true })
      expect(String(error)).toContain(`stopped for tools (${reason})`)
    },
  )

  it('given a call that the model wrote and the server could not read, then it may be tried again', () => {
    for (const reason of ['malformed_function_call', 'function_call_filter: MALFORMED_FUNCTION_CALL']) {
      expect(foldChat([role, finish(reason)]).error).toMatchObject({ retryable: true })
    }
    const error = {
      code: 'tool_use_failed',
      type: 'invalid_request_error',
      message: 'Failed to call a function.',
    }
    expect(foldChat([{ error }]).error).toMatchObject({
      ...{ class: 'server', retryable: true },
      message: expect.stringContaining('Failed to call a function'),
    })
  })
})

describe('the choice that is the reply', () => {
  const at = (index: number, text: string, id: string, finish_reason: string | null = null) =>
    chunk([{ index, delta: { role: 'assistant', content: text }, finish_reason }], { id })

  it.each([
    ['with', (place: number) => `id-${place}`],
    ['without', () => 'id'],
  ])('given an index that counts the chunks, %s new ids, then all are of it', (_ids, idAt) => {
    const texts = ['Hel', 'lo', ' my', ' dear', ' you', '']
    for (let length = 1; length <= texts.length; length++) {
      const said = texts.slice(0, length)
      const { signals, whole } = foldChat(
        said.map((text, place) => at(place, text, idAt(place), place === length - 1 ? 'stop' : null)),
      )
      expect([whole, textShown(signals)]).toEqual([true, said.join('')])
    }
  })

  it('given several choices that take turns, then only the first is read', () => {
    const { signals } = foldChat([
      ...[at(0, '', 'id'), at(1, '', 'id'), at(2, 'No', 'id')],
      ...[at(0, 'Yes', 'id'), at(1, 'No', 'id'), at(0, '', 'id', 'stop'), at(1, '', 'id', 'stop')],
    ])
    expect(textShown(signals)).toBe('Yes')
  })

  it('given one choice that is not counted from 0, then it is the reply', () => {
    const { signals } = foldChat([at(1, 'Yes', 'id'), at(1, '', 'id', 'stop')])
    expect(textShown(signals)).toBe('Yes')
  })
})

describe('what a chunk counts', () => {
  it('given usage in the last choice, then it counts', () => {
    const usage = { prompt_tokens: 19, completion_tokens: 13, total_tokens: 32 }
    const { signals } = foldChat([
      ...[role, content('Hi')],
      chunk([{ index: 0, delta: {}, finish_reason: 'stop', usage }]),
    ])
    expect(lastUsage(signals)).toEqual({ inputTokens: 19, outputTokens: 13 })
  })
})

describe('what goes back as it came', () => {
  const detail = (index: number, fields: Record<string, unknown>, type = 'reasoning.text') =>
    choice({ reasoning_details: [{ type, index, format: 'f', ...fields }] })
  const detailsOf = (...chunks: readonly object[]) =>
    finished(foldChat([role, ...chunks, content('x'), finish('stop')]).signals)!.parts[0]?.opaque?.data

  it('given reasoning in pieces, then those of one index are one, its signature with it', () => {
    expect(
      detailsOf(
        ...[detail(0, { text: 'Let' }), detail(1, { text: 'An' }), detail(0, { text: ' me.' })],
        ...[detail(1, { text: 'other.' }), detail(0, { signature: 's0' }), detail(1, { signature: 's1' })],
        ...[
          detail(2, { summary: 'In ' }, 'reasoning.summary'),
          detail(2, { summary: 'short.' }, 'reasoning.summary'),
        ],
        ...[detail(2, { data: 'e' }, 'reasoning.encrypted'), detail(2, { data: 'e' }, 'reasoning.encrypted')],
      ),
    ).toMatchObject({
      details: [
        { type: 'reasoning.text', index: 0, format: 'f', text: 'Let me.', signature: 's0' },
        { type: 'reasoning.text', index: 1, format: 'f', text: 'Another.', signature: 's1' },
        { type: 'reasoning.summary', index: 2, format: 'f', summary: 'In short.' },
        { type: 'reasoning.encrypted', index: 2, format: 'f', data: 'e' },
      ],
    })
  })

  it('given a signature beside the text, then it is kept with the message', () => {
    const extra_content = { google: { thought_signature: 'S' } }
    const [part] = finished(
      foldChat([role, content('Hi'), choice({ extra_content }), finish('stop')]).signals,
    )!.parts
    expect(part?.opaque?.data).toEqual({ message: { extra_content } })
  })

  it('given a call without a thought, then that nothing was thought is kept', () => {
    const { signals } = foldChat([
      choice({ role: 'assistant', reasoning_content: '' }),
      ...callPieces(0, 'c1', 'a', '{"x":1}'),
      finish('tool_calls'),
    ])
    expect(finished(signals)!.parts[0]?.opaque?.data).toMatchObject({ message: { reasoning_content: '' } })
  })
})

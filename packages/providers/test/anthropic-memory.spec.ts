import type { Message, ModelRequest } from '@tallystick/core'
import type { AssistantMessage, AssistantPart } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect } from './kit/collect.ts'
import { assistant, body, call, id, result, results, text, user } from './kit/history.ts'
import { serve } from './kit/loopback.ts'
import { done, start, stop } from './kit/streams.ts'
import { own, ownOpaque } from './kit/transcripts.ts'
import type { RenderSettings } from '../src/anthropic/request.ts'

describe('what the vendor needs back', () => {
  const thinking: AssistantPart = {
    type: 'reasoning',
    text: 'hm',
    opaque: ownOpaque({ type: 'thinking', signature: 'sig==' }),
  }
  const redacted: AssistantPart = {
    type: 'reasoning',
    text: '',
    opaque: ownOpaque({ type: 'redacted_thinking', data: 'ZGF0YQ==' }),
  }
  const said: AssistantPart = { type: 'text', text: 'Yes' }
  const content = (
    parts: readonly AssistantPart[],
    more: Partial<AssistantMessage> = {},
    given: Partial<RenderSettings> = {},
  ) => body([user('x'), assistant(parts, more), user('y')], given).messages[1]?.content

  it('thinking goes back in place and to the letter', () => {
    expect(content([thinking, redacted, said])).toEqual([
      { type: 'thinking', thinking: 'hm', signature: 'sig==' },
      { type: 'redacted_thinking', data: 'ZGF0YQ==' },
      text('Yes'),
    ])
  })

  it.each([
    ['another model’s', { model: { ...own, modelId: 'claude-test-2' } }, thinking],
    ['another vendor’s', { model: { ...own, provider: 'other' } }, thinking],
    ['unsigned', {}, { type: 'reasoning' as const, text: 'half' }],
    [
      'another wire’s',
      {},
      {
        ...thinking,
        opaque: { provider: 'anthropic', api: 'bedrock', data: { block: { type: 'thinking' } } },
      },
    ],
  ])('%s thinking is left out, and what was said stays', (_, more, part) => {
    expect(content([part, said], more)).toEqual([text('Yes')])
  })

  it('thinking that nothing followed is left out, since no message may end in it', () => {
    expect(content([said, thinking])).toEqual([text('Yes')])
    expect(body([user('x'), assistant([thinking], { partial: true }), user('y')]).messages).toEqual([
      { role: 'user', content: [text('x'), text('y')] },
    ])
  })

  it('citations go back on their text, and only here', () => {
    const cited: AssistantPart = { ...said, opaque: ownOpaque({ citations: [{ type: 'page_location' }] }) }
    expect(content([cited])).toEqual([{ ...text('Yes'), citations: [{ type: 'page_location' }] }])
    const elsewhere: AssistantPart = {
      ...said,
      opaque: { provider: 'openai', api: 'chat', data: { block: { citations: [1] } } },
    }
    expect(content([elsewhere])).toEqual([text('Yes')])
  })

  const use = (useId: string) => ({
    type: 'server_tool_use',
    id: useId,
    name: 'web_search',
    input: { query: 'x' },
  })
  const found = (useId: string) => ({
    type: 'web_search_tool_result',
    tool_use_id: useId,
    content: [{ encrypted_content: 'ZW5j' }],
  })
  const part = (block: { type: string }): AssistantPart => ({
    type: 'provider',
    kind: block.type,
    opaque: ownOpaque(block),
  })

  it('a server tool and its result go back whole, and another vendor’s do not', () => {
    expect(content([part(use('s1')), part(found('s1')), said])).toEqual([use('s1'), found('s1'), text('Yes')])
    expect(
      content([
        { type: 'provider', kind: 'x', opaque: { provider: 'openai', api: 'responses', data: {} } },
        said,
      ]),
    ).toEqual([text('Yes')])
  })

  it('a paused reply goes back unchanged as the last message, the use that waits included', () => {
    const paused = assistant([thinking, part(use('s1')), part(found('s1')), part(use('s2'))], {
      stopReason: 'paused',
    })
    expect(body([user('x'), paused]).messages).toEqual([
      { role: 'user', content: [text('x')] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: 'sig==' },
          use('s1'),
          found('s1'),
          use('s2'),
        ],
      },
    ])
  })

  it('a paused reply and what continued it are one message', () => {
    const messages = [
      user('x'),
      assistant([part(use('s1'))], { stopReason: 'paused' }),
      assistant([part(found('s1')), said]),
      user('y'),
    ]
    expect(body(messages).messages[1].content).toEqual([use('s1'), found('s1'), text('Yes')])
  })

  it.each([
    ['cut off', { partial: true, stopReason: 'cancelled' as const }],
    ['paused, and the user spoke instead', { stopReason: 'paused' as const }],
  ])('a server tool whose reply was %s goes without its use', (_, more) => {
    expect(content([said, part(use('s1'))], more)).toEqual([text('Yes')])
  })

  it.each(['cancelled', 'max_tokens'] as const)(
    'a use that waits at the very end is left out of a reply that was %s',
    (stopReason) => {
      const messages = [user('x'), assistant([said, part(use('s1'))], { stopReason })]
      expect(body(messages).messages.at(-1).content).toEqual([text('Yes')])
    },
  )

  it('a result whose use is gone goes too', () => {
    expect(content([part(found('s9')), said])).toEqual([text('Yes')])
  })

  it('a call from within running code keeps its caller until the user speaks, and is a call like any other after', () => {
    const caller = { type: 'code_execution_20250825', tool_id: 's1' }
    const code = part({ ...use('s1'), type: 'server_tool_use' })
    const messages = [
      user('x'),
      assistant([code, call(1, 'toolu_1', { opaque: ownOpaque({ caller }) })], { stopReason: 'tool_use' }),
      results(result(1)),
    ]
    expect(body(messages).messages[1].content).toEqual([
      use('s1'),
      { caller, type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Seoul' } },
    ])
    expect(body([...messages, user('Stop')]).messages[1].content).toEqual([
      { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Seoul' } },
    ])
  })

  it('the latest container is named until it expires', () => {
    const carrying = (container: object) => assistant([{ ...said, opaque: ownOpaque({}, { container }) }])
    const messages = [user('x'), carrying({ id: 'c1', expires_at: '2026-01-01T00:05:00Z' }), user('y')]
    expect(body(messages).container).toBe('c1')
    expect(
      body([...messages, carrying({ id: 'c2', expires_at: '2026-01-01T00:09:00Z' }), user('z')]).container,
    ).toBe('c2')
    expect(
      body([user('x'), carrying({ id: 'c1', expires_at: '2025-12-31T23:59:59Z' }), user('y')]),
    ).not.toHaveProperty('container')
    expect(body(messages).messages[1].content).toEqual([text('Yes')])
  })

  it('what a reply carried comes back as it came', async () => {
    const blocks = [
      { type: 'thinking', thinking: 'hm', signature: 'sig==' },
      { type: 'fallback', from: { model: 'a' }, to: { model: 'b' } },
      { type: 'text', text: 'Yes', citations: [{ type: 'page_location', cited_text: 'y' }] },
      { type: 'tool_use', id: 'toolu_1', name: 'roll', input: { player: 'one' }, caller: { type: 'direct' } },
    ]
    const server = await serve({ pieces: [sseBytes([start({ content: blocks }), done('tool_use'), stop])] })
    const { signals } = await collect(anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }))
    const reply = signals.find((signal) => signal.type === 'model_finished')!
    const parts = reply.parts.map((one): AssistantPart =>
      one.type === 'tool_call' ? { ...one, toolCallId: id(1) } : one,
    )
    expect(
      body([user('x'), assistant(parts, { stopReason: 'tool_use' }), results(result(1))]).messages[1].content,
    ).toEqual(blocks)
  })
})

describe('thinking with a budget', () => {
  const thinking = { type: 'enabled', budget_tokens: 4000 } as const
  const tools = [{ name: 'get_weather', description: 'x', inputSchema: { type: 'object' } }]
  const asked = (messages: readonly Message[], more: Partial<ModelRequest> = {}) =>
    body(messages, { thinking }, { tools, ...more }).thinking
  const thought: AssistantPart = {
    type: 'reasoning',
    text: 'hm',
    opaque: ownOpaque({ type: 'thinking', signature: 's' }),
  }

  it('is asked for as the options say', () => {
    expect(asked([user('x')])).toEqual(thinking)
    expect(
      body([user('x')], { thinking: { type: 'adaptive' } }, { toolChoice: { type: 'any' } }).thinking,
    ).toEqual({ type: 'adaptive' })
  })

  it('is left out where a tool is forced', () => {
    expect(asked([user('x')], { toolChoice: { type: 'any' } })).toBeUndefined()
  })

  it('shrinks to fit the reply, and is left out where too little would be left', () => {
    expect(asked([user('x')], { maxOutputTokens: 3000 })).toEqual({ type: 'enabled', budget_tokens: 2999 })
    expect(asked([user('x')], { maxOutputTokens: 1000 })).toBeUndefined()
  })

  it('is left out while a turn is open that began without it', () => {
    const open = [user('x'), assistant([call(1, 'toolu_1')]), results(result(1))]
    expect(asked(open)).toBeUndefined()
    expect(asked([...open, assistant([{ type: 'text', text: 'Warm' }]), user('and now?')])).toEqual(thinking)
    expect(asked([user('x'), assistant([thought, call(1, 'toolu_1')]), results(result(1))])).toEqual(thinking)
  })

  it('that is off shows none in a reply that is to continue', () => {
    const messages = [user('x'), assistant([thought, { type: 'text', text: 'So' }], { stopReason: 'paused' })]
    expect(body(messages, { thinking: { type: 'disabled' } }).messages.at(-1).content).toEqual([text('So')])
    expect(body(messages).messages.at(-1).content).toHaveLength(2)
  })
})

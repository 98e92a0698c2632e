import type {
  AssistantMessage,
  AssistantPart,
  Message,
  ModelRequest,
  ToolCallId,
  ToolCallPart,
  ToolResult,
} from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic/index.ts'
import { requestRenderer, type RequestSettings } from '../src/anthropic/request.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, request } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import { done, start, stop } from './kit/streams.ts'
import { own, ownOpaque } from './kit/transcripts.ts'
import type { Loose } from './kit/loose.ts'

const settings: RequestSettings = { modelId: 'claude-test-1', maxOutputTokens: 32_000, promptCache: 'off' }
const now = Date.UTC(2026, 0, 1)

function body(
  messages: readonly Message[],
  given: Partial<RequestSettings> = {},
  more: Partial<ModelRequest> = {},
): Loose {
  return requestRenderer({ ...settings, ...given })({ ...request, messages, ...more }, now).body
}

const user = (text: string): Message => ({ role: 'user', parts: [{ type: 'text', text }] })
const assistant = (
  parts: readonly AssistantPart[],
  more: Partial<AssistantMessage> = {},
): AssistantMessage => ({
  role: 'assistant',
  parts,
  model: own,
  stopReason: 'end',
  partial: false,
  ...more,
})
const id = (ordinal: number): ToolCallId => `call_${'a'.repeat(32)}_1_1_${ordinal}` as ToolCallId
const call = (ordinal: number, providerCallId: string, more: Partial<ToolCallPart> = {}): ToolCallPart => ({
  type: 'tool_call',
  toolCallId: id(ordinal),
  providerCallId,
  name: 'get_weather',
  input: { city: 'Seoul' },
  ...more,
})
const result = (ordinal: number, more: Partial<ToolResult> = {}): ToolResult => ({
  toolCallId: id(ordinal),
  name: 'get_weather',
  outcome: 'success',
  content: [{ type: 'text', text: '21 degrees' }],
  ...more,
})
const results = (...all: ToolResult[]): Message => ({ role: 'tool', results: all })
const text = (words: string) => ({ type: 'text', text: words })

describe('a conversation', () => {
  it('becomes instructions, turns and the options of the model', () => {
    expect(
      body([user('Hello'), assistant([{ type: 'text', text: 'Hi' }]), user('Bye')], { effort: 'low' }),
    ).toEqual({
      model: 'claude-test-1',
      max_tokens: 32_000,
      stream: true,
      system: [text('Be brief.')],
      messages: [
        { role: 'user', content: [text('Hello')] },
        { role: 'assistant', content: [text('Hi')] },
        { role: 'user', content: [text('Bye')] },
      ],
      output_config: { effort: 'low' },
    })
  })

  it('asks for as many tokens as the request says', () => {
    expect(body([user('Hello')], {}, { maxOutputTokens: 77 }).max_tokens).toBe(77)
  })

  it('without instructions has no system text', () => {
    expect(body([user('Hello')], {}, { instructions: ' \n' })).not.toHaveProperty('system')
  })

  it('loses blank texts, and messages that hold nothing else, and its roles still alternate', () => {
    const messages = [user('One'), assistant([{ type: 'text', text: '\n' }]), user('Two'), user('Three')]
    expect(body(messages).messages).toEqual([
      { role: 'user', content: [text('One'), text('Two'), text('Three')] },
    ])
  })

  it('that the assistant began gets a user’s word before it', () => {
    expect(body([assistant([{ type: 'text', text: 'Welcome' }]), user('Hello')]).messages).toEqual([
      { role: 'user', content: [text('(The conversation begins here.)')] },
      { role: 'assistant', content: [text('Welcome')] },
      { role: 'user', content: [text('Hello')] },
    ])
  })

  it('that ends with the assistant does not end in white space', () => {
    const messages = [user('Go on'), assistant([{ type: 'text', text: 'Once upon \n' }], { partial: true })]
    expect(body(messages).messages.at(-1)).toEqual({ role: 'assistant', content: [text('Once upon')] })
    expect(body([...messages, user('And?')]).messages[1].content).toEqual([text('Once upon \n')])
  })

  it('sends no half characters, which the vendor would refuse for ever', () => {
    const sent = JSON.stringify(
      body(
        [
          user('a\ud83d'),
          assistant([call(1, 'toolu_1', { input: { deep: [{ x: '\udc00' }] } })]),
          results(result(1)),
        ],
        {},
        { instructions: '\ud800' },
      ),
    )
    expect(sent).not.toMatch(/\\ud[89a-f]/i)
    expect(sent).toContain('a\ufffd')
  })

  it('fields of the caller win', () => {
    expect(body([user('x')], { extraBody: { metadata: { user_id: 'u' }, max_tokens: 5 } })).toMatchObject({
      metadata: { user_id: 'u' },
      max_tokens: 5,
    })
  })
})

describe('calls and their results', () => {
  it('stand one behind the other, results first, with the user’s next words behind them', () => {
    const messages = [
      user('Weather?'),
      assistant([{ type: 'text', text: 'Looking' }, call(1, 'toolu_1'), call(2, 'toolu_2')]),
      results(result(1), result(2, { outcome: 'failed', content: [{ type: 'text', text: 'No such city' }] })),
      user('Hurry'),
    ]
    expect(body(messages).messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: [
          text('Looking'),
          { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Seoul' } },
          { type: 'tool_use', id: 'toolu_2', name: 'get_weather', input: { city: 'Seoul' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: [text('21 degrees')] },
          { type: 'tool_result', tool_use_id: 'toolu_2', content: [text('No such city')], is_error: true },
          text('Hurry'),
        ],
      },
    ])
  })

  it.each([
    'invalid_input',
    'unknown_tool',
    'denied',
    'failed',
    'timed_out',
    'cancelled',
    'interrupted',
    'repeated',
    'limit_reached',
    'skipped',
  ] as const)('that ended as %s are errors, and never without words', (outcome) => {
    const messages = [
      user('x'),
      assistant([call(1, 'toolu_1')]),
      results(result(1, { outcome, content: [] })),
    ]
    const [block] = body(messages).messages.at(-1).content
    expect(block.is_error).toBe(true)
    expect(block.content).toEqual([text(`The call ended as ${outcome}, without output.`)])
  })

  it('that succeeded with nothing to say have no content', () => {
    const messages = [
      user('x'),
      assistant([call(1, 'toolu_1')]),
      results(result(1, { content: [text(' ') as Loose] })),
    ]
    expect(body(messages).messages.at(-1).content).toEqual([{ type: 'tool_result', tool_use_id: 'toolu_1' }])
  })

  it('show images and documents, and errors show only words', () => {
    const content = [
      { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' },
      { type: 'file' as const, mediaType: 'application/pdf', data: 'aGk=', name: 'report.pdf' },
    ]
    const of = (outcome: 'success' | 'failed') =>
      body([
        user('x'),
        assistant([call(1, 'toolu_1')]),
        results(result(1, { outcome, content })),
      ]).messages.at(-1).content[0].content
    expect(of('success')).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
      {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' },
        title: 'report.pdf',
      },
    ])
    expect(of('failed').map((block: Loose) => block.type)).toEqual(['text', 'text'])
    expect(of('failed')[1].text).toContain('report.pdf')
  })

  it('keep the vendor’s own id only where it is valid and not used before', () => {
    const messages = [
      user('x'),
      assistant([call(1, 'toolu_1'), call(2, 'toolu_1'), call(3, 'functions.read:0'), call(4, '')]),
      results(result(1), result(2), result(3), result(4)),
    ]
    const [, { content: uses }, { content: answers }] = body(messages).messages
    expect(uses.map((block: Loose) => block.id)).toEqual(['toolu_1', id(2), id(3), id(4)])
    expect(answers.map((block: Loose) => block.tool_use_id)).toEqual(['toolu_1', id(2), id(3), id(4)])
  })

  it('get ids from us where another vendor, or another wire, made them', () => {
    for (const model of [
      { ...own, provider: 'openai' },
      { ...own, api: 'chat' },
    ]) {
      const messages = [user('x'), assistant([call(1, 'toolu_1')], { model }), results(result(1))]
      expect(body(messages).messages[1].content[0].id).toBe(id(1))
    }
  })

  it('of tools with names that the wire does not take go by the same name everywhere', () => {
    const named = { name: 'files/read' }
    const messages = [user('x'), assistant([call(1, 'toolu_1', named)]), results(result(1, named))]
    const tool = { ...named, description: 'Reads.', inputSchema: { type: 'object', properties: {} } }
    const sent = body(messages, {}, { tools: [tool], toolChoice: { type: 'tool', ...named } })
    expect(sent.tools).toEqual([
      {
        name: expect.stringMatching(/^files_read_[0-9a-f]{8}$/),
        description: 'Reads.',
        input_schema: tool.inputSchema,
      },
    ])
    expect(sent.tool_choice.name).toBe(sent.tools[0].name)
    expect(sent.messages[1].content[0].name).toBe(sent.tools[0].name)
  })
})

describe('images and files of the user', () => {
  const sent = (part: Loose) => body([{ role: 'user', parts: [part] }]).messages[0].content[0]
  it.each([
    [
      { type: 'image', mediaType: 'image/jpg', data: 'aGk=' },
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'aGk=' } },
    ],
    [
      { type: 'image', mediaType: 'image/png', url: 'https://example.org/a' },
      { type: 'image', source: { type: 'url', url: 'https://example.org/a' } },
    ],
    [
      { type: 'file', mediaType: 'application/pdf', url: 'https://example.org/a' },
      { type: 'document', source: { type: 'url', url: 'https://example.org/a' } },
    ],
    [
      { type: 'file', mediaType: 'text/csv; charset=utf-8', data: btoa('a,b'), name: 'a.csv' },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a,b' }, title: 'a.csv' },
    ],
  ])('%o goes as %o', (part, block) => {
    expect(sent(part)).toEqual(block)
  })

  it.each([
    [{ type: 'image', mediaType: 'image/svg+xml', data: 'aGk=' }, 'image/svg+xml'],
    [{ type: 'image', mediaType: 'image/png', data: '' }, 'image/png'],
    [{ type: 'file', mediaType: 'application/zip', data: 'aGk=', name: 'all.zip' }, 'all.zip'],
    [{ type: 'file', mediaType: 'text/plain', data: 'no base64 !', name: 'a.txt' }, 'a.txt'],
    [{ type: 'file', mediaType: 'text/plain', url: 'https://example.org/b' }, 'https://example.org/b'],
  ])('%o is told of in words, since the vendor would refuse the whole request', (part, told) => {
    expect(sent(part).type).toBe('text')
    expect(sent(part).text).toContain(told)
  })

  it('text in a file keeps its letters', () => {
    const data = Buffer.from('Grüße, 서울').toString('base64')
    expect(sent({ type: 'file', mediaType: 'text/plain', data }).source.data).toBe('Grüße, 서울')
  })
})

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
    given: Partial<RequestSettings> = {},
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

describe('tools', () => {
  const tools = [
    {
      name: 'get_weather',
      description: 'Tells the weather.',
      inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
    },
  ]
  const choice = (toolChoice: ModelRequest['toolChoice'], parallelToolCalls: boolean) =>
    body([user('x')], {}, { tools, toolChoice, parallelToolCalls }).tool_choice

  it.each([
    [{ type: 'auto' as const }, true, undefined],
    [{ type: 'auto' as const }, false, { type: 'auto', disable_parallel_tool_use: true }],
    [{ type: 'any' as const }, true, { type: 'any' }],
    [{ type: 'any' as const }, false, { type: 'any', disable_parallel_tool_use: true }],
    [{ type: 'none' as const }, false, { type: 'none' }],
    [
      { type: 'tool' as const, name: 'get_weather' },
      false,
      { type: 'tool', name: 'get_weather', disable_parallel_tool_use: true },
    ],
  ])('%o, parallel: %s, is chosen as %o', (toolChoice, parallel, expected) => {
    expect(choice(toolChoice, parallel)).toEqual(expected)
  })

  it('stay in the request when none may be called', () => {
    expect(body([user('x')], {}, { tools, toolChoice: { type: 'none' } }).tools).toHaveLength(1)
  })

  it('that the history called are there even when the agent has none, and may not be called', () => {
    const messages = [user('x'), assistant([call(1, 'toolu_1')]), results(result(1))]
    expect(body(messages)).toMatchObject({
      tools: [{ name: 'get_weather', input_schema: { type: 'object' } }],
      tool_choice: { type: 'none' },
    })
    expect(body([user('x')])).not.toHaveProperty('tools')
    expect(body([user('x')])).not.toHaveProperty('tool_choice')
  })

  it('of the vendor stand behind ours, and ours give way where names meet', () => {
    const search = { type: 'web_search_20260318', name: 'get_weather' }
    const sent = body([user('x')], { providerTools: [search] }, { tools })
    expect(sent.tools[1]).toEqual(search)
    expect(sent.tools[0].name).toMatch(/^get_weather_[0-9a-f]{8}$/)
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

  it('that is off shows none in a reply that is to go on', () => {
    const messages = [user('x'), assistant([thought, { type: 'text', text: 'So' }], { stopReason: 'paused' })]
    expect(body(messages, { thinking: { type: 'disabled' } }).messages.at(-1).content).toEqual([text('So')])
    expect(body(messages).messages.at(-1).content).toHaveLength(2)
  })
})

describe('the prompt cache', () => {
  const mark = { type: 'ephemeral' }
  const messages = [
    user('One'),
    assistant([{ type: 'text', text: 'Two' }]),
    user('Three'),
    assistant([{ type: 'text', text: 'Four' }]),
    user('Five'),
  ]

  it('is marked behind the instructions and behind the last two messages of the user', () => {
    const sent = body(messages, { promptCache: '5m' })
    expect(sent.system).toEqual([{ ...text('Be brief.'), cache_control: mark }])
    expect(sent.messages.map(({ content }: Loose) => content.at(-1).cache_control)).toEqual([
      undefined,
      undefined,
      mark,
      undefined,
      mark,
    ])
  })

  it('is marked behind the tools where there are no instructions', () => {
    const tools = ['a', 'b'].map((name) => ({ name, description: 'x', inputSchema: { type: 'object' } }))
    const sent = body(messages, { promptCache: '1h' }, { tools, instructions: '' })
    expect(sent.tools.map((tool: Loose) => tool.cache_control)).toEqual([
      undefined,
      { type: 'ephemeral', ttl: '1h' },
    ])
  })

  it('can be turned off, and changes nothing but its marks', () => {
    expect(JSON.stringify(body(messages, { promptCache: 'off' }))).not.toContain('cache_control')
    const marked = JSON.stringify(body(messages, { promptCache: '5m' })).replaceAll(
      ',"cache_control":{"type":"ephemeral"}',
      '',
    )
    expect(JSON.parse(marked)).toEqual(body(messages, { promptCache: 'off' }))
  })
})

it('a message is rendered once, however many turns the conversation has', () => {
  let reads = 0
  const watched: Message = {
    role: 'user',
    get parts() {
      reads += 1
      return [{ type: 'text' as const, text: 'Hello' }]
    },
  }
  const render = requestRenderer(settings)
  const history: Message[] = [watched]
  for (let turn = 0; turn < 5; turn++) {
    render({ ...request, messages: [...history] }, now)
    history.push(assistant([{ type: 'text', text: 'Hi' }]), user('Again'))
  }
  expect(reads).toBe(1)
})

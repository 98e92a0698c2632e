import type { ModelRequest } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { assistant, body, call, id, result, results, text, user } from './kit/history.ts'
import type { Loose } from './kit/loose.ts'
import { own } from './kit/transcripts.ts'

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
    // What the run has left may be more than the model can write: the adapter's own bound holds.
    expect(body([user('Hello')], {}, { maxOutputTokens: 900_000 }).max_tokens).toBeLessThanOrEqual(32_000)
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
    const messages = [
      user('Continue'),
      assistant([{ type: 'text', text: 'Once upon \n' }], { partial: true }),
    ]
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
  it('come one after the other, results first, with the user’s next words after them', () => {
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
  it.each<[Loose, object]>([
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
    ...['image/gif', 'image/webp'].map((mediaType): [Loose, object] => [
      { type: 'image', mediaType, data: 'aGk=' },
      { type: 'image', source: { type: 'base64', media_type: mediaType, data: 'aGk=' } },
    ]),
    [
      { type: 'file', mediaType: 'application/pdf', data: 'aGk=', name: '' },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' } },
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
  ])('%o is described in a sentence, since the vendor would refuse the whole request', (part, reported) => {
    expect(sent(part).type).toBe('text')
    expect(sent(part).text).toContain(reported)
  })

  it('text in a file keeps its letters', () => {
    const data = Buffer.from('Grüße, 서울').toString('base64')
    expect(sent({ type: 'file', mediaType: 'text/plain', data }).source.data).toBe('Grüße, 서울')
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

  it('of the vendor come after ours, and ours give way where names meet', () => {
    const search = { type: 'web_search_20260318', name: 'get_weather' }
    const sent = body([user('x')], { providerTools: [search] }, { tools })
    expect(sent.tools[1]).toEqual(search)
    expect(sent.tools[0].name).toMatch(/^get_weather_[0-9a-f]{8}$/)
  })
})

import type { ModelRequest } from '@tallystick/core'
import type { AssistantPart } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import type { OpenAIWarning } from '../src/openai.ts'
import { brokenChatRules } from './kit/chat-rules.ts'
import { call, result, results, user } from './kit/history.ts'
import type { Loose } from './kit/loose.ts'
import { carriedAs } from './kit/openai-fold.ts'
import { chatBody as body, replyOver, text, type ChatGiven } from './kit/openai-requests.ts'

const assistant = replyOver('chat')
const kept = (data: object) => ({ opaque: carriedAs('chat', data) })
const system = { role: 'system', content: 'Be brief.' }

describe('a conversation', () => {
  it('becomes messages and the options of the model', () => {
    const sent = body([user('Hello'), assistant([text('Hi')]), user('Bye')], {
      ...{ reasoningEffort: 'low', verbosity: 'high', promptCacheKey: 'team', maxOutputTokens: 900 },
      extraBody: { temperature: 0 },
    })
    expect(sent).toEqual({
      ...{ model: 'gpt-test', stream: true, stream_options: { include_usage: true } },
      messages: [
        system,
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: 'Hi' },
        { role: 'user', content: 'Bye' },
      ],
      ...{ max_completion_tokens: 900, reasoning_effort: 'low', verbosity: 'high' },
      ...{ prompt_cache_key: 'team', temperature: 0 },
    })
  })

  it('is a text wherever it can be, and parts where there is more than text', () => {
    const parts = [
      { type: 'text' as const, text: 'Look:' },
      { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' },
      { type: 'file' as const, mediaType: 'application/pdf', data: 'aGk=', name: 'a.pdf' },
      {
        type: 'file' as const,
        mediaType: 'application/pdf',
        url: 'https://example.org/b.pdf',
        name: 'b.pdf',
      },
    ]
    const sent = body([{ role: 'user', parts }])
    expect(sent.messages[1].content).toEqual([
      { type: 'text', text: 'Look:' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,aGk=' } },
      { type: 'text', text: expect.stringContaining('https://example.org/b.pdf') },
    ])
    expect(brokenChatRules(sent)).toEqual([])
    const texts = ['One', 'Two'].map((words) => ({ type: 'text' as const, text: words }))
    expect(body([{ role: 'user', parts: texts }]).messages[1].content).toBe('One\n\nTwo')
  })

  it('loses replies that hold nothing, and is never empty', () => {
    const messages = [user('One'), assistant([{ type: 'reasoning', text: 'hm' }]), user('Two')]
    expect(body(messages).messages.slice(1)).toEqual([
      { role: 'user', content: 'One' },
      { role: 'user', content: 'Two' },
    ])
    expect(body([], {}, { instructions: '' }).messages).toEqual([
      { role: 'user', content: '(The conversation begins here.)' },
    ])
  })
})

describe('calls and their results', () => {
  const asked = (...parts: AssistantPart[]) => [user('x'), assistant(parts)]
  const wireCall = (id: string) => ({
    ...{ id, type: 'function', function: { name: 'get_weather', arguments: '{"city":"Seoul"}' } },
  })

  it('come after one another, before anything else, and what tools showed comes last, from the user', () => {
    const image = { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' }
    const sent = body([
      ...asked(text('Looking'), call(1, 'call_1'), call(2, 'call_2')),
      results(result(1, { content: [{ type: 'text', text: 'So:' }, image] }), result(2)),
      user('Hurry'),
    ])
    expect(sent.messages.slice(2)).toEqual([
      { role: 'assistant', content: 'Looking', tool_calls: [wireCall('call_1'), wireCall('call_2')] },
      {
        role: 'tool',
        tool_call_id: 'call_1',
        content: 'So:\n\n(What it returned is shown in the next message.)',
      },
      { role: 'tool', tool_call_id: 'call_2', content: '21 degrees' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What get_weather returned:' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
        ],
      },
      { role: 'user', content: 'Hurry' },
    ])
  })

  it('without a word beside them have a content of null, and errors say that they are', () => {
    const sent = body([
      ...asked(call(1, 'call_1')),
      results(result(1, { outcome: 'timed_out', content: [] })),
    ])
    expect(sent.messages.slice(2)).toEqual([
      { role: 'assistant', content: null, tool_calls: [wireCall('call_1')] },
      { role: 'tool', tool_call_id: 'call_1', content: 'The call ended as timed_out, without output.' },
    ])
  })

  it('give back what only their server knows', () => {
    const extra_content = { google: { thought_signature: 'c2ln' } }
    const sent = body([...asked(call(1, 'call_1', kept({ call: { extra_content } }))), results(result(1))])
    expect(sent.messages[2].tool_calls).toEqual([{ ...wireCall('call_1'), extra_content }])
  })

  it('of custom tools go back as what they are', () => {
    const custom = call(1, 'call_1', { input: { sql: 'SELECT 1' }, ...kept({ field: 'sql' }) })
    expect(body([...asked(custom), results(result(1))]).messages[2].tool_calls).toEqual([
      { id: 'call_1', type: 'custom', custom: { name: 'get_weather', input: 'SELECT 1' } },
    ])
  })

  it('whose input was no JSON go back as the model wrote them, in an object where the server reads them', () => {
    const malformed = { text: '{"city":"Se', error: 'The input is not valid JSON.' }
    const unread = [...asked(call(1, 'call_1', { input: {}, malformed })), results(result(1))]
    const argumentsIn = (server?: 'vllm') =>
      body(unread, server && { server }).messages[2].tool_calls[0].function.arguments
    expect(argumentsIn()).toBe('{"city":"Se')
    expect(JSON.parse(argumentsIn('vllm'))).toEqual({ INVALID_JSON: '{"city":"Se' })
  })

  it('from elsewhere, or with an id that was given twice, get ids of our own', () => {
    const other = { model: { provider: 'anthropic', api: 'messages', modelId: 'x' } }
    const sent = body([
      ...[user('x'), assistant([call(1, 'toolu_1')], other), results(result(1))],
      ...[...asked(call(2, '0')), results(result(2)), ...asked(call(3, '0')), results(result(3))],
    ])
    const ids = sent.messages.flatMap(({ tool_calls: calls }: Loose) =>
      (calls ?? []).map(({ id }: Loose) => id),
    )
    expect(ids[0]).toMatch(/^call_a{32}_1_1_1$/)
    expect(ids[1]).toBe('0')
    expect(ids[2]).toMatch(/^call_a{32}_1_1_3$/)
    expect(brokenChatRules(sent)).toEqual([])
  })
})

describe('reasoning', () => {
  const thought = (reasoning: string, more: object = {}): AssistantPart => ({
    ...{ type: 'reasoning', text: 'hm' },
    ...kept({ reasoning, ...more }),
  })
  const turn = (part: AssistantPart) => [
    ...[user('x'), assistant([part, call(1, 'call_1')]), results(result(1))],
  ]

  it.each([
    ['reasoning_content', { reasoning_content: 'hm' }],
    ['reasoning', { reasoning: 'hm' }],
  ])(
    'that was shown in %s goes back there in a turn with calls, and in no other that is over',
    (field, fields) => {
      const open = turn(thought(field))
      expect(body(open).messages[2]).toMatchObject(fields)
      const after = [...open, assistant([thought(field), text('Warm')]), user('and now?')]
      const sent = body([...after, assistant([thought(field), text('Cold')]), user('and then?')]).messages
      expect([sent[2], sent[4]]).toMatchObject([fields, fields])
      expect(JSON.stringify(sent.slice(5))).not.toContain('"hm"')
      const closed = body(after, { ways: { replayReasoning: 'open_turn' } })
      expect(JSON.stringify(closed)).not.toContain('"hm"')
    },
  )

  it('of a reply with calls that has none is what its server takes for it', () => {
    const foreign = { model: { provider: 'anthropic', api: 'messages', modelId: 'x' } }
    const messages = [
      ...[user('x'), assistant([call(1, 'call_1')], foreign), results(result(1)), assistant([text('Warm')])],
      ...[
        user('and?'),
        assistant([{ ...call(2, 'call_2'), ...kept({ message: { reasoning_content: '' } }) }]),
      ],
      results(result(2)),
    ]
    const thoughts = (server?: 'deepseek' | 'moonshot') =>
      body(messages, server && { server }).messages.map((one: Loose) => one.reasoning_content)
    expect(thoughts()).toEqual([...Array(6).fill(undefined), '', undefined])
    expect(thoughts('deepseek')).toEqual([
      undefined,
      undefined,
      '',
      undefined,
      undefined,
      undefined,
      '',
      undefined,
    ])
    expect(thoughts('moonshot')).toEqual([
      undefined,
      undefined,
      ' ',
      undefined,
      undefined,
      undefined,
      ' ',
      undefined,
    ])
  })

  it('is a signature for Google, and of calls by other models the word that stands for one', () => {
    const signature = (thought_signature: string) => ({ extra_content: { google: { thought_signature } } })
    const messages = [
      ...[
        user('x'),
        assistant([{ type: 'text', text: 'Hm', ...kept({ message: signature('A') }) }]),
        user('y'),
      ],
      ...[assistant([{ ...call(1, 'c1'), ...kept({ call: signature('B') }) }, call(2, 'c2')])],
      ...[
        results(result(1), result(2)),
        assistant([call(3, 'c3'), call(4, 'c4')]),
        results(result(3), result(4)),
      ],
    ]
    const sent = body(messages, { server: 'gemini' }).messages
    expect(sent[2]).toEqual({ role: 'assistant', content: 'Hm', ...signature('A') })
    const signed = (at: number) => sent[at].tool_calls.map((one: Loose) => one.extra_content)
    expect(signed(4)).toEqual([signature('B').extra_content, undefined])
    expect(signed(7)).toEqual([signature('skip_thought_signature_validator').extra_content, undefined])
    expect(body(messages).messages[7].tool_calls[0]).not.toHaveProperty('extra_content')
  })

  it('goes back with its signed details, or as the beginning of the content, as its server has it', () => {
    const details = [{ type: 'reasoning.encrypted', data: 'ZW5j' }]
    expect(body(turn(thought('reasoning', { details }))).messages[2]).toMatchObject({
      ...{ reasoning: 'hm', reasoning_details: details },
    })
    expect(body(turn(thought('thinking'))).messages[2].content).toEqual([
      { type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] },
    ])
  })

  it.each([
    ['always', true],
    ['never', false],
  ] as const)('goes back %s where the server wants it so', (replayReasoning, back) => {
    const messages = [...turn(thought('reasoning')), assistant([text('Warm')]), user('and now?')]
    const whole = [...messages, assistant([thought('reasoning'), call(2, 'call_2')]), results(result(2))]
    const sent = body(whole, { ways: { replayReasoning } }).messages
    expect(sent.map(({ reasoning }: Loose) => reasoning).filter(Boolean)).toEqual(back ? ['hm', 'hm'] : [])
  })

  it('of another service, or another wire, is not part of the request', () => {
    expect(JSON.stringify(body(turn(thought('reasoning')), { provider: 'groq' }))).not.toContain('"hm"')
    const foreign: AssistantPart = {
      type: 'reasoning',
      text: 'hm',
      opaque: carriedAs('responses', { reasoning: 'reasoning' }),
    }
    expect(JSON.stringify(body(turn(foreign)))).not.toContain('"hm"')
  })

  it('a refusal goes back as one', () => {
    const messages = [user('x'), assistant([text('No', kept({ refusal: true }))]), user('y')]
    expect(body(messages).messages[2].content).toEqual([{ type: 'refusal', refusal: 'No' }])
  })
})

describe('tools', () => {
  const tools = [{ name: 'get_weather', description: 'Tells it.', inputSchema: { properties: {} } }]
  const sent = (given: ChatGiven, more: Partial<ModelRequest> = {}) =>
    body([user('x')], given, { tools, ...more })

  it('are functions with their schema, strict only where that is wished', () => {
    const parameters = { type: 'object', properties: {} }
    expect(sent({}).tools).toEqual([
      { type: 'function', function: { name: 'get_weather', description: 'Tells it.', parameters } },
    ])
    expect(sent({ strictTools: true }).tools[0].function).toMatchObject({ strict: true })
  })

  it.each([
    [{ type: 'auto' }, true, undefined, undefined],
    [{ type: 'any' }, false, 'required', false],
    [{ type: 'none' }, true, 'none', undefined],
    [
      { type: 'tool', name: 'get_weather' },
      true,
      { type: 'function', function: { name: 'get_weather' } },
      undefined,
    ],
  ] as const)('%j, parallel: %s, is chosen as %j', (toolChoice, parallelToolCalls, choice, parallel) => {
    const chosen = sent({}, { toolChoice, parallelToolCalls })
    expect(chosen.tool_choice).toEqual(choice)
    expect(chosen.parallel_tool_calls).toBe(parallel)
  })

  it('may be custom', () => {
    const customTools = { get_weather: { field: 'sql', format: { type: 'text' } } }
    const chosen = sent({ customTools }, { toolChoice: { type: 'tool', name: 'get_weather' } })
    expect(chosen.tools).toEqual([
      { type: 'custom', custom: { name: 'get_weather', description: 'Tells it.', format: { type: 'text' } } },
    ])
    expect(chosen.tool_choice).toEqual({ type: 'custom', custom: { name: 'get_weather' } })
  })
})

describe('a server that differs', () => {
  const tools = [{ name: 'get_weather', description: 'Tells it.', inputSchema: { properties: {} } }]
  const warned = (given: ChatGiven, more: Partial<ModelRequest>) => {
    const warnings: OpenAIWarning[] = []
    const sent = body(
      [user('x')],
      { ...given, warn: (warning) => warnings.push(warning) },
      { tools, ...more },
    )
    return { sent, warnings: warnings.map(({ what }) => what) }
  }

  it.each([
    ['openai', 'max_completion_tokens', true],
    ['mistral', 'max_tokens', false],
    ['vllm', 'max_tokens', true],
    ['ollama', 'max_tokens', true],
  ] as const)('%s bounds the output by %s, and is asked for usage: %s', (server, field, usage) => {
    const sent = body([user('x')], { server }, { maxOutputTokens: 7 })
    expect(sent[field]).toBe(7)
    expect('stream_options' in sent).toBe(usage)
  })

  it('may take instructions from a developer', () => {
    expect(body([user('x')], { ways: { systemRole: 'developer' } }).messages[0]).toEqual({
      ...{ role: 'developer', content: 'Be brief.' },
    })
  })

  it('of Mistral’s gets ids of nine letters and digits, its own where they are', () => {
    const messages = [
      ...[user('x'), assistant([call(1, 'abcDEF123'), call(2, 'call_2')]), results(result(1), result(2))],
      ...[user('y'), assistant([call(3, 'abcDEF123')]), results(result(3))],
    ]
    const sent = body(messages, { server: 'mistral' })
    const ids = sent.messages.flatMap(({ tool_calls: calls }: Loose) =>
      (calls ?? []).map(({ id }: Loose) => id),
    )
    expect(ids[0]).toBe('abcDEF123')
    expect(new Set(ids).size).toBe(3)
    expect(brokenChatRules(sent, { id: /^[a-zA-Z0-9]{9}$/, alternating: true })).toEqual([])
    // The same in every request, or the prompt's cache is lost.
    expect(JSON.stringify(body([...messages, user('z')], { server: 'mistral' }))).toContain(ids[1])
  })

  it('whose templates know only turns gets turns', () => {
    const messages = [
      ...[
        assistant([text('Welcome')]),
        user('One'),
        user('Two'),
        assistant([text('Hm')]),
        assistant([call(1, 'c')]),
      ],
      ...[results(result(1)), user('Hurry')],
    ]
    const sent = body(messages, { server: 'vllm' })
    expect(brokenChatRules(sent, { alternating: true })).toEqual([])
    expect(sent.messages.map(({ role, content }: Loose) => [role, content])).toEqual([
      ['system', 'Be brief.'],
      ['user', '(The conversation begins here.)'],
      ['assistant', 'Welcome'],
      ['user', 'One\n\nTwo'],
      ['assistant', 'Hm'],
      ['tool', '21 degrees'],
      ['assistant', '(The results are in.)'],
      ['user', 'Hurry'],
    ])
  })

  it('that obeys no choice of tools is not told of one: forcing is warned of, forbidding offers none', () => {
    expect(warned({ server: 'ollama' }, { toolChoice: { type: 'any' } })).toMatchObject({
      ...{ warnings: ['tool_choice'], sent: { tools: [{}] } },
    })
    const none = warned({ server: 'ollama' }, { toolChoice: { type: 'none' } })
    expect(none.warnings).toEqual([])
    expect(none.sent).not.toHaveProperty('tools')
  })

  it('that cannot make one call at a time, hold an answer to a schema, or be strict, is warned of', () => {
    const outputSchema = { type: 'object', properties: {} }
    const { sent, warnings } = warned(
      { server: 'deepseek', strictTools: true },
      { parallelToolCalls: false, outputSchema },
    )
    expect(warnings.toSorted()).toEqual(['output_schema', 'parallel_tool_calls', 'schema'])
    expect(sent).not.toHaveProperty('parallel_tool_calls')
    expect(sent.response_format).toEqual({ type: 'json_object' })
    expect(sent.tools[0].function).not.toHaveProperty('strict')
  })

  it('may be told of way by way', () => {
    const sent = body([user('x')], { server: 'mistral', ways: { streamUsage: true } })
    expect(sent).toHaveProperty('stream_options')
  })
})

it('an answer that has to fit a schema is asked for, strictly where the schema allows it', () => {
  const outputSchema = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] }
  const format = (given: ChatGiven, schema: Loose = outputSchema) =>
    body([user('x')], given, { outputSchema: schema }).response_format
  expect(format({})).toEqual({
    type: 'json_schema',
    json_schema: { name: 'answer', strict: true, schema: { ...outputSchema, additionalProperties: false } },
  })
  const loose = { type: 'object', properties: { sum: { type: 'number' } } }
  expect(format({}, loose).json_schema).toMatchObject({
    strict: true,
    schema: { required: ['sum'], properties: { sum: { anyOf: [{ type: 'number' }, { type: 'null' }] } } },
  })
  const open = { type: 'object', additionalProperties: { type: 'number' } }
  expect(format({}, open).json_schema).toEqual({ name: 'answer', strict: false, schema: open })
  expect(format({}, { type: 'array', items: {} })).toBeUndefined()
  expect(format({ server: 'groq' }).json_schema).toEqual({ name: 'answer', schema: outputSchema })
})

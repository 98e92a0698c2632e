import type { Message, ModelRequest } from '@tallystick/core'
import type { ToolDefinition } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { renderRequest } from '../src/ollama/request.ts'
import { toToolSchema } from '../src/ollama/tools.ts'
import { request } from './kit/collect.ts'
import { assistant, call, id, result, results, user } from './kit/history.ts'
import { settings } from './kit/ollama-lines.ts'
import type { Loose } from './kit/loose.ts'
import type { OllamaWarning, RenderSettings } from '../src/ollama/options.ts'

const body = (
  messages: readonly Message[] = request.messages,
  more: Partial<ModelRequest> = {},
  given: Partial<RenderSettings> = {},
): Loose => {
  const all = { ...settings, ...given }
  return renderRequest({ ...request, messages, ...more }, all).body
}
const own = { provider: 'ollama', api: 'chat', modelId: 'qwen-test' }
const weather: ToolDefinition = {
  name: 'get_weather',
  description: 'Says the weather.',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

describe('a request', () => {
  it('holds the instructions, the history, the context and nothing that was not asked for', () => {
    expect(body()).toEqual({
      model: 'qwen-test',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'Hello' },
      ],
      stream: true,
      truncate: false,
      shift: false,
      options: { num_ctx: 4096 },
    })
  })

  it('holds what the options say, the more special one winning', () => {
    const given: Partial<RenderSettings> = {
      maxOutputTokens: 500,
      thinking: 'high',
      keepAlive: '10m',
      parameters: { temperature: 0, num_ctx: 8192 },
      extraBody: { logprobs: true, truncate: true },
    }
    expect(body(undefined, { maxOutputTokens: 700 }, given)).toMatchObject({
      think: 'high',
      keep_alive: '10m',
      options: { num_ctx: 8192, num_predict: 500, temperature: 0 },
      logprobs: true,
      truncate: true,
    })
    expect(body(undefined, { maxOutputTokens: 300 }, given).options.num_predict).toBe(300)
    expect(body(undefined, {}, { thinking: false }).think).toBe(false)
  })

  it('without a message begins a conversation, since one that is empty would only load the model', () => {
    expect(body([], { instructions: ' ' }).messages).toEqual([
      { role: 'user', content: '(The conversation begins here.)' },
    ])
  })
})

describe('tools', () => {
  const tools = [weather, { ...weather, name: 'read files', description: '' }]
  const names = (more: Partial<ModelRequest>) =>
    body(undefined, { tools, ...more }).tools?.map((tool: Loose) => tool.function.name)

  it('go along with their schemas', () => {
    expect(body(undefined, { tools: [weather] }).tools).toEqual([
      {
        type: 'function',
        function: {
          name: 'get_weather',
          description: 'Says the weather.',
          parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        },
      },
    ])
  })

  it('that may not be called are not shown, since the wire cannot forbid them', () => {
    expect(names({ toolChoice: { type: 'none' } })).toBeUndefined()
    expect(names({ toolChoice: { type: 'tool', name: 'get_weather' } })).toEqual(['get_weather'])
    expect(names({ toolChoice: { type: 'any' } })).toHaveLength(2)
    expect(names({ toolChoice: { type: 'auto' } })).toHaveLength(2)
  })

  it('keep a reply from being held to a schema, which could then call none', () => {
    const outputSchema = { type: 'object', properties: { warm: { type: 'boolean' } } }
    expect(body(undefined, { outputSchema })).toMatchObject({ format: outputSchema })
    expect(body(undefined, { outputSchema, tools })).not.toHaveProperty('format')
    expect(body(undefined, { outputSchema, tools, toolChoice: { type: 'none' } })).toMatchObject({
      format: outputSchema,
    })
  })

  it('with names that no template knows go by others, in the history as well', () => {
    const messages = [
      user('x'),
      assistant([call(1, 'call_1', { name: 'read files' })], { model: own }),
      results(result(1, { name: 'read files' })),
    ]
    const { messages: sent, tools: shown } = body(messages, { tools })
    const wireName = shown[1].function.name
    expect(wireName).toMatch(/^read_files_[0-9a-f]{8}$/)
    expect(sent[2].tool_calls[0].function.name).toBe(wireName)
    expect(sent[3].tool_name).toBe(wireName)
  })
})

describe('what the wire cannot express', () => {
  const received = (more: Partial<ModelRequest>) => {
    const reported: string[] = []
    const options = { warn: ({ what, message }: OllamaWarning) => reported.push(`${what}: ${message}`) }
    body(undefined, { tools: [weather], ...more }, options)
    return reported
  }

  it('is reported, and the call goes out without it', () => {
    expect(received({})).toEqual([])
    expect(received({ toolChoice: { type: 'any' } })).toEqual([
      expect.stringMatching(/^tool_choice: .* may answer without/),
    ])
    expect(received({ toolChoice: { type: 'tool', name: 'get_weather' } })).toHaveLength(1)
    expect(received({ parallelToolCalls: false })).toEqual([expect.stringMatching(/^parallel_tool_calls: /)])
    expect(received({ outputSchema: {} })).toEqual([expect.stringMatching(/^output_schema: /)])
    expect(received({ outputSchema: {}, parallelToolCalls: false, toolChoice: { type: 'none' } })).toEqual([])
  })

  it('of a schema is named by its keywords and its tool', () => {
    const city = { type: 'string', minLength: 1, pattern: '^[A-Z]' }
    const inputSchema = { type: 'object', properties: { city, tree: { $ref: '#' } } }
    expect(received({ tools: [{ ...weather, inputSchema }] })).toEqual([
      expect.stringContaining('minLength, pattern, $ref in the schema of the tool get_weather'),
    ])
  })
})

describe('a history', () => {
  const sent = (messages: readonly Message[]) => body(messages, { instructions: '' }).messages

  it('shows a reply with its thinking and its calls, and the results after it', () => {
    const reply = assistant(
      [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'Let me ' },
        call(1, 'call_a'),
        { type: 'text', text: 'look.' },
        call(2, ''),
      ],
      { model: own, stopReason: 'tool_use' },
    )
    const failed = result(2, { outcome: 'timed_out', content: [{ type: 'text', text: 'Too slow.' }] })
    expect(sent([user('Weather?'), reply, results(result(1), failed)])).toEqual([
      { role: 'user', content: 'Weather?' },
      {
        role: 'assistant',
        content: 'Let me look.',
        thinking: 'hm',
        tool_calls: [
          { id: 'call_a', function: { name: 'get_weather', arguments: { city: 'Seoul' } } },
          { id: id(2), function: { name: 'get_weather', arguments: { city: 'Seoul' } } },
        ],
      },
      { role: 'tool', content: '21 degrees', tool_name: 'get_weather', tool_call_id: 'call_a' },
      {
        role: 'tool',
        content: 'Error (timed_out): Too slow.',
        tool_name: 'get_weather',
        tool_call_id: id(2),
      },
    ])
  })

  it.each([
    ['another model', { ...own, modelId: 'llama-test' }],
    ['another vendor', { provider: 'openai', api: 'chat', modelId: 'qwen-test' }],
  ])('of %s keeps its words and loses its thinking', (_, model) => {
    const reply = assistant(
      [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'Yes' },
      ],
      { model },
    )
    expect(sent([user('x'), reply, user('y')])[1]).toEqual({ role: 'assistant', content: 'Yes' })
  })

  it('gives a call from another vendor an id of ours', () => {
    const model = { provider: 'openai', api: 'chat', modelId: 'gpt-test' }
    const [, reply, answer] = sent([user('x'), assistant([call(1, 'call_1')], { model }), results(result(1))])
    expect([reply.tool_calls[0].id, answer.tool_call_id]).toEqual([id(1), id(1)])
  })

  it('leaves out a reply in which nothing was said, and joins what is then side by side', () => {
    const silent = assistant(
      [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: ' ' },
      ],
      { model: own },
    )
    expect(sent([user('a'), silent, user('b')])).toEqual([{ role: 'user', content: 'a\n\nb' }])
    const spoken = (text: string) => assistant([{ type: 'text', text }], { model: own })
    expect(sent([user('a'), spoken('b'), spoken('c')])[1]).toEqual({ role: 'assistant', content: 'b\n\nc' })
  })

  it('begins with the user, whichever role began it', () => {
    expect(
      sent([assistant([{ type: 'text', text: 'Hi' }], { model: own }), user('x')]).map(
        (one: Loose) => one.role,
      ),
    ).toEqual(['user', 'assistant', 'user'])
  })

  it('tells of an error without output, and shows a success without output as it is', () => {
    const messages = [
      user('x'),
      assistant([call(1, 'a'), call(2, 'b')], { model: own }),
      results(result(1, { content: [] }), result(2, { outcome: 'denied', content: [] })),
    ]
    expect(
      sent(messages)
        .slice(2)
        .map((one: Loose) => one.content),
    ).toEqual(['', 'Error (denied): there is no output.'])
  })
})

describe('what is not text', () => {
  const parts = (...given: Loose[]) =>
    body([{ role: 'user', parts: given }], { instructions: '' }).messages[0]

  it('goes along as an image where the server can decode it', () => {
    expect(
      parts(
        { type: 'text', text: 'Look' },
        { type: 'image', mediaType: 'image/png', data: 'aGk=' },
        { type: 'image', mediaType: 'image/jpg; charset=binary', data: 'aGkh' },
      ),
    ).toEqual({ role: 'user', content: 'Look', images: ['aGk=', 'aGkh'] })
    for (const data of ['aGk=', 'aGkh'.repeat(5_000_000)]) {
      const { images } = parts({ type: 'image', mediaType: 'image/png', data })
      expect(images).toHaveLength(1)
      expect(images[0] === data).toBe(true)
    }
  })

  it.each([
    ['an SVG', { type: 'image', mediaType: 'image/svg+xml', data: 'aGk=' }, 'image of type image/svg+xml,'],
    [
      'an address',
      { type: 'image', mediaType: 'image/png', url: 'https://example.org/a.png' },
      'at https://example.org/a.png',
    ],
    [
      'data that is not Base64',
      { type: 'image', mediaType: 'image/png', data: 'not base64!' },
      'image of type image/png,',
    ],
    [
      'data with a letter missing',
      { type: 'image', mediaType: 'image/png', data: 'aGk' },
      'image of type image/png,',
    ],
    [
      'a PDF',
      { type: 'file', mediaType: 'application/pdf', data: 'aGk=', name: 'a.pdf' },
      'file "a.pdf" of type application/pdf,',
    ],
  ])('is described in a sentence where it is %s', (_, part, words) => {
    const { content, images } = parts(part)
    expect(images).toBeUndefined()
    expect(content).toContain(words)
    expect(content).toContain('was left out')
  })

  it('and is a file of text is read out', () => {
    const data = btoa('{"a": 1}')
    expect(parts({ type: 'file', mediaType: 'application/json', data, name: 'a.json' }).content).toBe(
      'a.json:\n{"a": 1}',
    )
    expect(parts({ type: 'file', mediaType: 'text/plain; charset=utf-8', data: '7Iuc' }).content).toBe('시')
  })

  it('and came from a tool is shown after the results, which hold text only', () => {
    const picture = { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' }
    const messages = [
      user('x'),
      assistant([call(1, 'a'), call(2, 'b')], { model: own }),
      results(result(1, { content: [picture] }), result(2)),
      user('And?'),
    ]
    expect(body(messages, { instructions: '' }).messages.slice(2)).toEqual([
      { role: 'tool', content: '[See the image below.]', tool_name: 'get_weather', tool_call_id: 'a' },
      { role: 'tool', content: '21 degrees', tool_name: 'get_weather', tool_call_id: 'b' },
      { role: 'user', content: '[Images in the results of: get_weather]\n\nAnd?', images: ['aGk='] },
    ])
  })
})

describe('a schema of a tool', () => {
  const property = (schema: Loose, $defs: Loose = {}): Loose =>
    (toToolSchema({ type: 'object', properties: { a: schema }, $defs }).schema['properties'] as Loose).a

  it('has its references put in place, and the keys beside them win', () => {
    const $defs = { city: { type: 'string', description: 'A city.' }, alias: { $ref: '#/$defs/city' } }
    expect(property({ $ref: '#/$defs/alias' }, $defs)).toEqual({ type: 'string', description: 'A city.' })
    expect(property({ $ref: '#/$defs/city', description: 'From.' }, $defs)).toEqual({
      ...{ type: 'string', description: 'From.' },
    })
    expect(property({ type: 'array', items: { $ref: '#/$defs/city' } }, $defs).items.type).toBe('string')
    expect(property({ $ref: '#/$defs/a~1b' }, { 'a/b': { type: 'number' } })).toEqual({ type: 'number' })
    expect(property({ $ref: '#/$defs/9%' }, { '9%': { type: 'number' } })).toEqual({ type: 'number' })
  })

  it('that refers to itself is unfolded three times, and told of by its name below', () => {
    const $defs = { tree: { type: 'object', properties: { left: { $ref: '#/$defs/tree' } } } }
    let tree = property({ $ref: '#/$defs/tree' }, $defs)
    for (let depth = 1; depth < 3; depth++) tree = tree.properties.left
    expect(tree.type).toBe('object')
    expect(tree.properties.left).toEqual({ description: 'A tree, as above.' })
  })

  it.each([
    ['a constant is a choice of one', { const: 'x' }, { enum: ['x'] }],
    [
      'one of is any of',
      { oneOf: [{ type: 'string' }, { const: 1 }] },
      { anyOf: [{ type: 'string' }, { enum: [1] }] },
    ],
    [
      'all of is one',
      {
        allOf: [
          { properties: { x: { type: 'string' } }, required: ['x'] },
          { properties: { y: {} }, required: ['y'] },
        ],
      },
      { properties: { x: { type: 'string' }, y: {} }, required: ['x', 'y'] },
    ],
    ['anything goes is an empty one', true, {}],
    ['types in a list stay', { type: ['string', 'null'] }, { type: ['string', 'null'] }],
  ])('says what the server knows: %s', (_, given, expected) => {
    expect(property(given)).toEqual(expected)
  })

  it('tells in the description what the server would drop', () => {
    expect(property({ type: 'integer', minimum: 1, description: 'Days.' })).toEqual({
      type: 'integer',
      description: 'Days. Rules: {"minimum":1}',
    })
    expect(property({ type: 'object', additionalProperties: false, title: 'A', default: {} })).toEqual({
      type: 'object',
    })
  })

  it('of no input is one of an object without properties', () => {
    expect(toToolSchema({})).toEqual({ schema: { type: 'object', properties: {} }, inWords: [] })
  })
})

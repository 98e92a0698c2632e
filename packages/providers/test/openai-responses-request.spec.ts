import type { ModelRequest } from '@tallystick/core'
import type { AssistantPart } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import type { OpenAIWarning } from '../src/openai.ts'
import { type RenderSettings, renderRequest } from '../src/openai/responses-request.ts'
import { request } from './kit/collect.ts'
import { call, result, results, user } from './kit/history.ts'
import type { Loose } from './kit/loose.ts'
import { kept, replyOver, responsesBody as body, responsesSettings, text } from './kit/openai-requests.ts'
import { brokenResponsesRules } from './kit/responses-rules.ts'

const assistant = replyOver('responses')

describe('a conversation', () => {
  it('becomes instructions, items and the options of the model', () => {
    const sent = body([user('Hello'), assistant([text('Hi')]), user('Bye')], {
      ...{ reasoning: { effort: 'low', summary: 'auto' }, verbosity: 'low', promptCacheKey: 'team' },
      extraBody: { service_tier: 'flex', store: true },
    })
    expect(sent).toEqual({
      ...{ model: 'gpt-test', instructions: 'Be brief.', stream: true },
      input: [
        { role: 'user', content: 'Hello' },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] },
        { role: 'user', content: 'Bye' },
      ],
      include: ['reasoning.encrypted_content'],
      ...{ reasoning: { effort: 'low', summary: 'auto' }, text: { verbosity: 'low' } },
      ...{ prompt_cache_key: 'team', service_tier: 'flex', store: true },
    })
  })

  it('asks for what the adapter needs, and for all that option and extraBody ask for beside it', () => {
    const include = ['web_search_call.action.sources', 'reasoning.encrypted_content']
    const extraBody = { include: ['file_search_call.results', 'web_search_call.action.sources'] }
    const all = [
      ...['reasoning.encrypted_content', 'web_search_call.action.sources', 'file_search_call.results'],
    ]
    const settings = { ...responsesSettings, include, extraBody }
    expect(body([user('x')], { include, extraBody }).include).toEqual(all)
    const asked = { ...request, messages: [user('x')] }
    expect(renderRequest(asked, settings, { noEncryption: true }).body.include).toEqual(all.slice(1))
    expect(renderRequest(asked, responsesSettings, { noEncryption: true }).body).not.toHaveProperty('include')
  })

  it('carries the tier and the metadata that the options name', () => {
    const metadata = { team: 'shop' }
    expect(body([user('x')], { serviceTier: 'flex', metadata })).toMatchObject({
      service_tier: 'flex',
      metadata,
    })
  })

  it.each([
    [undefined, undefined, undefined],
    [77, undefined, 77],
    [undefined, 900, 900],
    [5000, 900, 900],
    [3, undefined, 16],
  ])('asked for %s tokens where the model has %s asks for %s', (asked, most, expected) => {
    const sent = body(
      [user('x')],
      { maxOutputTokens: most },
      asked === undefined ? {} : { maxOutputTokens: asked },
    )
    expect(sent.max_output_tokens).toBe(expected)
  })

  it('without instructions, and without any message, is still one that the vendor takes', () => {
    const sent = body([], {}, { instructions: ' \n' })
    expect(sent).not.toHaveProperty('instructions')
    expect(sent.input).toEqual([{ role: 'user', content: '(The conversation begins here.)' }])
    expect(body([user(' ')]).input).toEqual([{ role: 'user', content: '(The message is empty.)' }])
  })

  it('shows images and documents in messages', () => {
    const parts = [
      { type: 'text' as const, text: 'Look:' },
      { type: 'image' as const, mediaType: 'image/jpg', data: 'aGk=' },
      { type: 'image' as const, mediaType: 'image/png', url: 'https://example.org/a.png' },
      { type: 'file' as const, mediaType: 'application/pdf', data: 'aGk=', name: 'a.pdf' },
      { type: 'file' as const, mediaType: 'application/pdf', url: 'https://example.org/b.pdf' },
      { type: 'file' as const, mediaType: 'text/markdown', data: 'R3LDvMOfZQ==', name: 'c.md' },
      { type: 'file' as const, mediaType: 'application/zip', data: 'aGk=', name: 'd.zip' },
      { type: 'image' as const, mediaType: 'image/svg+xml', data: 'aGk=' },
    ]
    const sent = body([{ role: 'user', parts }])
    expect(sent.input[0].content).toEqual([
      { type: 'input_text', text: 'Look:' },
      { type: 'input_image', image_url: 'data:image/jpeg;base64,aGk=', detail: 'auto' },
      { type: 'input_image', image_url: 'https://example.org/a.png', detail: 'auto' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,aGk=' },
      { type: 'input_file', file_url: 'https://example.org/b.pdf' },
      { type: 'input_text', text: 'File "c.md":\n\nGrüße' },
      { type: 'input_text', text: expect.stringContaining('d.zip') },
      { type: 'input_text', text: expect.stringContaining('image/svg+xml') },
    ])
    expect(brokenResponsesRules(sent)).toEqual([])
  })
})

describe('calls and their results', () => {
  const asked = (...parts: AssistantPart[]) => [user('x'), assistant(parts, { stopReason: 'tool_use' })]

  it('come after one another, with what tools showed in them', () => {
    const image = { type: 'image' as const, mediaType: 'image/png', data: 'aGk=' }
    const sent = body([
      ...asked(call(1, 'call_1'), call(2, 'call_2')),
      results(result(1), result(2, { content: [{ type: 'text', text: 'So:' }, image] })),
    ])
    const one = (call_id: string) => ({
      type: 'function_call',
      call_id,
      name: 'get_weather',
      arguments: '{"city":"Seoul"}',
    })
    expect(sent.input.slice(1)).toEqual([
      ...[one('call_1'), one('call_2')],
      { type: 'function_call_output', call_id: 'call_1', output: '21 degrees' },
      {
        ...{ type: 'function_call_output', call_id: 'call_2' },
        output: [
          { type: 'input_text', text: 'So:' },
          { type: 'input_image', image_url: 'data:image/png;base64,aGk=', detail: 'auto' },
        ],
      },
    ])
  })

  it.each([
    ['failed', [{ type: 'text' as const, text: 'No such city' }], 'Error (failed): No such city'],
    ['denied', [], 'The call ended as denied, without output.'],
    ['success', [], ''],
  ] as const)('that ended as %s with %j say so in words', (outcome, content, output) => {
    const sent = body([...asked(call(1, 'call_1')), results(result(1, { outcome, content: [...content] }))])
    expect(sent.input.at(-1)).toEqual({ type: 'function_call_output', call_id: 'call_1', output })
  })

  it('of custom tools go back as what they are, and are answered as such', () => {
    const item = { type: 'custom_tool_call', id: 'ctc_1', status: 'completed' }
    const custom = call(1, 'call_1', { input: { sql: 'SELECT 1' }, ...kept(item, 0, { field: 'sql' }) })
    expect(body([...asked(custom), results(result(1))]).input.slice(1)).toEqual([
      { ...item, call_id: 'call_1', name: 'get_weather', input: 'SELECT 1' },
      { type: 'custom_tool_call_output', call_id: 'call_1', output: '21 degrees' },
    ])
  })

  it.each([
    ['success', { approve: true }],
    ['denied', { approve: false, reason: 'Error (denied): Too dear' }],
  ] as const)(
    'that ask whether an MCP server may be called are answered by %s with %j',
    (outcome, answer) => {
      const item = {
        type: 'mcp_approval_request',
        id: 'mcpr_1',
        name: 'edit',
        server_label: 'wiki',
        arguments: '{}',
      }
      const question = call(1, 'mcpr_1', { name: 'mcp_approval', ...kept(item, 0) })
      const content = [{ type: 'text' as const, text: 'Too dear' }]
      expect(body([...asked(question), results(result(1, { outcome, content }))]).input.slice(1)).toEqual([
        item,
        { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', ...answer },
      ])
    },
  )

  it('from within a program that the vendor runs name their caller, and so do their answers', () => {
    const caller = { type: 'program', caller_id: 'prog_1' }
    const item = { type: 'function_call', id: 'fc_1', caller, namespace: 'weather' }
    const program = { type: 'program', id: 'prog', call_id: 'prog_1', code: 'f()', fingerprint: 'x' }
    const running: AssistantPart = { type: 'provider', kind: 'program', ...kept(program, 0) }
    const called = call(1, 'call_1', kept(item, 1))
    const reply = assistant([running, called], { stopReason: 'tool_use' })
    const sent = body([user('x'), reply, results(result(1))])
    expect(sent.input.slice(1)).toMatchObject([
      program,
      { caller, namespace: 'weather', id: 'fc_1' },
      { caller },
    ])
  })

  it('with ids that a provider gave twice get ids of their own, in both halves', () => {
    const sent = body([
      ...[...asked(call(1, '0')), results(result(1))],
      ...[...asked(call(2, '0')), results(result(2))],
    ])
    const ids = sent.input.map((item: Loose) => item.call_id).filter(Boolean)
    expect(ids[0]).toBe('0')
    expect(ids[1]).toBe('0')
    expect(ids[2]).toBe(ids[3])
    expect(ids[2]).not.toBe('0')
    expect(brokenResponsesRules(sent)).toEqual([])
  })
})

describe('tools', () => {
  const tools = [
    {
      name: 'get_weather',
      description: 'Tells it.',
      inputSchema: { properties: { city: { type: 'string' } } },
    },
    { name: 'query', description: '', inputSchema: { type: 'object' } },
  ]
  const sent = (given: Partial<RenderSettings>, more: Partial<ModelRequest> = {}) =>
    body([user('x')], given, { tools, ...more })

  it('are flat, with their schema, and never strict by accident', () => {
    expect(sent({}).tools).toEqual([
      {
        ...{ type: 'function', name: 'get_weather', description: 'Tells it.', strict: false },
        parameters: { type: 'object', properties: { city: { type: 'string' } } },
      },
      { type: 'function', name: 'query', parameters: { type: 'object' }, strict: false },
    ])
  })

  it('are strict where that is wished and can be, and a warning names the rest, once', () => {
    const warnings: OpenAIWarning[] = []
    const given = { strictTools: true, warn: (warning: OpenAIWarning) => warnings.push(warning) }
    const [first, second] = sent(given).tools
    expect(first).toMatchObject({
      strict: true,
      parameters: { required: ['city'], additionalProperties: false },
    })
    expect(second).toMatchObject({ strict: false, parameters: { type: 'object' } })
    expect(warnings).toEqual([
      {
        what: 'schema',
        message: 'The schema of the tool query: not strict: properties of any name are allowed at #.',
      },
    ])
  })

  it('may be custom, have fields of the vendor’s, and come beside the vendor’s own', () => {
    const format = { type: 'grammar', syntax: 'regex', definition: 'SELECT .*' }
    const given = {
      customTools: { query: { field: 'sql', format } },
      toolFields: { get_weather: { defer_loading: true } },
      providerTools: [{ type: 'web_search' }],
    }
    expect(sent(given).tools).toMatchObject([
      { type: 'web_search' },
      { type: 'function', name: 'get_weather', defer_loading: true },
      { type: 'custom', name: 'query', format },
    ])
    expect(sent(given, { toolChoice: { type: 'tool', name: 'query' } }).tool_choice).toEqual({
      type: 'custom',
      name: 'query',
    })
  })

  it.each([
    [{ type: 'auto' }, true, undefined, undefined],
    [{ type: 'auto' }, false, undefined, false],
    [{ type: 'any' }, true, 'required', undefined],
    [{ type: 'none' }, true, 'none', undefined],
    [{ type: 'tool', name: 'get_weather' }, false, { type: 'function', name: 'get_weather' }, false],
  ] as const)('%j, parallel: %s, is chosen as %j', (toolChoice, parallelToolCalls, choice, parallel) => {
    const chosen = sent({}, { toolChoice, parallelToolCalls })
    expect(chosen.tool_choice).toEqual(choice)
    expect(chosen.parallel_tool_calls).toBe(parallel)
  })

  it('that are not there take no choice', () => {
    const bare = body([user('x')], {}, { toolChoice: { type: 'none' }, parallelToolCalls: false })
    expect(Object.keys(bare)).not.toEqual(expect.arrayContaining(['tools']))
    expect(brokenResponsesRules(bare)).toEqual([])
  })
})

describe('an answer that has to fit a schema', () => {
  const schema = (required: string[]) => ({
    ...{ type: 'object', required },
    properties: { sum: { type: 'number' }, note: { type: 'string', format: 'uri' } },
  })
  const format = (outputSchema: Loose, warnings: OpenAIWarning[] = []) =>
    body([user('x')], { warn: (warning) => warnings.push(warning) }, { outputSchema }).text.format

  it('is asked for strictly where the schema allows it, and a warning names what had to go', () => {
    const warnings: OpenAIWarning[] = []
    expect(format(schema(['sum', 'note']), warnings)).toEqual({
      ...{ type: 'json_schema', name: 'answer', strict: true },
      schema: {
        ...{ type: 'object', required: ['sum', 'note'], additionalProperties: false },
        properties: { sum: { type: 'number' }, note: { type: 'string' } },
      },
    })
    expect(warnings).toEqual([
      {
        what: 'output_schema',
        message: 'The schema of the answer: format uri at #/properties/note was left out.',
      },
    ])
  })

  it.each([{ type: 'array', items: {} }, { type: 'string' }])(
    'goes into the instructions where the vendor takes no schema such as %j',
    (outputSchema) => {
      const warnings: OpenAIWarning[] = []
      const sent = body([user('x')], { warn: (warning) => warnings.push(warning) }, { outputSchema })
      expect(sent).not.toHaveProperty('text')
      expect(sent.instructions).toContain(JSON.stringify(outputSchema))
      expect(warnings).toMatchObject([{ what: 'output_schema' }])
    },
  )

  it('is asked for with null for a property that may be left out, as the inputs of tools are', () => {
    expect(format(schema(['sum']))).toMatchObject({
      strict: true,
      schema: {
        required: ['sum', 'note'],
        properties: { note: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
      },
    })
  })
})

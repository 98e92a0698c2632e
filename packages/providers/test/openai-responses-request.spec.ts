import type { AssistantPart, Message, ModelRequest } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import type { OpenAIWarning } from '../src/openai/index.ts'
import { requestRenderer, type RequestSettings } from '../src/openai-responses/request.ts'
import { request } from './kit/collect.ts'
import { call, result, results, user } from './kit/history.ts'
import type { Loose } from './kit/loose.ts'
import { carriedAs } from './kit/openai-fold.ts'
import { ownModels } from './kit/openai-transcripts.ts'
import { missing, recordedRequest } from './kit/recorded.ts'
import { brokenResponsesRules } from './kit/responses-rules.ts'

const settings: RequestSettings = {
  ...{ modelId: 'gpt-test', provider: 'openai', state: 'none', strictTools: false },
  ...{ customTools: {}, toolFields: {}, providerTools: [], approvalTool: 'mcp_approval', warn: () => {} },
}
const body = (
  messages: readonly Message[],
  given: Partial<RequestSettings> = {},
  more: Partial<ModelRequest> = {},
): Loose => requestRenderer({ ...settings, ...given })({ ...request, messages, ...more }, {}).body
const assistant = (parts: readonly AssistantPart[], more: object = {}): Message => ({
  ...{ role: 'assistant', parts, model: ownModels.responses, stopReason: 'end', partial: false },
  ...more,
})
const text = (words: string, more: object = {}): AssistantPart => ({ type: 'text', text: words, ...more })
const kept = (item: object, at: number, more: object = {}) => ({
  opaque: carriedAs('responses', { item, at, ...more }),
})

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

  it('stand behind one another, with what tools showed in them', () => {
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
    const sent = body([...asked(call(1, 'call_1', kept(item, 0))), results(result(1))])
    expect(sent.input.slice(1)).toMatchObject([{ caller, namespace: 'weather', id: 'fc_1' }, { caller }])
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

describe('what the vendor needs back', () => {
  const thought = (id: string, encrypted?: string): AssistantPart => ({
    ...{ type: 'reasoning', text: 'hm' },
    ...kept({ type: 'reasoning', id, summary: [], ...(encrypted && { encrypted_content: encrypted }) }, 0),
  })
  const said = text(
    'Yes',
    kept({ type: 'message', id: 'msg_1', status: 'completed', phase: 'final_answer' }, 1),
  )
  const search: AssistantPart = {
    ...{ type: 'provider', kind: 'web_search_call' },
    opaque: carriedAs('responses', {
      item: { type: 'web_search_call', id: 'ws_1', action: { query: 'x' } },
      at: 1,
    }),
  }
  const items = (parts: readonly AssistantPart[], more: object = {}, given: Partial<RequestSettings> = {}) =>
    body([user('x'), assistant(parts, more), user('y')], given).input.slice(1, -1)
  const plainYes = {
    type: 'message',
    role: 'assistant',
    phase: 'final_answer',
    content: [{ type: 'output_text', text: 'Yes' }],
  }

  it('goes back to the letter, ids, empty summary, status and phase included', () => {
    expect(items([thought('rs_1', 'ZW5j'), search, said])).toEqual([
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'ZW5j' },
      { type: 'web_search_call', id: 'ws_1', action: { query: 'x' } },
      {
        ...{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', phase: 'final_answer' },
        content: [{ type: 'output_text', text: 'Yes', annotations: [] }],
      },
    ])
  })

  it.each([
    ['has no encrypted content', [thought('rs_1'), search, said], {}],
    [
      'is another model’s',
      [thought('rs_1', 'ZW5j'), search, said],
      { model: { ...ownModels.responses, modelId: 'gpt-2' } },
    ],
    ['was cut', [thought('rs_1', 'ZW5j'), search, said], { partial: true }],
  ])('stays behind when the reply %s, and the rest goes without its ids', (_, parts, more) => {
    expect(items(parts, more)).toEqual([plainYes])
  })

  it('of another provider, or another wire, or another service, is no part of the request', () => {
    const bare = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Yes' }] }
    for (const model of [{ ...ownModels.responses, provider: 'azure' }, ownModels.chat]) {
      expect(items([thought('rs_1', 'ZW5j'), search, said], { model })).toEqual([bare])
    }
    expect(items([thought('rs_1', 'ZW5j'), said], {}, { provider: 'azure' })).toEqual([bare])
  })

  it('loses reasoning that nothing followed', () => {
    expect(items([said, thought('rs_1', 'ZW5j'), thought('rs_2', 'ZW5j')])).toHaveLength(1)
    expect(items([thought('rs_1', 'ZW5j')])).toEqual([])
  })

  it('puts the pieces of one message together again, citations and refusals included', () => {
    const cited = [{ type: 'url_citation', url: 'https://example.org/' }]
    const item = { type: 'message', id: 'msg_1' }
    const parts = [
      text('One', kept(item, 0, { content: { type: 'output_text', annotations: cited } })),
      text('No', kept(item, 0, { content: { type: 'refusal' } })),
      text('Other', kept({ type: 'message', id: 'msg_2' }, 1, { content: { type: 'output_text' } })),
    ]
    expect(items(parts)).toEqual([
      {
        ...{ type: 'message', id: 'msg_1', role: 'assistant' },
        content: [
          { type: 'output_text', text: 'One', annotations: cited },
          { type: 'refusal', refusal: 'No' },
        ],
      },
      {
        ...{ type: 'message', id: 'msg_2', role: 'assistant' },
        content: [{ type: 'output_text', text: 'Other', annotations: [] }],
      },
    ])
  })

  it('keeps a compaction even where the rest has to go', () => {
    const item = { type: 'compaction', id: 'cmp_1', encrypted_content: 'x' }
    const part: AssistantPart = { type: 'provider', kind: 'compaction', ...kept(item, 0) }
    expect(items([part, thought('rs_1'), said])).toEqual([item, plainYes])
  })

  it('leaves out what only the caller could have answered, with the reasoning that led to it', () => {
    const click: AssistantPart = {
      type: 'provider',
      kind: 'computer_call',
      ...kept({ type: 'computer_call', id: 'cu_1' }, 1),
    }
    expect(items([thought('rs_1', 'ZW5j'), click, said])).toEqual([plainYes])
  })

  it('sends no id that the vendor would refuse', () => {
    const odd = text('Yes', kept({ type: 'message', id: 'a9f0-ü' }, 0))
    expect(items([odd])[0]).not.toHaveProperty('id')
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
  const sent = (given: Partial<RequestSettings>, more: Partial<ModelRequest> = {}) =>
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

  it('are strict where that is wished and can be, and the rest is told of, once', () => {
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

  it('may be custom, have fields of the vendor’s, and stand beside the vendor’s own', () => {
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

  it('is asked for strictly where the schema allows it, and what had to go is told of', () => {
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

  it('is asked for as it is where the schema lets properties be left out, for null would not fit it', () => {
    const warnings: OpenAIWarning[] = []
    expect(format(schema(['sum']), warnings)).toMatchObject({ strict: false, schema: schema(['sum']) })
    expect(warnings[0]?.message).toContain('#/properties/note may be left out')
  })
})

const capital = {
  ...{ name: 'get_capital', description: '' },
  inputSchema: {
    ...{ type: 'object', properties: { country: { type: 'string' } } },
    ...{ required: ['country'], additionalProperties: false },
  },
}
const typed = (name: string, description: string, names: readonly string[], type = 'string') => ({
  ...{ name, description },
  inputSchema: {
    ...{ type: 'object', properties: Object.fromEntries(names.map((one) => [one, { type }])) },
    ...{ required: [...names], additionalProperties: false },
  },
})
const strict = { strictTools: true }

/** What was asked when a recording was made, in our words. */
const askedBy: { readonly [file: string]: Parameters<typeof body> } = {
  'background-queued': [
    [user('What is 2 + 2?')],
    { modelId: 'gpt-4o', extraBody: { background: true } },
    { instructions: '' },
  ],
  'code-interpreter': [
    [user("what's 123456 to the power of 123?")],
    {
      ...{ modelId: 'gpt-5', reasoning: { effort: 'low', summary: 'detailed' } },
      providerTools: [{ type: 'code_interpreter', container: { type: 'auto' } }],
    },
    { instructions: '' },
  ],
  'mcp-call': [
    [user('Can you tell me more about the pydantic/pydantic-ai repo? Keep your answer short')],
    {
      modelId: 'o4-mini',
      providerTools: [
        {
          ...{ type: 'mcp', server_label: 'deepwiki', server_url: 'https://mcp.deepwiki.com/mcp' },
          ...{ require_approval: 'never', allowed_tools: ['ask_question', 'read_wiki_structure'] },
        },
      ],
    },
    { instructions: 'You are a helpful assistant.' },
  ],
  'one-function-call': [
    [user('What is the capital of France?')],
    { modelId: 'gpt-4o', ...strict },
    { instructions: '', tools: [capital] },
  ],
  'phase-commentary': [
    [user('What is the capital of PotatoLand?')],
    { modelId: 'gpt-5.5', ...strict },
    {
      instructions: 'Briefly narrate what you are about to do before calling each tool.',
      tools: [capital],
    },
  ],
  'raw-cot-openrouter': [[user('What is 2+2?')], { modelId: 'openai/gpt-oss-20b' }, { instructions: '' }],
  'reasoning-function-call': [
    [user('Calculate 100 * 200 / 3')],
    { modelId: 'gpt-5', ...strict, reasoning: { effort: 'low' }, extraBody: { service_tier: 'flex' } },
    {
      ...{ instructions: '', toolChoice: { type: 'any' } },
      tools: [
        typed('final_result', 'The final response which ends this conversation', ['result'], 'integer'),
      ],
    },
  ],
  'reasoning-web-search': [
    [user('What is the weather in San Francisco today?')],
    {
      ...{ modelId: 'gpt-5', providerTools: [{ type: 'web_search', search_context_size: 'medium' }] },
      extraBody: { include: ['reasoning.encrypted_content', 'web_search_call.action.sources'] },
    },
    { instructions: 'You are a helpful assistant.' },
  ],
  text: [
    [
      user('What is the capital of France?'),
      assistant([
        call(1, 'fc_67e554a1de488191af0831d35cbe082e0794405d35281ae2', {
          ...{ name: 'get_capital', input: { country: 'France' } },
        }),
      ]),
      results(result(1, { name: 'get_capital', content: [{ type: 'text', text: 'Paris' }] })),
    ],
    { modelId: 'gpt-4o', ...strict },
    { instructions: '', tools: [capital] },
  ],
  'tool-search': [
    [user('What is the current USD to EUR exchange rate?')],
    {
      ...{ modelId: 'gpt-5.4', ...strict, providerTools: [{ type: 'tool_search' }] },
      toolFields: { get_exchange_rate: { defer_loading: true }, stock_lookup: { defer_loading: true } },
    },
    {
      instructions: '',
      tools: [
        typed('get_exchange_rate', 'Look up the current exchange rate between two currencies.', [
          'from_currency',
          'to_currency',
        ]),
        typed('stock_lookup', 'Look up stock price by ticker symbol.', ['symbol']),
      ],
    },
  ],
}

/** A body without what says nothing: nulls, blanks, and choices that hold anyway. Storing is a choice of ours. */
function essence({ store: _store, tool_choice: choice, include, ...rest }: Loose): Loose {
  const whole = { ...rest, ...(choice !== 'auto' && { tool_choice: choice }) }
  const extra = (include ?? []).filter((one: string) => one !== 'reasoning.encrypted_content')
  return JSON.parse(
    JSON.stringify({ ...whole, ...(extra.length > 0 && { include: extra }) }, (_, value) =>
      value === null || value === '' ? undefined : value,
    ),
  )
}

// The recordings belong to their sources and are not in the repository; the title says when they are not there.
describe.skipIf(missing)(`a request that was recorded${missing ? ` (${missing})` : ''}`, () => {
  it.each(Object.keys(askedBy))('%s is asked as it was then', (name) => {
    const ours = body(...askedBy[name]!)
    expect(essence(ours)).toEqual(essence(recordedRequest(`${name}.request.json`, 'openai-responses')))
    expect(brokenResponsesRules(ours)).toEqual([])
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
    render({ ...request, messages: [...history] }, {})
    history.push(assistant([text('Hi')]), user('Again'))
  }
  expect(reads).toBe(1)
})

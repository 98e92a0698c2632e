import { ConfigurationError, type Message, type ModelRequest } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { anthropic, type AnthropicOptions } from '../src/anthropic.ts'
import { object, sent, tool } from './kit/anthropic-sent.ts'
import { assistant, call, result, results, user } from './kit/history.ts'
import type { Loose } from './kit/loose.ts'
import { ownOpaque } from './kit/transcripts.ts'

describe('tools', () => {
  const tools = [tool('a', object({})), tool('b', object({}))]

  it('stream their inputs as they are written where that is asked for', async () => {
    const { body } = await sent({ eagerToolInputs: true }, { tools })
    expect(body['tools'].map((one: Loose) => one.eager_input_streaming)).toEqual([true, true])
  })

  it('get the fields that the caller adds by their name', async () => {
    const fields = { b: { defer_loading: true, input_examples: [{}] } }
    const { body } = await sent({ toolFields: fields, promptCache: '5m' }, { tools, instructions: '' })
    expect(body['tools']).toEqual([
      { name: 'a', description: 'Does it.', input_schema: object({}), cache_control: { type: 'ephemeral' } },
      { name: 'b', description: 'Does it.', input_schema: object({}), ...fields.b },
    ])
  })

  it('whose schema is a choice are offered as one object', async () => {
    const inputSchema = { oneOf: [object({ x: { type: 'string' } }), object({ y: { type: 'string' } })] }
    const { body, warnings } = await sent({}, { tools: [tool('a', inputSchema)] })
    expect(body['tools'][0].input_schema).toMatchObject({
      type: 'object',
      properties: { x: { type: 'string' }, y: { type: 'string' } },
    })
    expect(warnings).toEqual([
      { what: 'schema', message: 'The schema of the tool a: oneOf at # was put into the description.' },
    ])
  })

  it.each([
    ['none are offered', { type: 'any' as const }, []],
    ['it is not offered', { type: 'tool' as const, name: 'c' }, tools],
  ])('cannot be demanded where %s, which a warning says', async (_, toolChoice, offered) => {
    const { body, warnings } = await sent({}, { toolChoice, tools: offered })
    expect(body).not.toHaveProperty('tool_choice')
    expect(warnings).toEqual([
      {
        what: 'tool_choice',
        message: 'A call was demanded of a tool that the request does not offer, so none is.',
      },
    ])
  })

  it('of the vendor can be demanded by their name', async () => {
    const search = { type: 'web_search_20260318', name: 'web_search' }
    const { body } = await sent(
      { providerTools: [search] },
      { toolChoice: { type: 'tool', name: 'web_search' } },
    )
    expect(body['tool_choice']).toEqual({ type: 'tool', name: 'web_search' })
  })
})

describe('a thinking budget', () => {
  const thinking = { type: 'enabled', budgetTokens: 2000 } as const
  const tools = [tool('get_weather', object({}))]
  const open: Message[] = [user('x'), assistant([call(1, 'toolu_1')]), results(result(1))]
  it.each<[string, Partial<ModelRequest>]>([
    ['a call is demanded', { tools, toolChoice: { type: 'any' } }],
    ['there are too few tokens', { maxOutputTokens: 1024 }],
    ['the turn began without thinking', { tools, messages: open }],
  ])('is left out where %s, which a warning says', async (_, asked) => {
    const { body, warnings } = await sent({ thinking }, asked)
    expect(body).not.toHaveProperty('thinking')
    expect(warnings.map(({ what }) => what)).toEqual(['thinking'])
  })

  it('stays otherwise', async () => {
    const { body, warnings } = await sent({ thinking }, { tools })
    expect(body['thinking']).toEqual({ type: 'enabled', budget_tokens: 2000 })
    expect(warnings).toEqual([])
  })
})

describe('citations', () => {
  const file = { type: 'file' as const, mediaType: 'application/pdf', data: 'aGk=', name: 'a.pdf' }
  const messages: Message[] = [
    { role: 'user', parts: [file, { type: 'file', mediaType: 'text/plain', data: btoa('hi') }] },
    assistant([call(1, 'toolu_1')]),
    results(result(1, { content: [file] })),
  ]
  const documents = (body: Loose): Loose[] =>
    [...body.messages[0].content, ...body.messages[2].content[0].content].map(({ citations }) => citations)

  it('are asked for in all documents, those of tools too, or in none', async () => {
    const enabled = { enabled: true }
    expect(documents((await sent({ citations: true }, { messages })).body)).toEqual([
      enabled,
      enabled,
      enabled,
    ])
    expect(documents((await sent({}, { messages })).body)).toEqual([undefined, undefined, undefined])
  })

  it('give way to a schema of the answer, which a warning says', async () => {
    const asked = { messages, outputSchema: object({ sum: { type: 'number' } }) }
    const { body, warnings } = await sent({ citations: true }, asked)
    expect(documents(body)).toEqual([undefined, undefined, undefined])
    expect(warnings).toEqual([
      {
        what: 'citations',
        message: 'The answer has to fit a schema, with which the vendor takes no wish for citations.',
      },
    ])
  })
})

describe('what Anthropic does on its own side', () => {
  it('are MCP servers, each with its tools', async () => {
    const { body, betas } = await sent({
      mcpServers: [
        { name: 'wiki', url: 'https://example.org/mcp', authorizationToken: 'secret' },
        { name: 'docs', url: 'https://example.org/d', toolset: { default_config: { enabled: false } } },
      ],
      betas: ['a-2026'],
    })
    expect(body['mcp_servers']).toEqual([
      { type: 'url', name: 'wiki', url: 'https://example.org/mcp', authorization_token: 'secret' },
      { type: 'url', name: 'docs', url: 'https://example.org/d' },
    ])
    expect(body['tools']).toEqual([
      { type: 'mcp_toolset', mcp_server_name: 'wiki' },
      { type: 'mcp_toolset', mcp_server_name: 'docs', default_config: { enabled: false } },
    ])
    expect(betas).toBe('a-2026,mcp-client-2025-11-20')
  })

  it('are edits of the history', async () => {
    const contextEdits = [{ type: 'clear_tool_uses_20250919' }, { type: 'compact_20260112' }]
    const { body, betas } = await sent({ contextEdits })
    expect(body['context_management']).toEqual({ edits: contextEdits })
    expect(betas).toBe('context-management-2025-06-27,compact-2026-01-12')
    expect((await sent({ contextEdits: contextEdits.slice(0, 1) })).betas).toBe(
      'context-management-2025-06-27',
    )
  })

  it.each([
    ['a compaction', { type: 'compaction', content: 'So far.' }, 'compact-2026-01-12'],
    ['a signed compaction', { type: 'compaction', content: 'x', signature: 's' }, 'compact-2026-09-04'],
    ['a listing', { type: 'mcp_tool_listing', mcp_server_name: 'w', tools: [] }, 'mcp-client-2026-09-15'],
  ])('leaves %s in the history, which the request says it may hold', async (_, block, beta) => {
    const part = { type: 'provider' as const, kind: block.type, opaque: ownOpaque(block) }
    const messages = [user('x'), assistant([part, { type: 'text', text: 'Hi' }]), user('y')]
    const { body, betas } = await sent({}, { messages })
    // A signed one stands first, in the place of what it sums up.
    const place = 'signature' in block ? 0 : 1
    expect(body['messages'][place].content[0]).toEqual(block)
    expect(betas).toBe(beta)
  })

  it('needs no header where nothing of it is used', async () => {
    expect((await sent({})).betas).toBeUndefined()
  })
})

describe('options that cannot work', () => {
  it.each<[string, AnthropicOptions, RegExp]>([
    ['a temperature', { extraBody: { temperature: 0 } }, /got temperature in extraBody, .* refused/],
    ['a top_k', { extraBody: { top_k: 5 } }, /got top_k in extraBody/],
    ['no stream', { extraBody: { stream: false } }, /got stream in extraBody, .* no reply could be read/],
    ['a history of its own', { extraBody: { messages: [] } }, /got messages in extraBody/],
    ['a model of its own', { extraBody: { model: 'x' } }, /got model in extraBody/],
    ['a top_p', { extraBody: { top_p: 1 } }, /got top_p in extraBody/],
    [
      'two servers of one name',
      { mcpServers: [1, 2].map((n) => ({ name: 'a', url: `https://example.org/${n}` })) },
      /with the same name/,
    ],
    ['a server without a name', { mcpServers: [{ name: '', url: 'https://example.org' }] }, /without a name/],
  ])('such as %s are refused when the model is made', (_, options, message) => {
    expect(() => anthropic('claude-test-1', options)).toThrow(ConfigurationError)
    expect(() => anthropic('claude-test-1', options)).toThrow(message)
  })

  it('may work with a client of another cloud, which has the say', () => {
    const client = { messages: { create: () => Promise.reject(new Error('never called')) } }
    expect(anthropic('claude-test-1', { client, extraBody: { temperature: 0 } })).toMatchObject({
      provider: 'anthropic',
    })
  })
})

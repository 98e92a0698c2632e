// Each option of an adapter, given alone: what it changes in the request that goes out, as the service receives it.
import type { Model, ModelRequest } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { anthropic } from '@tallystick/providers/anthropic'
import { ollama } from '@tallystick/providers/ollama'
import { openai, openaiChat } from '@tallystick/providers/openai'
import { describe, expect, it } from 'vitest'
import { collect, request } from './kit/collect.ts'

const lookup = {
  name: 'look.up',
  description: 'Looks.',
  inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
} as const
const asked: ModelRequest = { ...request, tools: [lookup] }

interface Sent {
  readonly url: string
  readonly headers: Headers
  readonly body: JsonObject
}

/** What a model sends for one request, to a service that refuses it for good. */
async function sentBy(make: (fetch: typeof globalThis.fetch) => Model, given = asked): Promise<Sent> {
  const sent: Sent[] = []
  const model = make(async (input, init) => {
    const arrived = new Request(input, init)
    const body = (await arrived.json()) as JsonObject
    sent.push({ url: arrived.url, headers: arrived.headers, body })
    return new Response('{}', { status: 404, headers: { 'content-type': 'application/json' } })
  })
  await collect(model, given)
  expect(sent).toHaveLength(1)
  return sent[0]!
}

type Options = Readonly<Record<string, unknown>>
type Maker = (options: Options) => (fetch: typeof globalThis.fetch) => Model
const makers = {
  anthropic: (options) => (fetch) => anthropic('m', { apiKey: 'k', fetch, ...options }),
  openai: (options) => (fetch) => openai('m', { apiKey: 'k', fetch, ...options }),
  openaiChat: (options) => (fetch) => openaiChat('m', { apiKey: 'k', fetch, ...options }),
  ollama: (options) => (fetch) => ollama('m', { fetch, ...options }),
} satisfies Record<string, Maker>

/** The fields of a body that differ from those of the same call without the option. */
async function changed(maker: Maker, options: Options, given = asked): Promise<JsonObject> {
  const [plain, { body }] = [await sentBy(maker({}), given), await sentBy(maker(options), given)]
  const names = new Set([...Object.keys(plain.body), ...Object.keys(body)])
  const differing = [...names].filter(
    (name) => JSON.stringify(plain.body[name]) !== JSON.stringify(body[name]),
  )
  return Object.fromEntries(differing.map((name) => [name, body[name] ?? null]))
}

const wireName = 'look_up_de07e409'
const { inputSchema: schema } = lookup
const strict = { ...schema, additionalProperties: false }
const search = { type: 'web_search', name: 'web_search' }
const responses = {
  type: 'function',
  name: wireName,
  description: 'Looks.',
  parameters: schema,
  strict: false,
}
const chat = { name: wireName, description: 'Looks.', parameters: schema }
const messages = { name: wireName, description: 'Looks.', input_schema: schema }
const server = { name: 's', url: 'https://s.example', authorizationToken: 't', toolset: { configs: {} } }
const cached = (control?: object) => ({
  system: [{ type: 'text', text: 'Be brief.', ...control }],
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello', ...control }] }],
})

const cases: readonly (readonly [maker: keyof typeof makers, options: Options, fields: object])[] = [
  ['openai', { providerTools: [search] }, { tools: [search, responses] }],
  ['openai', { strictTools: true }, { tools: [{ ...responses, parameters: strict, strict: true }] }],
  [
    'openai',
    { customTools: { 'look.up': { field: 'q' } } },
    { tools: [{ type: 'custom', name: wireName, description: 'Looks.' }] },
  ],
  ['openai', { toolFields: { 'look.up': { x: 1 } } }, { tools: [{ ...responses, x: 1 }] }],
  ['openai', { reasoning: { effort: 'low' } }, { reasoning: { effort: 'low' } }],
  ['openai', { verbosity: 'low' }, { text: { verbosity: 'low' } }],
  ['openai', { include: ['x.y'] }, { include: ['reasoning.encrypted_content', 'x.y'] }],
  ['openai', { chain: true }, { store: true }],
  ['openai', { conversation: 'conv_1' }, { store: true, conversation: 'conv_1' }],
  ['openai', { promptCacheKey: 'key' }, { prompt_cache_key: 'key' }],
  ['openai', { serviceTier: 'flex' }, { service_tier: 'flex' }],
  ['openai', { metadata: { a: 'b' } }, { metadata: { a: 'b' } }],
  ['openai', { extraBody: { a: 1 } }, { a: 1 }],
  ['openai', { maxOutputTokens: 77 }, { max_output_tokens: 77 }],
  ['openai', { provider: 'mine' }, {}],
  [
    'openaiChat',
    { strictTools: true },
    { tools: [{ type: 'function', function: { ...chat, parameters: strict, strict: true } }] },
  ],
  [
    'openaiChat',
    { customTools: { 'look.up': { field: 'q' } } },
    { tools: [{ type: 'custom', custom: { name: wireName, description: 'Looks.' } }] },
  ],
  [
    'openaiChat',
    { toolFields: { 'look.up': { x: 1 } } },
    { tools: [{ type: 'function', function: { ...chat, x: 1 } }] },
  ],
  ['openaiChat', { reasoningEffort: 'low' }, { reasoning_effort: 'low' }],
  ['openaiChat', { verbosity: 'low' }, { verbosity: 'low' }],
  ['openaiChat', { promptCacheKey: 'key' }, { prompt_cache_key: 'key' }],
  ['openaiChat', { serviceTier: 'flex' }, { service_tier: 'flex' }],
  ['openaiChat', { metadata: { a: 'b' } }, { metadata: { a: 'b' } }],
  ['openaiChat', { extraBody: { a: 1 } }, { a: 1 }],
  ['openaiChat', { maxOutputTokens: 77 }, { max_completion_tokens: 77 }],
  ['openaiChat', { server: 'mistral' }, { stream_options: null }],
  ['openaiChat', { quirks: { streamUsage: false } }, { stream_options: null }],
  ['anthropic', { maxOutputTokens: 77 }, { max_tokens: 77 }],
  ['anthropic', { promptCache: '1h' }, cached({ cache_control: { type: 'ephemeral', ttl: '1h' } })],
  ['anthropic', { promptCache: 'off' }, cached()],
  ...(['adaptive', 'disabled', 'between_tools'] as const).map(
    (type) => ['anthropic', { thinking: { type } }, { thinking: { type } }] as const,
  ),
  [
    'anthropic',
    { thinking: { type: 'enabled', budgetTokens: 2048, display: 'omitted' } },
    { thinking: { type: 'enabled', budget_tokens: 2048, display: 'omitted' } },
  ],
  ['anthropic', { effort: 'low' }, { output_config: { effort: 'low' } }],
  ['anthropic', { strictTools: true }, { tools: [{ ...messages, input_schema: strict, strict: true }] }],
  ['anthropic', { eagerToolInputs: true }, { tools: [{ ...messages, eager_input_streaming: true }] }],
  ['anthropic', { toolFields: { 'look.up': { x: 1 } } }, { tools: [{ ...messages, x: 1 }] }],
  ['anthropic', { providerTools: [search] }, { tools: [messages, search] }],
  [
    'anthropic',
    { mcpServers: [server] },
    {
      tools: [messages, { type: 'mcp_toolset', mcp_server_name: 's', configs: {} }],
      mcp_servers: [{ type: 'url', name: 's', url: 'https://s.example', authorization_token: 't' }],
    },
  ],
  ['anthropic', { contextEdits: [{ type: 'x' }] }, { context_management: { edits: [{ type: 'x' }] } }],
  ['anthropic', { betas: ['x'] }, {}],
  ['anthropic', { extraBody: { a: 1 } }, { a: 1 }],
  ['ollama', { contextTokens: 99 }, { options: { num_ctx: 99 } }],
  ['ollama', { maxOutputTokens: 77 }, { options: { num_ctx: 16_384, num_predict: 77 } }],
  ['ollama', { thinking: 'high' }, { think: 'high' }],
  ['ollama', { thinking: false }, { think: false }],
  ['ollama', { keepAlive: -1 }, { keep_alive: -1 }],
  ['ollama', { parameters: { top_p: 0.5 } }, { options: { num_ctx: 16_384, top_p: 0.5 } }],
  ['ollama', { extraBody: { a: 1 } }, { a: 1 }],
]

describe('an option of an adapter', () => {
  it.each(cases)('of %s, %j, changes in the body: %j', async (maker, options, fields) => {
    expect(await changed(makers[maker], options)).toEqual(fields)
  })

  it('that is not given leaves the service its own way', async () => {
    const bodies = Object.values(makers).map(async (maker) => (await sentBy(maker({}))).body)
    expect(await Promise.all(bodies)).toEqual([
      {
        ...{ model: 'm', max_tokens: 32_000, stream: true, tools: [messages] },
        ...cached({ cache_control: { type: 'ephemeral' } }),
      },
      {
        ...{ model: 'm', instructions: 'Be brief.', input: [{ role: 'user', content: 'Hello' }] },
        ...{ stream: true, store: false, tools: [responses], include: ['reasoning.encrypted_content'] },
      },
      {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hello' },
        ],
        ...{ model: 'm', stream: true, stream_options: { include_usage: true } },
        tools: [{ type: 'function', function: chat }],
      },
      {
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Hello' },
        ],
        ...{ model: 'm', stream: true, truncate: false, shift: false, options: { num_ctx: 16_384 } },
        tools: [{ type: 'function', function: { ...chat, name: 'look.up' } }],
      },
    ])
  })

  it('of headers, a base address and betas is in the call beside the body', async () => {
    for (const [name, maker] of Object.entries(makers)) {
      const address = 'https://gateway.example/base'
      const { url, headers } = await sentBy(maker({ headers: { 'x-own': '1' }, baseURL: address }))
      expect(url).toMatch(/^https:\/\/gateway\.example\/base\/./)
      expect([name, headers.get('x-own'), headers.get('anthropic-beta')]).toEqual([name, '1', null])
    }
    const { headers } = await sentBy(makers.anthropic({ betas: ['x', 'y'] }))
    expect(headers.get('anthropic-beta')).toBe('x,y')
  })
})

import { AzureOpenAI } from 'openai'
import type { Model } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { openai, openaiChat } from '../src/openai.ts'
import { genaiPrices } from '../src/prices.ts'
import { chatBytes } from './kit/bytes.ts'
import { callsOf, collect, finished, lastUsage, request, textShown } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { chunk, content, finish, role } from './kit/openai-streams.ts'
import { answerOf, readingsIn } from './kit/readings.ts'

const apiKey = 'k'
const asked = {
  ...request,
  maxOutputTokens: 100,
  tools: [{ name: 'get_weather', description: 'Tells it.', inputSchema: { type: 'object' } }],
}

/** Each service as its line in `docs/model-services.md` makes it, and streams of its. */
type Service = readonly [name: string, make: (baseURL: string) => Model, streams: RegExp]

const services: readonly Service[] = [
  ['xai', (baseURL) => openaiChat('grok-4', { server: 'xai', baseURL, apiKey }), /^xai-/],
  [
    'azure',
    (baseURL) =>
      openaiChat('my-deployment', {
        ...{ server: 'azure', client: new AzureOpenAI({ apiKey, baseURL, apiVersion: '2026-01-01' }) },
      }),
    /^azure-/,
  ],
  ['groq', (baseURL) => openaiChat('llama-3.3-70b-versatile', { server: 'groq', baseURL, apiKey }), /^groq-/],
  [
    'mistral',
    (baseURL) => openaiChat('mistral-large-latest', { server: 'mistral', baseURL, apiKey }),
    /^mistral-/,
  ],
  [
    'openrouter',
    (baseURL) => openaiChat('minimax/minimax-m2:free', { server: 'openrouter', baseURL, apiKey }),
    /^openrouter-/,
  ],
  [
    'deepseek',
    (baseURL) => openaiChat('deepseek-reasoner', { server: 'deepseek', baseURL, apiKey }),
    /^deepseek-/,
  ],
  [
    'ollama',
    (baseURL) => openaiChat('gpt-oss:120b', { server: 'ollama', baseURL, apiKey: 'none' }),
    /^ollama-v1-/,
  ],
  [
    'vllm',
    (baseURL) => openaiChat('facebook/opt-125m', { server: 'vllm', baseURL, apiKey: 'none' }),
    /^vllm-/,
  ],
]

/** Services of which no stream was recorded: their lines are as their documentation says. */
const documented: readonly Service[] = [
  ...(
    [
      ['moonshot', 'kimi-k2.6'],
      ['gemini', 'gemini-3-pro'],
      ['zai', 'glm-5.2'],
      ['sglang', 'my-model'],
    ] as const
  ).map(([server, model]): Service => [
    server,
    (baseURL) => openaiChat(model, { server, baseURL, apiKey }),
    /^$/,
  ]),
]

const hello: Answer = { pieces: [chatBytes([role, content('Hello'), finish('stop')])] }

describe('the line of a service that speaks as OpenAI does', () => {
  it.each([...services, ...documented])('%s makes a model by its name, which answers', async (name, make) => {
    const server = await serve(hello)
    const model = make(server.url)
    expect(model.provider).toBe(name)
    const { signals, completed } = await collect(model, asked)
    expect(completed).toBe(true)
    expect(textShown(signals)).toBe('Hello')
    const { body } = server.arrivals[0]!
    expect(body['max_tokens'] ?? body['max_completion_tokens']).toBe(100)
    expect(body['tools']).toHaveLength(1)
  })

  const streams = services.flatMap(([name, make, own]) =>
    readingsIn('openai-compatible')
      .filter(({ file }) => own.test(file))
      .map((reading) => ({ name, make, reading, file: reading.file })),
  )

  it.each(streams)(
    '$name reads $file as the person does who wrote down what it says',
    async ({ make, reading }) => {
      const server = await serve(answerOf(reading))
      const { signals, failure } = await collect(make(server.url), asked)
      expect(failure && [failure.class, failure.retryable]).toEqual(reading.failure)
      const reply = finished(signals)
      expect(reply && [reply.stopReason, reply.rawStopReason]).toEqual(reading.stop)
      expect(callsOf(signals).map((call) => [call.providerCallId, call.name, call.input])).toEqual(
        reading.calls,
      )
      expect(callsOf(signals).every((call) => call.malformed === undefined)).toBe(true)
      expect(lastUsage(signals)).toEqual(reading.usage)
    },
  )

  it('has streams of each service', () => {
    expect(new Set(streams.map(({ name }) => name))).toEqual(new Set(services.map(([name]) => name)))
  })

  it('azure goes by its deployment, with the key and the version in their places', async () => {
    const first = chunk([], { id: '', model: '', prompt_filter_results: [] })
    const server = await serve({ pieces: [chatBytes([first, role, content('Hello'), finish('stop')])] })
    const client = new AzureOpenAI({ apiKey: 'azure-key', baseURL: server.url, apiVersion: '2026-01-01' })
    const { signals } = await collect(openaiChat('my-deployment', { server: 'azure', client }))
    expect(textShown(signals)).toBe('Hello')
    expect(server.arrivals[0]?.headers['api-key']).toBe('azure-key')
    expect(server.arrivals[0]?.path).toContain('api-version=2026-01-01')
    expect(openai('my-deployment', { client, provider: 'azure' }).provider).toBe('azure')
  })

  it('zai is offered tools, and no word about them, since it obeys none', async () => {
    const server = await serve(hello)
    const [, make] = documented.find(([name]) => name === 'zai') as Service
    await collect(make(server.url), { ...asked, toolChoice: { type: 'any' } })
    await collect(make(server.url), { ...asked, toolChoice: { type: 'none' } })
    const [forced, without] = server.arrivals.map(({ body }) => body)
    expect(forced).toHaveProperty('tools')
    for (const field of ['tool_choice', 'stream_options', 'parallel_tool_calls']) {
      expect(forced).not.toHaveProperty(field)
    }
    expect(without).not.toHaveProperty('tools')
  })

  it('xai is priced by its name in the data', () => {
    expect(genaiPrices()({ provider: 'xai', api: 'chat', modelId: 'grok-4' })).toMatchObject({ inputUsd: 3 })
  })
})

import { AzureOpenAI } from 'openai'
import type { Model } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import { openai, openaiChat } from '../src/openai.ts'
import { genaiPrices } from '../src/prices.ts'
import { chatBytes } from './kit/bytes.ts'
import { callsOf, collect, finished, lastUsage, request, textShown } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { chunk, content, finish, role } from './kit/openai-streams.ts'
import { missing, recordedBytes } from './kit/recorded.ts'

const apiKey = 'k'
const asked = {
  ...request,
  maxOutputTokens: 100,
  tools: [{ name: 'get_weather', description: 'Tells it.', inputSchema: { type: 'object' } }],
}

/** Each service as its line in `docs/model-services.md` makes it, and a stream of its that was recorded. */
type Service = readonly [name: string, make: (baseURL: string) => Model, file: string]

const services: readonly Service[] = [
  ['xai', (baseURL) => openaiChat('grok-4', { server: 'xai', baseURL, apiKey }), ''],
  [
    'azure',
    (baseURL) =>
      openaiChat('my-deployment', {
        ...{ server: 'azure', client: new AzureOpenAI({ apiKey, baseURL, apiVersion: '2026-01-01' }) },
      }),
    '',
  ],
  [
    'groq',
    (baseURL) => openaiChat('llama-3.3-70b-versatile', { server: 'groq', baseURL, apiKey }),
    'groq-tool-single-chunk.jsonl',
  ],
  [
    'mistral',
    (baseURL) => openaiChat('mistral-large-latest', { server: 'mistral', baseURL, apiKey }),
    'mistral-incremental-tool.jsonl',
  ],
  [
    'openrouter',
    (baseURL) => openaiChat('minimax/minimax-m2:free', { server: 'openrouter', baseURL, apiKey }),
    'openrouter-mid-stream-error.sse',
  ],
  [
    'deepseek',
    (baseURL) => openaiChat('deepseek-reasoner', { server: 'deepseek', baseURL, apiKey }),
    'deepseek-reasoning-tool.jsonl',
  ],
  [
    'ollama',
    (baseURL) => openaiChat('gpt-oss:120b', { server: 'ollama', baseURL, apiKey: 'none' }),
    'ollama-v1-gpt-oss-tool.sse',
  ],
  [
    'vllm',
    (baseURL) => openaiChat('facebook/opt-125m', { server: 'vllm', baseURL, apiKey: 'none' }),
    'vllm-text-length.sse',
  ],
]

const hello: Answer = { pieces: [chatBytes([role, content('Hello'), finish('stop')])] }

describe('the line of a service that speaks as OpenAI does', () => {
  it.each(services)('%s makes a model by its name, which answers', async (name, make) => {
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

  const recorded = services.flatMap(([name, make, file]) => (file === '' ? [] : [{ name, make, file }]))
  const whole = recorded.filter(({ name }) => name !== 'openrouter')

  // The recordings are not in the repository; the title says when they are not there.
  it.skipIf(missing).each(whole)(
    `$name reads what the service sent in $file${missing ? ` (${missing})` : ''}`,
    async ({ make, file }) => {
      const server = await serve({ pieces: [recordedBytes(file, 'openai-compatible')] })
      const { signals, failure } = await collect(make(server.url), asked)
      expect(failure).toBeUndefined()
      const reply = finished(signals)!
      expect(reply.stopReason).toBe(file.includes('tool') ? 'tool_use' : 'max_tokens')
      expect(callsOf(signals)).toHaveLength(file.includes('tool') ? 1 : 0)
      expect(callsOf(signals).every((call) => call.malformed === undefined)).toBe(true)
      const { inputTokens = 0, outputTokens = 0, reasoningTokens = 0 } = lastUsage(signals) ?? {}
      expect([inputTokens >= 0, reasoningTokens <= outputTokens]).toEqual([true, true])
    },
  )

  // As above: the recording is not in the repository.
  it.skipIf(missing)(
    'openrouter reads what it streamed, and the failure that it told of behind it',
    async () => {
      const { make, file } = recorded.find(({ name }) => name === 'openrouter')!
      const server = await serve({ pieces: [recordedBytes(file, 'openai-compatible')] })
      const { signals, failure } = await collect(make(server.url), asked)
      expect(signals.some(({ type }) => type === 'model_reasoning')).toBe(true)
      expect(finished(signals)).toBeUndefined()
      expect(failure).toMatchObject({ class: 'invalid_request', retryable: false })
    },
  )

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

  it('xai is priced by its name in the data', () => {
    expect(genaiPrices()({ provider: 'xai', api: 'chat', modelId: 'grok-4' })).toMatchObject({ inputUsd: 3 })
  })
})

import Anthropic from '@anthropic-ai/sdk'
import { createOpenAI } from '@ai-sdk/openai'
import { createRuntime, defineAgent, memoryLedger, type Model, type RunResult } from '@tallystick/core'
import { type ModelSettings } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { fromAiSdk } from '../src/ai-sdk.ts'
import { anthropic, type AnthropicOptions } from '../src/anthropic.ts'
import { ollama } from '../src/ollama.ts'
import { openai, openaiChat, type OpenAIChatOptions } from '../src/openai.ts'
import { serve, type Answer } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { says } from './kit/says.ts'

const everything: ModelSettings = { temperature: 0.2, topP: 0.9, stop: ['END', '\n'], seed: 7 }

interface Sent {
  readonly body: Loose
  readonly bodies: readonly Loose[]
  /** What is on record of what could not be told, of each call. */
  readonly warnings: readonly (readonly string[])[]
  readonly result: RunResult
}

/** The request of a run with these settings, and what its ledger holds. */
async function sent(
  modelAt: (url: string) => Model,
  answers: readonly Answer[],
  modelSettings: ModelSettings = everything,
): Promise<Sent> {
  const server = await serve(...answers)
  const model = modelAt(server.url)
  const agent = defineAgent({ name: 'writer', instructions: 'Be brief.', model, modelSettings })
  const ledger = memoryLedger()
  const run = createRuntime({ ledger }).run(agent, 'Write.')
  const result = await run.result
  const events = await Array.fromAsync(ledger.read(run.id))
  const bodies = server.arrivals.map(({ body }) => body)
  const started = events.flatMap((event) =>
    event.type === 'assistant_started' ? [event.warnings ?? []] : [],
  )
  return { body: bodies[0], bodies, warnings: started, result }
}

const refusal = (field: string): Answer => ({
  status: 400,
  headers: { 'content-type': 'application/json' },
  pieces: [
    JSON.stringify({
      error: {
        message: `Unsupported parameter: '${field}' is not supported with this model.`,
        ...{ type: 'invalid_request_error', param: field, code: 'unsupported_parameter' },
      },
    }),
  ],
})

it.each<[string, (url: string) => Model, keyof typeof says]>([
  ['Anthropic', (baseURL) => anthropic('m', { apiKey: 'k', baseURL }), 'anthropic'],
  ['OpenAI', (baseURL) => openai('m', { apiKey: 'k', baseURL }), 'responses'],
  ['a chat', (baseURL) => openaiChat('m', { apiKey: 'k', baseURL }), 'chat'],
  ['Ollama', (baseURL) => ollama('m', { baseURL }), 'ollama'],
  ['the AI SDK', (baseURL) => fromAiSdk(createOpenAI({ apiKey: 'k', baseURL }).chat('m')), 'chat'],
])('%s is sent no setting that says nothing, without a warning', async (_, modelAt, wire) => {
  for (const settings of [{}, { stop: [] }]) {
    const { body, warnings } = await sent(modelAt, [says[wire]('Hi')], settings)
    const fields = { ...body, ...body['options'] }
    for (const field of ['temperature', 'top_p', 'stop', 'stop_sequences', 'seed']) {
      expect(fields).not.toHaveProperty(field)
    }
    expect(warnings).toEqual([[]])
  }
})

describe('Anthropic', () => {
  const at = (options: AnthropicOptions) => (url: string) =>
    anthropic('claude-test-1', { apiKey: 'k', baseURL: url, ...options })

  it('takes texts that end a reply; what its API refuses is left out, on record', async () => {
    const { body, warnings, result } = await sent(at({}), [says.anthropic('Hi')])
    expect(result).toMatchObject({ reason: 'answered' })
    expect(body['stop_sequences']).toEqual(['END'])
    for (const field of ['temperature', 'top_p', 'seed']) expect(body).not.toHaveProperty(field)
    expect(warnings).toEqual([
      [
        'temperature was left out: the API version that is spoken refuses it.',
        'top_p was left out: the API version that is spoken refuses it.',
        'seed was left out: the vendor knows none.',
        'A text of blanks that ends a reply was left out: the vendor refuses it.',
      ],
    ])
  })

  it('takes a choice of words in an older API version, unless the model thinks', async () => {
    const headers = { 'anthropic-version': '2023-06-01' }
    const settings = { temperature: 0.2, topP: 0.9 }
    const older = await sent(at({ headers }), [says.anthropic('Hi')], settings)
    expect(older.body).toMatchObject({ temperature: 0.2, top_p: 0.9 })
    expect(older.warnings).toEqual([[]])
    const client = (url: string) =>
      anthropic('claude-test-1', {
        client: new Anthropic({ apiKey: 'k', baseURL: url, defaultHeaders: headers }),
      })
    expect((await sent(client, [says.anthropic('Hi')], settings)).body).toMatchObject({ top_p: 0.9 })
    const thinking = at({ headers, thinking: { type: 'adaptive' } })
    const thinks = await sent(thinking, [says.anthropic('Hi')], settings)
    expect(thinks.body).not.toHaveProperty('temperature')
    expect(thinks.warnings[0]).toContain('temperature was left out: the model thinks.')
  })
})

describe('OpenAI Responses', () => {
  const at = (url: string) =>
    openai('gpt-test-1', { apiKey: 'k', baseURL: url, extraBody: { temperature: 1 } })

  it('takes a choice of words; what it does not know is left out, on record', async () => {
    const { body, warnings } = await sent(at, [says.responses('Hi')])
    expect(body).toMatchObject({ temperature: 0.2, top_p: 0.9 })
    expect(body).not.toHaveProperty('stop')
    expect(body).not.toHaveProperty('seed')
    expect(warnings).toEqual([
      [
        'The service knows no texts that end a reply, so none were sent.',
        'The server takes no seed, so none was sent.',
      ],
    ])
  })

  it('goes without what a model refuses, on record, and does not ask again', async () => {
    const model = (url: string) => openai('gpt-test-1', { apiKey: 'k', baseURL: url })
    const { bodies, warnings, result } = await sent(
      model,
      [refusal('temperature'), refusal('top_p'), says.responses('Hi')],
      { temperature: 0.2, topP: 0.9 },
    )
    expect(result).toMatchObject({ reason: 'answered', turns: 1 })
    expect(bodies.map((body) => ['temperature', 'top_p'].filter((field) => field in body))).toEqual([
      ['temperature', 'top_p'],
      ['top_p'],
      [],
    ])
    expect(warnings).toEqual([
      [
        'The model takes no temperature, so it was left out.',
        'The model takes no top_p, so it was left out.',
      ],
    ])
  })
})

describe('a server of Chat Completions', () => {
  const at = (options: OpenAIChatOptions) => (url: string) =>
    openaiChat('m', { apiKey: 'k', baseURL: url, ...options })

  it('gets every setting that it takes', async () => {
    const { body, warnings } = await sent(at({}), [says.chat('Hi')])
    expect(body).toMatchObject({ temperature: 0.2, top_p: 0.9, stop: ['END', '\n'], seed: 7 })
    expect(warnings).toEqual([[]])
    const stop = ['a', 'b', 'c', 'd', 'e']
    const many = await sent(at({}), [says.chat('Hi')], { stop })
    expect(many.body['stop']).toEqual(['a', 'b', 'c', 'd'])
    expect(many.warnings[0]?.[0]).toContain('only the first 4')
    expect((await sent(at({ server: 'vllm' }), [says.chat('Hi')], { stop })).body['stop']).toEqual(stop)
  })

  it('has its own word for a seed, or none', async () => {
    const mistral = await sent(at({ server: 'mistral' }), [says.chat('Hi')])
    expect(mistral.body).toMatchObject({ random_seed: 7 })
    expect(mistral.body).not.toHaveProperty('seed')
    const deepseek = await sent(at({ server: 'deepseek' }), [says.chat('Hi')])
    expect(deepseek.body).not.toHaveProperty('seed')
    expect(deepseek.warnings).toEqual([['The server takes no seed, so none was sent.']])
  })

  it('that refuses one is asked without it; any other refusal stays one', async () => {
    const { bodies, warnings } = await sent(at({}), [refusal('stop'), says.chat('Hi')])
    expect(bodies[1]).not.toHaveProperty('stop')
    expect(warnings).toEqual([['The model takes no stop, so it was left out.']])
    const [status, headers] = [400, { 'content-type': 'application/json' }]
    const message = "Invalid 'temperature': expected a value of at most 2."
    const outOfBounds = { status, headers, pieces: [JSON.stringify({ error: { message } })] }
    const { bodies: once, result } = await sent(at({}), [outOfBounds, says.chat('Hi')], { temperature: 3 })
    expect(once).toHaveLength(1)
    expect(result).toMatchObject({ reason: 'model_failed', detail: expect.stringContaining('temperature') })
    const insisting = at({ extraBody: { seed: 1 } })
    const { bodies: twice } = await sent(insisting, [refusal('seed'), refusal('seed')], { seed: 2 })
    expect(twice).toHaveLength(2)
  })
})

it('Ollama takes them among its own settings of a model', async () => {
  const at = (url: string) => ollama('qwen-test', { baseURL: url, parameters: { temperature: 1, top_k: 5 } })
  const { body, warnings } = await sent(at, [says.ollama('Hi')])
  expect(body['options']).toMatchObject({
    ...{ temperature: 0.2, top_p: 0.9, stop: ['END', '\n'], seed: 7, top_k: 5 },
  })
  expect(warnings).toEqual([[]])
})

it('a provider of the AI SDK takes them by the names of the AI SDK', async () => {
  const at = (url: string) => fromAiSdk(createOpenAI({ apiKey: 'k', baseURL: url }).chat('gpt-test'))
  const { body } = await sent(at, [says.chat('Hi')], {
    ...everything,
    providerOptions: { openai: { user: 'ada' } },
  })
  expect(body).toMatchObject({
    ...{ temperature: 0.2, top_p: 0.9, stop: ['END', '\n'], seed: 7, user: 'ada' },
  })
})

describe('options of one provider', () => {
  const providerOptions = {
    anthropic: { metadata: { user_id: 'u1' }, output_config: { effort: 'low' } },
    openai: { service_tier: 'flex', text: { verbosity: 'low' }, model: 'other' },
    ollama: { keep_alive: 60, options: { top_k: 5 } },
    azure: { service_tier: 'priority' },
  }
  const output = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } as const

  it('go to models of that provider only, over what the adapter wrote, and into its objects', async () => {
    const claude = await sent(
      (url) => anthropic('m', { apiKey: 'k', baseURL: url }),
      [says.anthropic('Hi')],
      {
        providerOptions,
      },
    )
    expect(claude.body).toMatchObject({ metadata: { user_id: 'u1' }, output_config: { effort: 'low' } })
    expect(claude.body).not.toHaveProperty('service_tier')
    const qwen = await sent((url) => ollama('m', { baseURL: url }), [says.ollama('Hi')], { providerOptions })
    expect(qwen.body).toMatchObject({ keep_alive: 60, options: { top_k: 5, num_ctx: 16_384 } })
    const azure = await sent(
      (url) => openaiChat('m', { apiKey: 'k', baseURL: url, provider: 'azure' }),
      [says.chat('Hi')],
      { providerOptions },
    )
    expect(azure.body).toMatchObject({ service_tier: 'priority' })
  })

  it('leave alone what the adapter has to write itself, on record', async () => {
    const server = await serve(says.responses('{"a":"x"}'))
    const model = openai('gpt-test-1', { apiKey: 'k', baseURL: server.url })
    const agent = defineAgent({ name: 'a', instructions: '', model, output })
    const ledger = memoryLedger()
    const run = createRuntime({ ledger }).run(agent, 'Go.', { modelSettings: { providerOptions } })
    expect(await run.result).toMatchObject({ output: { a: 'x' } })
    expect(server.arrivals[0]?.body).toMatchObject({
      model: 'gpt-test-1',
      service_tier: 'flex',
      text: { verbosity: 'low', format: { type: 'json_schema' } },
    })
    const events = await Array.fromAsync(ledger.read(run.id))
    expect(events.find(({ type }) => type === 'assistant_started')).toMatchObject({
      warnings: [expect.stringContaining('The provider option model was left out')],
    })
  })
})

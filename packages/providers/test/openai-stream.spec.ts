import { ConfigurationError } from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import OpenAI, { AzureOpenAI } from 'openai'
import { describe, expect, it } from 'vitest'
import { openai, openaiChat, type OpenAIClient } from '../src/openai.ts'
import { callsOf, collect, finished, request, textShown } from './kit/collect.ts'
import { dataRecord } from './kit/bytes.ts'
import { serve } from './kit/loopback.ts'
import { choice, content } from './kit/openai-streams.ts'
import type { Loose } from './kit/loose.ts'
import { ManualClock } from './kit/manual-clock.ts'
import { openaiWires } from './kit/wires.ts'
import { forbidConsole, forbidUnhandledRejections } from './kit/quiet.ts'

forbidConsole()
forbidUnhandledRejections()

describe.each(openaiWires)('a call over HTTP to $name', ({ make, bytes, hello, toolCall }) => {
  it('gets its key from a function, anew for every call', async () => {
    const server = await serve({ pieces: [bytes(hello)] })
    let count = 0
    const model = make({ apiKey: () => Promise.resolve(`key-${++count}`), baseURL: server.url })
    await collect(model)
    await collect(model)
    expect(server.arrivals.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer key-1',
      'Bearer key-2',
    ])
  })

  it('takes the official client as it is, and its log settings with it', async () => {
    const server = await serve({ pieces: [bytes(hello)] })
    const client = new OpenAI({ apiKey: 'k', baseURL: server.url, logLevel: 'off' })
    expect(textShown((await collect(make({ client }))).signals)).toBe('Hello')
  })

  it('takes the client of another cloud, with its address and its way to show the key', async () => {
    const server = await serve({ pieces: [bytes(hello)] })
    const client = new AzureOpenAI({ apiKey: 'azure-key', baseURL: server.url, apiVersion: '2026-01-01' })
    expect(textShown((await collect(make({ client }))).signals)).toBe('Hello')
    expect(server.arrivals[0]?.headers['api-key']).toBe('azure-key')
    expect(server.arrivals[0]?.path).toContain('api-version=2026-01-01')
  })

  it('takes the nulls away again that a strict tool made the model write', async () => {
    const inputSchema = {
      ...{ type: 'object', required: ['city'] },
      properties: { city: { type: 'string' }, days: { type: 'integer' } },
    }
    const tools = [{ name: 'get_weather', description: 'Tells it.', inputSchema }]
    const server = await serve({ pieces: [bytes(toolCall('get_weather', '{"city":"Seoul","days":null}'))] })
    const inputOf = async (strictTools: boolean) => {
      const model = make({ apiKey: 'k', baseURL: server.url, strictTools })
      return callsOf((await collect(model, { ...request, tools })).signals)[0]?.input
    }
    expect(await inputOf(true)).toEqual({ city: 'Seoul' })
    expect(await inputOf(false)).toEqual({ city: 'Seoul', days: null })
  })
})

describe('the end of an answer', () => {
  const [responses, chat] = openaiWires

  it('of a chat that gave its reason is whole, though its last record never comes', async () => {
    const records = chat!.hello.map((event) => chat!.record(event))
    const server = await serve({ pieces: records })
    const { signals } = await collect(openaiChat('gpt-test', { apiKey: 'k', baseURL: server.url }))
    expect(finished(signals)?.stopReason).toBe('end')
  })

  it('of a chat that gave its reason is whole, though the connection breaks after it', async () => {
    const records = chat!.hello.map((event) => chat!.record(event))
    const server = await serve({ pieces: records, ending: 'stall' })
    const signals: ModelSignal[] = []
    await new Promise<void>((resolve, reject) => {
      openaiChat('gpt-test', { apiKey: 'k', baseURL: server.url })
        .stream(request, { clock: new ManualClock() })
        .subscribe({
          next: (signal) => {
            signals.push(signal)
            if (signal.type === 'model_usage') server.arrivals[0]?.socket.resetAndDestroy()
          },
          complete: resolve,
          error: reject,
        })
    })
    expect(finished(signals)?.stopReason).toBe('end')
  })

  it('of a chat that gave its reason and then falls silent is taken for whole', async () => {
    const records = chat!.hello.map((event) => chat!.record(event))
    const server = await serve({ pieces: records, ending: 'stall' })
    const clock = new ManualClock()
    const signals: ModelSignal[] = []
    await new Promise<void>((resolve, reject) => {
      openaiChat('gpt-test', { apiKey: 'k', baseURL: server.url, idleTimeoutMs: 1000 })
        .stream(request, { clock })
        .subscribe({
          next: (signal) => {
            signals.push(signal)
            if (signal.type === 'model_usage') setImmediate(() => clock.advance(1000))
          },
          complete: resolve,
          error: reject,
        })
    })
    expect(finished(signals)?.stopReason).toBe('end')
    await (
      await server.arrival(0)
    ).closed
  })

  it('that another client hands on without HTTP is read too', async () => {
    const seen: { body: Loose; retries: number }[] = []
    const client: OpenAIClient = {
      responses: {
        create: async (body, { maxRetries }) => {
          seen.push({ body, retries: maxRetries })
          return (async function* () {
            yield* responses!.hello
          })()
        },
      },
    }
    const { signals } = await collect(openai('gpt-test', { client }))
    expect(textShown(signals)).toBe('Hello')
    expect(seen).toMatchObject([{ body: { model: 'gpt-test', stream: true }, retries: 0 }])
  })
})

describe('a chat whose server gives it up in the middle of a piece', () => {
  it('ends there: what the same piece says after that is not shown', async () => {
    const events = [content('Half'), choice({ content: ' more' }, 'error'), content(' never')]
    const server = await serve({ pieces: [events.map(dataRecord).join('')] })
    const { signals, failure } = await collect(openaiChat('gpt-test', { apiKey: 'k', baseURL: server.url }))
    expect(textShown(signals)).toBe('Half more')
    expect(failure).toMatchObject({ class: 'server', message: /gave the reply up/ })
  })
})

describe('options that cannot work', () => {
  const client = new OpenAI({ apiKey: 'k' })
  it.each([
    ['an empty model id', () => openai(' ')],
    ['an empty model id for a chat', () => openaiChat('')],
    ['a client and a key', () => openai('m', { client, apiKey: 'k' })],
    ['a client and an address', () => openaiChat('m', { client, baseURL: 'http://127.0.0.1/' })],
    ['an empty provider', () => openai('m', { provider: ' ' })],
    ['a timeout of nothing', () => openai('m', { idleTimeoutMs: 0 })],
    ['a timeout that no timer can wait', () => openaiChat('m', { responseTimeoutMs: 2 ** 31 })],
    ['tokens by halves', () => openai('m', { maxOutputTokens: 0.5 })],
    ['a conversation and a chain', () => openai('m', { chain: true, conversation: 'conv_1' })],
    ['a conversation without an id', () => openai('m', { conversation: '' })],
    ['an unknown server', () => openaiChat('m', { server: 'nobody' as 'openai' })],
  ])('are refused at once: %s', (_, make) => {
    expect(make).toThrow(ConfigurationError)
  })
})

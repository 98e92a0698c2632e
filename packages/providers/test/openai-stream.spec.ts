import { ConfigurationError } from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import OpenAI, { AzureOpenAI } from 'openai'
import { describe, expect, it } from 'vitest'
import { openai, openaiChat, type OpenAIClient } from '../src/openai.ts'
import { callsOf, collect, finished, request, textShown } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { ManualClock } from './kit/manual-clock.ts'
import { wires } from './kit/openai-wires.ts'
import { forbidConsole, forbidUnhandledRejections } from './kit/quiet.ts'

forbidConsole()
forbidUnhandledRejections()

describe.each(wires)('a call over HTTP to $name', ({ make, path, bytes, hello, record, toolCall }) => {
  it('asks once, as a stream, with the key and the headers it was given', async () => {
    const server = await serve({ pieces: [bytes(hello)] })
    const model = make({ apiKey: 'test-key', baseURL: `${server.url}/v1`, headers: { 'x-team': 'blue' } })
    const { signals, completed } = await collect(model)
    expect(completed).toBe(true)
    expect(textShown(signals)).toBe('Hello')
    expect(server.arrivals).toHaveLength(1)
    expect(server.arrivals[0]?.path).toBe(`/v1${path}`)
    expect(server.arrivals[0]?.headers).toMatchObject({ authorization: 'Bearer test-key', 'x-team': 'blue' })
    expect(server.arrivals[0]?.body).toMatchObject({ model: 'gpt-test', stream: true })
  })

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

  it('is made anew by each subscription, and by none before', async () => {
    const server = await serve({ pieces: [bytes(hello)] })
    const call = make({ apiKey: 'k', baseURL: server.url }).stream(request, { clock: new ManualClock() })
    expect(server.arrivals).toHaveLength(0)
    for (let times = 1; times <= 2; times++) {
      await new Promise<void>((resolve, reject) => call.subscribe({ complete: resolve, error: reject }))
      expect(server.arrivals).toHaveLength(times)
    }
  })

  it('leaves no timer running', async () => {
    const server = await serve(
      { pieces: [bytes(hello)] },
      { status: 500 },
      { pieces: [record(hello[0])], ending: 'break' },
    )
    const clock = new ManualClock()
    const model = make({ apiKey: 'k', baseURL: server.url })
    for (let place = 0; place < 3; place++) {
      await collect(model, request, clock)
      await clock.idle()
    }
    expect(server.arrivals).toHaveLength(3)
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

  it('gives calls back under the names that the tools have here', async () => {
    const server = await serve({ pieces: [bytes(hello)] })
    const tools = [{ name: 'files/read', description: 'Reads.', inputSchema: { type: 'object' } }]
    await collect(make({ apiKey: 'k', baseURL: server.url }), { ...request, tools })
    const [tool]: Loose[] = server.arrivals[0]!.body['tools']
    const wireName: string = tool.name ?? tool.function.name
    expect(wireName).toMatch(/^files_read_[0-9a-f]{8}$/)
    const second = await serve({ pieces: [bytes(toolCall(wireName, '{}'))] })
    const answer = await collect(make({ apiKey: 'k', baseURL: second.url }), { ...request, tools })
    expect(callsOf(answer.signals).map((call) => call.name)).toEqual(['files/read'])
  })
})

describe('the end of an answer', () => {
  const [responses, chat] = wires

  it('leaves the connection to the next call when it was read to its end', async () => {
    const server = await serve({ pieces: [responses!.bytes(responses!.hello)], ending: 'stall' })
    const model = openai('gpt-test', { apiKey: 'k', baseURL: server.url })
    const clock = new ManualClock()
    await collect(model, request, clock)
    server.arrivals[0]?.end()
    await clock.idle()
    // Node's fetch gives a connection back once it has left the parser that read the end.
    await new Promise((resolve) => setImmediate(resolve))
    await collect(model)
    expect(server.arrivals[1]?.socket === server.arrivals[0]?.socket).toBe(true)
  })

  it('is the terminal event, and a connection that stays open after it is closed a second later', async () => {
    const server = await serve({ pieces: [responses!.bytes(responses!.hello)], ending: 'stall' })
    const clock = new ManualClock()
    const { completed } = await collect(
      openai('gpt-test', { apiKey: 'k', baseURL: server.url }),
      request,
      clock,
    )
    expect(completed).toBe(true)
    expect(clock.waiting).toBe(1)
    clock.advance(1000)
    await server.arrivals[0]?.closed
  })

  it('of a chat is its last record, and a connection that stays open after it is closed', async () => {
    const server = await serve({ pieces: [chat!.bytes(chat!.hello)], ending: 'stall' })
    const { completed } = await collect(openaiChat('gpt-test', { apiKey: 'k', baseURL: server.url }))
    expect(completed).toBe(true)
    await server.arrivals[0]?.closed
  })

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

import Anthropic from '@anthropic-ai/sdk'
import { ConfigurationError } from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { take } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { anthropic, type AnthropicClient } from '../src/anthropic.ts'
import { observeResponse } from '../src/shared/body.ts'
import { sseBytes, sseRecord } from './kit/bytes.ts'
import { callsOf, collect, finished, request, textShown } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import { ManualClock } from './kit/manual-clock.ts'
import { done, json, open, rich, start, stop, text, textBlock, toolBlock } from './kit/streams.ts'
import type { Loose } from './kit/loose.ts'

const hello = [start(), ...textBlock(0, 'Hel', 'lo'), done('end_turn'), stop]

describe('a call over HTTP', () => {
  it('asks once, as a stream, with the key and the headers it was given', async () => {
    const server = await serve({ pieces: [sseBytes(hello)] })
    const model = anthropic('claude-test-1', {
      apiKey: 'test-key',
      baseURL: server.url,
      betas: ['a-2026', 'b-2026'],
      headers: { 'x-team': 'blue' },
    })
    const { signals, completed } = await collect(model)
    expect(completed).toBe(true)
    expect(textShown(signals)).toBe('Hello')
    expect(server.arrivals).toHaveLength(1)
    expect(server.arrivals[0]?.path).toBe('/v1/messages')
    expect(server.arrivals[0]?.headers).toMatchObject({
      authorization: 'Bearer test-key',
      'anthropic-beta': 'a-2026,b-2026',
      'x-team': 'blue',
    })
    expect(server.arrivals[0]?.body).toMatchObject({
      model: 'claude-test-1',
      stream: true,
      max_tokens: 32_000,
    })
  })

  it('is made anew by each subscription, and by none before', async () => {
    const server = await serve({ pieces: [sseBytes(hello)] })
    const model = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url })
    const call = model.stream(request, { clock: new ManualClock() })
    expect(server.arrivals).toHaveLength(0)
    for (let times = 1; times <= 2; times++) {
      await new Promise<void>((resolve, reject) => call.subscribe({ complete: resolve, error: reject }))
      expect(server.arrivals).toHaveLength(times)
    }
  })

  it('leaves the connection to the next call when the answer was read to its end', async () => {
    const server = await serve({ pieces: [sseBytes(hello)], ending: 'stall' })
    const model = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url })
    const clock = new ManualClock()
    await collect(model, request, clock)
    server.arrivals[0]?.end()
    await clock.idle()
    // Node's fetch gives a connection back once it has left the parser that read the end.
    await new Promise((resolve) => setImmediate(resolve))
    await collect(model)
    expect(server.arrivals[1]?.socket === server.arrivals[0]?.socket).toBe(true)
  })

  it('completes at the terminal event, and closes a connection that stays open after it a second later', async () => {
    const server = await serve({ pieces: [sseBytes(hello)], ending: 'stall' })
    const clock = new ManualClock()
    const { completed } = await collect(
      anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }),
      request,
      clock,
    )
    expect(completed).toBe(true)
    expect(clock.waiting).toBe(1)
    clock.advance(1000)
    await server.arrivals[0]?.closed
  })

  it('leaves no timer running', async () => {
    const server = await serve(
      { pieces: [sseBytes(hello)] },
      { status: 500 },
      { pieces: [sseRecord(start())], ending: 'break' },
    )
    const clock = new ManualClock()
    const model = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url })
    for (let place = 0; place < 3; place++) {
      await collect(model, request, clock)
      await clock.idle()
    }
    expect(server.arrivals).toHaveLength(3)
  })

  it('takes a client of the caller, and uses its raw stream only', async () => {
    const seen: { body: Loose; retries: number }[] = []
    const client: AnthropicClient = {
      messages: {
        create: async (body, { maxRetries }) => {
          seen.push({ body, retries: maxRetries })
          return (async function* () {
            yield* hello
          })()
        },
      },
    }
    const { signals } = await collect(anthropic('claude-test-1', { client }))
    expect(textShown(signals)).toBe('Hello')
    expect(seen).toMatchObject([{ body: { model: 'claude-test-1', stream: true }, retries: 0 }])
  })

  it('takes the official client as it is', async () => {
    const server = await serve({ pieces: [sseBytes(hello)] })
    const client = new Anthropic({ apiKey: 'k', baseURL: server.url })
    expect(textShown((await collect(anthropic('claude-test-1', { client }))).signals)).toBe('Hello')
  })

  it('gives calls back under the names that the tools have here', async () => {
    const server = await serve({ pieces: [sseBytes(hello)] })
    const model = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url })
    const asked = {
      ...request,
      tools: [{ name: 'files/read', description: 'Reads.', inputSchema: { type: 'object' } }],
    }
    await collect(model, asked)
    const wireName: string = server.arrivals[0]?.body['tools'][0].name
    const second = await serve({
      pieces: [sseBytes([start(), ...toolBlock(0, 'toolu_1', wireName, '{}'), done('tool_use'), stop])],
    })
    const { signals } = await collect(anthropic('claude-test-1', { apiKey: 'k', baseURL: second.url }), asked)
    expect(callsOf(signals).map((call) => call.name)).toEqual(['files/read'])
  })
})

describe('options that cannot work', () => {
  it.each([
    ['an empty model id', () => anthropic(' ')],
    [
      'a client and a key',
      () => anthropic('m', { client: { messages: { create: () => Promise.reject() } }, apiKey: 'k' }),
    ],
    ['a timeout of nothing', () => anthropic('m', { idleTimeoutMs: 0 })],
    ['a timeout that no timer can wait', () => anthropic('m', { responseTimeoutMs: 2 ** 31 })],
    ['tokens by halves', () => anthropic('m', { maxOutputTokens: 0.5 })],
  ])('are refused at once: %s', (_, make) => {
    expect(make).toThrow(ConfigurationError)
  })
})

describe('silence', () => {
  const limits = { apiKey: 'k', responseTimeoutMs: 5000, idleTimeoutMs: 1000 }

  it('before the answer ends the call after the response timeout, and closes the connection', async () => {
    const server = await serve({ mute: true })
    const clock = new ManualClock()
    const outcome = collect(anthropic('claude-test-1', { ...limits, baseURL: server.url }), request, clock)
    const arrival = await server.arrival(0)
    clock.advance(4999)
    expect(clock.waiting).toBe(1)
    clock.advance(1)
    expect((await outcome).failure).toMatchObject({ class: 'timeout', retryable: true })
    await arrival.closed
    expect(clock.waiting).toBe(0)
  })

  it('in the reply ends the call after the idle timeout, and keeps what was said', async () => {
    const server = await serve({
      headers: { 'request-id': 'req_7' },
      pieces: [sseBytes([start(), open(0, { type: 'text', text: '' }), text(0, 'Hm')])],
      ending: 'stall',
    })
    const clock = new ManualClock()
    const signals: ModelSignal[] = []
    let failure: unknown
    const heardText = new Promise<void>((resolve) => {
      anthropic('claude-test-1', { ...limits, baseURL: server.url })
        .stream(request, { clock })
        .subscribe({
          next: (signal) => {
            signals.push(signal)
            if (signal.type === 'model_text') resolve()
          },
          error: (error: unknown) => (failure = error),
        })
    })
    await heardText
    clock.advance(999)
    expect(failure).toBeUndefined()
    clock.advance(1)
    expect(failure).toMatchObject({ class: 'timeout', retryable: true, requestId: 'req_7' })
    await (
      await server.arrival(0)
    ).closed
    expect(textShown(signals)).toBe('Hm')
    expect(finished(signals)).toBeUndefined()
  })

  it('is broken by keep-alives, which the official client swallows', async () => {
    const server = await serve({ pieces: [sseRecord(start())], ending: 'stall' })
    const clock = new ManualClock()
    let passed: () => void = () => {}
    // Runs outside the adapter's own watch: the adapter has received what it lets through.
    const client = new Anthropic({
      apiKey: 'k',
      baseURL: server.url,
      middleware: [async (asked, next) => observeResponse(await next(asked), { onBytes: () => passed() })],
    })
    const piece = () => new Promise<void>((resolve) => (passed = resolve))
    const first = piece()
    const outcome = collect(anthropic('claude-test-1', { idleTimeoutMs: 1000, client }), request, clock)
    const arrival = await server.arrival(0)
    await first
    for (let times = 0; times < 3; times++) {
      clock.advance(900)
      const received = piece()
      await arrival.send('event: ping\ndata: {"type": "ping"}\n\n')
      await received
    }
    clock.advance(900)
    await arrival.send([...textBlock(0, 'At last'), done('end_turn'), stop].map(sseRecord).join(''))
    expect(textShown((await outcome).signals)).toBe('At last')
  })
})

describe('an answer that is not a whole reply', () => {
  it('cut cleanly in a text is truncated, and keeps the text', async () => {
    const server = await serve({
      pieces: [sseBytes([start(), open(0, { type: 'text', text: '' }), text(0, 'Half')])],
    })
    const { signals, failure } = await collect(
      anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }),
    )
    expect(failure).toMatchObject({ class: 'truncated', retryable: true })
    expect(textShown(signals)).toBe('Half')
  })

  it('broken off by the network is a network failure', async () => {
    const server = await serve({
      pieces: [sseBytes([start(), open(0, { type: 'text', text: 'Half' })])],
      ending: 'stall',
    })
    const clock = new ManualClock()
    const outcome = new Promise<unknown>((resolve) => {
      anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url })
        .stream(request, { clock })
        .subscribe({
          next: (signal) => signal.type === 'model_text' && server.arrivals[0]?.socket.resetAndDestroy(),
          error: resolve,
        })
    })
    expect(await outcome).toMatchObject({ class: 'network', retryable: true })
  })

  it('without its last blank line has lost the terminal event', async () => {
    const bytes = sseBytes(hello)
    const server = await serve({ pieces: [bytes.subarray(0, bytes.length - 1)] })
    const { failure } = await collect(anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }))
    expect(failure?.class).toBe('truncated')
  })

  it('that is a web page is not a reply, and asking again would not help', async () => {
    const server = await serve({
      headers: { 'content-type': 'text/html' },
      pieces: ['<html>Please log in</html>'],
    })
    const { signals, failure } = await collect(
      anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }),
    )
    expect(signals).toEqual([])
    expect(failure).toMatchObject({ class: 'protocol', retryable: false })
    expect(failure?.message).toContain('text/html')
    expect(failure?.message).not.toContain('log in')
  })

  it('with an event that is not JSON is a protocol failure that shows nothing of it', async () => {
    const server = await serve({
      pieces: [sseRecord(start()), 'event: content_block_start\ndata: {"secret": nope\n\n'],
    })
    const { failure } = await collect(anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }))
    expect(failure).toMatchObject({ class: 'protocol', retryable: true })
    expect(failure?.message).not.toContain('secret')
    expect(failure?.cause).toBeUndefined()
  })

  it('that reports an overload in the stream fails by that, with the id of the request', async () => {
    const error = {
      type: 'error',
      error: { details: null, type: 'overloaded_error', message: 'Overloaded' },
      request_id: 'req_x',
    }
    const server = await serve({
      headers: { 'request-id': 'req_5' },
      pieces: [sseBytes([start(), ...textBlock(0, 'So'), error])],
    })
    const { signals, failure } = await collect(
      anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }),
    )
    expect(failure).toMatchObject({ class: 'overloaded', retryable: true, requestId: 'req_5' })
    expect(failure?.message).toContain('overloaded_error')
    expect(failure?.status).toBeUndefined()
    expect(textShown(signals)).toBe('So')
  })
})

it('a stream of two replies fails with the id of the request', async () => {
  const events = [
    start(),
    ...textBlock(0, 'One'),
    start({ id: 'msg_2' }),
    ...textBlock(0, 'Two'),
    done('end_turn'),
    stop,
  ]
  const server = await serve({ headers: { 'request-id': 'req_9' }, pieces: [sseBytes(events)] })
  const { signals, failure } = await collect(anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url }))
  expect(failure).toMatchObject({ class: 'protocol', retryable: true, requestId: 'req_9' })
  expect(textShown(signals)).toBe('One')
})

describe('unsubscribing', () => {
  it('before the answer closes the connection', async () => {
    const server = await serve({ mute: true })
    const clock = new ManualClock()
    const subscription = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url })
      .stream(request, { clock })
      .subscribe()
    const arrival = await server.arrival(0)
    subscription.unsubscribe()
    expect(clock.waiting).toBe(0)
    await arrival.closed
  })

  it('at once sends nothing', async () => {
    const server = await serve({ pieces: [sseBytes(hello)] })
    const model = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url })
    model.stream(request, { clock: new ManualClock() }).subscribe().unsubscribe()
    await collect(model)
    expect(server.arrivals).toHaveLength(1)
  })

  it('at any signal closes the connection and is the last that is heard', async () => {
    const bytes = sseBytes(rich)
    const whole = await serve({ pieces: [bytes] })
    const { signals: all } = await collect(anthropic('claude-test-1', { apiKey: 'k', baseURL: whole.url }))
    expect(all).toHaveLength(14)
    const server = await serve({ pieces: [bytes], ending: 'stall' })
    const model = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url })
    for (let count = 1; count <= all.length; count++) {
      const clock = new ManualClock()
      const received: ModelSignal[] = []
      await new Promise<void>((resolve, reject) =>
        model
          .stream(request, { clock })
          .pipe(take(count))
          .subscribe({
            next: (signal) => received.push(signal),
            error: reject,
            complete: resolve,
          }),
      )
      await (
        await server.arrival(count - 1)
      ).closed
      expect(received).toEqual(all.slice(0, count))
      expect(clock.waiting).toBe(0)
    }
  })

  it('while the reply stalls in a call closes the connection and reports no call', async () => {
    const server = await serve({
      pieces: [
        sseBytes([
          start(),
          open(0, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }),
          json(0, '{"a":'),
        ]),
      ],
      ending: 'stall',
    })
    const received: string[] = []
    await new Promise<void>((resolve) => {
      const subscription = anthropic('claude-test-1', { apiKey: 'k', baseURL: server.url })
        .stream(request, { clock: new ManualClock() })
        .subscribe((signal) => {
          received.push(signal.type)
          if (signal.type !== 'model_tool_input') return
          subscription.unsubscribe()
          resolve()
        })
    })
    await (
      await server.arrival(0)
    ).closed
    expect(received).toEqual(['model_started', 'model_usage', 'model_tool_input'])
  })
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { take } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ollama } from '../src/ollama.ts'
import { collect, finished, request, textShown } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import { ManualClock } from './kit/manual-clock.ts'
import { forbidUnhandledRejections } from './kit/quiet.ts'
import { answer, call, calls, done, lineBytes, rich, text, thinking } from './kit/ollama-lines.ts'

const hello = [text('Hel'), text('lo'), done()]
const whole = answer([lineBytes(hello)])

describe('a call over HTTP', () => {
  it('asks once, as a stream, with the key and the headers it was given', async () => {
    const server = await serve(whole)
    const model = ollama('qwen-test', {
      baseURL: server.url,
      apiKey: 'test-key',
      headers: { 'x-team': 'blue' },
    })
    expect(model).toMatchObject({ provider: 'ollama', api: 'chat', modelId: 'qwen-test' })
    const { signals, completed } = await collect(model)
    expect(completed).toBe(true)
    expect(textShown(signals)).toBe('Hello')
    expect(server.arrivals).toHaveLength(1)
    expect(server.arrivals[0]?.path).toBe('/api/chat')
    expect(server.arrivals[0]?.headers).toMatchObject({ authorization: 'Bearer test-key', 'x-team': 'blue' })
    expect(server.arrivals[0]?.body).toMatchObject({
      ...{ model: 'qwen-test', stream: true, truncate: false, shift: false, options: { num_ctx: 16_384 } },
    })
  })

  it('sends no key and no more fields than were asked for', async () => {
    const server = await serve(whole)
    await collect(ollama('qwen-test', { baseURL: server.url }))
    expect(server.arrivals[0]?.headers.authorization).toBeUndefined()
    expect(Object.keys(server.arrivals[0]!.body).sort()).toEqual([
      ...['messages', 'model', 'options', 'shift', 'stream', 'truncate'],
    ])
  })

  it('is made anew by each subscription, and by none before', async () => {
    const server = await serve(whole)
    const stream = ollama('qwen-test', { baseURL: server.url }).stream(request, { clock: new ManualClock() })
    expect(server.arrivals).toHaveLength(0)
    for (let times = 1; times <= 2; times++) {
      await new Promise<void>((resolve, reject) => stream.subscribe({ complete: resolve, error: reject }))
      expect(server.arrivals).toHaveLength(times)
    }
    expect(server.arrivals[1]?.body).toEqual(server.arrivals[0]?.body)
  })

  it('asks the server that the environment names, where no option does', async () => {
    const server = await serve(whole)
    vi.stubEnv('OLLAMA_HOST', server.url.replace('http://', ''))
    const { completed } = await collect(ollama('qwen-test'))
    vi.unstubAllEnvs()
    expect(completed).toBe(true)
    expect(server.arrivals).toHaveLength(1)
  })

  it('goes through the fetch of the caller', async () => {
    const server = await serve(whole)
    const seen: string[] = []
    const model = ollama('qwen-test', {
      baseURL: server.url,
      fetch: (input, init) => {
        seen.push(`${init?.method} ${new Request(input).url}`)
        return fetch(input, init)
      },
    })
    expect(textShown((await collect(model)).signals)).toBe('Hello')
    expect(seen).toEqual([`POST ${server.url}/api/chat`])
  })

  it('takes a text that names a file for what it is, and sends no file', async () => {
    const server = await serve(whole)
    const folder = mkdtempSync(join(tmpdir(), 'ollama'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    // Any path of such letters is base64 as well, if it is long enough.
    const data = join(folder, 'f'.repeat(4 - ((folder.length + 1) % 4)))
    writeFileSync(data, 'secret')
    const parts = [{ type: 'image' as const, mediaType: 'image/png', data }]
    const model = ollama('qwen-test', { baseURL: server.url })
    await collect(model, { ...request, messages: [{ role: 'user', parts }] })
    const sent = JSON.stringify(server.arrivals[0]?.body)
    expect(sent).not.toContain(btoa('secret'))
    expect(sent).toContain('user')
  })

  it('leaves the connection to the next call when the answer was read to its end', async () => {
    const server = await serve(answer([lineBytes(hello)], { ending: 'stall' }))
    const model = ollama('qwen-test', { baseURL: server.url })
    const clock = new ManualClock()
    await collect(model, request, clock)
    server.arrivals[0]?.end()
    await clock.idle()
    // Node's fetch gives a connection back once it has left the parser that read the end.
    await new Promise((resolve) => setImmediate(resolve))
    await collect(model)
    expect(server.arrivals[1]?.socket === server.arrivals[0]?.socket).toBe(true)
  })

  it('completes at the last line, and closes a connection that stays open after it a second later', async () => {
    const server = await serve(answer([lineBytes(hello)], { ending: 'stall' }))
    const clock = new ManualClock()
    const { completed } = await collect(ollama('qwen-test', { baseURL: server.url }), request, clock)
    expect(completed).toBe(true)
    expect(clock.waiting).toBe(1)
    clock.advance(1000)
    await server.arrivals[0]?.closed
  })

  it('leaves no timer running', async () => {
    const server = await serve(
      whole,
      { status: 500, pieces: ['{"error": "x"}'] },
      answer([lineBytes([text('a')])], { ending: 'break' }),
      answer(['garbage\n'], { ending: 'stall' }),
    )
    const clock = new ManualClock()
    const model = ollama('qwen-test', { baseURL: server.url })
    for (let place = 0; place < 4; place++) {
      await collect(model, request, clock)
      await clock.idle()
    }
    expect(server.arrivals).toHaveLength(4)
    await server.arrivals[3]?.closed
  })
})

describe('options that cannot work', () => {
  it.each([
    ['an empty model id', () => ollama(' ')],
    ['no context', () => ollama('m', { contextTokens: 0 })],
    ['tokens by halves', () => ollama('m', { maxOutputTokens: 0.5 })],
    ['a timeout of nothing', () => ollama('m', { idleTimeoutMs: 0 })],
    ['a timeout that no timer can wait', () => ollama('m', { responseTimeoutMs: 2 ** 31 })],
    ['a text that is not an address', () => ollama('m', { baseURL: 'http://' })],
  ])('are refused at once: %s', (_, make) => {
    expect(make).toThrow(ConfigurationError)
  })

  it.each(['http://me:secret@127.0.0.1:11434', 'me:secret@localhost'])(
    'are refused without telling what is secret in them: %s',
    (baseURL) => {
      expect(() => ollama('m', { baseURL })).toThrow(ConfigurationError)
      expect(() => ollama('m', { baseURL })).not.toThrow(/secret/)
    },
  )
})

describe('silence', () => {
  const limits = { responseTimeoutMs: 5000, idleTimeoutMs: 1000 }

  it('before the answer, as while a model loads, ends the call after the response timeout', async () => {
    const server = await serve({ mute: true })
    const clock = new ManualClock()
    const outcome = collect(ollama('qwen-test', { ...limits, baseURL: server.url }), request, clock)
    const arrival = await server.arrival(0)
    clock.advance(4999)
    expect(clock.waiting).toBe(1)
    clock.advance(1)
    expect((await outcome).failure).toMatchObject({ class: 'timeout', retryable: true })
    await arrival.closed
    expect(clock.waiting).toBe(0)
  })

  it('in the reply ends the call after the idle timeout, closes the connection and keeps what was said', async () => {
    const server = await serve(answer([lineBytes([text('Hm')])], { ending: 'stall' }))
    const clock = new ManualClock()
    const signals: ModelSignal[] = []
    let failure: unknown
    await new Promise<void>((resolve) => {
      ollama('qwen-test', { ...limits, baseURL: server.url })
        .stream(request, { clock })
        .subscribe({
          next: (signal) => {
            signals.push(signal)
            if (signal.type === 'model_text') resolve()
          },
          error: (error: unknown) => (failure = error),
        })
    })
    clock.advance(999)
    expect(failure).toBeUndefined()
    clock.advance(1)
    expect(failure).toMatchObject({ class: 'timeout', retryable: true })
    await (
      await server.arrival(0)
    ).closed
    expect(textShown(signals)).toBe('Hm')
    expect(finished(signals)).toBeUndefined()
  })

  it('is broken by a piece of a line', async () => {
    const server = await serve(answer([lineBytes([text('Hm')])], { ending: 'stall' }))
    const clock = new ManualClock()
    let received: () => void = () => {}
    const model = ollama('qwen-test', {
      ...{ baseURL: server.url, idleTimeoutMs: 1000 },
      // Sees what the adapter reads, in the turn before the adapter does.
      fetch: async (input, init) => {
        const response = await fetch(input, init)
        const seen = new TransformStream<Uint8Array, Uint8Array>({
          transform: (bytes, controller) => {
            controller.enqueue(bytes)
            setImmediate(() => received())
          },
        })
        return new Response(response.body!.pipeThrough(seen), response)
      },
    })
    const piece = () => new Promise<void>((resolve) => (received = resolve))
    const first = piece()
    const outcome = collect(model, request, clock)
    const arrival = await server.arrival(0)
    await first
    const line = JSON.stringify(done())
    for (const part of [line.slice(0, 10), line.slice(10, 20), line.slice(20, 30)]) {
      clock.advance(900)
      const next = piece()
      await arrival.send(part)
      await next
    }
    clock.advance(900)
    await arrival.send(`${line.slice(30)}\n`)
    expect((await outcome).completed).toBe(true)
  })
})

describe('an answer that is not a whole reply', () => {
  const read = async (given: Answer) => {
    const server = await serve(given)
    return collect(ollama('qwen-test', { baseURL: server.url }))
  }

  it('cut cleanly in a text is truncated, and keeps the text', async () => {
    const { signals, failure } = await read(answer([lineBytes([thinking('hm'), text('Half')])]))
    expect(failure).toMatchObject({ class: 'truncated', retryable: true })
    expect(textShown(signals)).toBe('Half')
  })

  it('broken off by the network is a network failure', async () => {
    const server = await serve(answer([lineBytes([text('Half')])], { ending: 'stall' }))
    const outcome = new Promise<unknown>((resolve) => {
      ollama('qwen-test', { baseURL: server.url })
        .stream(request, { clock: new ManualClock() })
        .subscribe({
          next: (signal) => signal.type === 'model_text' && server.arrivals[0]?.socket.resetAndDestroy(),
          error: resolve,
        })
    })
    expect(await outcome).toMatchObject({ class: 'network', retryable: true })
  })

  it('that is a web page is not a reply, and asking again would not help', async () => {
    const { signals, failure } = await read({
      headers: { 'content-type': 'text/html; charset=utf-8' },
      pieces: ['<html>Please log in</html>'],
    })
    expect(signals).toEqual([])
    expect(failure).toMatchObject({ class: 'protocol', retryable: false })
    expect(failure?.message).toContain('text/html')
    expect(failure?.message).not.toContain('log in')
  })

  it('that answers a cut prompt is a failure, though it has streamed to its end', async () => {
    const { signals, failure } = await read(
      answer([lineBytes([text('Sure!'), calls(call('f')), done('stop', { prompt_eval_count: 16_384 })])]),
    )
    expect(failure).toMatchObject({ class: 'context_overflow', retryable: false })
    expect(textShown(signals)).toBe('Sure!')
    expect(finished(signals)).toBeUndefined()
  })
})

describe('unsubscribing', () => {
  forbidUnhandledRejections()

  it('before the answer closes the connection, which the client alone cannot', async () => {
    const server = await serve({ mute: true })
    const clock = new ManualClock()
    const subscription = ollama('qwen-test', { baseURL: server.url }).stream(request, { clock }).subscribe()
    const arrival = await server.arrival(0)
    subscription.unsubscribe()
    expect(clock.waiting).toBe(0)
    await arrival.closed
  })

  it('at once sends nothing', async () => {
    const server = await serve(whole)
    const model = ollama('qwen-test', { baseURL: server.url })
    model.stream(request, { clock: new ManualClock() }).subscribe().unsubscribe()
    await collect(model)
    expect(server.arrivals).toHaveLength(1)
  })

  it('at any signal closes the connection and is the last that is heard', async () => {
    const bytes = lineBytes(rich)
    const once = await serve(answer([bytes]))
    const { signals: all } = await collect(ollama('qwen-test', { baseURL: once.url }))
    expect(all).toHaveLength(11)
    const server = await serve(answer([bytes], { ending: 'stall' }))
    const model = ollama('qwen-test', { baseURL: server.url })
    for (let count = 1; count <= all.length; count++) {
      const clock = new ManualClock()
      const received: ModelSignal[] = []
      await new Promise<void>((resolve, reject) =>
        model
          .stream(request, { clock })
          .pipe(take(count))
          .subscribe({ next: (signal) => received.push(signal), error: reject, complete: resolve }),
      )
      await (
        await server.arrival(count - 1)
      ).closed
      expect(received).toEqual(all.slice(0, count))
      expect(clock.waiting).toBe(0)
    }
  })

  it('between two lines, while the model writes the next, closes the connection', async () => {
    const server = await serve(answer([lineBytes([text('a')]), '{"model": "qwen-te'], { ending: 'stall' }))
    await new Promise<void>((resolve) => {
      const subscription = ollama('qwen-test', { baseURL: server.url })
        .stream(request, { clock: new ManualClock() })
        .subscribe((signal) => {
          if (signal.type !== 'model_text') return
          subscription.unsubscribe()
          resolve()
        })
    })
    await (
      await server.arrival(0)
    ).closed
    expect(server.arrivals).toHaveLength(1)
  })
})

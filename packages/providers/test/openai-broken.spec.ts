import type { ModelSignal } from '@tallystick/core/vocabulary'
import { take } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { openaiChat } from '../src/openai.ts'
import { uncounted } from './kit/answered.ts'
import { dataRecord } from './kit/bytes.ts'
import { callsOf, collect, finished, request, textShown } from './kit/collect.ts'
import { serve } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { ManualClock } from './kit/manual-clock.ts'
import { choice, content } from './kit/openai-streams.ts'
import { wires } from './kit/openai-wires.ts'
import { forbidConsole, forbidUnhandledRejections } from './kit/quiet.ts'

forbidConsole()
forbidUnhandledRejections()

describe.each(wires)('silence of $name', ({ make, bytes, hello, record, begun }) => {
  const limits = { apiKey: 'k', responseTimeoutMs: 5000, idleTimeoutMs: 1000 }

  it('before the answer ends the call after the response timeout, and closes the connection', async () => {
    const server = await serve({ mute: true })
    const clock = new ManualClock()
    const outcome = collect(make({ ...limits, baseURL: server.url }), request, clock)
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
      ...{ headers: { 'x-request-id': 'req_7' }, ending: 'stall' },
      pieces: begun('Hm').map((event) => record(event)),
    })
    const clock = new ManualClock()
    const signals: ModelSignal[] = []
    let failure: unknown
    await new Promise<void>((resolve) => {
      make({ ...limits, baseURL: server.url })
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
    expect(failure).toMatchObject({ class: 'timeout', retryable: true, requestId: 'req_7' })
    await (
      await server.arrival(0)
    ).closed
    expect(textShown(signals)).toBe('Hm')
    expect(finished(signals)).toBeUndefined()
  })

  it('is broken by comments in the stream, which the official client swallows', async () => {
    const server = await serve({ pieces: [record(hello[0])], ending: 'stall' })
    const clock = new ManualClock()
    // Counts the looks at the clock: each piece that passes is one.
    const looks = { count: 0, wanted: Infinity, enough: (): void => {} }
    const now = clock.now.bind(clock)
    clock.now = () => {
      looks.count += 1
      if (looks.count >= looks.wanted) looks.enough()
      return now()
    }
    const received = () =>
      new Promise<void>((resolve) => Object.assign(looks, { wanted: looks.count + 1, enough: resolve }))
    const begun = new Promise<void>((resolve) => (looks.enough = resolve))
    const outcome = collect(make({ ...limits, baseURL: server.url }), request, clock)
    const arrival = await server.arrival(0)
    // Watching, answer, first bytes.
    looks.wanted = 3
    if (looks.count < 3) await begun
    for (let times = 0; times < 3; times++) {
      clock.advance(900)
      const piece = received()
      await arrival.send(': PROCESSING\n\n')
      await piece
    }
    clock.advance(900)
    await arrival.send(bytes(hello.slice(1)))
    arrival.end()
    expect(textShown((await outcome).signals)).toBe('Hello')
  })
})

describe.each(wires)(
  'an answer of $name that is not a whole reply',
  ({ make, hello, record, begun, inCall, failing }) => {
    const records = (events: readonly object[]) => events.map((event) => record(event))
    const read = async (pieces: string[], headers: Record<string, string> = {}) => {
      const server = await serve({ pieces, headers })
      return collect(make({ apiKey: 'k', baseURL: server.url }))
    }

    it('cut cleanly in a text is truncated, and keeps the text', async () => {
      const { signals, failure } = await read(records(begun('Half')))
      expect(failure).toMatchObject({ class: 'truncated', retryable: true })
      expect(textShown(signals)).toBe('Half')
    })

    it('cut in a call is truncated, and requests no call', async () => {
      const { signals, failure } = await read(records(inCall))
      expect(failure).toMatchObject({ class: 'truncated' })
      expect(signals.map(({ type }) => type)).toContain('model_tool_input')
      expect(callsOf(signals)).toEqual([])
    })

    it('that holds nothing is truncated', async () => {
      expect((await read([])).failure).toMatchObject({ class: 'truncated', retryable: true })
    })

    it('broken off by the network is a network failure', async () => {
      const server = await serve({ pieces: records(begun('Half')), ending: 'stall' })
      const outcome = new Promise<unknown>((resolve) => {
        make({ apiKey: 'k', baseURL: server.url })
          .stream(request, { clock: new ManualClock() })
          .subscribe({
            next: (signal) => signal.type === 'model_text' && server.arrivals[0]?.socket.resetAndDestroy(),
            error: resolve,
          })
      })
      expect(await outcome).toMatchObject({ class: 'network', retryable: true })
    })

    it('that is a web page is not a reply, and asking again would not help', async () => {
      const { signals, failure } = await read(['<html>Please log in</html>'], { 'content-type': 'text/html' })
      expect(signals).toEqual([])
      expect(failure).toMatchObject({ class: 'protocol', retryable: false })
      expect(failure?.message).toContain('text/html')
      expect(failure?.message).not.toContain('log in')
    })

    it('with an event that is not JSON is a protocol failure that shows nothing of it', async () => {
      const { failure } = await read([record(hello[0]), 'data: {"secret": nope\n\n'])
      expect(failure).toMatchObject({ class: 'protocol', retryable: true })
      expect(failure?.message).not.toContain('secret')
      expect(failure?.cause).toBeUndefined()
    })

    it('that reports a failure in the stream fails by that, with the id of the request', async () => {
      const events = [...begun('So'), failing('server_is_overloaded', 'Overloaded')]
      const { signals, failure } = await read(records(events), { 'x-request-id': 'req_5' })
      expect(failure).toMatchObject({ class: 'overloaded', retryable: true, requestId: 'req_5' })
      expect(failure?.message).toContain('(server_is_overloaded): Overloaded')
      expect(failure?.status).toBeUndefined()
      expect(textShown(signals)).toBe('So')
    })

    it('that is two replies fails with the id of the request', async () => {
      const second = hello.map((event: Loose) =>
        JSON.parse(
          JSON.stringify(event).replaceAll('resp_1', 'resp_2').replaceAll('chatcmpl-1', 'chatcmpl-2'),
        ),
      )
      const given = [...begun('One'), ...second].map(uncounted)
      const { signals, failure } = await read(records(given), { 'x-request-id': 'req_9' })
      expect(failure).toMatchObject({ class: 'protocol', retryable: true, requestId: 'req_9' })
      expect(textShown(signals)).toBe('One')
    })
  },
)

describe.each(wires)(
  'unsubscribing from $name',
  ({ make, bytes, hello, rich, richSignals, record, inCall }) => {
    it('before the answer closes the connection', async () => {
      const server = await serve({ mute: true })
      const clock = new ManualClock()
      const subscription = make({ apiKey: 'k', baseURL: server.url }).stream(request, { clock }).subscribe()
      const arrival = await server.arrival(0)
      subscription.unsubscribe()
      expect(clock.waiting).toBe(0)
      await arrival.closed
    })

    it('at once sends nothing', async () => {
      const server = await serve({ pieces: [bytes(hello)] })
      const model = make({ apiKey: 'k', baseURL: server.url })
      model.stream(request, { clock: new ManualClock() }).subscribe().unsubscribe()
      await collect(model)
      expect(server.arrivals).toHaveLength(1)
    })

    it('at any signal closes the connection and is the last that is heard', async () => {
      const whole = await serve({ pieces: [bytes(rich)] })
      const { signals: all } = await collect(make({ apiKey: 'k', baseURL: whole.url }))
      expect(all).toHaveLength(richSignals)
      const server = await serve({ pieces: [bytes(rich)], ending: 'stall' })
      const model = make({ apiKey: 'k', baseURL: server.url })
      for (let count = 1; count <= all.length; count++) {
        const clock = new ManualClock()
        const received: ModelSignal[] = []
        await new Promise<void>((resolve, reject) =>
          model
            .stream(request, { clock })
            .pipe(take(count))
            .subscribe({ next: (signal) => received.push(signal), error: reject, complete: resolve }),
        )
        const arrival = await server.arrival(count - 1)
        await arrival.closed
        expect(received).toEqual(all.slice(0, count))
        expect(clock.waiting).toBe(0)
      }
    })

    it('while the reply stalls in a call closes the connection and reports no call', async () => {
      const server = await serve({ pieces: inCall.map((event) => record(event)), ending: 'stall' })
      const received: string[] = []
      await new Promise<void>((resolve) => {
        const subscription = make({ apiKey: 'k', baseURL: server.url })
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
      expect(received).toEqual(['model_started', 'model_tool_input'])
    })
  },
)

describe('a chat whose server gives it up in the middle of a piece', () => {
  it('ends there: what the same piece says after that is not shown', async () => {
    const events = [content('Half'), choice({ content: ' more' }, 'error'), content(' never')]
    const server = await serve({ pieces: [events.map(dataRecord).join('')] })
    const { signals, failure } = await collect(openaiChat('gpt-test', { apiKey: 'k', baseURL: server.url }))
    expect(textShown(signals)).toBe('Half more')
    expect(failure).toMatchObject({ class: 'server', message: /gave the reply up/ })
  })
})

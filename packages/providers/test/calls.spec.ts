// Calls over HTTP, of every wire alike. What the contract of models promises of each is not repeated here.
import { type AddressInfo, createServer } from 'node:net'
import { inspect } from 'node:util'
import type { ModelSignal } from '@tallystick/core/vocabulary'
import { describe, expect, it } from 'vitest'
import { uncounted } from './kit/answered.ts'
import { callsOf, collect, finished, request, textShown } from './kit/collect.ts'
import { serve, type Answer } from './kit/loopback.ts'
import type { Loose } from './kit/loose.ts'
import { ManualClock } from './kit/manual-clock.ts'
import { forbidConsole, forbidUnhandledRejections } from './kit/quiet.ts'
import { wires, type WireUnderTest } from './kit/wires.ts'

forbidConsole()
forbidUnhandledRejections()

const serveOf = ({ answer }: WireUnderTest, given: Answer) =>
  serve({ ...answer, ...given, headers: { ...answer?.headers, ...given.headers } })

describe.each(wires)('a call of $name', (wire) => {
  const { make, path, bytes, hello } = wire
  // Its client reads no further than the record that is the last by its own words.
  const closesAtOnce = wire.name === 'Chat Completions'

  it('asks once, as a stream, with the key and the headers it was given', async () => {
    const server = await serveOf(wire, { pieces: [bytes(hello)] })
    const model = make({ apiKey: 'test-key', baseURL: server.url, headers: { 'x-team': 'blue' } })
    const { signals, completed } = await collect(model)
    expect(completed).toBe(true)
    expect(textShown(signals)).toBe('Hello')
    expect(server.arrivals).toHaveLength(1)
    expect(server.arrivals[0]?.path).toBe(path)
    expect(server.arrivals[0]?.headers).toMatchObject({ authorization: 'Bearer test-key', 'x-team': 'blue' })
    expect(server.arrivals[0]?.body).toMatchObject({ model: model.modelId, stream: true })
  })

  it('is made by each subscription, by none before, and not by one that is given up at once', async () => {
    const server = await serveOf(wire, { pieces: [bytes(hello)] })
    const call = make({ apiKey: 'k', baseURL: server.url }).stream(request, { clock: new ManualClock() })
    call.subscribe().unsubscribe()
    expect(server.arrivals).toHaveLength(0)
    for (let times = 1; times <= 2; times++) {
      await new Promise<void>((resolve, reject) => call.subscribe({ complete: resolve, error: reject }))
      expect(server.arrivals).toHaveLength(times)
    }
  })

  it.skipIf(closesAtOnce)(
    'leaves the connection to the next call when the answer was read to its end',
    async () => {
      const server = await serveOf(wire, { pieces: [bytes(hello)], ending: 'stall' })
      const model = make({ apiKey: 'k', baseURL: server.url })
      const clock = new ManualClock()
      await collect(model, request, clock)
      server.arrivals[0]?.end()
      await clock.idle()
      // Node's fetch gives a connection back once it has left the parser that read the end.
      await new Promise((resolve) => setImmediate(resolve))
      await collect(model)
      expect(server.arrivals[1]?.socket === server.arrivals[0]?.socket).toBe(true)
    },
  )

  it('completes at the last event, and closes a connection that stays open after it, most a second later', async () => {
    const server = await serveOf(wire, { pieces: [bytes(hello)], ending: 'stall' })
    const clock = new ManualClock()
    const { completed } = await collect(make({ apiKey: 'k', baseURL: server.url }), request, clock)
    expect(completed).toBe(true)
    expect(clock.waiting).toBe(closesAtOnce ? 0 : 1)
    clock.advance(1000)
    await server.arrivals[0]?.closed
  })
})

describe.each(wires)('silence of $name', (wire) => {
  const { make, bytes, hello, record, begun, idHeader, signsOfLife } = wire
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
    const headers = idHeader === undefined ? {} : { [idHeader]: 'req_7' }
    const pieces = begun('Hm').map((event) => record(event))
    const server = await serveOf(wire, { headers, pieces, ending: 'stall' })
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
    expect(failure).toMatchObject({
      class: 'timeout',
      retryable: true,
      ...(idHeader && { requestId: 'req_7' }),
    })
    await (
      await server.arrival(0)
    ).closed
    expect(textShown(signals)).toBe('Hm')
    expect(finished(signals)).toBeUndefined()
  })

  it('is broken by any bytes, of which the official client may swallow some', async () => {
    const server = await serveOf(wire, { pieces: [record(hello[0])], ending: 'stall' })
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
    const first = new Promise<void>((resolve) => (looks.enough = resolve))
    const outcome = collect(make({ ...limits, baseURL: server.url }), request, clock)
    const arrival = await server.arrival(0)
    // Watching, answer, first bytes.
    looks.wanted = 3
    if (looks.count < 3) await first
    for (const sign of signsOfLife) {
      clock.advance(900)
      const piece = received()
      await arrival.send(sign)
      await piece
    }
    clock.advance(900)
    await arrival.send(wire.rest ?? bytes(hello.slice(1)))
    arrival.end()
    expect(textShown((await outcome).signals)).toBe('Hello')
  })
})

describe.each(wires)('an answer of $name that is not a whole reply', (wire) => {
  const { make, hello, record, begun, idHeader, inCall, failing } = wire
  const records = (events: readonly object[]) => events.map((event) => record(event))
  const read = async (pieces: string[], headers: Record<string, string> = {}) => {
    const server = await serveOf(wire, { pieces, headers })
    return collect(make({ apiKey: 'k', baseURL: server.url }))
  }

  it('cut cleanly in a text is truncated, and keeps the text', async () => {
    const { signals, failure } = await read(records(begun('Half')))
    expect(failure).toMatchObject({ class: 'truncated', retryable: true })
    expect(textShown(signals)).toBe('Half')
  })

  it.runIf(inCall)('cut in a call is truncated, and requests no call', async () => {
    const { signals, failure } = await read(records(inCall!))
    expect(failure).toMatchObject({ class: 'truncated' })
    expect(signals.map(({ type }) => type)).toContain('model_tool_input')
    expect(callsOf(signals)).toEqual([])
  })

  it('that holds nothing is truncated', async () => {
    expect((await read([])).failure).toMatchObject({ class: 'truncated', retryable: true })
  })

  it('broken off by the network is a network failure', async () => {
    const server = await serveOf(wire, { pieces: records(begun('Half')), ending: 'stall' })
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
    const broken = record({ secret: 'nope' }).replace('}', ' nope')
    const { failure } = await read([record(hello[0]), broken.replace('event: undefined', 'event: x')])
    expect(failure).toMatchObject({ class: 'protocol', retryable: true })
    expect(failure?.message).not.toContain('secret')
    expect(failure?.cause).toBeUndefined()
  })

  it.runIf(failing)(
    'that reports a failure in the stream fails by that, with the id of the request',
    async () => {
      const events = [...begun('So'), failing!('overloaded_error', 'Overloaded')]
      const { signals, failure } = await read(records(events), { [idHeader!]: 'req_5' })
      expect(failure).toMatchObject({ class: 'overloaded', retryable: true, requestId: 'req_5' })
      expect(failure?.message).toContain('overloaded_error')
      expect(failure?.status).toBeUndefined()
      expect(textShown(signals)).toBe('So')
    },
  )

  it.runIf(failing)('that is two replies fails with the id of the request', async () => {
    const second = hello.map((event: Loose) =>
      JSON.parse(JSON.stringify(event).replaceAll(/(resp|msg)_1|chatcmpl-1/g, (id) => id.replace('1', '2'))),
    )
    const given = [...begun('One'), ...second].map(uncounted)
    const { signals, failure } = await read(records(given), { [idHeader!]: 'req_9' })
    expect(failure).toMatchObject({ class: 'protocol', retryable: true, requestId: 'req_9' })
    expect(textShown(signals)).toBe('One')
  })
})

describe.each(wires)('a refusal of $name', (wire) => {
  const { make, idHeader } = wire
  const apiKey = 'sk-veryverysecret'

  async function refused(status: number, body: string, headers: Record<string, string> = {}) {
    const server = await serve({
      ...{ status, pieces: [body] },
      headers: { 'content-type': 'application/json', ...(idHeader && { [idHeader]: 'req_1' }), ...headers },
    })
    const { signals, failure } = await collect(make({ apiKey, baseURL: server.url }))
    expect(signals).toEqual([])
    // The runtime tries again, not the SDK.
    expect(server.arrivals).toHaveLength(1)
    return failure!
  }
  const saying = (message: string, more: object = {}) => JSON.stringify({ error: { message, ...more } })

  it.each([
    [402, 'permission', false],
    [408, 'timeout', true],
    [409, 'server', true],
    [413, 'context_overflow', false],
    [422, 'invalid_request', false],
    [429, 'rate_limited', true],
    [501, 'server', false],
    [502, 'server', true],
    [503, 'overloaded', true],
    [504, 'timeout', true],
    [529, 'overloaded', true],
  ])('%i in the words of a gateway is %s, retryable: %s', async (status, failureClass, retryable) => {
    const page = '<html><h1>payload-of-the-gateway</h1></html>'
    const failure = await refused(status, page, { 'content-type': 'text/html' })
    expect(failure).toMatchObject({ class: failureClass, retryable, status })
    expect(inspect(failure, { depth: 9 })).not.toContain('payload-of-the-gateway')
  })

  it('that claims to be JSON and is not is judged by its status', async () => {
    expect(await refused(500, '{"half": ')).toMatchObject({ class: 'server', status: 500 })
  })

  it.each([
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after-ms': '1500.2', 'retry-after': '9' }, 1501],
    [{ 'retry-after': new Date(Date.UTC(2026, 0, 1, 0, 0, 30)).toUTCString() }, 30_000],
    [{ 'retry-after': new Date(Date.UTC(2025, 0, 1)).toUTCString() }, undefined],
    [{ 'retry-after': '0' }, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])('with %o asks for a wait of %s ms', async (headers, waitMs) => {
    expect((await refused(429, saying('x'), headers)).retryAfterMs).toBe(waitMs)
  })

  it('tells the vendor’s words in one bounded line, without what looks like a key', async () => {
    const words = `bad key ${apiKey}\nand Bearer abc.def ${'long '.repeat(200)}`
    const failure = await refused(401, saying(words))
    expect(failure.message.length).toBeLessThan(500)
    expect(failure.message).not.toMatch(/\n|veryverysecret|abc\.def/)
    expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain('veryverysecret')
  })

  it('keeps the vendor’s body and headers out of the error', async () => {
    const body = saying('no', { details: { input: 'the payload' }, innererror: 'the payload' })
    const failure = await refused(400, body, { 'set-cookie': 'session=1' })
    expect(inspect(failure, { depth: 9, showHidden: true })).not.toMatch(/the payload|session=1/)
    expect(failure.toFailure()).toEqual({
      ...{ class: 'invalid_request', message: failure.message, retryable: false, status: 400 },
      ...(idHeader && { requestId: 'req_1' }),
    })
  })
})

describe.each(wires)('a connection to $name that does not come about', ({ make }) => {
  it('because no server listens is a network failure', async () => {
    // Given to no server: one that was free a moment ago may be another's by now.
    const { failure } = await collect(make({ apiKey: 'k', baseURL: 'http://127.0.0.1:3' }))
    expect(failure).toMatchObject({ class: 'network', retryable: true })
    expect(failure?.message).toContain('ECONNREFUSED')
  })

  it('because the server hangs up is a network failure', async () => {
    const rude = createServer((socket) => socket.destroy())
    await new Promise<void>((resolve) => rude.listen(0, '127.0.0.1', resolve))
    const { port } = rude.address() as AddressInfo
    const { failure } = await collect(make({ apiKey: 'k', baseURL: `http://127.0.0.1:${port}` }))
    await new Promise<void>((resolve) => rude.close(() => resolve()))
    expect(failure).toMatchObject({ class: 'network', retryable: true })
  })
})

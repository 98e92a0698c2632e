import type { RequestListener, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { ConfigurationError } from '@tallystick/core'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { httpFetch, type HttpFetchOptions } from '@tallystick/tools/http-fetch'
import { Subject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { callContext, endingOf } from '../one-call.ts'
import { HeldTimers } from './held-timers.ts'
import { serve } from './loopback-server.ts'

async function answer(input: JsonObject | string, options: HttpFetchOptions = {}): Promise<unknown> {
  const given = typeof input === 'string' ? { url: input } : input
  const { outcome, text } = await endingOf(httpFetch(options), given)
  return outcome === 'success' ? JSON.parse(text) : `${outcome}: ${text}`
}

const say = (body: string | Buffer, headers: Record<string, string> = {}, status = 200): RequestListener => {
  return (_request, response) => void response.writeHead(status, headers).end(body)
}

describe('httpFetch', () => {
  it('answers status, the headers that matter, and the body', async () => {
    const { origin, place, received } = await serve(
      say('{"rate":1.08}', {
        'content-type': 'application/json',
        etag: '"7"',
        'set-cookie': 'id=1',
        server: 'x',
      }),
    )
    expect(await answer(`${origin}/v1/latest?base=EUR#top`, { allow: [place] })).toEqual({
      url: `${origin}/v1/latest?base=EUR#top`,
      status: 200,
      headers: { 'content-type': 'application/json', etag: '"7"' },
      body: '{"rate":1.08}',
    })
    expect(received).toMatchObject([
      { method: 'GET', url: '/v1/latest?base=EUR', headers: { 'user-agent': 'tallystick' } },
    ])
  })

  it('answers every header of use to a model: what the body is, how old it is, and where more is', async () => {
    const headers = {
      ...{ 'content-type': 'text/plain', etag: '"7"', 'last-modified': 'Thu, 01 Jan 1970 00:00:00 GMT' },
      ...{ link: '</items?page=2>; rel="next"', location: '/items/7', 'retry-after': '60' },
    }
    const { origin, place } = await serve(say('x', { ...headers, 'x-powered-by': 'y' }))
    expect(await answer(origin, { allow: [place] })).toMatchObject({ headers })
    expect(await answer(origin, { allow: [place] })).not.toHaveProperty('headers.x-powered-by')
  })

  it('answers an error of the server as it answers anything else', async () => {
    const { origin, place } = await serve(
      say('no such page', { 'content-type': 'text/plain', 'retry-after': '60' }, 503),
    )
    expect(await answer(origin, { allow: [place] })).toMatchObject({
      status: 503,
      headers: { 'retry-after': '60' },
      body: 'no such page',
    })
  })

  it.each<[string, Buffer, Record<string, string>]>([
    ['gzip', gzipSync('grün'), { 'content-encoding': 'gzip' }],
    ['brotli', brotliCompressSync('grün'), { 'content-encoding': 'br' }],
    [
      'another character set',
      Buffer.from('grün', 'latin1'),
      { 'content-type': 'text/plain; charset=ISO-8859-1' },
    ],
    ['an unknown character set', Buffer.from('grün'), { 'content-type': 'text/plain; charset=klingon' }],
    ['no content type', Buffer.from('grün'), {}],
  ])('reads a body in %s', async (_what, body, headers) => {
    const { origin, place } = await serve(say(body, headers))
    expect(await answer(origin, { allow: [place] })).toMatchObject({ body: 'grün' })
  })

  it('names a body that is not text, and does not read it', async () => {
    const written: ServerResponse[] = []
    const { origin, place } = await serve((_request, response) => {
      written.push(response.writeHead(200, { 'content-type': 'image/png' }))
      response.write('PNG')
    })
    expect(await answer(origin, { allow: [place] })).toEqual({
      url: `${origin}/`,
      status: 200,
      headers: { 'content-type': 'image/png' },
      body: '',
      note: 'The body is not shown: it is image/png.',
    })
    expect(await answer(origin, { allow: [place], contentTypes: ['text/html'] })).toHaveProperty('note')
    expect(written).toHaveLength(2)
  })

  it.each([
    ['text/html; charset=utf-8', undefined, true],
    ['application/problem+json', undefined, true],
    ['APPLICATION/JSON', undefined, true],
    ['image/svg+xml', undefined, false],
    ['application/pdf', undefined, false],
    ['application/pdf', ['application/*'], true],
    ['text/html', ['application/*'], false],
    ['text/csv', ['TEXT/*'], true],
    ['Text/CSV', ['text/Csv'], true],
  ])('shows %s where %s may be shown: %s', async (contentType, contentTypes, shown) => {
    const { origin, place } = await serve(say('body', { 'content-type': contentType }))
    const given = await answer(origin, { allow: [place], ...(contentTypes && { contentTypes }) })
    expect(given).toHaveProperty('body', shown ? 'body' : '')
  })

  it('takes the address of a name from the lookup that it was given', async () => {
    const { port, received } = await serve(say('hello'))
    const asked: string[] = []
    const resolve = async (name: string) => {
      asked.push(name)
      return [{ address: '127.0.0.1', family: 4 }]
    }
    const url = `http://api.test:${port}/`
    expect(await answer(url, { allow: [`API.test:${port}`], resolve })).toMatchObject({ url, body: 'hello' })
    expect(asked).toEqual(['api.test'])
    expect(received[0]?.headers.host).toBe(`api.test:${port}`)
  })

  it('connects a name to the address that it resolves to', async () => {
    const { place, received } = await serve(say('rates'))
    const connectTo = { 'rates.internal:80': place }
    expect(await answer('http://rates.internal/v1', { connectTo })).toMatchObject({
      url: 'http://rates.internal/v1',
      body: 'rates',
    })
    expect(received[0]?.headers.host).toBe('rates.internal')
    expect(await answer('http://rates.internal:81/v1', { connectTo, resolve: async () => [] })).toContain(
      'cannot be reached',
    )
    expect(await answer(`http://${place}/v1`, { connectTo })).toContain('cannot be reached')
  })
})

describe('a request', () => {
  it('may only have a method that the tool was given, and is a write with any but GET and HEAD', async () => {
    const reading = httpFetch({ methods: ['GET', 'HEAD'] })
    const writing = httpFetch({ methods: ['GET', 'POST'] })
    expect([httpFetch().effect, reading.effect, writing.effect]).toEqual(['read', 'read', 'write'])
    expect([httpFetch().recovery, writing.recovery]).toEqual(['rerun', 'report'])
    expect(httpFetch().inputSchema.properties).toEqual({
      raw: expect.anything() as unknown,
      url: expect.anything() as object,
    })
    const verdict = await reading.check({ url: 'http://a.example', method: 'POST' }, callContext)
    expect(verdict).toMatchObject({
      outcome: 'invalid_input',
      text: expect.stringContaining('- method: expected one of "GET", "HEAD"') as string,
    })
    const withBody = await reading.check({ url: 'http://a.example', body: '{}' }, callContext)
    expect(withBody).toMatchObject({ outcome: 'invalid_input' })
  })

  it('carries its place in a trace, and goes out without one where none can be had', async () => {
    const { origin, place, received } = await serve(say('here'))
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const given: readonly HttpFetchOptions['traceparent'][] = [
      ({ toolCallId }) => (toolCallId === callContext.toolCallId ? traceparent : undefined),
      () => 'a\r\nb: c',
      () => Promise.reject(new Error('no ledger')),
      undefined,
    ]
    for (const each of given) {
      expect(await answer(origin, { allow: [place], traceparent: each })).toMatchObject({ status: 200 })
    }
    expect(received.map(({ headers }) => headers['traceparent'])).toEqual([
      traceparent,
      ...[1, 2, 3].map(() => undefined),
    ])
  })

  it('carries a body with its type, and the key of the call', async () => {
    const { origin, place, received } = await serve(say('made', {}, 201))
    const options: HttpFetchOptions = { allow: [place], methods: ['POST', 'DELETE'] }
    expect(await answer({ url: origin, body: '{"a":1}' }, options)).toMatchObject({ status: 201 })
    await answer({ url: origin, method: 'DELETE' }, options)
    await answer({ url: origin, body: 'a=1', contentType: 'application/x-www-form-urlencoded' }, options)
    expect(received).toMatchObject([
      {
        method: 'POST',
        body: '{"a":1}',
        headers: { 'content-type': 'application/json', 'idempotency-key': 'key-1' },
      },
      { method: 'DELETE', body: '', headers: { 'idempotency-key': 'key-1' } },
      { method: 'POST', body: 'a=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    ])
  })

  it('is judged by the approval policy of the tool', async () => {
    const tool = httpFetch({ methods: ['POST'], approval: ({ url }) => `posts to ${JSON.stringify(url)}` })
    expect(await tool.check({ url: 'https://a.example/' }, callContext)).toEqual({
      kind: 'ask',
      reason: 'posts to "https://a.example/"',
    })
  })

  it.each([
    [
      'not a url',
      'That is not a URL. Give a complete one, as in https://example.com/page. Nothing was requested.',
    ],
    ['/page', 'That is not a URL.'],
    [
      'file:///etc/passwd',
      'file:// is refused: only http: and https: URLs can be fetched. Nothing was requested from it.',
    ],
    ['ftp://a.example/', 'ftp://a.example is refused: only http: and https:'],
    ['data:text/plain,hello', 'is refused: only http: and https:'],
    ['http://user@a.example/', 'http://a.example is refused: a URL with a user or password'],
    ['http://:secret-1@a.example/', 'http://a.example is refused: a URL with a user or password'],
    [
      'http://user:secret-1@a.example/',
      'http://a.example is refused: a URL with a user or password cannot be fetched.',
    ],
    [
      'https://b.example/',
      'https://b.example is refused: only https://a.example, http://127.0.0.1:1 can be reached.',
    ],
    ['http://a.example/', 'http://a.example is refused: only https://a.example'],
  ])('for %s is refused', async (url, text) => {
    const options = { origins: ['https://a.example', 'http://127.0.0.1:1/'], resolve: async () => [] }
    const said = await answer(url, options)
    expect(said).toContain(`failed: ${text}`.slice(0, url.startsWith('data') ? 7 : undefined))
    expect(said).toContain(text)
    expect(said).not.toContain('secret-1')
  })

  it('may go to one of the origins, once its address is allowed as well', async () => {
    const { origin, place } = await serve(say('hello'))
    expect(await answer(origin, { origins: [origin] })).toContain('its address is loopback')
    expect(await answer(origin, { origins: [origin], allow: [place] })).toMatchObject({ body: 'hello' })
  })
})

describe('defining it', () => {
  it.each<[string, object, RegExp]>([
    ['no method', { methods: [] }, /http_fetch has no method. Use some of GET, HEAD, POST/],
    ['an unknown method', { methods: ['get'] }, /the unknown method get/],
    ['several unknown methods', { methods: ['GET', 'TRACE', 'LINK'] }, /the unknown method TRACE\./],
    [
      'an allowed host without a port',
      { allow: ['localhost'] },
      /In allow of the tool http_fetch, "localhost" is not a host with a port. Write both, as in localhost:3000/,
    ],
    ['an allowed host with port 0', { allow: ['localhost:0'] }, /not a host with a port/],
    ['an allowed URL', { allow: ['http://localhost:80'] }, /not a host with a port/],
    ['a place without a port', { connectTo: { 'a.test:80': '127.0.0.1' } }, /In connectTo/],
    [
      'an origin with a path',
      { origins: ['https://a.example/api'] },
      /In origins of the tool http_fetch, "https:\/\/a.example\/api" is not an origin/,
    ],
    ['headers for a host', { headers: { 'a.example': {} } }, /In headers .* is not an origin/],
    ...['Host', 'connection', 'content-length', 'keep-alive', 'transfer-encoding', 'Upgrade'].map(
      (name): [string, HttpFetchOptions, RegExp] => [
        `the header ${name}`,
        { headers: { 'https://a.example': { [name]: 'b' } } },
        new RegExp(`header "${name}" .* belongs to the connection`),
      ],
    ),
    [
      'a header with a line break',
      { headers: { 'https://a.example': { key: 'a\r\nb: secret-2' } } },
      /header "key" .* HTTP cannot carry/,
    ],
    [
      'a header without a value',
      { headers: { 'https://a.example': { key: '' } } },
      /header "key" .* has no value/,
    ],
  ])('refuses %s', (_what, options, message) => {
    const define = (): unknown => httpFetch(options)
    expect(define).toThrow(ConfigurationError)
    expect(define).toThrow(message)
    expect(define).not.toThrow(/secret-2/)
  })
})

describe('an answer that does not come', () => {
  it('is reported by its reason', async () => {
    const closed = await serve(say(''))
    await closed.close()
    expect(await answer(closed.origin, { allow: [closed.place] })).toBe(
      'failed: There is no answer: the server refused the connection (ECONNREFUSED).',
    )
    const notFound = Object.assign(new Error('getaddrinfo ENOTFOUND a.example'), { code: 'ENOTFOUND' })
    expect(await answer('http://a.example', { resolve: () => Promise.reject(notFound) })).toBe(
      'failed: There is no answer: there is no host of that name (ENOTFOUND).',
    )
    const { origin, place } = await serve((request) => void request.socket.destroy())
    expect(await answer(origin, { allow: [place] })).toMatch(
      /^failed: There is no answer: the server closed the connection \((UND_ERR_SOCKET|ECONNRESET)\)\.$/,
    )
  })

  it('is reported where its body breaks off, and where it is packed wrongly', async () => {
    const broken = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100' }).write('half')
      setImmediate(() => response.destroy())
    })
    expect(await answer(broken.origin, { allow: [broken.place] })).toMatch(/^failed: There is no answer: /)
    const garbled = await serve(say('no gzip', { 'content-encoding': 'gzip' }))
    expect(await answer(garbled.origin, { allow: [garbled.place] })).toBe(
      'failed: There is no answer: the request failed (Z_DATA_ERROR).',
    )
  })

  it('is given up at its time, also in the middle of its body, with the connection closed', async () => {
    const silent = createTcpServer()
    await new Promise<void>((resolve) => void silent.listen(0, '127.0.0.1', resolve))
    const place = `127.0.0.1:${(silent.address() as AddressInfo).port}`
    const closed = new Promise<void>((resolve) => {
      silent.on('connection', (socket) => void socket.resume().on('close', resolve))
    })
    const connected = new Promise((resolve) => void silent.once('connection', resolve))
    const timers = new HeldTimers()
    const ending = endingOf(httpFetch({ allow: [place], timers, timeoutMs: 900 }), { url: `http://${place}` })
    await connected
    await timers.fire(900)
    expect(await ending).toEqual({
      outcome: 'timed_out',
      text: 'The answer was not complete within 900 ms. Try again later, or ask for less.',
    })
    await closed
    await new Promise((resolve) => void silent.close(resolve))

    let half: (() => void) | undefined
    const sent = new Promise<void>((resolve) => (half = resolve))
    const slow = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('half', () => half?.())
    })
    const slowTimers = new HeldTimers()
    const second = endingOf(httpFetch({ allow: [slow.place], timers: slowTimers, timeoutMs: 900 }), {
      url: slow.origin,
    })
    await sent
    await slowTimers.fire(900)
    expect((await second).outcome).toBe('timed_out')
  })

  it('is given up when the call is cancelled, and the timer with it', async () => {
    const cancelled$ = new Subject<string>()
    const timers = new HeldTimers()
    const { origin, place } = await serve(() => cancelled$.next('enough'))
    expect(await endingOf(httpFetch({ allow: [place], timers }), { url: origin }, { cancelled$ })).toEqual({
      outcome: 'cancelled',
      text: 'The call was cancelled: enough.',
    })
    expect(timers.count).toBe(0)
  })
})

describe('what is shown of a body', () => {
  const cut = 'The body is cut after 1000 bytes. Ask for a smaller part if it can be had.'

  it('is at most maxBytes bytes, without half a character', async () => {
    const { origin, place } = await serve(say('ü'.repeat(5_000)))
    expect(await answer(origin, { allow: [place], maxBytes: 1_000 })).toMatchObject({
      body: 'ü'.repeat(500),
      note: cut,
    })
    const { body } = (await answer(origin, { allow: [place], maxBytes: 1_001 })) as { body: string }
    expect(body).toBe('ü'.repeat(500))
    expect(await answer(origin, { allow: [place], maxBytes: 10_000 })).not.toHaveProperty('note')
  })

  it('is cut with a note also where it ends within what is read to find a secret', async () => {
    const { origin, place } = await serve(say('x'.repeat(1_002)))
    const headers = { [origin]: { 'x-key': 'k-0123-abcd-xyz' } }
    expect(await answer(origin, { allow: [place], maxBytes: 1_000, headers })).toMatchObject({
      body: 'x'.repeat(1_000),
      note: cut,
    })
  })

  it('is at most maxBytes bytes of what a small answer unpacks to', async () => {
    const bomb = gzipSync(gzipSync(Buffer.alloc(200_000_000)))
    expect(bomb.length).toBeLessThan(2_000)
    const { origin, place } = await serve(
      say(bomb, { 'content-encoding': 'gzip, gzip', 'content-type': 'text/plain' }),
    )
    const before = process.memoryUsage().rss
    expect(await answer(origin, { allow: [place], maxBytes: 1_000 })).toMatchObject({
      body: '\0'.repeat(1_000),
      note: cut,
    })
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000)
  })

  it('is the start of an answer that never ends, and ends it', async () => {
    let ended: (() => void) | undefined
    const closed = new Promise<void>((resolve) => (ended = resolve))
    const { origin, place } = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      const more = (): void => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
      }
      response.on('drain', more).on('close', () => ended?.())
      more()
    })
    expect(await answer(origin, { allow: [place], maxBytes: 1_000 })).toMatchObject({
      body: 'x'.repeat(1_000),
      note: cut,
    })
    await closed
  })
})

/** The clock that the HTTP client has of its own: fake timers would only reach it where no other file has used it before. */
const clientClock = createRequire(import.meta.url)('undici/lib/util/timers.js') as {
  tick(milliseconds: number): void
}

/** Lets ten minutes pass for the HTTP client: more than it waits by default. */
function passTenMinutes(): void {
  // A timer that was set since the last tick begins with this one.
  clientClock.tick(0)
  clientClock.tick(600_000)
}

/** Lets this process read what it has sent to itself. */
async function partsRead(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
}

it('an answer is waited for however long its parts take, up to the limit of the call', async () => {
  const server = await serve((_request, response) => {
    passTenMinutes()
    response.write('first')
    void partsRead().then(() => {
      passTenMinutes()
      response.end(', then')
    })
  })
  const tool = httpFetch({ allow: [server.place], timers: new HeldTimers() })
  const { outcome, text } = await endingOf(tool, { url: server.origin })
  expect([outcome, text]).toEqual(['success', expect.stringContaining('"body":"first, then"')])
})

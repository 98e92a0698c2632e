import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import type { RequestListener } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { httpFetch } from '@tallystick/tools/http-fetch'
import type { HttpFetchOptions } from '@tallystick/tools/http-fetch'
import { Subject } from 'rxjs'
import { afterEach, describe, expect, it } from 'vitest'
import { endingOf } from '../one-call.ts'
import { HeldTimers } from './held-timers.ts'
import type { LoopbackServer } from './loopback-server.ts'
import { loopbackServer } from './loopback-server.ts'

const servers: LoopbackServer[] = []
afterEach(async () => {
  // Resolves only when no call has left a connection open.
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

async function serve(listener: RequestListener): Promise<LoopbackServer> {
  const server = await loopbackServer(listener)
  servers.push(server)
  return server
}

async function answer(input: JsonObject | string, options: HttpFetchOptions = {}): Promise<unknown> {
  const given = typeof input === 'string' ? { url: input } : input
  const { outcome, text } = await endingOf(httpFetch(options), given)
  return outcome === 'success' ? JSON.parse(text) : `${outcome}: ${text}`
}

const say = (body: string | Buffer, headers: Record<string, string> = {}, status = 200): RequestListener => {
  return (_request, response) => void response.writeHead(status, headers).end(body)
}

describe('an answer that does not come', () => {
  it('is reported by its reason', async () => {
    const closed = await loopbackServer(say(''))
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

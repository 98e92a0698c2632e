import { httpFetch } from '@tallystick/tools/http-fetch'
import type { HttpFetchOptions } from '@tallystick/tools/http-fetch'
import { afterEach, describe, expect, it } from 'vitest'
import { endingOf } from '../one-call.ts'
import type { LoopbackServer } from './loopback-server.ts'
import { loopbackServer } from './loopback-server.ts'

const servers: LoopbackServer[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

async function serve(...parameters: Parameters<typeof loopbackServer>): Promise<LoopbackServer> {
  const server = await loopbackServer(...parameters)
  servers.push(server)
  return server
}

async function said(url: string, options: HttpFetchOptions = {}): Promise<string> {
  const { outcome, text } = await endingOf(httpFetch(options), { url })
  return `${outcome}: ${text}`
}

describe('a redirect', () => {
  const to = (location: string, status = 302) =>
    serve((_request, response) => void response.writeHead(status, { location }).end())

  it('is followed, and the answer says where it came from', async () => {
    const target = await serve((_request, response) => void response.end('here'))
    const start = await to(`${target.origin}/end`, 301)
    expect(
      JSON.parse((await said(start.origin, { allow: [start.place, target.place] })).replace('success: ', '')),
    ).toMatchObject({
      url: `${target.origin}/end`,
      status: 200,
      body: 'here',
    })
  })

  it.each([
    [
      'http://169.254.169.254/latest/meta-data',
      '169.254.169.254 cannot be reached: its address is linkLocal',
    ],
    ['http://[::1]:8080/', '[::1]:8080 cannot be reached: its address is loopback'],
    [
      'http://[::1]:9/',
      'The port of that URL belongs to another protocol, and this tool never connects to it.',
    ],
    ['//10.0.0.1/', '10.0.0.1:80 cannot be reached: its address is private'],
    ['file:///etc/passwd', 'file:// is refused: only http: and https:'],
    ['http://user:pass@example.com/', 'http://example.com is refused: a URL with a user or password'],
    ['http://', 'That is not a URL.'],
  ])('to %s is refused', async (location, text) => {
    const start = await to(location)
    expect(await said(start.origin, { allow: [start.place] })).toContain(
      text.replace('169.254.169.254 ', '169.254.169.254:80 '),
    )
  })

  it('is left before it is followed, however long its own body is', async () => {
    let left = (): void => {}
    const isLeft = new Promise<void>((resolve) => (left = resolve))
    const server = await serve((request, response) => {
      if (request.url === '/end') return void isLeft.then(() => response.end('here'))
      // A body that does not end.
      response.writeHead(302, { location: '/end' }).write('more follows')
      response.on('close', left)
    })
    expect(await said(`${server.origin}/begin`, { allow: [server.place] })).toContain('"body":"here"')
  })

  it('to another server of the machine is refused, and that one never connected to', async () => {
    const secret = await serve((_request, response) => void response.end('SECRET'))
    const start = await to(`${secret.origin}/admin`)
    const text = await said(start.origin, { allow: [start.place] })
    expect(text).toContain(`${secret.place} cannot be reached: its address is loopback`)
    expect(text).not.toContain('SECRET')
    expect(secret.connections()).toBe(0)
  })

  it('that takes a write to another origin is shown and not followed', async () => {
    const other = await serve((_request, response) => void response.end('other'))
    const start = await to(`${other.origin}/elsewhere`, 307)
    const tool = httpFetch({ allow: [start.place, other.place], methods: ['POST', 'GET'] })
    const { text } = await endingOf(tool, { url: start.origin, body: '{}' })
    expect(JSON.parse(text)).toMatchObject({
      status: 307,
      headers: { location: `${other.origin}/elsewhere` },
    })
    expect(other.connections()).toBe(0)
    expect((await endingOf(tool, { url: start.origin, method: 'GET' })).text).toContain('other')
  })

  it('leaves the origins that the tool may reach only when it is refused', async () => {
    const other = await serve((_request, response) => void response.end('other'))
    const start = await to(other.origin)
    const options = { origins: [start.origin], allow: [start.place, other.place] }
    expect(await said(start.origin, options)).toContain(
      `${other.origin} is refused: only ${start.origin} can be reached`,
    )
    expect(other.connections()).toBe(0)
  })

  it('is followed only so many times, and shown where none is followed', async () => {
    const loop: LoopbackServer = await serve(
      (_request, response) => void response.writeHead(307, { location: '/again' }).end(),
    )
    expect(await said(loop.origin, { allow: [loop.place], maxRedirects: 2 })).toBe(
      'failed: More than 2 redirects followed each other. Request their final address.',
    )
    expect(loop.received).toHaveLength(3)
    expect(await said(loop.origin, { allow: [loop.place], maxRedirects: 0 })).toContain(
      '"status":307,"headers":{"location":"/again"}',
    )
  })

  it.each([
    [301, 'POST', 'GET', ''],
    [302, 'POST', 'GET', ''],
    [303, 'PUT', 'GET', ''],
    [302, 'PUT', 'PUT', 'data'],
    [307, 'POST', 'POST', 'data'],
    [308, 'DELETE', 'DELETE', 'data'],
  ] as const)('of %i turns a %s into a %s', async (status, method, then, body) => {
    const server: LoopbackServer = await serve((request, response) => {
      if (request.url === '/start') response.writeHead(status, { location: '/end' })
      response.end()
    })
    const tool = httpFetch({ allow: [server.place], methods: [method] })
    const { outcome } = await endingOf(tool, {
      url: `${server.origin}/start`,
      body: 'data',
      contentType: 'text/plain',
    })
    expect(outcome).toBe('success')
    expect(server.received).toMatchObject([
      { method, url: '/start', body: 'data' },
      { method: then, url: '/end', body },
    ])
    expect(server.received[1]?.headers['content-type']).toBe(body === '' ? undefined : 'text/plain')
    expect(server.received[1]?.headers['idempotency-key']).toBe(body === '' ? undefined : 'key-1')
  })
})

import { createServer as createTlsServer } from 'node:https'
import net from 'node:net'
import tls from 'node:tls'
import { httpFetch, type HttpFetchOptions } from '@tallystick/tools/http-fetch'
import { generate } from 'selfsigned'
import { describe, expect, it, afterEach, vi } from 'vitest'
import { findNonPublic } from '../../src/built-in/http-fetch/reach.ts'
import { endingOf } from '../one-call.ts'
import { type LoopbackServer, serve } from './loopback-server.ts'

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

describe('headers that were given', () => {
  const secret = 'Bearer s3cr3t-t0ken/+='

  it('go to their own origin only, also after a redirect', async () => {
    const other = await serve((_request, response) => void response.end('other'))
    const own: LoopbackServer = await serve((_request, response) => {
      response
        .writeHead(302, { location: own.received.length === 1 ? '/again' : `${other.origin}/end` })
        .end()
    })
    const headers = { [own.origin]: { Authorization: secret, 'User-Agent': 'shop/1', accept: 'text/plain' } }
    expect(await said(own.origin, { allow: [own.place, other.place], headers })).toContain('other')
    expect(
      own.received.map(({ headers }) => [headers.authorization, headers['user-agent'], headers.accept]),
    ).toEqual([
      [secret, 'shop/1', 'text/plain'],
      [secret, 'shop/1', 'text/plain'],
    ])
    expect(other.received).toHaveLength(1)
    expect(other.received[0]?.headers).not.toHaveProperty('authorization')
    expect(other.received[0]?.headers).toMatchObject({ 'user-agent': 'tallystick' })
  })

  it('are masked wherever an answer repeats them', async () => {
    const basic = `Basic ${Buffer.from('shop:pa55word').toString('base64')}`
    const server: LoopbackServer = await serve((request, response) => {
      const { authorization = '', 'x-key': key = '' } = request.headers
      const token = authorization.split(' ')[1] ?? ''
      response.setHeader('etag', `"${token}"`)
      response.setHeader('link', `<${encodeURIComponent(token)}>`)
      response.end(
        JSON.stringify({
          authorization,
          token,
          key,
          basic: 'shop:pa55word',
          password: 'pa55word',
          accept: 'text/plain',
        }),
      )
    })
    const headers = {
      [server.origin]: {
        authorization: secret,
        'x-key': 'quote"d-key',
        'x-basic': basic,
        accept: 'text/plain',
      },
    }
    const text = await said(server.origin, { allow: [server.place], headers })
    for (const hidden of ['s3cr3t', 't0ken', 'quote', 'pa55word']) expect(text).not.toContain(hidden)
    const { body, headers: shown } = JSON.parse(text.replace('success: ', '')) as {
      body: string
      headers: Record<string, string>
    }
    expect(JSON.parse(body)).toEqual({
      authorization: '*'.repeat(secret.length),
      token: '*'.repeat(secret.length - 'Bearer '.length),
      key: '*'.repeat(12),
      basic: '*'.repeat(13),
      password: '********',
      accept: 'text/plain',
    })
    expect(shown.etag).toBe(`"${'*'.repeat(secret.length - 'Bearer '.length)}"`)
  })

  it('are masked where an answer repeats what follows Basic, up to its last character', async () => {
    const token = Buffer.from('shop:pa55word').toString('base64')
    expect(token).toMatch(/==$/)
    const server = await serve((request, response) => {
      response.end(`<${request.headers.authorization?.split(' ')[1]}>`)
    })
    const headers = { [server.origin]: { authorization: `Basic ${token}` } }
    const text = await said(server.origin, { allow: [server.place], headers })
    expect(JSON.parse(text.replace('success: ', ''))).toMatchObject({
      body: `<${'*'.repeat(token.length)}>`,
    })
  })

  it.each<[string, (key: string) => string]>([
    ['in Base64', (key) => Buffer.from(key).toString('base64')],
    ['in Base64 beside others', (key) => Buffer.from(`{"key":"${key}"}`).toString('base64')],
    ['in hexadecimal', (key) => Buffer.from(key).toString('hex')],
    ['in capitals', (key) => key.toUpperCase()],
    ['escaped for a URL', (key) => `https://x.example/?key=${encodeURIComponent(key)}`],
    ['escaped in JSON', (key) => key.replaceAll('-', '\\u002d')],
    ['escaped in HTML', (key) => key.replaceAll('-', '&#45;')],
  ])('are masked where an answer repeats them %s, over the pieces of the network', async (_how, encode) => {
    const key = 'k-0123-abcd-xyz'
    const server = await serve((request, response) => {
      const rest = `<<${encode(request.headers['x-key'] as string)}>>`.split('')
      const writeNext = (): void => {
        const character = rest.shift()
        if (character === undefined) response.end()
        else response.write(character, () => void setImmediate(writeNext))
      }
      writeNext()
    })
    const options = { allow: [server.place], headers: { [server.origin]: { 'x-key': key } } }
    const { body } = JSON.parse((await said(server.origin, options)).replace('success: ', '')) as {
      body: string
    }
    expect(body).toHaveLength(encode(key).length + 4)
    expect(body).toMatch(/^<<[^*]{0,30}\*{15,}[^*]{0,8}>>$/)
  })

  it.each([
    ['a value', { 'x-key': '2' }],
    ['a token', { authorization: 'Bearer abc' }],
    ['a password', { authorization: `Basic ${Buffer.from('a-long-user-name:pw').toString('base64')}` }],
  ])('are refused where %s is too short to be told from data', (_what, headers) => {
    const make = (): unknown => httpFetch({ headers: { 'https://api.example.com': headers } })
    expect(make).toThrow(/has a secret of less than 8 characters.*name the header in openHeaders/)
    expect(make).not.toThrow(/Bearer|abc|pw/)
  })

  it('leave data as it is where they are said to be no secret', async () => {
    const server = await serve((_request, response) => void response.end('{"price":12.22,"plan":"acme"}'))
    const headers = { [server.origin]: { 'x-api-version': '2', 'X-Tenant': 'acme' } }
    const openHeaders = ['X-Api-Version', 'x-tenant']
    const text = await said(server.origin, { allow: [server.place], headers, openHeaders })
    expect(text).toContain('12.22')
    expect(text).toContain('acme')
  })

  it('are masked also where the limit of bytes cuts them in two', async () => {
    const server = await serve(
      (_request, response) => void response.end(`${'-'.repeat(90)}${secret}${secret} and more`),
    )
    const headers = { [server.origin]: { authorization: secret } }
    for (let maxBytes = 88; maxBytes < 140; maxBytes++) {
      const text = await said(server.origin, { allow: [server.place], headers, maxBytes })
      const { body } = JSON.parse(text.replace('success: ', '')) as { body: string }
      expect(body).toBe(`${'-'.repeat(90)}${'*'.repeat(2 * secret.length)} and more`.slice(0, maxBytes))
    }
  })

  it('are not in errors, where a redirect repeats them', async () => {
    const server: LoopbackServer = await serve((request, response) => {
      const host = (request.headers['x-key'] as string).toLowerCase()
      response.writeHead(302, { location: `http://${host}.invalid/` }).end()
    })
    const headers = { [server.origin]: { 'x-key': 'host-key-77' } }
    const text = await said(server.origin, { allow: [server.place], headers, resolve: async () => [] })
    expect(text).toContain('***********.invalid:80 cannot be reached')
    expect(text).not.toContain('host-key-77')
  })
})

afterEach(() => void vi.restoreAllMocks())

/** Every connection that is tried; none is made. */
function triedConnections(): net.TcpNetConnectOpts[] {
  const tried: net.TcpNetConnectOpts[] = []
  vi.spyOn(net.Socket.prototype, 'connect').mockImplementation(function (
    this: net.Socket,
    ...given: unknown[]
  ) {
    tried.push([given].flat(2)[0] as net.TcpNetConnectOpts)
    process.nextTick(() => this.destroy(Object.assign(new Error('not made'), { code: 'ECONNREFUSED' })))
    return this
  })
  return tried
}

describe('an address that is not public', () => {
  it.each([
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['[::1]', 'loopback'],
    ['0x7f.1', 'loopback'],
    ['0177.0.0.1', 'loopback'],
    ['2130706433', 'loopback'],
    ['127.1', 'loopback'],
    ['①②⑦.⓪.⓪.①', 'loopback'],
    ['[::ffff:127.0.0.1]', 'loopback'],
    ['[::ffff:7f00:1]', 'loopback'],
    ['[::127.0.0.1]', 'reserved'],
    ['0.0.0.0', 'unspecified'],
    ['[::]', 'unspecified'],
    ['169.254.169.254', 'linkLocal'],
    ['[::ffff:169.254.169.254]', 'linkLocal'],
    ['10.1.2.3', 'private'],
    ['172.16.0.1', 'private'],
    ['192.168.1.1', 'private'],
    ['100.64.0.1', 'carrierGradeNat'],
    ['192.0.2.1', 'reserved'],
    ['198.18.0.1', 'reserved'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'broadcast'],
    ['[fe80::1]', 'linkLocal'],
    ['[fd00::1]', 'uniqueLocal'],
    ['[fec0::1]', 'deprecatedSiteLocal'],
    ['[64:ff9b::7f00:1]', 'rfc6052'],
    ['[2002:7f00:1::]', '6to4'],
    ['[2001:db8::1]', 'reserved'],
    ['[4000::1]', 'reserved'],
  ])('is refused as %s (%s), and nothing is connected', async (host, range) => {
    const tried = triedConnections()
    const text = await said(`http://${host}:8080/secret`)
    const { host: named } = new URL(`http://${host}:8080`)
    expect(text).toBe(
      `failed: ${named} cannot be reached: its address is ${range}, and only public addresses may be reached. Nothing was requested.`,
    )
    expect(tried).toEqual([])
  })

  it('is refused at a server that is really there, by whatever name', async () => {
    const server = await serve((_request, response) => void response.end('SECRET'))
    const { port } = server
    for (const host of [
      '127.0.0.1',
      'localhost',
      'LOCALHOST',
      'localhost.',
      '[::ffff:127.0.0.1]',
      '0x7f.1',
      '2130706433',
    ]) {
      const text = await said(`http://${host}:${port}/`)
      expect(text).toMatch(/^failed: .*( cannot be reached: its address is |no host of that name)/)
    }
    expect(server.connections()).toBe(0)
  })

  it('is refused when a name has it, alone or beside public ones, before anything is connected', async () => {
    const tried = triedConnections()
    const publicAddress = { address: '93.184.215.14', family: 4 }
    for (const address of [
      '127.0.0.1',
      '::1',
      '10.0.0.1',
      '169.254.169.254',
      '::ffff:10.0.0.1',
      'fe80::1%eth0',
      'nonsense',
    ]) {
      const hidden = { address, family: net.isIPv4(address) ? 4 : 6 }
      for (const addresses of [[hidden], [publicAddress, hidden], [hidden, publicAddress]]) {
        expect(await said('https://friendly.example/', { resolve: async () => addresses })).toMatch(
          /^failed: friendly\.example:443 cannot be reached: its address is \w+, and only public/,
        )
      }
    }
    expect(await said('http://friendly.example/', { resolve: async () => [] })).toContain(
      'its address is unknown',
    )
    expect(tried).toEqual([])
  })

  it('may be reached where exactly this host and port are allowed', async () => {
    const server = await serve((_request, response) => void response.end('hello'))
    const { port, place } = server
    expect(await said(`http://${place}/`, { allow: [`127.0.0.1:${port}`] })).toContain('hello')
    expect(await said(`http://0x7f.1:${port}/`, { allow: [place] })).toContain('hello')
    const before = server.connections()
    for (const allow of [
      [`localhost:${port}`],
      [`127.0.0.1:${port + 1}`],
      [`127.0.0.2:${port}`],
      [`[::1]:${port}`],
    ]) {
      expect(await said(`http://${place}/`, { allow })).toContain('cannot be reached')
    }
    expect(server.connections()).toBe(before)
  })
})

describe('an address', () => {
  it.each([
    ['93.184.215.14', undefined],
    ['2606:4700:4700::1111', undefined],
    ['2a00:1450:4001:80b::200e', undefined],
    ['::ffff:93.184.215.14', undefined],
    ['1fff::1', 'reserved'],
    ['4000::1', 'reserved'],
    ['no address', 'unreadable'],
  ])('%s is one of the public internet, or of a range: %s', (address, range) => {
    expect(findNonPublic(address)).toBe(range)
  })
})

describe('a name', () => {
  it('is looked up once a connection, and the addresses that were checked are connected to', async () => {
    const tried = triedConnections()
    let lookups = 0
    // Answers the check with a public address, and the connection with another.
    const resolve = async () => [{ address: ++lookups === 1 ? '93.184.215.14' : '127.0.0.1', family: 4 }]
    expect(await said('http://rebind.example/', { resolve })).toContain('(ECONNREFUSED)')
    expect([lookups, tried.length]).toEqual([1, 1])
    const connectedTo = await new Promise((found) => {
      tried[0]?.lookup?.('rebind.example', { all: true }, (_error, addresses) => found(addresses))
    })
    expect(connectedTo).toEqual([{ address: '93.184.215.14', family: 4 }])
  })

  it('may have several addresses, of which one that answers is enough', async () => {
    const { port } = await serve((_request, response) => void response.end('hello'))
    const resolve = async () => [
      { address: '::1', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ]
    expect(await said(`http://both.test:${port}/`, { allow: [`both.test:${port}`], resolve })).toContain(
      'hello',
    )
  })
})

describe('https', () => {
  it('is spoken with the name that was asked for, and only trusted with a certificate for it', async () => {
    const { private: key, cert } = await generate([{ name: 'commonName', value: 'shop.test' }], {
      extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'shop.test' }] }],
    })
    const named: (string | undefined)[] = []
    const server = await serve(
      (_request, response) => void response.end('over tls'),
      createTlsServer({ key, cert, SNICallback: (name, done) => done(null, void named.push(name) as never) }),
      'https',
    )
    const connectTo = { 'shop.test:443': server.place, 'other.test:443': server.place }
    expect(await said('https://shop.test/', { connectTo })).toMatch(
      /^failed: There is no answer: the connection cannot be trusted \(\w*CERT\w*\)\.$/,
    )

    const trusted = tls.getCACertificates()
    tls.setDefaultCACertificates([...trusted, cert])
    try {
      expect(await said('https://shop.test/', { connectTo })).toContain('over tls')
      expect(await said('https://other.test/', { connectTo })).toBe(
        'failed: There is no answer: the connection cannot be trusted (ERR_TLS_CERT_ALTNAME_INVALID).',
      )
    } finally {
      tls.setDefaultCACertificates(trusted)
    }
    expect(named).toEqual(['shop.test', 'shop.test', 'other.test'])
    expect(server.received.map(({ headers }) => headers.host)).toEqual(['shop.test'])
  })
})

import { createServer as createTlsServer } from 'node:https'
import net from 'node:net'
import tls from 'node:tls'
import { httpFetch } from '@tallystick/tools/http-fetch'
import type { HttpFetchOptions } from '@tallystick/tools/http-fetch'
import { generate } from 'selfsigned'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { findNonPublic } from '../../src/built-in/http-fetch/reach.ts'
import { endingOf } from '../one-call.ts'
import type { LoopbackServer } from './loopback-server.ts'
import { loopbackServer } from './loopback-server.ts'

const servers: LoopbackServer[] = []
afterEach(async () => {
  vi.restoreAllMocks()
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

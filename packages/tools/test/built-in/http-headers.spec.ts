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

import { once } from 'node:events'
import { connect } from 'node:net'
import { defineTool } from '@tallystick/tools'
import { type OAuthOptions, oauthServer, serveMcp } from '@tallystick/tools/mcp'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect as connected, tick } from './connected.ts'
import { findFreePort } from '../../../../scripts/testing/free-port.ts'
import { oauthSite } from './servers/oauth-site.ts'
import { temporaryFolder } from '../../../../scripts/testing/temporary-folder.ts'

/** What a client may write where a request is expected: odd targets, methods and headers. */
const targets = [
  '//',
  '///',
  '/\\',
  '//[',
  '//:0',
  'http://',
  'http://[',
  '*',
  ':0',
  '/%',
  '/%ff',
  '/?%',
  '?',
  'x:y',
]
const methods = ['GET', 'HEAD', 'POST', 'OPTIONS', 'TRACE', 'DELETE', 'PROPFIND', 'QUERY']
const requests = [
  ...targets.flatMap((target) =>
    methods.map((method) => `${method} ${target} HTTP/1.1\r\nhost: 127.0.0.1\r\n`),
  ),
  'CONNECT 127.0.0.1:1 HTTP/1.1\r\nhost: 127.0.0.1\r\n',
  'CONNECT // HTTP/1.1\r\nhost: //\r\n',
  'GET // HTTP/1.0\r\n',
  'GET // HTTP/1.1\r\nhost: [\r\n',
  'GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n',
  'POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nexpect: 100-continue\r\ncontent-length: 5\r\n',
  'POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n',
  'PRI * HTTP/2.0\r\n',
  '\u0000\u0001\u0002',
]

/** The status with which a listener answers; 0 where it only closes the connection. */
async function statusOf(port: number, request: string): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (data) => (text += data.toString('latin1')))
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  socket.end(`${request}connection: close\r\n\r\n`)
  await closed
  return Number([...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].at(-1)?.[1] ?? 0)
}

async function expectNoEnd(port: number): Promise<void> {
  for (const request of requests) {
    const status = await statusOf(port, request)
    expect({ request, isRefused: status === 0 || (status >= 400 && status < 500) }).toEqual({
      request,
      isRefused: true,
    })
  }
}

describe('given any first line of a request, when a listener of this package gets it', () => {
  it('then serveMcp refuses it before it asks for the token, and serves on', async () => {
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      input: { type: 'object' },
      effect: 'read',
      execute: () => 'seen',
    })
    const token = 'token-0123456789'
    for (const http of [{ token }, {}]) {
      const server = await serveMcp([look], { http })
      onTestFinished(() => server.close())
      const url = server.url ?? ''
      await expectNoEnd(Number(new URL(url).port))
      const headers = { authorization: `Bearer ${token}` }
      const mcp = await connected({ own: { url, headers } })
      expect(mcp.servers).toMatchObject([{ state: 'ready' }])
    }
  })

  it('then the way back of a browser stays open for the one that knows the state', async () => {
    const folder = temporaryFolder()
    const site = await oauthSite()
    const pages: string[] = []
    const redirectPort = await findFreePort()
    const given: OAuthOptions = {
      file: join(folder, 'tokens.json'),
      redirectPort,
      open: (url) => void pages.push(url),
    }
    const starting = connected({ docs: oauthServer(site.url, given) })
    while (pages.length === 0) await tick()
    await expectNoEnd(redirectPort)
    await fetch(pages[0] ?? '')
    expect((await starting).servers).toMatchObject([{ state: 'ready' }])
  })
})

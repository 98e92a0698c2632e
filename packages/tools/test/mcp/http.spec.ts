import childProcess, { type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { OAuthClientProvider } from '@modelcontextprotocol/client'
import { joinText } from '@tallystick/core'
import type { Json } from '@tallystick/core/vocabulary'
import { manualClock } from '@tallystick/testkit'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { isUnknownSession } from '../../src/mcp/fetch.ts'
import { endingOf } from '../one-call.ts'
import { connect, said, tick, isAlive } from './connected.ts'
import { everythingAt, modernServer, served, sessionServer } from './servers/http-servers.ts'
import { shellServer } from './servers/shell-server.ts'

describe('a server at a URL', () => {
  it('that others wrote is reached over Streamable HTTP', async () => {
    const url = await everythingAt('streamableHttp')
    const manager = await connect({ everything: { url } })
    expect(manager.servers).toMatchObject([
      { state: 'ready', transport: 'http', tools: 13, protocolVersion: '2025-11-25' },
    ])
    expect(joinText(await manager.call('everything', 'get-sum', { a: 1, b: 2 }))).toBe(
      'The sum of 1 and 2 is 3.',
    )
  })

  it('that others wrote is reached the older way where it knows no other', async () => {
    const url = await everythingAt('sse')
    const manager = await connect({ everything: { url } })
    expect(manager.servers).toMatchObject([{ state: 'ready', transport: 'sse', tools: 13 }])
    const reports: Json[] = []
    const input = { duration: 0.01, steps: 2 }
    const onProgress = (data: Json): void => void reports.push(data)
    await manager.call('everything', 'trigger-long-running-operation', input, { onProgress })
    expect(reports[0]).toEqual({ progress: 1, total: 2 })
  })

  it.each([401, 403, 500, 503])('is not tried the older way after HTTP %i', async (status) => {
    const server = await served((_request, response) => void response.writeHead(status).end('secret body'))
    const manager = await connect({ shut: { url: server.url } })
    expect(manager.servers).toMatchObject([{ state: 'failed' }])
    expect(server.requests.filter((request) => request.startsWith('GET'))).toEqual([])
  })

  it.each([
    ['no authorization', 500, 0],
    ['an authorization', 401, 1],
  ])('that asks for %s has the user asked for one as often as that', async (_what, status, times) => {
    const server = await served((_request, response) => void response.writeHead(status).end())
    let asked = 0
    const authProvider: OAuthClientProvider = {
      ...{ redirectUrl: 'http://127.0.0.1/back', clientMetadata: { redirect_uris: [] } },
      clientInformation: () => ({ client_id: 'c' }),
      ...{ tokens: () => undefined, saveTokens: () => {}, redirectToAuthorization: () => {} },
      ...{ saveCodeVerifier: () => {}, codeVerifier: () => 'v' },
    }
    const authorizationCallback = (): Promise<URLSearchParams> => {
      asked += 1
      return Promise.reject(new Error('The user closed the page.'))
    }
    const manager = await connect({ shut: { url: server.url, authProvider, authorizationCallback } })
    expect(manager.servers).toMatchObject([{ state: 'failed' }])
    expect(asked).toBe(times)
  })

  it.each([400, 404, 405])(
    'is tried the older way after HTTP %i, unless its type is given',
    async (status) => {
      const server = await served((_request, response) => void response.writeHead(status).end())
      await connect({ old: { url: server.url } })
      expect(server.requests).toContain('GET /mcp')
      const strict = await served((_request, response) => void response.writeHead(status).end())
      await connect({ old: { url: strict.url, type: 'http' } })
      expect(strict.requests).not.toContain('GET /mcp')
    },
  )

  it.each([
    ['2026-07-28', modernServer, 'auto'],
    ['2026-07-28', modernServer, '2026-07-28'],
    ['2025-11-25', () => modernServer('stateless'), 'legacy'],
    ['2025-11-25', sessionServer, 'auto'],
  ] as const)('speaks revision %s, and answers with progress', async (protocolVersion, start, era) => {
    const { url } = await start()
    const manager = await connect({ bad: { url, era } })
    expect(manager.servers).toMatchObject([{ state: 'ready', transport: 'http', protocolVersion }])
    expect(await said(manager, 'echo', { text: 'hi' })).toBe('hi')
    const reports: Json[] = []
    await manager.call('bad', 'steps', { count: 2 }, { onProgress: (data) => void reports.push(data) })
    expect(reports[0]).toMatchObject({ progress: 1, total: 2 })
  })

  it('of the new revision asks the hooks as well', async () => {
    const { url } = await modernServer()
    const manager = await connect(
      { bad: { url } },
      { elicit: () => ({ action: 'accept', content: { count: 4 } }) },
    )
    // The tool asks in the manner of the older revisions, which the new one refuses.
    await expect(said(manager, 'ask')).rejects.toThrow('server')
  })

  it('gets its headers, and they are struck out of what it says', async () => {
    const server = await sessionServer()
    const headers = { authorization: 'Bearer secret-0123456789' }
    const manager = await connect({ bad: { url: server.url, headers } })
    expect(await said(manager, 'echo', { text: 'it is secret-0123456789' })).toBe('it is [secret]')
    expect(server.lastHeaders()).toMatchObject(headers)
    const long = `secret-${'0123456789'.repeat(120)}`
    const other = await connect({ bad: { url: server.url, headers: { authorization: `Bearer ${long}` } } })
    const reports: Json[] = []
    const onProgress = (data: Json): void => void reports.push(data)
    await other.call('bad', 'steps', { count: 1, message: `${long} ${long}` }, { onProgress })
    expect(reports[0]).toMatchObject({ message: '[secret] [secret]' })
    expect(JSON.stringify([manager.servers, manager.pins])).not.toContain('secret-0123456789')
  })

  it('that forgets the session is connected to again, and the call made again: it ran nothing', async () => {
    const server = await sessionServer()
    const manager = await connect({ bad: { url: server.url } }, { reconnect: { baseMs: 1 } })
    server.forget()
    expect(await said(manager, 'echo', { text: 'again' })).toBe('again')
    expect(server.requests.filter((request) => request === 'POST /mcp').length).toBeGreaterThan(6)
  })

  it('whose connection breaks in a call leaves that in doubt', async () => {
    const server = await sessionServer()
    const manager = await connect({ bad: { url: server.url } })
    const hang = manager.tools.find(({ origin }) => origin?.name === 'hang')
    const before = server.requests.length
    const ending = endingOf(hang!, {})
    while (server.requests.length === before) await tick()
    await tick()
    server.breakConnections()
    expect(await ending).toMatchObject({ outcome: 'interrupted' })
    expect(await said(manager, 'echo', { text: 'still here' })).toBe('still here')
  })

  it.each([
    [502, 'interrupted', 'It may have taken effect'],
    [504, 'interrupted', 'It may have taken effect'],
    [500, 'failed', 'What was asked for may have happened all the same'],
    [503, 'failed', 'HTTP 503'],
  ])('whose call ends in HTTP %i leaves it %s', async (status, outcome, text) => {
    const inner = await modernServer()
    const gateway: typeof fetch = async (url, init) => {
      const response = await fetch(url, init)
      return typeof init?.body === 'string' && init.body.includes('tools/call')
        ? new Response('no', { status })
        : response
    }
    const manager = await connect({ bad: { url: inner.url, fetch: gateway } })
    const call = manager.call('bad', 'echo', { text: 'x' })
    await expect(call).rejects.toMatchObject({ outcome, message: expect.stringContaining(text) as string })
  })

  it('that goes away runs nothing more, and says so', async () => {
    const server = await sessionServer()
    const manager = await connect({ bad: { url: server.url } })
    await server.close()
    const echo = manager.tools.find(({ origin }) => origin?.name === 'echo')
    // The connection that was kept open may break under the first call, which is in doubt then.
    await endingOf(echo!, { text: 'hi' })
    const { outcome, text } = await endingOf(echo!, { text: 'hi' })
    expect(outcome).toBe('failed')
    expect(text).toContain('cannot be reached now (the connection was lost')
  })

  it('that streams without an end is cut off, and the call ends', async () => {
    const server = await served((request, response) => {
      if (request.method !== 'POST') return void response.writeHead(405).end()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const flood = (): void => {
        if (!response.writable) return
        response.write(`data: ${'x'.repeat(60_000)}\n`, () => void setImmediate(flood))
      }
      flood()
    })
    const manager = await connect({
      flood: { url: server.url, maxMessageBytes: 200_000, era: 'legacy', type: 'http' },
    })
    expect(manager.servers[0]?.faults).toEqual([
      expect.stringContaining('A message of the server is longer than 200000 bytes.'),
    ])
  })

  it('is given a call up at its time, and told so', async () => {
    const clock = manualClock()
    const server = await sessionServer()
    const manager = await connect({ bad: { url: server.url, timeoutMs: 500 } }, { timers: clock })
    const received: Json[] = []
    const call = manager.call('bad', 'hang', {}, { onProgress: (data) => void received.push(data) })
    while (received.length === 0) await tick()
    clock.advance(500)
    await expect(call).rejects.toMatchObject({ outcome: 'timed_out' })
  })
})

// HTTP 400 of a server: one that does not know the session ran nothing, another may have.

const unknown = [
  'Error POSTing to endpoint: {"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}',
  'Bad Request: Mcp-Session-Id header is required',
  'Bad Request: Server not initialized',
  'Missing session ID',
  'missing sessionId',
  'No session',
  'No such session: 7',
  'Unknown session 0197-aa',
  'Unrecognized session',
  'Invalid session_id',
  'Expired session.',
  'Could not find session for id 7',
  'Session not found',
  'Session 0197aa does not exist',
  'The session has expired',
  'session_expired',
  'Session has been terminated',
  'The session id is not valid.',
  'session id is invalid',
  'Session ID missing',
  'Session unknown',
  'the session is not known',
]

const other = [
  'The session is full: 12 of 12 seats are taken.',
  'Every session of the course needs a date.',
  'You obsession not found',
  'Session 7 was booked; the room was not found',
  'Possession unknown',
  'The order is unknown. Ask the session chair.',
  'invalid date of session',
  `${'x'.repeat(2_000)} session not found`,
  'Invalid arguments',
  '',
]

describe('an answer with HTTP 400', () => {
  it.each(unknown)('%j says that the session is unknown', (text) => {
    expect(isUnknownSession(text)).toBe(true)
  })

  it.each(other)('%j does not', (text) => {
    expect(isUnknownSession(text)).toBe(false)
  })

  it.each([
    ['No valid session ID provided', 2],
    ['The session is full.', 1],
  ])('"%s" has the call made %i times', async (body, times) => {
    const server = await sessionServer()
    let calls = 0
    const gateway: typeof fetch = async (url, init) => {
      if (typeof init?.body !== 'string' || !init.body.includes('tools/call')) return await fetch(url, init)
      return ++calls === 1 ? new Response(body, { status: 400 }) : await fetch(url, init)
    }
    const manager = await connect({ bad: { url: server.url, fetch: gateway } }, { reconnect: { baseMs: 1 } })
    const answer = await said(manager, 'echo', { text: 'hi' }).catch((error: Error) => error.message)
    expect(answer).toBe(
      times === 2 ? 'hi' : `The server answered with HTTP 400: Error POSTing to endpoint: ${body}`,
    )
    expect(calls).toBe(times)
  })
})

// A host that is killed takes its servers along, with all that they started.

const { spawn } = childProcess

const host = `
import { mcpTools } from '@tallystick/tools/mcp'
const mcp = await mcpTools({ servers: { bad: { command: process.execPath, args: [process.argv[1]] } } })
const [{ text: pid }] = await mcp.call('bad', 'pid', {})
const [{ text: child }] = await mcp.call('bad', 'spawn', { detached: process.platform === 'linux' })
const [{ text: sibling }] = await mcp.call('bad', 'spawn', {})
process.stdout.write(pid + ' ' + child + ' ' + sibling)
setInterval(() => {}, 1000)
`

it('ends servers when their host is killed', async () => {
  const server = fileURLToPath(new URL('servers/faulty-server.ts', import.meta.url))
  const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', host, server], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = (await once(child.stdio[1], 'data')) as [Buffer]
  const pids = String(said).split(' ').map(Number)
  expect(pids.map(isAlive)).toEqual([true, true, true])
  child.kill('SIGKILL')
  await once(child, 'exit')
  await expect.poll(() => pids.map(isAlive)).toEqual([false, false, false])
})

it('given servers that are closed, then what watches over their processes has ended as well', async () => {
  const children: ChildProcess[] = []
  const spy = vi.spyOn(childProcess, 'spawn').mockImplementation((...given: Parameters<typeof spawn>) => {
    const child = spawn(...given)
    children.push(child)
    return child
  })
  syncBuiltinESMExports()
  onTestFinished(() => {
    spy.mockRestore()
    syncBuiltinESMExports()
  })
  const manager = await connect({ own: shellServer({ tools: { work: 'answer' } }) })
  await manager.close()
  expect(children).toHaveLength(2)
  for (const { exitCode, signalCode } of children) expect(exitCode ?? signalCode).not.toBeNull()
})

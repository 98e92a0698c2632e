import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import express from 'express'
import { Hono } from 'hono'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createRuntime, memoryLedger } from '@tallystick/core'
import { createServer, type Server, type ServerOptions } from '@tallystick/server'
import { nodeHandler } from '@tallystick/server/node'
import { answerOf, framesOf, openOffice, tellingAgent } from './kit/office.ts'

type Send = (path: string, init?: RequestInit) => Response | Promise<Response>

function serverAt(basePath: string, options: Partial<ServerOptions> = {}): Server {
  const [ledger, agents] = [memoryLedger(), [tellingAgent('teller', 'Tea.')]]
  const runtime = createRuntime({ ledger, agents })
  return createServer({
    runtime,
    ledger,
    agents,
    basePath,
    authorize: () => ({ name: 'ada', sees: 'everything' }),
    ...options,
  })
}

/** Starts a run where the server is mounted, follows it to its end, and returns its last event. */
async function lastEventOf(send: Send): Promise<string | undefined> {
  expect((await send('/hello')).status).toBe(200)
  const body = JSON.stringify({ agent: 'teller', input: 'Tea?' })
  const started = await send('/api/runs', {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json' },
  })
  expect(started.status).toBe(201)
  const place = started.headers.get('location')
  expect(place).toMatch(/^\/api\/runs\//)
  const types: string[] = []
  const response = await send(`${place}/events`, { headers: { accept: 'text/event-stream' } })
  for await (const { data } of framesOf(response)) types.push((JSON.parse(data) as { type: string }).type)
  expect(types.at(0)).toBe('run_started')
  expect((await send('/api/none')).headers.get('content-type')).toBe('application/problem+json')
  return types.at(-1)
}

/** Sends requests to an application of Express. */
async function sendTo(app: express.Express): Promise<Send> {
  app.get('/hello', (_, response) => void response.send('Hello.'))
  const http = app.listen(0, '127.0.0.1')
  onTestFinished(() => void http.close())
  await once(http, 'listening')
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  return (path, init) => fetch(origin + path, init)
}

const start = {
  method: 'POST',
  body: JSON.stringify({ agent: 'teller', input: 'Tea?' }),
  headers: { 'content-type': 'application/json' },
}

describe('a server is mounted', () => {
  it('in an application of Express, before its body parser', async () => {
    const app = express()
    app.all('/api/*rest', nodeHandler(serverAt('/api')))
    app.use(express.json())
    expect(await lastEventOf(await sendTo(app))).toBe('run_finished')
  })

  it.each([
    ['as JSON', express.json()],
    ['as JSON of any type', express.json({ type: '*/*' })],
    ['as a text', express.text({ type: '*/*' })],
    ['as bytes', express.raw({ type: '*/*' })],
  ])('in an application of Express, after a parser that reads bodies %s', async (_how, parser) => {
    const app = express()
    app.use(parser)
    app.all('/api/*rest', nodeHandler(serverAt('/api', { maxBodyBytes: 1_000 })))
    const send = await sendTo(app)
    expect(await lastEventOf(send)).toBe('run_finished')
    const cancel = { method: 'POST', headers: { 'content-length': '0' } }
    expect((await send('/api/runs/none/cancel', cancel)).status).toBe(404)
    const plain = { ...start, headers: { 'content-type': 'text/plain' } }
    expect(await answerOf(await send('/api/runs', plain))).toMatchObject({ code: 'unsupported_media_type' })
    const large = { ...start, body: JSON.stringify({ agent: 'teller', input: 'a'.repeat(2_000) }) }
    expect(await answerOf(await send('/api/runs', large))).toMatchObject({ code: 'body_too_large' })
  })

  it('in an application of Express, after a parser that unpacks what was sent in less', async () => {
    const app = express()
    app.use(express.json())
    app.all('/api/*rest', nodeHandler(serverAt('/api', { maxBodyBytes: 1_000 })))
    const send = await sendTo(app)
    const packed = (input: string): RequestInit => ({
      ...start,
      body: gzipSync(JSON.stringify({ agent: 'teller', input })),
      headers: { ...start.headers, 'content-encoding': 'gzip' },
    })
    expect((await send('/api/runs', packed('Tea?'))).status).toBe(201)
    const bomb = await send('/api/runs', packed('a'.repeat(50_000)))
    expect(await answerOf(bomb)).toMatchObject({ code: 'body_too_large' })
  })

  it('after code that reads bodies and leaves them nowhere: callers and the operator learn of that', async () => {
    const reported: unknown[] = []
    const app = express()
    app.use((request, _response, next) => void request.resume().on('end', next))
    app.all('/api/*rest', nodeHandler(serverAt('/api', { report: (error) => reported.push(error) })))
    const send = await sendTo(app)
    const problem = {
      status: 500,
      code: 'body_read_before',
      detail: expect.stringContaining('Mount the server before code that reads bodies') as string,
    }
    expect(await answerOf(await send('/api/runs', start))).toMatchObject(problem)
    expect(reported).toMatchObject([{ code: 'body_read_before' }])
    expect((await send('/api/agents')).status).toBe(200)
    const request = new Request('https://shop.example/api/runs', start)
    await request.text()
    expect(await answerOf(await serverAt('/api', { report: () => {} }).fetch(request))).toMatchObject(problem)
  })

  it('in an application of Hono', async () => {
    const [app, server] = [new Hono(), serverAt('/api')]
    app.all('/api/*', (context) => server.fetch(context.req.raw))
    app.get('/hello', (context) => context.text('Hello.'))
    expect(await lastEventOf((path, init) => app.request(path, init))).toBe('run_finished')
  })

  it('as a route of Next.js, app/api/[...path]/route.ts, and as the handler of a worker', async () => {
    const { fetch: handler } = serverAt('/api')
    const [GET, POST] = [handler, handler]
    const send: Send = async (path, init) => {
      if (!path.startsWith('/api/')) return new Response('Hello.')
      const request = new Request(`https://shop.example${path}`, init)
      return await (request.method === 'POST' ? POST(request) : GET(request))
    }
    expect(await lastEventOf(send)).toBe('run_finished')
  })
})

describe('a path that is not served', () => {
  const elsewhere = async (basePath: string, path: string): Promise<unknown> =>
    (await answerOf(await serverAt(basePath).fetch(new Request(`https://shop.example${path}`))))['detail']

  it.each([
    [
      '/api',
      '/runs?limit=1',
      'There is no GET /runs: the paths of this server begin with /api, its basePath. Send GET /api/runs, or leave basePath out if requests are to begin so.',
    ],
    [
      '/api',
      '/v2/api/runs/a/events',
      'There is no GET /v2/api/runs/a/events: the paths of this server begin with /api, its basePath. Send GET /api/runs/a/events, or give createServer the basePath /v2/api if requests are to begin so.',
    ],
    [
      '',
      '/api/runs',
      'There is no GET /api/runs: the paths of this server begin at the root, since it has no basePath. Send GET /runs, or give createServer the basePath /api if requests are to begin so.',
    ],
    [
      '/api',
      '/hello',
      'There is no GET /hello: the paths of this server begin with /api, its basePath. Send the request there.',
    ],
    ['/api', '/api/none', 'There is no GET /api/none. GET /api/openapi.json describes every path.'],
    ['/api', '/api', 'There is no GET /api. GET /api/openapi.json describes every path.'],
    ['', '/', 'There is no GET /. GET /openapi.json describes every path.'],
    ['', '/runs/a/none', 'There is no GET /runs/a/none. GET /openapi.json describes every path.'],
  ])(
    'of a server with the basePath "%s", %s, is answered with where paths begin',
    async (basePath, path, detail) => {
      expect(await elsewhere(basePath, path)).toBe(detail)
    },
  )
})

describe('a body with a field that there is not', () => {
  it.each([
    [
      { agent: 'teller', prompt: 'Tea?' },
      'prompt is not a field. Did you mean input? Fields are agent, input,',
    ],
    [{ agent: 'teller', message: 'Tea?' }, 'message is not a field. Did you mean input?'],
    [{ agentName: 'teller', input: 'Tea?' }, 'agentName is not a field. Did you mean agent?'],
    [{ agent: 'teller', input: 'Tea?', session: 's1' }, 'session is not a field. Did you mean sessionId?'],
    [{ agent: 'teller', input: 'Tea?', threadId: 's1' }, 'threadId is not a field. Did you mean sessionId?'],
    [{ agent: 'teller', input: 'Tea?', colour: 'red' }, 'colour is not a field. Fields are agent,'],
    [{ agent: 'teller' }, 'The body does not fit: input is missing. Fields are agent, input,'],
    [{ agent: 'teller', input: 1 }, 'The body does not fit: input: '],
    [{ agent: 'teller', input: 'Tea?', limits: { turns: 1 } }, 'The body does not fit: limits: '],
    [[], 'The body does not fit: the body: '],
  ])('names the field that may be meant: %j', async (body, detail) => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'Tea.')] })
    const answer = await answerOf(await office.send('/runs', 'boss', body))
    expect(answer).toMatchObject({ status: 400, code: 'malformed' })
    expect(answer['detail']).toContain(detail)
  })

  it('names it of a command, too', async () => {
    const office = await openOffice()
    const runId = await office.start('boss')
    const steer = await answerOf(await office.send(`/runs/${runId}/steer`, 'boss', { text: 'Hurry.' }))
    expect(steer['detail']).toBe(
      'The body does not fit: text is not a field. Did you mean input? Fields are input.',
    )
    const body = { toolCallId: 'a', output: 'Paid.' }
    const settle = await answerOf(await office.send(`/runs/${runId}/settle`, 'boss', body))
    expect(settle['detail']).toBe(
      'The body does not fit: output is not a field. Did you mean result? Fields are toolCallId, result, failed.',
    )
  })
})

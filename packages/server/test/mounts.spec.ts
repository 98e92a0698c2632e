import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { Hono } from 'hono'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createRuntime, memoryLedger } from '@tallystick/core'
import { createServer, type Server } from '@tallystick/server'
import { nodeHandler } from '@tallystick/server/node'
import { framesOf, tellingAgent } from './kit/office.ts'

type Send = (path: string, init?: RequestInit) => Response | Promise<Response>

function serverAt(basePath: string): Server {
  const [ledger, agents] = [memoryLedger(), [tellingAgent('teller', 'Tea.')]]
  const runtime = createRuntime({ ledger, agents })
  return createServer({
    runtime,
    ledger,
    agents,
    basePath,
    authorize: () => ({ name: 'ada', sees: 'everything' }),
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

describe('a server is mounted', () => {
  it('in an application of Express, before its body parser', async () => {
    const app = express()
    app.all('/api/*rest', nodeHandler(serverAt('/api')))
    app.use(express.json())
    app.get('/hello', (_, response) => void response.send('Hello.'))
    const http = app.listen(0, '127.0.0.1')
    onTestFinished(() => void http.close())
    await once(http, 'listening')
    const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
    expect(await lastEventOf((path, init) => fetch(origin + path, init))).toBe('run_finished')
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

import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server as HttpServer,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { onTestFinished } from 'vitest'
import { faultyServer } from './faulty-tools.ts'
import { realServer } from './real-servers.ts'
import { findFreePort } from '../../../../../scripts/testing/free-port.ts'

/** A server at a URL. */
export interface ServedUrl {
  readonly url: string
  /** The requests so far, as `POST /mcp`. */
  readonly requests: readonly string[]
  /** The headers of the last one. */
  lastHeaders(): IncomingMessage['headers']
  /** Breaks every connection, as a lost network does. */
  breakConnections(): void
  /** Takes no connection any more; what is under way continues. */
  refuse(): void
  /** Forgets all sessions, as a server that was started again. */
  forget(): void
  /** Ends the server. */
  close(): Promise<void>
}

/** Serves a listener on a free port of this machine until the test ends. */
export async function served(listener: RequestListener, forget = (): void => {}): Promise<ServedUrl> {
  const requests: string[] = []
  let headers: IncomingMessage['headers'] = {}
  const server: HttpServer = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    headers = request.headers
    listener(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  let closing: Promise<unknown> | undefined
  const close = async (): Promise<void> => {
    closing ??= once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closing
  }
  onTestFinished(close)
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    requests,
    lastHeaders: () => headers,
    breakConnections: () => server.closeAllConnections(),
    refuse: () => void server.close(),
    forget,
    close,
  }
}

/** The tools that go wrong, over Streamable HTTP with sessions, as revisions up to 2025-11-25 have it. */
export async function sessionServer(): Promise<ServedUrl> {
  const sessions = new Map<string, NodeStreamableHTTPServerTransport>()
  const answer = async (...[request, response]: Parameters<RequestListener>): Promise<void> => {
    const id = String(request.headers['mcp-session-id'] ?? '')
    let transport = sessions.get(id)
    if (transport === undefined) {
      if (id !== '') return void response.writeHead(404).end()
      const made = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (session) => void sessions.set(session, made),
      })
      transport = made
      await faultyServer().connect(transport)
    }
    await transport.handleRequest(request, response)
  }
  return await served(
    (request, response) => void answer(request, response),
    () => sessions.clear(),
  )
}

/** The same tools as revision 2026-07-28 has it, which knows no sessions; `strict`: no older revision is served. */
export async function modernServer(legacy: 'stateless' | 'reject' = 'reject'): Promise<ServedUrl> {
  const handler = createMcpHandler(() => faultyServer(), { legacy, keepAliveMs: 0 })
  const answer = toNodeHandler(handler)
  return await served((request, response) => void answer(request as Parameters<typeof answer>[0], response))
}

/** server-everything over HTTP, as its own process: `sse` is the older way. */
export async function everythingAt(way: 'sse' | 'streamableHttp'): Promise<string> {
  const server = everythingProcess(way, await findFreePort())
  await server.start()
  return server.url
}

/** A process of server-everything that can be killed and started again at the same place. */
export async function restartedEverything(): Promise<ReturnType<typeof everythingProcess>> {
  const server = everythingProcess('streamableHttp', await findFreePort())
  await server.start()
  return server
}

function everythingProcess(
  way: 'sse' | 'streamableHttp',
  port: number,
): { readonly url: string; readonly start: () => Promise<void>; readonly kill: () => Promise<void> } {
  let kill = (): Promise<void> => Promise.resolve()
  return {
    url: `http://127.0.0.1:${port}/${way === 'sse' ? 'sse' : 'mcp'}`,
    kill: () => kill(),
    async start() {
      kill = await startEverything(way, port)
    },
  }
}

async function startEverything(way: 'sse' | 'streamableHttp', port: number): Promise<() => Promise<void>> {
  const { command, args = [] } = realServer('everything', [way])
  const child: ChildProcess = spawn(command, [...args], {
    env: { PATH: process.env['PATH'], PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const gone = once(child, 'exit')
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await gone
  }
  onTestFinished(kill)
  await new Promise<void>((resolve) => {
    // Read to its end: a server that cannot write its log ends.
    child.stdio[2]?.on('data', (chunk: Buffer) => {
      if (String(chunk).includes(String(port))) resolve()
    })
  })
  return kill
}

import { once } from 'node:events'
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { ConfigurationError, type RunResult } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/internal'
import type { Server } from './create-server.ts'
import { createMalformedError, toProblemResponse } from './http/problem.ts'
import { isLoopback, readBefore } from './http/request.ts'

// A server of runs on Node's own HTTP server.

/**
 * The request with the body that other code before this handler has read, and left as `rawBody` or `body` of the request
 * of Node: what `express.json()` parsed becomes JSON again. What reads the body is refused where it was left nowhere.
 */
function withBodyReadBefore(request: Request, incoming: IncomingMessage): Request {
  const { url, method, headers, signal } = request
  const hasBody =
    incoming.headers['transfer-encoding'] !== undefined || Number(incoming.headers['content-length'] ?? 0) > 0
  // A request without a body has nothing to lose.
  if (!incoming.readableDidRead || !hasBody || method === 'GET' || method === 'HEAD') return request
  const lost = new ReadableStream({ start: (controller) => controller.error(readBefore()) })
  return new Request(url, {
    ...{ method, headers, signal, duplex: 'half' },
    body: readLeftBody(incoming) ?? lost,
  })
}

function readLeftBody(incoming: IncomingMessage): string | Uint8Array<ArrayBuffer> | undefined {
  const { rawBody, body }: { readonly rawBody?: unknown; readonly body?: unknown } = Object(incoming)
  const left = rawBody ?? body
  if (typeof left === 'string') return left
  if (left instanceof Uint8Array) return Uint8Array.from(left)
  try {
    return JSON.stringify(left)
  } catch {
    return undefined
  }
}

/** Answers a request of Node's HTTP server. */
export type NodeHandler = (incoming: IncomingMessage, outgoing: ServerResponse) => void

const answering = option.valueThat(
  'the server that createServer made',
  (value) => typeof (Object(value) as Partial<Server>).fetch === 'function',
)

/**
 * The handler for programs on Node's HTTP server, such as Express: `app.all('/api/*rest', nodeHandler(server))`
 * with `basePath: '/api'`. It takes a body that `express.json()` before it has read; the server's `maxBodyBytes` holds
 * there, too, and so do the limits of that parser.
 */
export function nodeHandler(server: Pick<Server, 'fetch'>): NodeHandler {
  requireOptions('nodeHandler', answering, server, 'the server')
  const answer = getRequestListener(
    (request, { incoming }) =>
      // A host such as `null.0.1` passes the check of the listener, and is no address.
      URL.canParse(request.url)
        ? server.fetch(withBodyReadBefore(request, incoming as IncomingMessage))
        : toProblemResponse(createMalformedError(noAddress)),
    { overrideGlobalObjects: false },
  )
  return (incoming, outgoing) => {
    const turn = waitForTurn(incoming, outgoing)
    // A client that has left gets nothing done that it asked for behind an answer.
    const begin = (): unknown => (outgoing.destroyed ? undefined : answer(incoming, outgoing))
    turn?.then(begin).catch(() => outgoing.destroy())
  }
}

const noAddress =
  'The host and the target of the request do not make an address. Send the host as its header Host, such as example.org.'

/** The most requests of one connection that wait for the answer before theirs. */
const maxWaiting = 100

/** The requests of each connection that are not answered yet, and when the last of them is. */
const connections = new WeakMap<object, { waiting: number; last: Promise<void> }>()

/**
 * Resolves when the requests before this one, on its connection, are answered; breaks a connection with too many. A client
 * may send any number of requests without reading an answer, and each answer that is made stays in memory until it is read.
 * Answers are sent in the order of the requests, so a later one gains nothing by being made early.
 */
function waitForTurn(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> | undefined {
  if (incoming.httpVersionMajor !== 1) return Promise.resolve()
  const { socket } = incoming
  const queue = connections.get(socket) ?? { waiting: 0, last: Promise.resolve() }
  connections.set(socket, queue)
  if (queue.waiting >= maxWaiting) {
    socket.destroy()
    return undefined
  }
  queue.waiting++
  const before = queue.last
  queue.last = new Promise((resolve) => {
    outgoing.once('close', () => {
      queue.waiting--
      resolve()
    })
  })
  return before
}

export interface ServeOptions {
  /** Default: a free port. */
  readonly port?: number | undefined
  /** Default: this machine only. */
  readonly host?: string | undefined
  /** The largest headers that are read, in bytes. Default: 16 kB. */
  readonly maxHeaderBytes?: number | undefined
  /** How long a request may take to arrive, in milliseconds. Default: 30 seconds. */
  readonly requestTimeoutMs?: number | undefined
  /** The most connections at a time. Default: 10,000. */
  readonly maxConnections?: number | undefined
}

/** A server that listens. */
export interface Listening {
  readonly url: string
  readonly port: number
  /** Drains the server (see `Server.drain`), and closes its connections. */
  close(graceMs?: number): Promise<readonly RunResult[]>
  [Symbol.asyncDispose](): Promise<void>
}

const { fields, filledText, maybe, milliseconds, numberFrom, valueThat } = option

const anyServer = valueThat('the server that createServer made', (value) => {
  const { fetch, drain } = Object(value) as Partial<Server>
  return typeof fetch === 'function' && typeof drain === 'function'
})

const serveOptions = fields<ServeOptions>(
  {
    port: maybe(numberFrom(0, { whole: true })),
    host: maybe(filledText),
    maxHeaderBytes: maybe(numberFrom(1_000, { whole: true })),
    requestTimeoutMs: maybe(milliseconds),
    maxConnections: maybe(numberFrom(1, { whole: true })),
  },
  { hostname: 'host', address: 'host' },
)

/**
 * Listens for requests with Node's HTTP server. Rejects with a `ConfigurationError` for what is not a server, if the port is
 * not available, or if other machines could reach a server without `authorize`.
 */
export async function serve(server: Server, options: ServeOptions = {}): Promise<Listening> {
  requireOptions('serve', anyServer, server, 'the server')
  requireOptions('serve', serveOptions, options)
  const { port = 0, host = '127.0.0.1' } = options
  if (server.token !== undefined && !isLoopback(host)) {
    throw new ConfigurationError(
      `serve: ${host} can be reached from other machines, and the server knows its callers by one token. Give createServer the option authorize, or leave host out.`,
    )
  }
  const requestTimeout = options.requestTimeoutMs ?? 30_000
  const http = createHttpServer(
    {
      maxHeaderSize: options.maxHeaderBytes ?? 16_384,
      requestTimeout,
      headersTimeout: Math.min(10_000, requestTimeout),
      connectionsCheckingInterval: Math.min(1_000, requestTimeout),
    },
    nodeHandler(server),
  )
  http.maxConnections = options.maxConnections ?? 10_000
  const { port: given } = await listen(http, port, host)
  const close = async (graceMs?: number): Promise<readonly RunResult[]> => {
    const closed = once(http, 'close')
    http.close()
    const results = await server.drain(graceMs)
    http.closeIdleConnections()
    // A reader that takes nothing any more keeps its connection open.
    const timer = setTimeout(() => http.closeAllConnections(), 1_000)
    await closed.finally(() => clearTimeout(timer))
    return results
  }
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${given}`,
    port: given,
    close,
    async [Symbol.asyncDispose]() {
      await close()
    },
  }
}

async function listen(http: HttpServer, port: number, host: string): Promise<AddressInfo> {
  http.listen(port, host)
  try {
    await once(http, 'listening')
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new ConfigurationError(
      `serve: it cannot listen at ${host}:${port} (${why}). Give another host or port, or end the process that listens there.`,
      { cause: error },
    )
  }
  return http.address() as AddressInfo
}

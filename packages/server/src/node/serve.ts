import { once } from 'node:events'
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigurationError, type RunResult } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import { isLoopback } from '../http/request-guard.ts'
import type { Server } from '../server/create-server.ts'
import { nodeHandler } from './node-handler.ts'

/** Where a server listens. */
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
 * Listens for requests with Node's HTTP server. Rejects with a `ConfigurationError` for what is no server, if the port is
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

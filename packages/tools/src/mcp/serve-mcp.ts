import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type * as node from '@modelcontextprotocol/node'
import type * as sdk from '@modelcontextprotocol/server'
import { ConfigurationError, type Tool } from '@tallystick/core'
import { isAgentTool, requireOptions } from '@tallystick/core/internal'
import { hostTimers, createHttpServer } from '../host.ts'
import { type OptionalPackage, declarePackage } from '../packages.ts'
import {
  type ServeHttpOptions,
  type ServeMcpOptions,
  serveOptions,
  createServerFactory,
  toolList,
} from './served-call.ts'

const serverPackage: OptionalPackage<typeof sdk> = declarePackage(
  '@modelcontextprotocol/server',
  () => import('@modelcontextprotocol/server'),
)

const nodePackage: OptionalPackage<typeof node> = declarePackage(
  '@modelcontextprotocol/node',
  () => import('@modelcontextprotocol/node'),
)

interface HttpListener {
  readonly url: string
  close(): Promise<void>
}

/** Listens for MCP clients at `/mcp`. Rejects where the port cannot be had. */
async function listenHttp(
  factory: () => sdk.Server,
  { port = 0, host = '127.0.0.1', token }: ServeHttpOptions,
  { createMcpHandler }: Pick<typeof sdk, 'createMcpHandler'>,
): Promise<HttpListener> {
  const node = await nodePackage.load('serveMcp()')
  const handler = createMcpHandler(factory)
  const answer = node.toNodeHandler(handler)
  // A page in a browser of this machine must not reach it by another name, nor from its own origin.
  const guards = token === undefined ? [node.localhostHostValidation(), node.localhostOriginValidation()] : []
  const server = createHttpServer((request, response, { pathname }) => {
    if (!guards.every((isAllowed) => isAllowed(request, response))) return undefined
    if (pathname !== '/mcp') return response.writeHead(404).end()
    if (token !== undefined && !isToken(request.headers.authorization, token)) {
      return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    }
    return answer(request as Parameters<typeof answer>[0], response)
  })
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new ConfigurationError(
      `serveMcp: it cannot listen at ${host}:${port} (${error instanceof Error ? error.message : String(error)}).`,
      { cause: error },
    )
  }
  const { port: given } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${given}/mcp`,
    async close() {
      server.close()
      // Streams of events end, before what is left of the connections breaks.
      await handler.close()
      server.closeAllConnections()
    },
  }
}

/** Takes the same time for every wrong token. */
function isToken(authorization: string | undefined, token: string): boolean {
  const given = Buffer.from(authorization ?? '')
  const wanted = Buffer.from(`Bearer ${token}`)
  return given.length === wanted.length && timingSafeEqual(given, wanted)
}

/** Tools that are served. */
export interface ServedMcp {
  /** Of a server over HTTP. */
  readonly url?: string
  /** Resolves when the client has gone (standard input has ended), or after `close`. */
  readonly closed: Promise<void>
  /** Cancels what is under way and stops serving. */
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Serves tools to MCP clients, such as Claude Desktop, with progress and cancel: over the standard input and output of this
 * process (which must then print nothing else there), or over HTTP. Needs the package `@modelcontextprotocol/server`, and
 * over HTTP `@modelcontextprotocol/node`. Rejects with a `ConfigurationError` for what cannot be
 * served, and without these packages.
 */
export async function serveMcp(
  tools: readonly Tool<unknown>[],
  options: ServeMcpOptions = {},
): Promise<ServedMcp> {
  requireOptions('serveMcp', toolList, tools, 'tools')
  requireOptions('serveMcp', serveOptions, options)
  requireServable(tools, options)
  const sdk = await serverPackage.load('serveMcp()')
  const stop = new AbortController()
  const parts = { tools, options, sdk, stop: stop.signal, timers: options.timers ?? hostTimers }
  const factory = createServerFactory(parts)
  if (options.http !== undefined) {
    const listener: HttpListener = await listenHttp(factory, options.http, sdk)
    return served(stop, () => listener.close(), listener.url)
  }
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio')
  const handle = serveStdio(factory)
  const end = served(stop, () => handle.close())
  // The client has closed its side, and reads no answers any more.
  process.stdin.once('end', () => void end.close())
  return end
}

function requireServable(tools: readonly Tool[], { runtime, http = {} }: ServeMcpOptions): void {
  const names = new Set<string>()
  for (const tool of tools) {
    if (names.has(tool.name)) {
      throw new ConfigurationError(
        `serveMcp: two tools have the name ${tool.name}. Give one of them another.`,
      )
    }
    names.add(tool.name)
    if (tool.child !== undefined && (!isAgentTool(tool) || runtime === undefined)) {
      throw new ConfigurationError(
        `serveMcp: the tool ${tool.name} is an agent, which only a runtime runs. Give the runtime as an option.`,
      )
    }
    if (tool.handoff !== undefined) {
      throw new ConfigurationError(
        `serveMcp: the tool ${tool.name} hands a conversation over, and a client's call has no conversation.`,
      )
    }
  }
  const { host = '127.0.0.1', token } = http
  const isLoopback = host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
  if (!isLoopback && token === undefined) {
    throw new ConfigurationError(
      `serveMcp: ${host} can be reached from other machines. Give a token that clients have to send, or leave host out.`,
    )
  }
}

function served(stop: AbortController, end: () => Promise<void>, url?: string): ServedMcp {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  let closing: Promise<void> | undefined
  const close = (): Promise<void> =>
    (closing ??= (async () => {
      stop.abort()
      await end()
      resolve()
    })())
  return { ...(url !== undefined && { url }), closed, close, [Symbol.asyncDispose]: close }
}

import { ConfigurationError, type Tool } from '@tallystick/core'
import { isAgentTool, requireOptions } from '@tallystick/core/kit'
import { serverPackage } from './mcp-server-packages.ts'
import { type HttpListener, listenHttp } from './listen-http.ts'
import { type ServeMcpOptions, serveOptions, toolList } from './serve-options.ts'
import { serverFactory } from './server-factory.ts'
import { hostTimers } from '../../built-in/timers.ts'

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
  const factory = serverFactory(parts)
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
  if (!isLoopback(host) && token === undefined) {
    throw new ConfigurationError(
      `serveMcp: ${host} can be reached from other machines. Give a token that clients have to send, or leave host out.`,
    )
  }
}

/** Whether a host is this machine alone. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host)
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

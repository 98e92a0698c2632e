import { timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type * as sdk from '@modelcontextprotocol/server'
import { ConfigurationError } from '@tallystick/core'
import { httpServer } from '../transport/http-listener.ts'
import { nodePackage } from './mcp-server-packages.ts'
import type { ServeHttpOptions } from './serve-options.ts'

/** An HTTP server that listens. */
export interface HttpListener {
  readonly url: string
  close(): Promise<void>
}

/** Listens for MCP clients at `/mcp`. Rejects where the port cannot be had. */
export async function listenHttp(
  factory: () => sdk.Server,
  { port = 0, host = '127.0.0.1', token }: ServeHttpOptions,
  { createMcpHandler }: Pick<typeof sdk, 'createMcpHandler'>,
): Promise<HttpListener> {
  const node = await nodePackage.load('serveMcp()')
  const handler = createMcpHandler(factory)
  const answer = node.toNodeHandler(handler)
  // A page in a browser of this machine must not reach it by another name, nor from its own origin.
  const guards = token === undefined ? [node.localhostHostValidation(), node.localhostOriginValidation()] : []
  const server = httpServer((request, response, { pathname }) => {
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

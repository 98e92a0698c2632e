import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { Server } from '../server/create-server.ts'

/** Answers a request of Node's HTTP server. */
export type NodeHandler = (incoming: IncomingMessage, outgoing: ServerResponse) => void

/**
 * The handler for programs on Node's HTTP server, such as Express: `app.all('/api/*rest', nodeHandler(server))`
 * with `basePath: '/api'`. It reads the body itself, so no body parser may come before it.
 */
export function nodeHandler(server: Pick<Server, 'fetch'>): NodeHandler {
  const answer = getRequestListener((request) => server.fetch(request), { overrideGlobalObjects: false })
  return (incoming, outgoing) => void answer(incoming, outgoing)
}

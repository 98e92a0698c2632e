import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { option, requireOptions } from '@tallystick/core/kit'
import type { Server } from '../server/create-server.ts'
import { withBodyReadBefore } from './read-body-before.ts'

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
    (request, { incoming }) => server.fetch(withBodyReadBefore(request, incoming as IncomingMessage)),
    { overrideGlobalObjects: false },
  )
  return (incoming, outgoing) => void answer(incoming, outgoing)
}

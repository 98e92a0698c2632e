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
  return (incoming, outgoing) => {
    const turn = inTurn(incoming, outgoing)
    // A client that has left gets nothing done that it asked for behind an answer.
    const begin = (): unknown => (outgoing.destroyed ? undefined : answer(incoming, outgoing))
    turn?.then(begin).catch(() => outgoing.destroy())
  }
}

/** The most requests of one connection that wait for the answer before theirs. */
const maxWaiting = 100

/** The requests of each connection that are not answered yet, and when the last of them is. */
const connections = new WeakMap<object, { waiting: number; last: Promise<void> }>()

/**
 * Resolves when the requests before this one, on its connection, are answered; breaks a connection with too many. A client
 * may send any number of requests without reading an answer, and each answer that is made stays in memory until it is read.
 * Their order on the wire is that of the requests, so a later one gains nothing by being made early.
 */
function inTurn(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> | undefined {
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

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A running server on loopback. */
export interface LoopbackServer {
  /** Such as `http://127.0.0.1:40123`, without a trailing slash. The port differs each time. */
  readonly origin: string
  /** Stops it and closes open connections. */
  close(): Promise<void>
}

/** Answers a request, at once or later. */
type Listener = (request: IncomingMessage, response: ServerResponse) => unknown

/** Starts a server on 127.0.0.1 at a free port. If the listener throws, the answer is a 500, and the server continues. */
export async function listen(listener: Listener): Promise<LoopbackServer> {
  const server = createServer((request, response) => {
    const answered = async (): Promise<unknown> => await listener(request, response)
    answered().catch(() => {
      if (response.headersSent) response.destroy()
      else response.writeHead(500).end()
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error === undefined ? resolve() : reject(error)))
        server.closeAllConnections()
      }),
  }
}

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server on loopback that is up. */
export interface LoopbackServer {
  /** Such as `http://127.0.0.1:40123`, without a slash at the end. The port is another one each time. */
  readonly origin: string
  /** Ends it, with the connections that are open. */
  close(): Promise<void>
}

/** Answers a request, at once or later. */
type Listener = (request: IncomingMessage, response: ServerResponse) => unknown

/** Brings a server up on 127.0.0.1 at a free port. A listener that throws answers 500, and the server goes on. */
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

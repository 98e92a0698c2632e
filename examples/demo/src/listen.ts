import type { RequestListener } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server on loopback that is up. */
export interface LoopbackServer {
  /** Such as `http://127.0.0.1:40123`, without a slash at the end. The port is another one each time. */
  readonly origin: string
  /** Ends it, with the connections that are open. */
  close(): Promise<void>
}

/** Brings a server up on 127.0.0.1 at a free port. */
export async function listen(listener: RequestListener): Promise<LoopbackServer> {
  const server = createServer(listener)
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

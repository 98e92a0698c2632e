import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A request as a server received it. */
export interface Received {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A server on 127.0.0.1 that keeps what it receives. */
export interface LoopbackServer {
  readonly port: number
  /** As in `127.0.0.1:40123`. */
  readonly place: string
  readonly origin: string
  readonly received: readonly Received[]
  /** How many connections were made to it. */
  connections(): number
  /** Ends it. Resolves once every connection to it is closed, which it leaves to the others. */
  close(): Promise<void>
}

/**
 * Brings a server up at a free port until the test ends, which waits for its connections: no call may leave one open. The
 * listener is called once the request's body is there.
 */
export async function serve(
  listener: RequestListener,
  server: Server = createServer(),
  scheme = 'http',
): Promise<LoopbackServer> {
  const received: Received[] = []
  let connections = 0
  server.on('connection', () => connections++)
  server.on('request', (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      received.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
      listener(request, response)
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const place = `127.0.0.1:${port}`
  const close = (): Promise<void> => new Promise((resolve) => void server.close(() => resolve()))
  onTestFinished(close)
  return {
    port,
    place,
    origin: `${scheme}://${place}`,
    received,
    connections: () => connections,
    close,
  }
}

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A query that makes a server connection forget all that its session was told. */
const discardAll = message('Q', Buffer.from('discard all\0'))

/** `ReadyForQuery` outside of a transaction. */
const idle = message('Z', Buffer.from('I'))

function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

export interface Pooler {
  readonly connectionString: string
  readonly close: () => void
}

/**
 * Works in front of a server as a pooler in transaction mode does, as seen by its clients: after each transaction the
 * connection keeps nothing that they set on it, neither settings nor prepared statements nor what it listens to.
 */
export async function transactionPooler(connectionString: string): Promise<Pooler> {
  const url = new URL(connectionString)
  const [port, host] = [Number(url.port), url.hostname]
  const sockets = new Set<Socket>()
  const pooler = createServer((client) => {
    const server = connect(port, host)
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => undefined).setNoDelay()
    }
    client.pipe(server)
    server.on('data', forgetful(client, server)).on('close', () => client.destroy())
  }).listen(0, '127.0.0.1')
  await once(pooler, 'listening')
  const address = pooler.address()
  if (address === null || typeof address === 'string') throw new Error('The pooler has no port.')
  url.port = String(address.port)
  return {
    connectionString: url.href,
    close() {
      for (const socket of sockets) socket.destroy()
      pooler.close()
    },
  }
}

/** Hands on what the server says; the end of a transaction only once all was forgotten. */
function forgetful(client: Socket, server: Socket): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0)
  let isForgetting = false
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
      const end = 1 + rest.readInt32BE(1)
      const said = rest.subarray(0, end)
      rest = rest.subarray(end)
      if (!said.equals(idle)) {
        if (!isForgetting) client.write(said)
      } else if (isForgetting) {
        isForgetting = false
        client.write(idle)
      } else {
        isForgetting = true
        server.write(discardAll)
      }
    }
  }
}

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A line to a server that can be cut at the worst moment. */
export interface Cutter {
  readonly connectionString: string
  /**
   * The next `times` answers to messages that hold this text never arrive: the server has done what it was asked, and
   * its connection is cut.
   */
  readonly cutAnswers: (text: string, times: number) => void
  /** How many answers were cut so far. */
  readonly cuts: () => number
}

/** `ReadyForQuery` outside of a transaction: the server has committed. */
const idle = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])

/** Runs in front of a server until the test ends. */
export async function cutter(connectionString: string): Promise<Cutter> {
  const url = new URL(connectionString)
  const [port, host] = [Number(url.port), url.hostname]
  const sockets = new Set<Socket>()
  let [text, left, cuts] = ['', 0, 0]
  const line = createServer((client) => {
    let isDoomed = false
    const server = connect(port, host)
    for (const socket of [client, server]) sockets.add(socket.on('error', () => undefined))
    client.on('data', (chunk) => {
      if (left > 0 && chunk.includes(text)) {
        left--
        isDoomed = true
      }
      server.write(chunk)
    })
    server.on('data', (chunk) => {
      if (!isDoomed) return void client.write(chunk)
      if (!chunk.subarray(-idle.length).equals(idle)) return
      cuts++
      client.destroy()
      server.destroy()
    })
    client.on('close', () => server.end())
    server.on('close', () => client.destroy())
  }).listen(0, '127.0.0.1')
  await once(line, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    line.close()
  })
  const address = line.address()
  if (address === null || typeof address === 'string') throw new Error('The line has no port.')
  url.port = String(address.port)
  return {
    connectionString: url.href,
    cutAnswers(to, times) {
      text = to
      left = times
    },
    cuts: () => cuts,
  }
}

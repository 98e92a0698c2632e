import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import type { Loose } from './loose.ts'

/** What the server does with one request. */
export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly pieces?: readonly (Uint8Array | string)[]
  /** What follows the last piece: a proper end (the default), a broken connection, or nothing. */
  readonly ending?: 'end' | 'break' | 'stall'
  /** Not even headers come. */
  readonly mute?: boolean
}

/** A request as it arrived. */
export interface Arrival {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Record<string, Loose>
  /** Which connection it came on. */
  readonly socket: Socket
  /** Resolves when its connection is closed, from either end. */
  readonly closed: Promise<void>
  /** Sends one more piece to an answer that stalls. */
  readonly send: (piece: Uint8Array | string) => Promise<void>
  /** Ends such an answer. */
  readonly end: () => void
}

export interface Loopback {
  readonly url: string
  readonly arrivals: readonly Arrival[]
  /** Resolves with the request of that number, from 0. */
  arrival(place: number): Promise<Arrival>
}

/** An HTTP server on the loopback interface that gives these answers in turn, the last one for ever. Ends with the test. */
export async function serve(...answers: readonly Answer[]): Promise<Loopback> {
  const arrivals: Arrival[] = []
  const waiting = new Map<number, (arrival: Arrival) => void>()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const place = arrivals.length
      const arrival: Arrival = {
        path: request.url ?? '',
        headers: request.headers,
        body: JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}'),
        socket: request.socket,
        closed: new Promise((resolve) => request.socket.once('close', () => resolve())),
        send: (piece) => written(response, piece),
        end: () => void response.end(),
      }
      arrivals.push(arrival)
      waiting.get(place)?.(arrival)
      void give(answers[Math.min(place, answers.length - 1)] ?? {}, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => stopped(server))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    arrival: (place) =>
      new Promise((resolve) => (arrivals[place] ? resolve(arrivals[place]) : waiting.set(place, resolve))),
  }
}

async function give(answer: Answer, response: ServerResponse): Promise<void> {
  if (answer.mute) return
  response.on('error', () => {})
  response.writeHead(answer.status ?? 200, { 'content-type': 'text/event-stream', ...answer.headers })
  response.flushHeaders()
  for (const piece of answer.pieces ?? []) {
    await written(response, piece)
    // Pieces that wait together on the other side become one there: without this turn, no border is where a test put it.
    await new Promise((resolve) => setImmediate(resolve))
  }
  if (answer.ending === 'break') response.socket?.resetAndDestroy()
  else if (answer.ending !== 'stall') response.end()
}

function written(response: ServerResponse, piece: Uint8Array | string): Promise<void> {
  return new Promise((resolve) => response.write(piece, () => resolve()))
}

function stopped(server: Server): Promise<void> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(() => resolve()))
}

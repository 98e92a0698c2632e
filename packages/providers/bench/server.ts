// Gives every wire's long reply over loopback HTTP, in a process of its own, so that what is measured is the reader.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { paths, piecesOf, wireNames } from './streams.ts'

const pieceLength = 16 * 1024
const replies = new Map(wireNames.map((wire) => [wire, piecesOf(wire, pieceLength)]))

async function give(url: string, response: ServerResponse): Promise<void> {
  const wire = paths[url]
  const reply = wire && replies.get(wire)
  if (reply === undefined) return void response.writeHead(404).end()
  response.writeHead(200, { 'content-type': reply.contentType })
  for (const piece of reply.pieces) {
    if (!response.write(piece)) await new Promise((resolve) => response.once('drain', resolve))
  }
  response.end()
}

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => void give(request.url ?? '', response))
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())

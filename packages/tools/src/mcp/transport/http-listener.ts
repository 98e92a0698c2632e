import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

/**
 * A server of Node in which no request ends the process: one that asks for no URL is answered 400, and one whose answer
 * throws or rejects 500. Without this, an exception in a listener of Node ends the process.
 */
export function httpServer(
  answer: (request: IncomingMessage, response: ServerResponse, url: URL) => unknown,
): Server {
  const server = createServer((request, response) => {
    response.on('error', () => {})
    const url = urlOf(request)
    if (url === null) return void response.writeHead(400, { connection: 'close' }).end()
    const answered = async (): Promise<unknown> => await answer(request, response, url)
    answered().catch(() => {
      if (response.headersSent) response.destroy()
      else response.writeHead(500, { connection: 'close' }).end()
    })
  })
  // A connection that cannot be accepted, since the process has too many files open, is reported here.
  server.once('listening', () => server.on('error', () => {}))
  return server
}

/** A target such as `//` begins with a slash, and would be read as the name of a host if it were resolved. */
function urlOf({ url = '/' }: IncomingMessage): URL | null {
  return URL.parse(url.startsWith('/') ? `http://localhost${url}` : url)
}

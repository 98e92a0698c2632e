// A server over HTTP without any library, which answers each request as a test says: with a result, an error, a status of
// HTTP, late, or never.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { served, type ServedUrl } from './http-servers.ts'

/** One request. */
export interface Asked {
  /** Of the protocol; `GET` and `DELETE` for those requests of HTTP. */
  readonly method: string
  /** Of the request; a notification has none. */
  readonly id: number | undefined
  readonly params: Readonly<Record<string, unknown>>
  /** How often it was asked, this time included. */
  readonly times: number
  readonly headers: IncomingMessage['headers']
  readonly response: ServerResponse
  /** Answers as JSON: `{ result }` or `{ error }`. */
  readonly say: (body: object) => void
}

/** A server that answers so, and what it was asked. */
export interface ScriptedServer extends ServedUrl {
  /** The methods, in order. */
  readonly asked: string[]
}

/** What answers a method; without one a handshake and the list of the tool `work` are answered as usual. */
export type Script = Readonly<Record<string, (asked: Asked) => void>>

/** Serves the tool `work`, which answers `done`. */
export async function scriptedServer(script: Script = {}): Promise<ScriptedServer> {
  const asked: string[] = []
  const usual: Script = {
    GET: ({ response }) => response.writeHead(405).end(),
    DELETE: ({ response }) => response.writeHead(200).end(),
    initialize: ({ say }) => say({ result: hello }),
    'tools/list': ({ say }) => say({ result: { tools: [work] } }),
    'tools/call': ({ say }) => say({ result: { content: [{ type: 'text', text: 'done' }] } }),
  }
  const listener = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { id, ...given } =
      incoming.method === 'POST'
        ? ((await json(incoming)) as { id?: number; method: string; params?: Asked['params'] })
        : { method: incoming.method ?? '' }
    const { method, params = {} } = given
    asked.push(method)
    const times = asked.filter((each) => each === method).length
    const say = (body: object): void => {
      response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }))
    }
    const answer = script[method] ?? usual[method]
    if (answer) answer({ method, id, params, times, headers: incoming.headers, response, say })
    else if (id === undefined) response.writeHead(202).end()
    else say({ error: { code: -32_601, message: 'Method not found' } })
  }
  const server = await served((request, response) => void listener(request, response))
  return Object.assign(server, { asked })
}

/** Serves no tool over the older way: answers come in the one stream of events, which clients open again after a millisecond. */
export async function olderServer(): Promise<ServedUrl> {
  let stream: ServerResponse | undefined
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (incoming.method === 'GET') {
      stream = response.writeHead(200, { 'content-type': 'text/event-stream' })
      stream.write('retry: 1\nevent: endpoint\ndata: /mcp\n\n')
      return
    }
    const { id } = (await json(incoming)) as { id?: number }
    response.writeHead(202).end()
    if (id === undefined) return
    const said = { jsonrpc: '2.0', id, result: { ...hello, capabilities: {} } }
    stream?.write(`data: ${JSON.stringify(said)}\n\n`)
  }
  return await served((incoming, response) => void answer(incoming, response))
}

/** What it answers a handshake. */
export const hello = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'scripted', version: '1' },
}
const work = { name: 'work', description: 'Works.', inputSchema: { type: 'object' } }

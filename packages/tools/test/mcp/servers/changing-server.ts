// A server over HTTP whose list of tools changes when a test says so.
import { hello, type Script, scriptedServer, type ScriptedServer } from './scripted-server.ts'

/** The server, and what has it change its list. */
export interface ChangingServer extends ScriptedServer {
  /** Lists the next tools from now on, and tells the client so, once that listens. */
  change(): Promise<void>
}

/** A tool, as a server lists it. */
export function listed(name: string, description = `Does ${name}.`): object {
  return { name, description, inputSchema: { type: 'object' } }
}

/** Serves these lists of tools, one after the other; the last one is kept. Tools answer `done`. */
export async function changingServer(
  lists: readonly (readonly object[])[],
  more: Script = {},
): Promise<ChangingServer> {
  let at = 0
  const listens = Promise.withResolvers<() => void>()
  const server = await scriptedServer({
    initialize: ({ say }) => say({ result: { ...hello, capabilities: { tools: { listChanged: true } } } }),
    GET: ({ response }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n')
      const told = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' }
      listens.resolve(() => void response.write(`data: ${JSON.stringify(told)}\n\n`))
    },
    'tools/list': ({ say }) => say({ result: { tools: lists[Math.min(at, lists.length - 1)] } }),
    ...more,
  })
  const change = async (): Promise<void> => {
    at++
    const tell = await listens.promise
    tell()
  }
  return Object.assign(server, { change })
}

import { createRuntime, defineAgent } from '@tallystick/core'
import { scriptedModel, type ScriptedStep } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { startWorker } from '@tallystick/engines'
import { pollingEngine } from '@tallystick/engines/polling'
import { createServer } from '@tallystick/server'
import { serve } from '@tallystick/server/node'
import { defineTool, settledLater } from '@tallystick/tools'
import { z } from 'zod'

/** Options of the server: its ledger, and the token that clients must send. */
export interface BackOfficeOptions {
  readonly ledger: string
  readonly token: string
  readonly port?: number
}

/** A server that listens. */
export interface BackOffice {
  readonly url: string
  close(): Promise<void>
}

// The work of both tools is done elsewhere: calls wait until a worker, in any language, settles them.
const stock = defineTool({
  name: 'stock_level',
  description: 'How many pieces of an article are in stock.',
  input: z.object({ article: z.string() }),
  effect: 'read',
  execute: (_input, { toolCallId }) => settledLater({ externalId: toolCallId }),
})
const order = defineTool({
  name: 'order_goods',
  description: 'Orders pieces of an article from the supplier. A person is asked first.',
  input: z.object({ article: z.string(), pieces: z.number().int().positive() }),
  effect: 'write',
  approval: 'always',
  execute: (_input, { toolCallId }) => settledLater({ externalId: toolCallId }),
})

// A script plays the model: it looks at two articles, orders what is short, and repeats what the results say.
const step: ScriptedStep = ({ messages }) => {
  const results = messages.flatMap((message) => (message.role === 'tool' ? message.results : []))
  if (results.length === 0) {
    return { toolCalls: ['lamp', 'chair'].map((article) => ({ name: 'stock_level', input: { article } })) }
  }
  if (results.length === 2) {
    return { toolCalls: [{ name: 'order_goods', input: { article: 'lamp', pieces: 40 } }] }
  }
  const said = results.flatMap(({ content }) =>
    content.map((part) => (part.type === 'text' ? part.text : '')),
  )
  return { text: `The script read: ${said.join('; ')}.` }
}

/** Serves the agent of a shop's back office to programs that send the token. */
export async function startBackOffice({
  ledger: path,
  token,
  port = 0,
}: BackOfficeOptions): Promise<BackOffice> {
  const model = scriptedModel(Array.from({ length: 100 }, () => step))
  const agent = defineAgent({ name: 'buyer', instructions: 'Keep the stock.', model, tools: [stock, order] })
  const ledger = sqliteLedger(path)
  const runtime = createRuntime({ ledger, agents: [agent] })
  const server = createServer({
    runtime,
    agents: [agent],
    authorize: (request) =>
      request.headers.get('authorization') === `Bearer ${token}`
        ? { name: 'back office', sees: 'everything' }
        : undefined,
  })
  const worker = await startWorker({ runtime, engine: pollingEngine({ ledger }) })
  const listening = await serve(server, { port })
  return {
    url: listening.url,
    async close() {
      await Promise.all([worker.stop(5_000), listening.close()])
      await ledger.close()
    },
  }
}

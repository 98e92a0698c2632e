import { once } from 'node:events'
import type { CommandContext } from '@tallystick/cli'
import { createRuntime, type Ledger } from '@tallystick/core'
import { chatPage } from '@tallystick/example-chat-page'
import { startWorker } from '@tallystick/engines'
import { pollingEngine } from '@tallystick/engines/polling'
import { createServer } from '@tallystick/server'
import { serve } from '@tallystick/server/node'
import { playedBy } from './choose-model.ts'
import type { Demo } from './open-demo.ts'
import { question } from './task.ts'

/** Where and how the demo is served. */
export interface ServedDemo {
  readonly ledger: Ledger
  readonly demo: Demo
  readonly modelId: string
  readonly port: number
}

/** Serves the demo's agent with a page to chat with it, until Ctrl-C or SIGTERM. */
export async function serveDemo({ print, say }: CommandContext, served: ServedDemo): Promise<void> {
  const { ledger, demo, modelId, port } = served
  const page = await chatPage({
    agent: demo.agent.name,
    title: 'Ridge & Tarn Outfitters: stock',
    note: playedBy(modelId),
    question,
  })
  const runtime = createRuntime({ ledger, agents: [demo.agent] })
  const server = createServer({ runtime, agents: [demo.agent] })
  const fetch = async (request: Request): Promise<Response> => page(request) ?? server.fetch(request)
  const listening = await serve({ ...server, fetch }, { port })
  const worker = await startWorker({ runtime, engine: pollingEngine({ ledger }) })
  const stopped = Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)))
  try {
    await print(`${listening.url}/#token=${server.token}\n`)
    say('Open this address in a browser on this machine. Ctrl-C stops the server.')
    await stopped
    say('Stopping: work in flight may finish.')
  } finally {
    await Promise.all([worker.stop(5_000), listening.close()])
  }
}

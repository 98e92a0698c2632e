// A process that serves a ledger until it is killed or its parent is gone. Arguments: the file, and the milliseconds
// between two pieces of a reply.
import { createRuntime, defineAgent, type Model } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { Observable } from 'rxjs'
import { startWorker } from '@tallystick/engines'
import { pollingEngine } from '@tallystick/engines/polling'
import { createServer } from '@tallystick/server'
import { serve } from '@tallystick/server/node'
import type { Told } from './serving.ts'

const [path = '', given = '500'] = process.argv.slice(2)
const pieceMs = Number(given)

/** Answers with as many words as the user asks for, one by one. */
const teller: Model = {
  provider: 'load',
  api: 'load',
  modelId: 'teller',
  stream: ({ messages }, { clock }) =>
    new Observable((subscriber) => {
      const [asked] = messages.flatMap((message) => (message.role === 'user' ? message.parts : []))
      const count = asked?.type === 'text' ? Number(asked.text) : 1
      let [said, stopTimer] = ['', (): void => {}]
      const finish = (): void => {
        subscriber.next({ type: 'model_usage', usage: { inputTokens: 10, outputTokens: count } })
        const parts = [{ part: 0, type: 'text', text: said }] as const
        subscriber.next({ type: 'model_finished', stopReason: 'end', parts })
        subscriber.complete()
      }
      const say = (index: number): void => {
        const text = `word ${index} `
        said += text
        subscriber.next({ type: 'model_text', part: 0, text })
        if (index < count) stopTimer = clock.schedule(pieceMs, () => say(index + 1))
        else finish()
      }
      subscriber.next({ type: 'model_started' })
      say(1)
      return () => stopTimer()
    }),
}

const tell = (told: Told): void => void process.send?.(told)
const report = (error: unknown, what: string): void => tell({ fault: `${what}: ${String(error)}` })
const agent = defineAgent({ name: 'teller', instructions: 'Tell.', model: teller })
const ledger = sqliteLedger(path)
const runtime = createRuntime({ ledger, agents: [agent], host: { report } })
const server = createServer({ runtime, agents: [agent], report })
const listening = await serve(server)
const engine = pollingEngine({ ledger, report, everyMs: 500 })
await startWorker({ runtime, engine, concurrency: 1_000 })

let maxBytes = 0
const watching = setInterval(() => {
  maxBytes = Math.max(maxBytes, process.memoryUsage.rss())
}, 250)
watching.unref()
process.on('message', () => {
  const { user, system } = process.cpuUsage()
  tell({ maxBytes: Math.max(maxBytes, process.memoryUsage.rss()), processorMs: (user + system) / 1_000 })
})
process.on('disconnect', () => process.exit())
tell({ url: listening.url, token: server.token ?? '' })

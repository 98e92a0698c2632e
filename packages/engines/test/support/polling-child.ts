// A process that drives the runs of a Postgres ledger that are due until it is killed, or its parent is gone. Arguments: the
// connection string and the schema.
import { Observable } from 'rxjs'
import { createRuntime, defineAgent, type Model } from '@tallystick/core'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { startWorker } from '@tallystick/engines'
import { pollingEngine } from '@tallystick/engines/polling'
import type { Asked, Told } from './polling-process.ts'

const [connectionString = '', schema = ''] = process.argv.slice(2)
const tell = (told: Told): void => void process.send?.(told)
const report = (error: unknown, what: string): void => tell({ fault: `${what}: ${String(error)}` })

let isAnswering = false
const waiting: (() => void)[] = []

/** Tells its parent of each call, and answers when the parent says so. */
const model: Model = {
  provider: 'test',
  api: 'test',
  modelId: 'patient',
  stream: ({ messages }) =>
    new Observable((subscriber) => {
      const [asked] = messages.flatMap((message) => (message.role === 'user' ? message.parts : []))
      const answer = (): void => {
        subscriber.next({ type: 'model_text', part: 0, text: 'Done.' })
        subscriber.next({ type: 'model_usage', usage: { inputTokens: 1, outputTokens: 1 } })
        const parts = [{ part: 0, type: 'text', text: 'Done.' }] as const
        subscriber.next({ type: 'model_finished', stopReason: 'end', parts })
        subscriber.complete()
      }
      subscriber.next({ type: 'model_started' })
      tell({ called: asked?.type === 'text' ? asked.text : '' })
      if (isAnswering) answer()
      else waiting.push(answer)
    }),
}

const agent = defineAgent({ name: 'patient', instructions: 'Wait.', model })
const ledger = postgresLedger({ connectionString, schema })
const runtime = createRuntime({ ledger, agents: [agent], host: { report } })

async function carryOut(asked: Asked): Promise<void> {
  if ('start' in asked) tell({ started: runtime.run(agent, asked.start).id })
  if ('work' in asked) {
    await startWorker({ runtime, engine: pollingEngine({ ledger, report, everyMs: 50 }) })
    tell({ working: true })
  }
  if ('answer' in asked) {
    isAnswering = true
    for (const answer of waiting.splice(0)) answer()
    await runtime.idle()
    tell({ idle: true })
  }
}

process.on('message', (asked: Asked) => void carryOut(asked))
process.on('disconnect', () => process.exit())
await ledger.head(crypto.randomUUID() as never)
tell({ ready: true })

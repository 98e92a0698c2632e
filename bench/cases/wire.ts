import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { createRuntime, memoryLedger, type ModelRequest } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { anthropic } from '@tallystick/providers/anthropic'
import { textScript } from '../subjects/script.ts'
import { agentOf, seenOf } from '../subjects/tallystick.ts'
import type { Case, Trial } from './case.ts'
import { meteredTimes } from './meter.ts'
import { fileIn } from './recorded-run.ts'

const readersToWarmUp = 60
/** One reply alone takes a few milliseconds. */
const measuredReplies = 10

export const wire: Case = {
  name: 'wire',
  what: "A streamed reply of Anthropic's wire over loopback HTTP from another process; bare-sdk is the vendor's client alone.",
  isComparison: true,
  unit: 'delta',
  params: [
    { deltas: 5_000, deltasAWrite: 50 },
    { deltas: 5_000, deltasAWrite: 1 },
  ],
  smokeParams: [{ deltas: 40, deltasAWrite: 5 }],
  own: ['tallystick-sqlite', 'tallystick-memory', 'tallystick-adapter'],
  floors: ['bare-sdk'],
  peers: [],
  async measure(trial) {
    const { deltas = 0, deltasAWrite = 1 } = trial.params
    const script = join(import.meta.dirname, 'wire-server.ts')
    const server = fork(script, [String(deltas), String(deltasAWrite)], { execArgv: [] })
    try {
      const [port] = (await once(server, 'message')) as [number]
      const read = createReader(trial, `http://127.0.0.1:${port}`)
      const whole = textScript(deltas).replyOf(0).deltas.join('')
      const readWhole = async (): Promise<void> => {
        const text = await read()
        if (text !== whole) throw new Error(`${text.length} of ${whole.length} characters arrived.`)
      }
      for (let reader = 0; reader < readersToWarmUp; reader++) await readWhole()
      const times = trial.smoke ? 1 : measuredReplies
      const { value, ...took } = await meteredTimes(readWhole, { times, limitMs: trial.limitMs })
      return { units: deltas * value.length, ...took }
    } finally {
      server.disconnect()
    }
  },
}

/** Reads one whole reply, and returns its text. */
function createReader(trial: Trial, baseURL: string): () => Promise<string> {
  if (trial.subject === 'bare-sdk') return bareReader(baseURL)
  const model = anthropic('claude-test-1', { apiKey: 'k', baseURL })
  if (trial.subject === 'tallystick-adapter') {
    return () =>
      new Promise((resolve, reject) => {
        let text = ''
        const clock = {
          now: () => Date.now(),
          schedule(delayMs: number, callback: () => void) {
            const timer = setTimeout(callback, delayMs)
            return () => clearTimeout(timer)
          },
        }
        model.stream(request, { clock }).subscribe({
          next: (signal) => {
            if (signal.type === 'model_text') text += signal.text
          },
          complete: () => resolve(text),
          error: reject,
        })
      })
  }
  const ledger = trial.subject === 'tallystick-sqlite' ? sqliteLedger(fileIn(trial, 'wire')) : memoryLedger()
  const agent = agentOf(textScript(1), model)
  const runtime = createRuntime({ ledger, agents: [agent] })
  return async () => (await seenOf(runtime.run(agent, 'Look.'))).text
}

const request: ModelRequest = {
  ...{ instructions: '', tools: [], toolChoice: { type: 'auto' as const }, parallelToolCalls: true },
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Look.' }] }],
}

/** The official client, read as an application without a runtime would. */
function bareReader(baseURL: string): () => Promise<string> {
  const client = new Anthropic({ apiKey: 'k', baseURL, maxRetries: 0, logLevel: 'off' })
  return async () => {
    let text = ''
    const messages = [{ role: 'user' as const, content: 'Look.' }]
    const stream = await client.messages.create({ model: 'm', max_tokens: 1000, messages, stream: true })
    for await (const event of stream) {
      if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text
    }
    return text
  }
}

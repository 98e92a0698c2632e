// The first model is overloaded: the real Anthropic adapter meets a service that answers 529. Another takes over.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { anthropic } from '@tallystick/providers/anthropic'

let calls = 0
const service = createServer((_request, response) => {
  calls++
  response.writeHead(529, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }))
})
service.listen(0, '127.0.0.1')
await once(service, 'listening')
const { port } = service.address() as AddressInfo

const first = anthropic('claude-opus-4-8', { apiKey: 'none', baseURL: `http://127.0.0.1:${port}` })
// A script plays the second model; use any other adapter instead.
const second = scriptedModel([{ text: 'The script answers: Seoul has 9 million people.' }], 'stand-in')
const agent = defineAgent({
  name: 'assistant',
  instructions: 'Answer briefly.',
  model: first,
  fallbacks: [second],
  retry: { maxAttempts: 2, baseMs: 20 },
})
const run = createRuntime({ ledger: memoryLedger(), agents: [agent] }).run(agent, 'How big is Seoul?')
const asked: string[] = []
const failed: string[] = []
for await (const event of run) {
  if (event.type === 'model_call_started') asked.push(event.model.modelId)
  if (event.type === 'model_stream_failed') failed.push(event.failure.class)
}
const result = await run.result
service.close()

console.log(`asked: ${asked.join(', ')}; failed: ${failed.join(', ')}`)
console.log(result.text)
assert.equal(result.reason, 'answered')
assert.equal(calls, 2)
assert.deepEqual(asked, ['claude-opus-4-8', 'claude-opus-4-8', 'stand-in'])
assert.deepEqual(failed, ['overloaded', 'overloaded'])
// One turn, three attempts; the fallback saw what the first model saw.
assert.equal(result.turns, 1)
assert.deepEqual(second.requests[0]?.messages, [
  { role: 'user', parts: [{ type: 'text', text: 'How big is Seoul?' }] },
])

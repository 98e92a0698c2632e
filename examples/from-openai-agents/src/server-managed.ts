// There: `previousResponseId` and `conversationId` of run have OpenAI keep the past. Here: the same two, and
// `result.providerState` says where the next run continues. Both ids are on record, so a resume sends the same request.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { openai } from '@tallystick/providers/openai'

interface Sent {
  readonly input: readonly object[]
  readonly previous_response_id?: string
  readonly conversation?: string | { readonly id: string }
}
// A small server plays OpenAI: it keeps nothing, and notes what it is sent. Leave out baseURL for the real one.
const sent: Sent[] = []
const service = createServer((request, response) => {
  const answered = text(request).then((body) => {
    const id = `resp_${sent.push(JSON.parse(body) as Sent)}`
    const content = [{ type: 'output_text', text: `Answer ${sent.length}.`, annotations: [] }]
    const message = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }
    const usage = { input_tokens: 9, output_tokens: 3, total_tokens: 12 }
    const whole = { id, object: 'response', model: 'gpt-5.1', status: 'completed', output: [message], usage }
    const at = { output_index: 0, item_id: 'msg_1', content_index: 0 }
    const events = [
      { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...message, content: [] } },
      {
        type: 'response.content_part.added',
        ...at,
        part: { type: 'output_text', text: '', annotations: [] },
      },
      { type: 'response.output_text.delta', ...at, delta: `Answer ${sent.length}.` },
      { type: 'response.output_text.done', ...at, text: `Answer ${sent.length}.` },
      { type: 'response.output_item.done', output_index: 0, item: message },
      { type: 'response.completed', response: whole },
    ]
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
  })
  answered.catch(() => response.destroy())
}).listen(0, '127.0.0.1')
await once(service, 'listening')

const baseURL = `http://127.0.0.1:${(service.address() as AddressInfo).port}/v1`
const model = openai('gpt-5.1', { apiKey: 'none', baseURL, chain: true })
const agent = defineAgent({ name: 'guide', instructions: 'Help.', model })
const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })

const first = await runtime.run(agent, 'I am in Seoul.').result
const second = await runtime.run(agent, 'How warm is it?', { ...first.providerState }).result
const third = await runtime.run(agent, 'Begin here.', { conversationId: 'conv_7' }).result
console.log([first, second, third].map((result) => result.text).join(' '))

// Each later run sent only its own message: the provider has the rest.
const sizes = sent.map(({ input }) => input.length)
assert.deepEqual(sizes, [1, 1, 1])
assert.equal(sent[1]?.previous_response_id, 'resp_1')
assert.deepEqual(second.providerState, { previousResponseId: 'resp_2' })
assert.match(JSON.stringify(sent[2]?.conversation), /conv_7/)
service.close()

// Answers every request with a long streamed reply of Anthropic's wire over loopback HTTP, in a process of its own, so that what
// is measured is the reader. Usage: wire-server.ts DELTAS DELTAS_A_WRITE
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { deltasOf } from '../subjects/script.ts'

const [deltas = 0, deltasAWrite = 1] = process.argv.slice(2).map(Number)

function record(event: { readonly type: string }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}

const begin = [
  {
    type: 'message_start',
    message: {
      ...{ id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-test-1', content: [] },
      ...{ stop_reason: null, stop_sequence: null, usage: { input_tokens: 120, output_tokens: 1 } },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
].map(record)
const middle = deltasOf(deltas).map((text) =>
  record({ type: 'content_block_delta', ...{ index: 0, delta: { type: 'text_delta', text } } }),
)
const end = [
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    ...{ delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: deltas } },
  },
  { type: 'message_stop' },
].map(record)

const writes = [begin.join('')]
for (let start = 0; start < middle.length; start += deltasAWrite) {
  writes.push(middle.slice(start, start + deltasAWrite).join(''))
}
writes.push(end.join(''))

async function give(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const write of writes) {
    if (!response.write(write)) await new Promise((resolve) => response.once('drain', resolve))
    // Each write is a packet of its own.
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}

const server = createServer({ noDelay: true }, (request, response) => {
  request.resume()
  request.on('end', () => void give(response))
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.on('disconnect', () => process.exit())

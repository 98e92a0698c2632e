// The other side of a page's programs that call Anthropic: a server that speaks the Messages wire.
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The inputs of calls by the name of the tool. The server makes one call, of the first of these tools that it is offered. */
const inputs: Readonly<Record<string, string>> = {
  refund: '{"order":"A-7","euros":80}',
  get_weather: '{"city":"Seoul"}',
  read_file: '{"path":"package.json"}',
}

/** The answers after the result of a tool of that name; after any other it tells the weather. */
const answers: Readonly<Record<string, string>> = {
  refund: 'Done: 80 euros are on their way to you.',
  read_file: 'It installs Tallystick and its dependencies.',
}

interface WireRequest {
  readonly model: string
  readonly tools?: readonly { readonly name: string }[]
  readonly messages: readonly { readonly content: string | readonly { readonly type: string }[] }[]
}

/** A server that is listening, and the environment in which the official client calls it. */
export interface Vendor {
  readonly env: Readonly<Record<string, string>>
  close(): void
}

/** Starts the server on loopback. */
export async function startVendor(): Promise<Vendor> {
  const server: Server = createServer((request, response) => {
    void readBody(request).then((body) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      // The body is what the official client sent.
      for (const event of replyTo(JSON.parse(body) as WireRequest)) {
        response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      }
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // A server that listens on a port has an address of this type.
  const { port } = server.address() as AddressInfo
  return {
    env: { ANTHROPIC_API_KEY: 'a key of nobody', ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` },
    close: () => void server.close(),
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  return body
}

interface WireEvent {
  readonly type: string
  readonly [field: string]: unknown
}

function replyTo({ model, tools = [], messages }: WireRequest): readonly WireEvent[] {
  // A small model answers from memory.
  if (model.includes('haiku'))
    return message({ type: 'text', text: '' }, { type: 'text_delta', text: 'About 20 °C.' }, 'end_turn')
  const last = messages.at(-1)?.content
  const answered = Array.isArray(last) && last.some(({ type }) => type === 'tool_result')
  const name = tools.map((tool) => tool.name).find((each) => each in inputs)
  if (answered || name === undefined) {
    const text = answers[name ?? ''] ?? 'It is 21 °C in Seoul.'
    return message({ type: 'text', text: '' }, { type: 'text_delta', text }, 'end_turn')
  }
  const delta = { type: 'input_json_delta', partial_json: inputs[name] }
  return message({ type: 'tool_use', id: 'toolu_1', name, input: {} }, delta, 'tool_use')
}

function message(content_block: object, delta: object, stop_reason: string): readonly WireEvent[] {
  const usage = { input_tokens: 410, output_tokens: 1 }
  const start = { id: 'msg_1', role: 'assistant', content: [], model: 'claude-opus-4-8', usage }
  return [
    { type: 'message_start', message: start },
    { type: 'content_block_start', index: 0, content_block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason }, usage: { output_tokens: 41 } },
    { type: 'message_stop' },
  ]
}

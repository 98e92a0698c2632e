// A server that asks what its arguments say, all at once, when its tool is called; the tool answers with what came back.
import { createInterface } from 'node:readline'

interface Message {
  readonly id?: string | number
  readonly method?: string
  readonly params?: {
    readonly protocolVersion?: string
    readonly arguments?: { readonly ask?: readonly object[] }
  }
  readonly result?: unknown
  readonly error?: unknown
}

const say = (message: object): void =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const answers: unknown[] = []
let waiting = { count: 0, finish: (): void => {} }

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line) as Message
  if (method === 'initialize') {
    const { protocolVersion } = params ?? {}
    say({
      id,
      result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'asking', version: '1' } },
    })
  } else if (method === 'tools/list') {
    say({ id, result: { tools: [{ name: 'work', inputSchema: { type: 'object' } }] } })
  } else if (method === 'tools/call') {
    const asked = params?.arguments?.ask ?? []
    answers.length = 0
    const finish = (): void =>
      say({ id, result: { content: [{ type: 'text', text: JSON.stringify(answers) }] } })
    waiting = { count: asked.length, finish }
    for (const [index, question] of asked.entries()) say({ id: `q${index}`, ...question })
    if (asked.length === 0) finish()
  } else if (method === undefined) {
    answers.push(result ?? error)
    if (answers.length === waiting.count) waiting.finish()
  } else if (id !== undefined) say({ id, error: { code: -32_601, message: 'Method not found' } })
})

import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const readme = fileURLToPath(new URL('../../../README.md', import.meta.url))

interface Block {
  readonly type: string
  readonly content?: readonly { readonly text?: string }[]
}

/** A Messages service that asks for a file once, then repeats what the tool said. */
function fileService(): Server {
  return createServer((request, response) => {
    void bodyOf(request).then((body) => {
      const { messages } = JSON.parse(body) as { messages: { content: readonly Block[] | string }[] }
      const last = messages.at(-1)?.content
      const result = Array.isArray(last) ? last.find(({ type }) => type === 'tool_result') : undefined
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const [type, data] of result ? answer(result) : request1) {
        response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
      }
      response.end()
    })
  })
}

type WireEvent = readonly [type: string, data: object]

function message(block: object, delta: object, stop_reason: string): readonly WireEvent[] {
  const usage = { input_tokens: 20, output_tokens: 1 }
  const start = { id: 'msg_1', type: 'message', role: 'assistant', model: 'played', content: [], usage }
  return [
    ['message_start', { message: start }],
    ['content_block_start', { index: 0, content_block: block }],
    ['content_block_delta', { index: 0, delta }],
    ['content_block_stop', { index: 0 }],
    ['message_delta', { delta: { stop_reason }, usage: { output_tokens: 9 } }],
    ['message_stop', {}],
  ]
}

const request1 = message(
  { type: 'tool_use', id: 'toolu_1', name: 'read_file', input: {} },
  { type: 'input_json_delta', partial_json: '{"path":"package.json"}' },
  'tool_use',
)

function answer(result: Block): readonly WireEvent[] {
  const text = `The tool says: ${result.content?.[0]?.text}`
  return message({ type: 'text', text: '' }, { type: 'text_delta', text }, 'end_turn')
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  return body
}

describe('the code of the README', () => {
  const service = fileService()
  let folder: string
  let output = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tallystick-quickstart-'))
    await writeFile(join(folder, 'package.json'), '{ "dependencies": { "rxjs": "7.8.2" } }\n')
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
    const { port } = service.address() as AddressInfo
    const env = { ...process.env, ANTHROPIC_API_KEY: 'none', ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` }
    const child = spawn(process.execPath, [main], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
    for await (const chunk of child.stdout) output += String(chunk)
  })
  afterAll(async () => {
    service.close()
    await rm(folder, { recursive: true })
  })

  it('is the code of the example', async () => {
    const code = /```ts\n([\s\S]*?)```/.exec(await readFile(readme, 'utf8'))?.[1]
    expect(code).toBe(await readFile(main, 'utf8'))
  })

  it('has ten lines, imports included', async () => {
    const lines = (await readFile(main, 'utf8')).split('\n')
    expect(lines.filter((line) => line !== '')).toHaveLength(10)
  })

  it('answers with what the tool said', () => {
    expect(output).toMatch(/^The tool says: [^]*"rxjs": "7\.8\.2"/)
    expect(output).toContain("reason: 'answered'")
    // The answer and the result each end with a line break, so that a shell's prompt begins a new line.
    expect(output).toMatch(/^The tool says: [^]*\}\n\{\n[^]*\}\n$/)
  })

  it('leaves a ledger that balances', async () => {
    const ledger = sqliteLedger(join(folder, 'runs.db'), { readOnly: true })
    const verdicts: { ok: boolean }[] = []
    for await (const verdict of verifyLedger(ledger)) verdicts.push(verdict)
    await ledger.close()
    expect(verdicts.length).toBeGreaterThan(0)
    expect(verdicts.every(({ ok }) => ok)).toBe(true)
  })
})

describe('the whole program of the page about options', () => {
  it('has at most twelve lines, imports included', async () => {
    const page = fileURLToPath(new URL('../../../docs/run-options.md', import.meta.url))
    const code = /in twelve lines:[^]*?```ts\n([^]*?)```/.exec(await readFile(page, 'utf8'))?.[1] ?? ''
    expect(code.trimEnd().split('\n')).toHaveLength(12)
    for (const part of ['anthropic(', 'defineTool(', 'sqliteLedger(', 'textUpdates$'])
      expect(code).toContain(part)
  })
})

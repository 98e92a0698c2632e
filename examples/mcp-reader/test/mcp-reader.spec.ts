import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'

const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const require = createRequire(import.meta.url)
const folder = mkdtempSync(join(tmpdir(), 'tallystick-mcp-reader-'))

function server(name: string, ...args: string[]): object {
  return {
    command: process.execPath,
    args: [require.resolve(`@modelcontextprotocol/server-${name}/dist/index.js`), ...args],
  }
}

/** Ten servers, one of them broken, in the file of Claude Desktop. */
function writeServers(): void {
  for (const name of ['notes', 'work', 'photos', 'mail']) mkdirSync(join(folder, name))
  writeFileSync(join(folder, 'notes/today.txt'), 'Water the plants.')
  const mcpServers = {
    notes: server('filesystem', join(folder, 'notes')),
    work: server('filesystem', join(folder, 'work')),
    photos: server('filesystem', join(folder, 'photos')),
    mail: server('filesystem', join(folder, 'mail')),
    people: { ...server('memory'), env: { MEMORY_FILE_PATH: join(folder, 'people.json') } },
    places: { ...server('memory'), env: { MEMORY_FILE_PATH: join(folder, 'places.json') } },
    thinking: server('sequential-thinking'),
    everything: server('everything'),
    more: server('everything'),
    broken: { command: 'no-such-command', env: { API_TOKEN: 'token-0123456789' } },
  }
  for (const place of ['.config/Claude', 'Library/Application Support/Claude']) {
    const file = join(folder, place, 'claude_desktop_config.json')
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, JSON.stringify({ mcpServers }))
  }
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

function asks(name: string, input: object): readonly WireEvent[] {
  const json = { type: 'input_json_delta', partial_json: JSON.stringify(input) }
  return message({ type: 'tool_use', id: `toolu_${name.length}`, name, input: {} }, json, 'tool_use')
}

/** A Messages service: it reads the notes, repeats what they say, or wants to write. */
function service(): Server {
  const answer = async (request: IncomingMessage): Promise<readonly WireEvent[]> => {
    const { messages } = JSON.parse(await text(request)) as { messages: readonly { content: unknown }[] }
    const said = JSON.stringify(messages)
    const path = join(folder, 'notes/today.txt')
    if (said.includes('Water the plants')) {
      return message(
        { type: 'text', text: '' },
        { type: 'text_delta', text: 'Water the plants.' },
        'end_turn',
      )
    }
    return said.includes('Forget')
      ? asks('mcp__notes__write_file', { path, content: '' })
      : asks('mcp__notes__read_text_file', { path })
  }
  return createServer((request, response) => {
    void answer(request).then((events) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const [type, data] of events)
        response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
      response.end()
    })
  })
}

describe('a reader with ten servers of Claude Desktop', () => {
  const model = service()
  beforeAll(async () => {
    writeServers()
    await new Promise<void>((resolve) => void model.listen(0, '127.0.0.1', resolve))
  })
  afterAll(() => {
    model.close()
    rmSync(folder, { recursive: true })
  })

  async function ask(question: string): Promise<string> {
    const { port } = model.address() as AddressInfo
    const env = {
      PATH: process.env['PATH'],
      HOME: folder,
      ANTHROPIC_API_KEY: 'none',
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
    }
    const child = spawn(process.execPath, ['--no-warnings', main, question], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    return await text(child.stdout)
  }

  it('has an answer of one of them, hears which is broken, and is asked before it writes', async () => {
    const answer = await ask('What do my notes say?')
    expect(answer.match(/^\w+ ready \d+$/gm)).toHaveLength(9)
    expect(answer).toContain('broken failed 0 its command "no-such-command" was not found')
    expect(answer).toContain('done Water the plants.')
    expect(answer).not.toContain('token-0123456789')
    expect(await ask('Forget my notes.')).toMatch(/^suspended .*mcp__notes__write_file waits: /m)
    const ledger = sqliteLedger(join(folder, 'runs.db'), { readOnly: true })
    const verdicts: boolean[] = []
    for await (const { ok } of verifyLedger(ledger)) verdicts.push(ok)
    await ledger.close()
    expect(verdicts).toEqual(verdicts.map(() => true))
    expect(verdicts.length).toBeGreaterThan(0)
  })
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mcpTools } from '@tallystick/tools/mcp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

/** A server that lists what its argument says: JSON lines on standard input and output. */
const server = `
import { createInterface } from 'node:readline'
const listed = process.argv[2]
const answer = (id, result) => process.stdout.write('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',"result":' + result + '}\\n')
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize')
    answer(id, JSON.stringify({
      protocolVersion: params.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: 'odd', version: '1' },
    }))
  else if (method === 'tools/list') answer(id, listed)
  else if (id !== undefined) answer(id, '{}')
}).on('close', () => process.exit(0))
`

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'odd-lists-'))
  writeFileSync(join(folder, 'server.mjs'), server)
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Connects to a server that lists a sound tool and another one. */
async function list(other: string, more = '') {
  const sound = '{"name":"sound","inputSchema":{"type":"object"}}'
  const result = `{"tools":[${sound}${other && `,${other}`}]${more}}`
  const command = { command: process.execPath, args: [join(folder, 'server.mjs'), result] }
  const mcp = await mcpTools({ servers: { odd: command } })
  const [state] = mcp.servers
  await mcp.close()
  return { state: state?.state, tools: state?.tools, faults: state?.faults ?? [] }
}

const deep = `${'{"items":'.repeat(3_000)}{}${'}'.repeat(3_000)}`

describe('a server that lists an odd tool beside a sound one', () => {
  it.each([
    [
      'required: null',
      '{"name":"b","inputSchema":{"type":"object","required":null}}',
      'inputSchema.required',
    ],
    ['properties: null', '{"name":"b","inputSchema":{"type":"object","properties":null}}', 'properties'],
    ['an empty input schema', '{"name":"b","inputSchema":{}}', 'inputSchema.type'],
    ['no input schema', '{"name":"b"}', 'inputSchema'],
    ['a title that is a number', '{"name":"b","title":7,"inputSchema":{"type":"object"}}', 'title'],
    [
      'a schema that is nested too deep',
      `{"name":"b","inputSchema":{"type":"object","properties":${deep}}}`,
      'nested',
    ],
  ])('given %s, when it is connected, then that tool is left out and named', async (_what, tool, place) => {
    const { state, tools, faults } = await list(tool)
    expect([state, tools, faults.length]).toEqual(['ready', 1, 1])
    expect(faults[0]).toMatch(/^the tool "b" is left out: /)
    expect(faults[0]).toContain(place)
  })

  it.each([
    ['a name that is not text', '{"name":7,"inputSchema":{"type":"object"}}', '"7"'],
    ['a text', '"b"', '""'],
    ['null', 'null', '""'],
  ])('given %s for a tool, when it is connected, then the other one is there', async (_what, tool, name) => {
    const { state, tools, faults } = await list(tool)
    expect([state, tools]).toEqual(['ready', 1])
    expect(faults[0]).toContain(`the tool ${name} is left out`)
  })

  it.each([
    ['description: null', '{"name":"b","description":null,"inputSchema":{"type":"object"}}'],
    ['annotations: null', '{"name":"b","annotations":null,"inputSchema":{"type":"object"}}'],
    ['outputSchema: null', '{"name":"b","outputSchema":null,"inputSchema":{"type":"object"}}'],
    [
      'an output schema of a list',
      '{"name":"b","outputSchema":{"type":"array"},"inputSchema":{"type":"object"}}',
    ],
  ])('given %s, when it is connected, then the tool is taken', async (_what, tool) => {
    expect(await list(tool)).toEqual({ state: 'ready', tools: 2, faults: [] })
  })

  it('given nextCursor: null, when it is connected, then the list ends there', async () => {
    expect(await list('', ',"nextCursor":null')).toEqual({ state: 'ready', tools: 1, faults: [] })
  })
})

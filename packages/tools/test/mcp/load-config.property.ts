import { ConfigurationError } from '@tallystick/core'
import { hostileTexts } from '@tallystick/testkit'
import * as fc from 'fast-check'
import { stringify } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../../scripts/testing/effort.ts'
import { findUnclear, mutatedText } from '../../../../scripts/testing/mutated.ts'
import { type McpHost, mcpHosts, readMcpConfig } from '../../src/mcp/load-config.ts'
import { mcpServer } from '../../src/mcp/options.ts'

const secret = 'sekret-0123456789'
const values = {
  env: { KEY: secret, EMPTY: '' },
  folder: '/project',
  home: '/home',
  inputs: { id: secret },
}

const word = fc.oneof(
  fc.constantFrom(
    'npx',
    '${KEY}',
    '$KEY',
    '${env:KEY}',
    '${input:id}',
    '${NOPE:-x}',
    '${NOPE}',
    '${workspaceFolder}',
    '${',
    '}',
    'https://a.example/mcp',
    '',
    secret,
  ),
  fc.string({ maxLength: 8 }),
)
const field = fc.oneof(
  word,
  fc.array(word, { maxLength: 3 }),
  fc.dictionary(word, word, { maxKeys: 3 }),
  fc.boolean(),
  fc.integer(),
)
const names = [
  'command',
  'args',
  'env',
  'url',
  'serverUrl',
  'httpUrl',
  'headers',
  'type',
  'cwd',
  'disabled',
  'timeout',
  'env_vars',
  'bearer_token_env_var',
  'tool_timeout_sec',
  'enabled_tools',
]
/** An entry of which most fields are as they should be, and some are not. */
const entry = fc.record(
  {
    command: fc.oneof({ weight: 4, arbitrary: word }, field),
    args: fc.oneof({ weight: 4, arbitrary: fc.array(word, { maxLength: 3 }) }, field),
    env: fc.oneof({ weight: 4, arbitrary: fc.dictionary(fc.constantFrom('A', 'B'), word) }, field),
    url: fc.constantFrom('https://a.example/mcp', 'http://${KEY}/', 'no url'),
    ...Object.fromEntries(names.slice(4).map((name) => [name, field])),
  },
  { requiredKeys: [] },
)
/** No secret: errors name servers. */
const serverName = fc.oneof(
  fc.constantFrom('files', '__proto__', 'a b', '${KEY}', ''),
  fc.string({ maxLength: 8 }),
)
const servers = fc.dictionary(serverName, entry, { maxKeys: 4 })

function textOf(host: McpHost, entries: object): string {
  if (host === 'codex') return stringify({ mcp_servers: entries })
  return JSON.stringify({ [host === 'vscode' ? 'servers' : 'mcpServers']: entries })
}

/** What is wrong with how a file is read: what is read can be started, and what is refused is named without a value. */
function faultOf(host: McpHost, text: string): string | undefined {
  try {
    const read = readMcpConfig({ host, file: 'file', text, scope: 'all', values })
    const [fault] = [...read.values()].flatMap(({ server }) => mcpServer(server) ?? [])
    return fault && `${fault.path} ${fault.what}`
  } catch (error) {
    if (!(error instanceof ConfigurationError)) return `threw ${String(error)}`
    if (!error.message.startsWith('file:')) return `no file in ${error.message}`
    const unclear = findUnclear(error)
    if (unclear !== undefined) return unclear
    return error.message.includes(secret) ? `a value in ${error.message}` : undefined
  }
}

describe.each(mcpHosts)('a random file of %s', (host) => {
  it('is read, or refused with a clear error that holds no value', () => {
    fc.assert(
      fc.property(servers, (entries) => {
        expect(faultOf(host, textOf(host, entries))).toBeUndefined()
      }),
      { numRuns: tries(600) },
    )
  })

  it('is read, or refused clearly, where something in it is wrong', () => {
    const entries = {
      files: { command: 'npx', args: ['-y', 'files', '${KEY}'], env: { A: '${env:KEY}' }, cwd: '/project' },
      docs: { type: 'http', url: 'https://a.example/mcp', headers: { authorization: 'Bearer ${KEY}' } },
      off: { command: 'node', args: [], disabled: true, timeout: 5, enabled_tools: ['look'] },
    }
    fc.assert(
      fc.property(mutatedText([textOf(host, entries)]), (text) => {
        expect(faultOf(host, text)).toBeUndefined()
      }),
      { numRuns: tries(1_500) },
    )
  })

  it('is refused clearly where it is cut or is something else', () => {
    fc.assert(
      fc.property(servers, fc.nat({ max: 400 }), (entries, length) => {
        expect(faultOf(host, textOf(host, entries).slice(0, length))).toBeUndefined()
      }),
      { numRuns: tries(300) },
    )
    const texts = [...hostileTexts.map(({ text }) => text), '['.repeat(100_000)]
    expect(texts.flatMap((text) => faultOf(host, text) ?? [])).toEqual([])
  })
})

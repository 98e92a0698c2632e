import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { effort } from '../../../scripts/testing/effort.ts'
import { startTallystick, tallystickFrom } from './kit/tallystick.ts'

const files = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-filesystem/dist/index.js'))
/** A server whose tools go wrong on demand, and whose name is one that a terminal obeys. */
const faulty = fileURLToPath(new URL('../../tools/test/mcp/servers/faulty-server.ts', import.meta.url))
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tallystick-mcp-cli-'))
  const servers = {
    files: { command: process.execPath, args: [files, folder] },
    bad: {
      command: process.execPath,
      args: ['--no-warnings', faulty],
      env: { API_TOKEN: 'token-0123456789' },
    },
    broken: {
      command: process.execPath,
      args: ['-e', 'console.error("\\u001b[2Jno licence"); process.exit(7)'],
    },
  }
  await writeFile(join(folder, 'claude_desktop_config.json'), JSON.stringify({ mcpServers: servers }))
  await writeFile(join(folder, 'servers.json'), '{ "mcpServers": { "a": { "command": "${NOT_SET}" } } }')
})
afterAll(() => rm(folder, { recursive: true }))

const config = 'claude_desktop_config.json'

const isQuick = effort({ quick: true, thorough: false })

describe('mcp', () => {
  it('doctor says what is wrong with each server, and nothing that a terminal obeys', async () => {
    const { code, stdout, stderr } = await tallystickFrom(folder, 'mcp', 'doctor', config)
    expect(code).toBe(1)
    expect(stdout).toMatch(/^ok {6}files {2}14 tools, revision 2025-11-25$/m)
    expect(stdout).toMatch(/^BROKEN {2}broken\n {10}its process ended \(exit code 7\)[^]*no licence$/m)
    expect(stderr).toContain('3 servers, 1 broken; ')
    expect(stdout + stderr).not.toContain('\u001b')
    expect(stdout + stderr).not.toContain('token-0123456789')
  })

  it('is a 2 that says what to install where the client of the protocol is not', () => {
    const hook = import.meta.resolve('./kit/without-package.ts?@modelcontextprotocol/client')
    const main = fileURLToPath(import.meta.resolve('../src/main.ts'))
    const words = ['--import', hook, main, 'mcp', 'list', config, 'files']
    const { status, stdout, stderr } = spawnSync(process.execPath, words, { cwd: folder, encoding: 'utf8' })
    expect({ status, stdout, stderr }).toEqual({
      ...{ status: 2, stdout: '' },
      stderr:
        'error: mcpTools() needs the package @modelcontextprotocol/client, which is not installed. Add it: npm install @modelcontextprotocol/client.\n',
    })
  })

  it('call prints what a tool answers, with its progress on the other stream', async () => {
    const { code, stdout } = await tallystickFrom(
      folder,
      'mcp',
      'call',
      config,
      'files',
      'list_allowed_directories',
    )
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(folder) as string })
    const steps = await tallystickFrom(folder, 'mcp', 'call', config, 'bad', 'steps', '{"count":2}', '--json')
    expect(steps).toMatchObject({
      code: 0,
      stdout: '{"content":[{"type":"text","text":"all steps done"}]}\n',
      stderr: expect.stringContaining('{"progress":{"progress":1,"total":2,"message":"step 1"}}') as string,
    })
  })

  it.each([
    [['call', config, 'files', 'read_txt_file'], 1, 'Did you mean read_text_file'],
    [['call', config, 'broken', 'x'], 1, 'cannot be used: its process ended (exit code 7)'],
    [['list', config, 'filez'], 2, 'has no server "filez"'],
    [
      ['doctor', 'servers.json', '--from', 'claude-code'],
      2,
      'The MCP server "a": the variable "NOT_SET" is not set',
    ],
    [['doctor', 'gone.json', '--from', 'cursor'], 2, 'there is no file of cursor at'],
    [['mend', config], 2, 'Allowed choices are list, call, doctor'],
  ] as const)('%j ends with code %i and says why', async (words, code, text) => {
    const ending = await tallystickFrom(folder, 'mcp', ...words)
    expect(ending.code).toBe(code)
    expect(ending.stderr).toContain(text)
    expect(ending.stdout).toBe('')
  })

  // Left to a thorough run: the command and each of its servers is a process.
  it.skipIf(isQuick)('ends its servers when it is stopped', async () => {
    const call = startTallystick('mcp', 'call', join(folder, config), 'bad', 'hang')
    await call.says('begun')
    call.kill('SIGINT')
    const { code, stderr } = await call.ending
    expect(code).not.toBe(0)
    expect(stderr).toContain('The command was stopped.')
  })
})

describe('a configuration with MCP servers', () => {
  it('makes its agents with their tools, and ends the servers with the run', async () => {
    const [core, testing] = ['@tallystick/core', '@tallystick/testkit'].map((name) =>
      JSON.stringify(import.meta.resolve(name)),
    )
    const program = `
      import { defineAgent } from ${core}
      import { scriptedModel } from ${testing}
      const model = scriptedModel([
        { toolCalls: [{ name: 'mcp__files__list_allowed_directories', input: {} }] },
        { text: 'That is all.' },
      ])
      export default {
        mcp: { servers: { files: { command: process.execPath, args: [${JSON.stringify(files)}, ${JSON.stringify(folder)}] } } },
        agents: (mcp) => [defineAgent({ name: 'reader', instructions: '', model, tools: mcp.tools })],
      }`
    await writeFile(join(folder, 'tallystick.config.mjs'), program)
    const { code, stdout } = await tallystickFrom(
      folder,
      'run',
      join(folder, 'runs.db'),
      'reader',
      'Where?',
      '--config',
      'tallystick.config.mjs',
    )
    expect(code).toBe(0)
    expect(stdout).toContain(`Allowed directories:`)
    expect(stdout).toContain('That is all.')
    const doctor = await tallystickFrom(folder, 'mcp', 'doctor', 'tallystick.config.mjs')
    expect(doctor).toMatchObject({ code: 0, stdout: 'ok      files  14 tools, revision 2025-11-25\n' })
  })

  it('is refused where its agents need servers and it names none', async () => {
    await writeFile(join(folder, 'bare.config.mjs'), 'export default { agents: () => [] }')
    const bare = await tallystickFrom(
      folder,
      'run',
      join(folder, 'runs.db'),
      'a',
      'b',
      '--config',
      'bare.config.mjs',
    )
    expect(bare).toMatchObject({ code: 2, stderr: expect.stringContaining('mcp names no servers') as string })
    const doctor = await tallystickFrom(folder, 'mcp', 'doctor', 'bare.config.mjs')
    expect(doctor).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('names no MCP servers') as string,
    })
  })
})

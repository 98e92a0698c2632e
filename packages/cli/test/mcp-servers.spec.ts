import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createRuntime, defineAgent } from '@tallystick/core'
import { verifyRun } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { replayRun } from '@tallystick/replay'
import { scriptedModel, type ScriptedStep } from '@tallystick/testkit'
import { defineTool, searchableTools } from '@tallystick/tools'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Ending, tallystickFrom } from './kit/tallystick.ts'
import { temporaryFolder } from '../../../scripts/testing/temporary-folder.ts'

// What the mcp verbs say of servers whose answers a test gives, word for word.

const raw = fileURLToPath(new URL('../../tools/test/mcp/servers/raw-server.ts', import.meta.url))
const inputSchema = { type: 'object' }
const readOnly = { annotations: { readOnlyHint: true } }

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tallystick-mcp-servers-'))
  const made = folder
  onTestFinished(() => rmSync(made, { recursive: true }))
})

/** Writes a file below the folder, and says where it is. */
function written(name: string, text: string): string {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  return name
}

/** How a server of these answers is started. */
function server(name: string, answers: object): { readonly command: string; readonly args: string[] } {
  written(`${name}.json`, JSON.stringify({ initialize: {}, ...answers }))
  return { command: process.execPath, args: ['--no-warnings', raw, join(folder, `${name}.json`)] }
}

const tools = (...given: readonly object[]): object => ({
  'tools/list': { tools: given.map((tool) => ({ inputSchema, ...tool })) },
})

/** Runs `mcp` on the servers of a configuration file, or on a file of another name. */
function mcp(servers: object, ...words: readonly string[]): Promise<Ending> {
  const [action = '', ...rest] = words
  const config = written('claude_desktop_config.json', JSON.stringify({ mcpServers: servers }))
  return tallystickFrom(folder, 'mcp', action, config, ...rest)
}

const broken = { command: process.execPath, args: ['-e', 'console.error("no\\nlicence"); process.exit(3)'] }

describe('mcp list', () => {
  it('given servers, when they are listed, then each has a line, and one for each tool, cut where it is long', async () => {
    const files = server(
      'files',
      tools(
        { name: 'read', description: 'Reads.\nAll of it.', ...readOnly },
        {
          name: 'write',
          description: 'w'.repeat(101),
        },
        { name: 'look', description: 'l'.repeat(100) },
      ),
    )
    const { code, stdout } = await mcp({ files, second: server('second', tools()) }, 'list')
    expect(code).toBe(0)
    expect(stdout).toBe(
      [
        'files  ready  raw 1, stdio, 2025-11-25',
        '  mcp__files__read  write  Reads.',
        `  mcp__files__write  write  ${'w'.repeat(99)}…`,
        `  mcp__files__look  write  ${'l'.repeat(100)}`,
        'second  ready  raw 1, stdio, 2025-11-25',
        '',
      ].join('\n'),
    )
  })

  it('given a server that cannot be used, when it is listed, then its fault is below it, and the code is 1', async () => {
    const { code, stdout } = await mcp({ ok: server('ok', tools()), broken }, 'list')
    expect(code).toBe(1)
    const [first, second, ...faults] = stdout.trimEnd().split('\n')
    expect([first, second]).toEqual(['ok  ready  raw 1, stdio, 2025-11-25', 'broken  failed'])
    expect(faults[0]).toMatch(/^ {2}its process ended \(exit code 3\)/)
    expect(faults.slice(1).every((line) => line.startsWith('    '))).toBe(true)
    expect(faults.join('\n')).toContain('licence')
  })

  it('given --json, when servers are listed, then each line has the tools by both of their names', async () => {
    const files = server('files', tools({ name: 'read', description: 'Reads.' }))
    const { stdout } = await mcp({ files, second: server('second', tools()) }, 'list', '--json')
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown)
    expect(rows).toMatchObject([
      {
        name: 'files',
        state: 'ready',
        tools: [{ name: 'mcp__files__read', tool: 'read', effect: 'write', description: 'Reads.' }],
      },
      { name: 'second', state: 'ready', tools: [] },
    ])
  })
})

describe('mcp doctor', () => {
  it('given sound servers, when they are looked at, then it counts them, names those without tools, and the code is 0', async () => {
    const one = server('one', tools({ name: 'read' }))
    const { code, stdout, stderr } = await mcp({ one, none: server('none', tools()) }, 'doctor')
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: 'ok      one  1 tool, revision 2025-11-25\nok      none  0 tools, revision 2025-11-25\n',
    })
    expect(stderr).toBe('none offers no tools.\n2 servers, 0 broken; 1 tool\n')
  })

  it('given more than a hundred tools, when they are looked at, then it advises to leave some out', async () => {
    const many = (count: number): object =>
      server(`many${count}`, tools(...Array.from({ length: count }, (_, index) => ({ name: `t${index}` }))))
    const hundred = await mcp({ many: many(100) }, 'doctor')
    expect(hundred.stderr).toBe('1 server, 0 broken; 100 tools\n')
    const more = await mcp({ many: many(101) }, 'doctor')
    expect(more.stderr).toBe(
      '101 tools are many for one agent: leave some out with includeTools or excludeTools.\n1 server, 0 broken; 101 tools\n',
    )
  })

  it('given a broken server, when it is looked at, then its fault is indented, it is not a server without tools, and the code is 1', async () => {
    const { code, stdout, stderr } = await mcp({ broken }, 'doctor')
    expect(code).toBe(1)
    const [head, fault = '', ...rest] = stdout.trimEnd().split('\n')
    expect(head).toBe('BROKEN  broken')
    expect(fault).toMatch(/^ {10}its process ended \(exit code 3\)/)
    expect(rest.every((line) => line.startsWith(' '.repeat(10)))).toBe(true)
    expect(stderr).toBe('1 server, 1 broken; 0 tools\n')
  })

  it('given --json, when servers are looked at, then there are lines of JSON and nothing else', async () => {
    const { code, stdout, stderr } = await mcp({ none: server('none', tools()), broken }, 'doctor', '--json')
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly state: string })
    expect(rows.map(({ state }) => state)).toEqual(['ready', 'failed'])
  })
})

describe('mcp call', () => {
  const answering = (...content: readonly object[]): object =>
    server('one', { ...tools({ name: 'look' }), 'tools/call': { content } })

  it('given an answer of texts and files, when it is printed, then each is on lines of its own', async () => {
    const one = answering(
      { type: 'text', text: 'no end of line' },
      { type: 'text', text: 'an end of line\n' },
      { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
    )
    const { code, stdout, stderr } = await mcp({ one }, 'call', 'one', 'look')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toBe('no end of line\nan end of line\n(image/png, 8 characters of Base64)\n')
  })

  it.each([
    ['{"path":', 'The input is not JSON: '],
    ['null', 'The input is not an object.'],
    ['[]', 'The input is not an object.'],
    ['7', 'The input is not an object.'],
  ])(
    'given the input %s, when it is read, then it is refused, with an object that would do',
    async (input, why) => {
      const { code, stderr } = await mcp({ one: answering() }, 'call', 'one', 'look', input)
      expect(code).toBe(2)
      expect(stderr).toContain(why)
      expect(stderr).toContain(`'{"path":"."}'`)
    },
  )

  it('given words too many or too few, when they are read, then the verb says which it takes', async () => {
    const one = answering()
    expect(await mcp({ one }, 'call', 'one')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        'mcp call takes a server and one of its tools: mcp call CONFIG',
      ) as string,
    })
    for (const action of ['list', 'doctor']) {
      expect(await mcp({ one }, action, 'one', 'look')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(
          `mcp ${action} takes a configuration and at most one server.`,
        ) as string,
      })
    }
  })
})

describe('the configuration of the mcp verbs', () => {
  it.each([
    ['claude_desktop_config.json', 'claude-desktop'],
    ['.mcp.json', 'claude-code'],
    ['.claude.json', 'claude-code'],
    ['mcp_config.json', 'windsurf'],
    ['config.toml', 'codex'],
    ['servers.toml', 'codex'],
    ['.cursor/mcp.json', 'cursor'],
    ['.vscode/mcp.json', 'vscode'],
    ['.gemini/settings.json', 'gemini'],
  ])('given the file %s, when it is looked for, then as one of %s', async (name, host) => {
    const { code, stderr } = await tallystickFrom(folder, 'mcp', 'list', name)
    expect(code).toBe(2)
    expect(stderr).toContain(`there is no file of ${host} at ${join(folder, name)}`)
  })

  it('given a file of any name, when its program is not said, then the verb asks for it; given the program, it is read', async () => {
    const name = written('mcp.json', JSON.stringify({ mcpServers: { one: server('one', tools()) } }))
    const guessed = await tallystickFrom(folder, 'mcp', 'list', name)
    expect(guessed.code).toBe(2)
    expect(guessed.stderr).toContain(
      `The name of ${join(folder, name)} does not tell which program it belongs to. Name the program: --from claude-desktop | `,
    )
    const said = await tallystickFrom(folder, 'mcp', 'list', name, '--from', 'cursor')
    expect(said).toMatchObject({ code: 0, stdout: 'one  ready  raw 1, stdio, 2025-11-25\n' })
    const wrong = await tallystickFrom(folder, 'mcp', 'list', name, '--from', 'emacs')
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toContain('--from "emacs" is not known. Use one of claude-desktop, ')
  })

  it('given a program for a file, when its servers are asked for, then its own files are read', async () => {
    written(
      '.vscode/mcp.json',
      JSON.stringify({ servers: { one: { type: 'stdio', ...server('one', tools()) } } }),
    )
    const { code, stdout } = await tallystickFrom(folder, 'mcp', 'list', 'vscode', 'one')
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'one  ready  raw 1, stdio, 2025-11-25\n' })
  })

  it('given one server of a file, when it is asked for, then no other is started', async () => {
    const servers = { one: server('one', tools()), broken }
    const { code, stdout } = await mcp(servers, 'list', 'one')
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'one  ready  raw 1, stdio, 2025-11-25\n' })
  })

  it.each(['ts', 'js', 'mjs'])(
    'given a configuration in .%s, when one of its servers is asked for, then no other is started',
    async (ending) => {
      const servers = { one: server('one', tools()), broken }
      const name = written(`own.${ending}`, `export default { mcp: { servers: ${JSON.stringify(servers)} } }`)
      written('package.json', '{ "type": "module" }')
      const { code, stdout } = await tallystickFrom(folder, 'mcp', 'list', name, 'one')
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'one  ready  raw 1, stdio, 2025-11-25\n' })
      const other = await tallystickFrom(folder, 'mcp', 'list', name, 'toString')
      expect(other.code).toBe(2)
      expect(other.stderr).toContain(`${name} has no MCP server "toString". It has one, broken.`)
      const none = written(`none.${ending}`, 'export default { mcp: { servers: {} } }')
      expect((await tallystickFrom(folder, 'mcp', 'list', none, 'one')).stderr).toContain('It has no server.')
    },
  )
})

// A run whose model searched for its tools, in SQLite: another process takes it over, and it replays to itself.

it('given a run that found tools, when another process takes it over, then it is shown them, and every event replays', async () => {
  const folder = temporaryFolder()
  const ledger = sqliteLedger(join(folder, 'runs.db'))
  onTestFinished(() => ledger.close())
  const tools = Array.from({ length: 300 }, (_, at) =>
    defineTool({
      ...{ name: `do_${at}`, description: `Does number${at}.`, input: { type: 'object' }, effect: 'write' },
      approval: at === 7 ? 'always' : 'never',
      execute: () => `did ${at}`,
    }),
  )
  const clerk = (steps: readonly ScriptedStep[]) => {
    const model = scriptedModel(steps)
    const agent = defineAgent({
      name: 'clerk',
      instructions: '',
      model,
      toolSource: searchableTools(tools, { maxFound: 1 }),
    })
    return { agent, model, runtime: createRuntime({ ledger, agents: [agent] }) }
  }
  const search = (...words: string[]): ScriptedStep => ({
    toolCalls: words.map((query) => ({ name: 'search_tools', input: { query } })),
  })
  const first = clerk([search('number7', 'number200'), { toolCalls: [{ name: 'do_7', input: {} }] }])
  const waiting = await first.runtime.run(first.agent, 'Go.').result
  const second = clerk([{ toolCalls: [{ name: 'do_200', input: {} }] }, { text: 'Done.' }])
  const run = second.runtime.resume(waiting.runId)
  await run.approve(waiting.pendingApprovals[0]!, { by: 'ada' })
  expect((await run.result).text).toBe('Done.')
  expect(second.model.requests.map((request) => request.tools.map(({ name }) => name))).toEqual([
    ['search_tools', 'do_7', 'do_200'],
    ['search_tools', 'do_7', 'do_200'],
  ])
  const { divergence, events } = await replayRun(ledger, run.id, () => clerk([]).agent)
  expect(divergence).toBeUndefined()
  expect(events).toBe((await Array.fromAsync(ledger.read(run.id))).length)
  expect(await verifyRun(ledger, run.id)).toMatchObject({ ok: true })
})

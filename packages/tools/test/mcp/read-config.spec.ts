// What each field of an entry and each variable becomes, without any files.
import { ConfigurationError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import {
  type ConfigScope,
  createConfigError,
  listHostFiles,
  type McpHost,
  parseEnvFile,
  readMcpConfig,
  type ReadServer,
  type VariableValues,
} from '../../src/mcp/load-config.ts'

interface Given {
  readonly values?: Partial<VariableValues>
  readonly scope?: ConfigScope
}

function readAll(
  host: McpHost,
  root: unknown,
  { values, scope = 'all' }: Given = {},
): ReadonlyMap<string, ReadServer> {
  return readMcpConfig({
    ...{ host, scope, file: 'f' },
    text: typeof root === 'string' ? root : JSON.stringify(root),
    values: { env: { CITY: 'Rome' }, folder: '/p/own', home: '/h', inputs: {}, ...values },
  })
}

/** What an entry becomes as the only server of a file. */
function read(host: McpHost, entry: object | string, given?: Given): unknown {
  const toml = typeof entry === 'string' ? `[mcp_servers.a]\n${entry}` : undefined
  const root = toml ?? { [host === 'vscode' ? 'servers' : 'mcpServers']: { a: entry } }
  const { server, ...more } = readAll(host, root, given).get('a')!
  return { ...server, ...more }
}

const args = (host: McpHost, text: string, values?: Partial<VariableValues>): unknown =>
  (read(host, { command: 'x', args: [text] }, { ...(values && { values }) }) as { args: readonly string[] })
    .args[0]

describe('a file of variables', () => {
  it.each<[string, string, object]>([
    ['a value with another sign in it', 'A=1=2', { A: '1=2' }],
    ['blanks', '\t A \t= 1 ', { A: '1' }],
    ['an export', ' export A=1', { A: '1' }],
    ['either kind of quotes', `A='x y'\nB="x y"`, { A: 'x y', B: 'x y' }],
    ['a quote that nothing closes', `A="x\nB='x"\nC="`, { A: '"x', B: `'x"`, C: '"' }],
    ['words after a quote', 'A="b"c', { A: '"b"c' }],
    ['letters that are no quotes', 'A=xyx', { A: 'xyx' }],
    ['nothing', `A=\nB=""`, { A: '', B: '' }],
    ['lines of either end', 'A=1\r\nB=2\nC=3', { A: '1', B: '2', C: '3' }],
    ['lines of another form', '# A=1\n=1\nA\n1A=1\nA B=1', {}],
  ])('with %s', (_what, text, values) => {
    expect(parseEnvFile(text)).toEqual(values)
  })
})

describe('the files of', () => {
  const at = (host: McpHost, platform: NodeJS.Platform, env = {}) =>
    listHostFiles(host, { platform, home: platform === 'win32' ? 'C:\\h' : '/h', folder: '/p', env })
  it.each<[McpHost, readonly string[]]>([
    ['claude-desktop', ['/h/.config/Claude/claude_desktop_config.json']],
    ['cursor', ['/p/.cursor/mcp.json', '/h/.cursor/mcp.json']],
    ['vscode', ['/p/.vscode/mcp.json', '/h/.config/Code/User/mcp.json']],
    ['codex', ['/p/.codex/config.toml', '/h/.codex/config.toml']],
    ['gemini', ['/p/.gemini/settings.json', '/h/.gemini/settings.json']],
    ['windsurf', ['/h/.codeium/windsurf/mcp_config.json']],
  ])('%s are those of the project, then those of the user', (host, paths) => {
    expect(at(host, 'linux')).toEqual(paths.map((path) => ({ path, scope: 'all' })))
  })

  it('Claude Code are three: one holds servers of the user for a project and for all', () => {
    expect(at('claude-code', 'linux')).toEqual([
      { path: '/h/.claude.json', scope: 'one_project' },
      { path: '/p/.mcp.json', scope: 'all' },
      { path: '/h/.claude.json', scope: 'every_project' },
    ])
  })

  it('a program are in the folder that its system or a variable names', () => {
    const first = (platform: NodeJS.Platform, env?: object) => at('claude-desktop', platform, env)[0]?.path
    expect(first('linux', { XDG_CONFIG_HOME: '/x' })).toBe('/x/Claude/claude_desktop_config.json')
    expect(first('win32')).toBe('C:\\h\\AppData\\Roaming\\Claude\\claude_desktop_config.json')
    expect(at('vscode', 'darwin')[1]?.path).toBe('/h/Library/Application Support/Code/User/mcp.json')
  })
})

describe('an entry', () => {
  it.each<[string, McpHost, object | string, object]>([
    ['fields of nothing', 'cursor', { command: 'x', url: null, args: null, env: null }, { command: 'x' }],
    [
      'numbers and truth values among texts',
      'cursor',
      { command: 'x', args: [1, true, 'a'], env: { A: 2, B: false } },
      { command: 'x', args: ['1', 'true', 'a'], env: { A: '2', B: 'false' } },
    ],
    ['a file of variables', 'vscode', { command: 'x', envFile: 'keys' }, { command: 'x', envFile: 'keys' }],
    ['a file of variables', 'cursor', { command: 'x', envFile: 'keys' }, { command: 'x', envFile: 'keys' }],
    ['one that its host does not read', 'windsurf', { command: 'x', envFile: 'keys' }, { command: 'x' }],
    ['one beside a URL', 'cursor', { url: 'http://a.example', envFile: 'keys' }, { url: 'http://a.example' }],
    [
      'variables beside a URL',
      'cursor',
      { url: 'http://a.example', env: { A: '${env:MISSING}' } },
      { url: 'http://a.example' },
    ],
    [
      'its way by another name',
      'cursor',
      { url: 'http://a.example', transport: 'streamable-http' },
      { url: 'http://a.example', type: 'http' },
    ],
    [
      'its way by two names',
      'cursor',
      { url: 'http://a.example', type: 'sse', transport: 'http' },
      { url: 'http://a.example', type: 'sse' },
    ],
    [
      'the older way',
      'vscode',
      { url: 'http://a.example', type: 'sse' },
      { url: 'http://a.example', type: 'sse' },
    ],
    [
      'a way for url',
      'gemini',
      { url: 'http://a.example', type: 'http' },
      { url: 'http://a.example', type: 'http' },
    ],
    [
      'what only other hosts know',
      'claude-desktop',
      { command: 'x', includeTools: ['a'], excludeTools: ['b'], timeout: 5, disabledTools: ['c'] },
      { command: 'x', excludeTools: ['c'] },
    ],
    [
      'what all know',
      'gemini',
      { command: 'x', disabled: true, disabledTools: ['c'], includeTools: ['a'] },
      { command: 'x', disabled: true, includeTools: ['a'] },
    ],
    ['no variables', 'codex', 'command = "x"\n[mcp_servers.a.env]\nA = 1', { command: 'x', env: { A: '1' } }],
    ['a URL alone', 'codex', 'url = "http://a.example"', { url: 'http://a.example', headers: {} }],
    [
      'that it is on, and needed',
      'codex',
      'command = "x"\nenabled = true\nrequired = true\nenabled_tools = ["a"]',
      { command: 'x', env: {}, required: true, includeTools: ['a'] },
    ],
  ])('with %s is read (%s)', (_what, host, entry, server) => {
    expect(read(host, entry)).toEqual(server)
  })

  it.each<[McpHost, object | string, string]>([
    ['cursor', { command: '' }, 'command has to be a text that is not empty.'],
    ['cursor', { command: 1 }, 'command has to be a text that is not empty.'],
    ['cursor', { command: 'x', disabled: 'yes' }, 'disabled has to be true or false.'],
    ['cursor', { command: 'x', args: ['a', {}] }, 'args has to be a list of texts.'],
    ['cursor', { command: 'x', env: 'A=1' }, 'env has to be an object of texts.'],
    ['cursor', { command: 'x', env: ['a'] }, 'env has to be an object of texts.'],
    ['cursor', { command: 'x', env: { A: 'b', C: {} } }, 'env has to be an object of texts.'],
    [
      'cursor',
      { command: 'x', url: 'http://a.example' },
      'it has a command and a URL; leave one of the two out.',
    ],
    ['windsurf', {}, 'it has neither a command nor a URL.'],
    ['windsurf', { url: null }, 'it has neither a command nor a URL.'],
    [
      'windsurf',
      { url: 'http://a.example' },
      'it has neither a command nor a URL. Windsurf reads serverUrl, not url.',
    ],
    [
      'codex',
      `url = "http://a.example"\nbearer_token_env_var = "${'A'.repeat(101)}"`,
      `the variable "${'A'.repeat(100)}" is not set. Set it, or leave the server out (servers names those to read).`,
    ],
  ])('of %s is refused: %j', (host, entry, why) => {
    expect(() => read(host, entry)).toThrow(new ConfigurationError(`f: The MCP server "a": ${why}`))
  })

  it.each<[string, object, ConfigScope, readonly string[]]>([
    ['all', {}, 'all', ['own', 'every']],
    ['the project alone', {}, 'one_project', ['own']],
    ['every project', {}, 'every_project', ['every']],
    ['a project that is not an object', { projects: { '/p/own': 1 } }, 'one_project', []],
    ['no projects', { projects: null }, 'all', ['every']],
    ['no servers', { mcpServers: null }, 'every_project', []],
  ])('is read for its scope: %s', (_what, more, scope, names) => {
    const server = { command: 'x' }
    const root = {
      mcpServers: { every: server },
      projects: { '/p/own': { mcpServers: { own: server } }, '/p': { mcpServers: { other: server } } },
      ...more,
    }
    expect([...readAll('claude-code', root, { scope }).keys()].toSorted()).toEqual([...names].toSorted())
  })
})

describe('a variable', () => {
  it.each<[McpHost, string, string]>([
    ['claude-code', '${CITY:-Paris}', 'Rome'],
    ['claude-code', '${TOWN:-a:-b}', 'a:-b'],
    ['gemini', '${TOWN:-Paris} $CITY ${CITY}', 'Paris Rome Rome'],
    ['cursor', '${env:CITY} $CITY', 'Rome $CITY'],
    ['cursor', '${workspaceFolder} ${workspaceFolderBasename} ${userHome}', '/p/own own /h'],
    ['vscode', '${pathSeparator}${/}', '//'],
    ['windsurf', '${env:CITY}', 'Rome'],
  ])('of %s: %s', (host, text, value) => {
    expect(args(host, text)).toBe(value)
  })

  it('is text like any other for Codex', () => {
    expect(read('codex', 'command = "x"\nargs = ["${CITY}"]')).toMatchObject({ args: ['${CITY}'] })
  })

  it('means folders of Windows, too', () => {
    const values = { folder: 'C:\\p\\own' }
    expect(args('cursor', '${workspaceFolderBasename}${/}${pathSeparator}', values)).toBe('own\\\\')
  })

  it('that a person is asked for is a secret, and is one of VS Code alone', () => {
    const given = { values: { inputs: { place: 'Rome' } } }
    const entry = { command: 'x', args: ['${input:place}'] }
    expect(read('vscode', entry, given)).toEqual({ command: 'x', args: ['Rome'], secrets: ['Rome'] })
    expect(() => read('cursor', entry, given)).toThrow('the input "input:place" has no value.')
  })

  it.each<[McpHost, string, string]>([
    ['windsurf', '${workspaceFolder}', 'the variable "workspaceFolder" is not one that windsurf knows.'],
    ['cursor', '${env:TOWN:-Paris}', 'the variable "env:TOWN:-Paris" is not set.'],
    ['cursor', '${my.env:}', 'the variable "my.env:" is not one that cursor knows.'],
    ['cursor', '${CITY}', 'the variable "CITY" is not one that cursor knows.'],
    ['claude-code', '${TOWN}', 'the variable "TOWN" is not set.'],
    ['gemini', '$TOWN', 'the variable "TOWN" is not set.'],
    ['gemini', `$${'A'.repeat(101)}`, `the variable "${'A'.repeat(100)}" is not set.`],
  ])('without a value is an error (%s): %s', (host, text, why) => {
    expect(() => args(host, text)).toThrow(`The MCP server "a": ${why}`)
  })
})

describe('the text of a configuration', () => {
  it('is an object of five million characters at most', () => {
    const whole = `{}${' '.repeat(4_999_998)}`
    expect(readAll('cursor', whole)).toEqual(new Map())
    const why = 'f: It has 5000001 characters; a configuration has 5000000 at most.'
    expect(() => readAll('cursor', `${whole} `)).toThrow(why)
    expect(() => readAll('codex', ' '.repeat(5_000_001))).toThrow(why)
    expect(() => readAll('cursor', 'null')).toThrow('f: It is not an object.')
  })

  it('is named in an error, without line breaks and cut where it is long', () => {
    const message = (file: string, server?: string) =>
      createConfigError({ file, ...(server !== undefined && { server }) }, 'it is so.').message
    expect(message('a\nb')).toBe('a b: it is so.')
    expect(message('f', 's'.repeat(64))).toBe(`f: The MCP server "${'s'.repeat(64)}": it is so.`)
    expect(message('f', 's'.repeat(65))).toMatch(/^f: The MCP server "s{1,63} … \(cut\)": it is so\.$/)
    expect(message('f'.repeat(500))).toBe(`${'f'.repeat(500)}: it is so.`)
    expect(message('f'.repeat(501))).toMatch(/^f{1,499} … \(cut\): it is so\.$/)
  })
})

import { mkdirSync, mkdtempSync, rmSync, writeFileSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { loadMcpConfig, type LoadMcpOptions, type McpHost, mcpTools } from '@tallystick/tools/mcp'
import { afterEach, describe, expect, it } from 'vitest'
import { listHostFiles } from '../../src/mcp/load-config.ts'
import { openTokenFile } from '../../src/mcp/oauth.ts'
import { lastingFolder } from '../../../../scripts/testing/temporary-folder.ts'

const root = mkdtempSync(join(tmpdir(), 'tallystick-mcp-config-'))
const folder = join(root, 'project')
const home = join(root, 'home')
afterEach(() => rmSync(root, { recursive: true, force: true }))

function write(path: string, content: unknown): string {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

const key = 'key-0123456789'

async function load(from: McpHost, content: unknown, more: Partial<LoadMcpOptions> = {}): Promise<unknown> {
  const path = write(from === 'codex' ? 'config.toml' : 'config.json', content)
  const { servers } = await loadMcpConfig({ from, path, env: { KEY: key, EMPTY: '' }, folder, home, ...more })
  return servers
}

async function refusal(from: McpHost, content: unknown, more: Partial<LoadMcpOptions> = {}): Promise<string> {
  const error: unknown = await load(from, content, more).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ConfigurationError)
  const { message } = error as Error
  expect(message).not.toContain(key)
  return message.replaceAll(root, '')
}

describe('the file of', () => {
  it('Claude Desktop is read, without any variables', async () => {
    const files = { command: 'npx', args: ['-y', 'x', '${HOME}'], env: { A: '$B' } }
    expect(await load('claude-desktop', { theme: 'dark', mcpServers: { files } })).toEqual({ files })
  })

  it('Claude Code is read, with variables and their defaults', async () => {
    const mcpServers = {
      local: {
        type: 'stdio',
        command: '${SHELL_OF:-sh}',
        args: ['--key=${KEY}', '$KEY', '${not a name}'],
        env: { E: '${EMPTY}' },
      },
      remote: {
        type: 'http',
        url: 'https://${HOST:-mcp.example}/mcp',
        headers: { Authorization: 'Bearer ${KEY}' },
      },
      old: { type: 'sse', url: 'https://mcp.example/sse' },
    }
    expect(await load('claude-code', { mcpServers })).toEqual({
      local: {
        command: 'sh',
        args: [`--key=${key}`, '$KEY', '${not a name}'],
        env: { E: '' },
        secrets: [key],
      },
      remote: {
        type: 'http',
        url: 'https://mcp.example/mcp',
        headers: { Authorization: `Bearer ${key}` },
        secrets: [key],
      },
      old: { type: 'sse', url: 'https://mcp.example/sse' },
    })
  })

  it('Cursor is read, with folders and a file of variables', async () => {
    write('project/keys.env', `# keys\nexport A=1\nB="two words"\nno line\nKEY=of the file\n`)
    const tool = {
      command: 'node',
      args: ['${workspaceFolder}/s.js'],
      env: { KEY: '${env:KEY}' },
      envFile: '${workspaceFolder}/keys.env',
    }
    expect(await load('cursor', { mcpServers: { tool, web: { url: 'https://a.example/mcp' } } })).toEqual({
      tool: {
        command: 'node',
        args: [`${folder}/s.js`],
        env: { A: '1', B: 'two words', KEY: key },
        secrets: [key],
      },
      web: { url: 'https://a.example/mcp' },
    })
  })

  it('VS Code is read, with comments, inputs and its own key', async () => {
    const text = `{
      // the servers
      "inputs": [{ "type": "promptString", "id": "token", "password": true }],
      "servers": {
        "web": { "type": "http", "url": "https://a.example/mcp", "headers": { "X-Token": "\${input:token}" } },
        "own": { "type": "stdio", "command": "node", "args": ["\${workspaceFolder}/s.js",], },
      },
    }`
    const inputs = { token: 'token-0123456789' }
    expect(await load('vscode', text, { inputs })).toEqual({
      web: { url: 'https://a.example/mcp', headers: { 'X-Token': inputs.token }, secrets: [inputs.token] },
      own: { command: 'node', args: [`${folder}/s.js`] },
    })
    expect(await refusal('vscode', text)).toContain(
      'The MCP server "web": the input "input:token" has no value.',
    )
  })

  it('Codex is read, as TOML', async () => {
    const text = `
      model = "x"
      [mcp_servers.files]
      command = "npx"
      args = ["-y", "files"]
      env_vars = ["KEY", "NOT_SET"]
      startup_timeout_sec = 12.5
      tool_timeout_sec = 90
      disabled_tools = ["write"]
      [mcp_servers.files.env]
      A = "1"
      [mcp_servers.web]
      url = "https://a.example/mcp"
      bearer_token_env_var = "KEY"
      http_headers = { "X-A" = "a" }
      env_http_headers = { "X-Key" = "KEY" }
      enabled = false`
    expect(await load('codex', text)).toEqual({
      files: {
        command: 'npx',
        args: ['-y', 'files'],
        env: { KEY: key, A: '1' },
        startMs: 12_500,
        timeoutMs: 90_000,
        excludeTools: ['write'],
      },
      web: {
        url: 'https://a.example/mcp',
        headers: { 'X-A': 'a', 'X-Key': key, authorization: `Bearer ${key}` },
        disabled: true,
      },
    })
    expect(
      await refusal('codex', `[mcp_servers.a]\nurl = "https://a.example"\nbearer_token = "${key}"`),
    ).toContain('bearer_token_env_var')
  })

  it('Gemini CLI is read: httpUrl is Streamable HTTP, and url the older way', async () => {
    const mcpServers = {
      new: { httpUrl: 'https://a.example/mcp', timeout: 5000, trust: true, includeTools: ['a'] },
      old: { url: 'https://a.example/sse', headers: { K: '$KEY' } },
      own: { command: 'node', args: ['${KEY}'], excludeTools: ['b'] },
    }
    expect(await load('gemini', { mcpServers })).toEqual({
      new: { url: 'https://a.example/mcp', type: 'http', timeoutMs: 5000, includeTools: ['a'] },
      old: { url: 'https://a.example/sse', type: 'sse', headers: { K: key }, secrets: [key] },
      own: { command: 'node', args: [key], excludeTools: ['b'], secrets: [key] },
    })
  })

  it('a time is taken in whole milliseconds that a timer can count', async () => {
    const timed = async (timeout: unknown): Promise<unknown> =>
      load('gemini', { mcpServers: { a: { command: 'node', timeout } } })
    for (const timeout of [1, 2 ** 31 - 1])
      expect(await timed(timeout)).toMatchObject({ a: { timeoutMs: timeout } })
    expect(await timed(0.6)).toMatchObject({ a: { timeoutMs: 1 } })
    for (const timeout of [0, 0.4, -5, 2 ** 31, '5'])
      await expect(timed(timeout)).rejects.toThrow('timeout has to be a number above 0')
  })

  it('Windsurf is read: its URL is serverUrl', async () => {
    const web = { serverUrl: 'https://a.example/mcp', headers: { K: '${env:KEY}' }, disabled: true }
    expect(await load('windsurf', { mcpServers: { web } })).toEqual({
      web: { url: 'https://a.example/mcp', headers: { K: key }, disabled: true, secrets: [key] },
    })
    expect(await refusal('windsurf', { mcpServers: { web: { url: 'https://a.example' } } })).toContain(
      'Windsurf reads serverUrl, not url',
    )
  })
})

describe('where a file is', () => {
  it('follows the system', () => {
    const at = (platform: NodeJS.Platform, host: McpHost, env = {}): readonly string[] =>
      listHostFiles(host, { platform, home: '/h', folder: '/p', env }).map(({ path }) => path)
    expect(at('darwin', 'claude-desktop')).toEqual([
      '/h/Library/Application Support/Claude/claude_desktop_config.json',
    ])
    expect(at('linux', 'claude-desktop')).toEqual(['/h/.config/Claude/claude_desktop_config.json'])
    expect(at('win32', 'claude-desktop', { APPDATA: 'C:\\Data' })).toEqual([
      'C:\\Data\\Claude\\claude_desktop_config.json',
    ])
    expect(at('linux', 'codex', { CODEX_HOME: '/c' })).toEqual(['/p/.codex/config.toml', '/c/config.toml'])
  })

  it('puts the servers of a project before those of the user, and those of the user for the project before both', async () => {
    const server = (name: string): object => ({ command: name })
    write('home/.claude.json', {
      mcpServers: { a: server('user'), b: server('user'), c: server('user') },
      projects: {
        [folder]: { mcpServers: { c: server('local') } },
        '/other': { mcpServers: { d: server('other') } },
      },
    })
    write('project/.mcp.json', { mcpServers: { b: server('project'), c: server('project') } })
    const loaded = await loadMcpConfig({ from: 'claude-code', folder, home, env: {} })
    expect(loaded.servers).toMatchObject({ a: server('user'), b: server('project'), c: server('local') })
    expect(Object.keys(loaded.servers)).toHaveLength(3)
    expect(loaded.files).toEqual([join(home, '.claude.json'), join(folder, '.mcp.json')])
  })

  it('is said where no file is there', async () => {
    const loading = loadMcpConfig({ from: 'windsurf', folder, home, env: {} })
    await expect(loading).rejects.toThrow(
      `there is no file of windsurf at ${join(home, '.codeium/windsurf/mcp_config.json')}`,
    )
  })
})

describe('an error', () => {
  it.each<[McpHost, unknown, string]>([
    [
      'claude-code',
      { mcpServers: { a: { command: 'x', args: ['${NOPE}'] } } },
      '/config.json: The MCP server "a": the variable "NOPE" is not set. Set it, or leave the server out (servers names those to read).',
    ],
    [
      'cursor',
      { mcpServers: { a: { command: '${workspaceRoot}' } } },
      'the variable "workspaceRoot" is not one that cursor knows',
    ],
    ['gemini', { mcpServers: { a: { command: '$NOPE' } } }, 'the variable "NOPE" is not set'],
    [
      'claude-desktop',
      `{ "mcpServers": { "a": "${key}"`,
      'It is not JSON at line 1, column 40 (CloseBraceExpected)',
    ],
    ['claude-desktop', '', 'It is not JSON'],
    ['claude-desktop', [], 'It is not an object.'],
    ['claude-desktop', { mcpServers: [] }, 'mcpServers has to be an object of servers.'],
    ['claude-desktop', { mcpServers: { a: key } }, 'The MCP server "a": it is not an object.'],
    ['claude-desktop', { mcpServers: { a: {} } }, 'it has neither a command nor a URL.'],
    ['claude-desktop', { mcpServers: { a: { command: 'x', args: key } } }, 'args has to be a list of texts.'],
    [
      'claude-desktop',
      { mcpServers: { a: { command: 'x', env: { K: [key] } } } },
      'env has to be an object of texts.',
    ],
    [
      'claude-desktop',
      { mcpServers: { a: { url: `ftp://${key}` } } },
      'url is a text; expected an http: or https: URL.',
    ],
    [
      'claude-code',
      { mcpServers: { a: { type: key, url: 'https://a.example' } } },
      'its type is not one of stdio, http and sse.',
    ],
    ['claude-desktop', { mcpServers: { 'a\u001b[2J': {} } }, 'The MCP server "a":'],
    ['codex', `[mcp_servers.a]\ncommand = "${key}`, 'It is not TOML at line 2'],
    [
      'cursor',
      { mcpServers: { a: { command: 'x', envFile: 'nope.env' } } },
      'its envFile "nope.env" is not there.',
    ],
  ])('of %s names the file, the server and the fault, and no value: %j', async (from, content, text) => {
    expect(await refusal(from, content)).toContain(text)
  })

  it('comes of no server that is not asked for', async () => {
    const mcpServers = { good: { command: 'x' }, bad: { command: '${NOPE}' } }
    expect(await load('claude-code', { mcpServers }, { servers: ['good'] })).toEqual({
      good: { command: 'x' },
    })
    expect(await refusal('claude-code', { mcpServers }, { servers: ['god'] })).toContain(
      'has no server "god"',
    )
  })

  it('says whether a file is not there, or cannot be read', async () => {
    const path = write('config.json', '{}')
    await expect(loadMcpConfig({ from: 'cursor', path: join(path, 'below') })).rejects.toThrow(
      `there is no file of cursor at ${join(path, 'below')}. Give its path.`,
    )
    await expect(loadMcpConfig({ from: 'cursor', path: dirname(path) })).rejects.toThrow(
      `${dirname(path)} cannot be read (EISDIR).`,
    )
  })

  it.each([
    ['file', 'path'],
    ['host', 'from'],
    ['cwd', 'folder'],
    ['workspace', 'folder'],
    ['environment', 'env'],
  ])('names the option that %s is by another name', async (other, meant) => {
    await expect(loadMcpConfig({ from: 'cursor', [other]: 'x' } as never)).rejects.toThrow(
      `Did you mean ${meant}?`,
    )
  })

  it('names an unknown program, and the nearest', async () => {
    await expect(loadMcpConfig({ from: 'claude' as McpHost })).rejects.toThrow("Did you mean 'claude-code'")
  })
})

it('names with a meaning to JavaScript are names like others', async () => {
  const text =
    '{ "mcpServers": { "__proto__": { "command": "x" }, "constructor": { "command": "${toString:-y}" } } }'
  const servers = (await load('claude-code', text)) as Record<string, unknown>
  expect(Object.keys(servers)).toEqual(['__proto__', 'constructor'])
  expect(servers['constructor']).toMatchObject({ command: 'y' })
})

it('what is loaded starts', async () => {
  const path = write('config.json', {
    mcpServers: { gone: { command: 'no-such-command' }, off: { command: 'x', disabled: true } },
  })
  const { servers } = await loadMcpConfig({ from: 'claude-desktop', path })
  await using mcp = await mcpTools({ servers })
  expect(mcp.servers).toMatchObject([{ name: 'gone', state: 'failed' }])
})

describe('the file of tokens', () => {
  // The file in which tokens of servers are kept, beside what other processes keep there.

  const folder = lastingFolder()
  let files = 0

  const url = 'https://shop.example/mcp'
  const kept = (accessToken: string): Parameters<ReturnType<typeof openTokenFile>['change']>[0] => ({
    tokens: { access_token: accessToken, token_type: 'Bearer' },
  })

  /** The file of a test, which holds this text. */
  function holding(text?: string): string {
    const path = join(folder, `${++files}.json`)
    if (text !== undefined) writeFileSync(path, text)
    return path
  }

  it('given no file, when it is read, then it holds nothing, and a change makes one that only its owner reads', () => {
    const path = holding()
    const file = openTokenFile(path, url)
    expect(file.read()).toEqual({})
    file.change(kept('a'))
    expect(file.read()).toEqual(kept('a'))
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('given tokens of another server, when those of one change, then the others stay', () => {
    const path = holding()
    const other = openTokenFile(path, 'https://other.example/mcp')
    const file = openTokenFile(path, url)
    other.change(kept('b'))
    file.change(kept('a'))
    file.change({})
    expect([other.read(), file.read()]).toEqual([kept('b'), kept('a')])
    file.change(kept('c'))
    expect([other.read(), file.read()]).toEqual([kept('b'), kept('c')])
    file.change({ tokens: undefined })
    expect([other.read(), file.read()]).toEqual([kept('b'), {}])
    expect(readFileSync(path, 'utf8').endsWith('}\n')).toBe(true)
  })

  it.each(['', '{', 'null', '7', '"secret"', '[]'])(
    'given %j in it, when it is read, then the error says that it holds something else, and not what',
    (text) => {
      const path = holding(text)
      const read = (): unknown => openTokenFile(path, url).read()
      expect(read).toThrow(ConfigurationError)
      expect(read).toThrow(`the file of tokens ${path} holds something else. Give another path`)
      expect(read).not.toThrow('secret')
    },
  )

  it('given a name that every object has, when it is read for that, then it holds nothing', () => {
    expect(openTokenFile(holding('{}'), 'constructor').read()).toEqual({})
  })

  it('given a folder in its place, when it is read or changed, then the error says why, and no other file is left', () => {
    const file = openTokenFile(folder, url)
    expect(() => file.read()).toThrow(/cannot be read \(EISDIR\)/)
    const path = join(folder, 'missing', 'tokens.json')
    expect(() => openTokenFile(path, url).change(kept('a'))).toThrow(/cannot be written \(ENOENT\)/)
    expect(readdirSync(folder).filter((name) => name.includes('.tmp'))).toEqual([])
  })
})

import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { posix, resolve, win32 } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { getOwn, option, requireOptions } from '@tallystick/core/internal'
import { parse as parseToml, TomlError } from 'smol-toml'
import { readJsonWithComments, withoutMark } from '../json-with-comments.ts'
import type { Environment, McpServer, StdioServer } from './options.ts'
import {
  createConfigError,
  createExpansion,
  type McpHost,
  mcpHosts,
  type ReadServer,
  parseEntry,
  readServer,
  type VariableValues,
} from './server-entry.ts'

/** Which file is read, and what its variables stand for. */
export interface LoadMcpOptions {
  /** The program whose file it is. */
  readonly from: McpHost
  /** The file. Default: where that program keeps it; servers of the project replace those of the user. */
  readonly path?: string | undefined
  /** The servers to read; variables of other servers need no value. Default: all. */
  readonly servers?: readonly string[] | undefined
  /** The variables. Default: those of this process. */
  readonly env?: Environment | undefined
  /** The folder of the project. Default: that of this process. */
  readonly folder?: string | undefined
  /** The folder of the user. Default: that of the user of this process. */
  readonly home?: string | undefined
  /** Values of the `inputs` of VS Code, by their ids. They are treated as secrets. */
  readonly inputs?: Readonly<Record<string, string>> | undefined
}

/** The servers that were read, ready for `mcpTools`. */
export interface LoadedMcp {
  readonly servers: Readonly<Record<string, McpServer>>
  /** The files that were read. */
  readonly files: readonly string[]
}

const { anyObject, anyText, fields, filledText, listOf, maybe, oneOf, recordOf } = option

const loadOptions = fields<LoadMcpOptions>(
  {
    from: oneOf(mcpHosts),
    path: maybe(filledText),
    servers: maybe(listOf(filledText)),
    env: maybe(anyObject),
    folder: maybe(filledText),
    home: maybe(filledText),
    inputs: maybe(recordOf(anyText)),
  },
  { file: 'path', host: 'from', cwd: 'folder', workspace: 'folder', environment: 'env' },
)

/**
 * Reads the MCP servers of another program: `mcpTools({ servers: (await loadMcpConfig({ from: 'cursor' })).servers })`.
 * Variables in the file are replaced as that program does; one without a value is an error. Rejects with a
 * `ConfigurationError` that names the file, the server and the variable, and never a value.
 */
export async function loadMcpConfig(options: LoadMcpOptions): Promise<LoadedMcp> {
  requireOptions('loadMcpConfig', loadOptions, options)
  const { from, path, servers: only, env = process.env, inputs = {} } = options
  const folder = resolve(options.folder ?? process.cwd())
  const home = options.home ?? homedir()
  const place = { platform: process.platform, home, folder, env }
  const files: readonly HostFile[] =
    path === undefined ? listHostFiles(from, place) : [{ path: resolve(path), scope: 'all' }]
  const texts = await Promise.all(files.map((file) => readTextAt(file.path)))
  const found = files.flatMap((file, at) => {
    const text = texts[at]
    return text === undefined ? [] : [{ ...file, text }]
  })
  const names = (those: readonly HostFile[]): readonly string[] => [
    ...new Set(those.map((each) => each.path)),
  ]
  if (found.length === 0) {
    throw new ConfigurationError(
      `loadMcpConfig: there is no file of ${from} at ${names(files).join(' or ')}. Give its path.`,
    )
  }
  const servers = new Map<string, McpServer>()
  const values = { env, folder, home, inputs }
  for (const { path: file, scope, text } of found) {
    const read = readMcpConfig({ host: from, file, text, scope, values, only })
    for (const [name, server] of read) {
      if (!servers.has(name)) servers.set(name, await withEnvFile(server, { file, server: name }, folder))
    }
  }
  const missing = (only ?? []).filter((name) => !servers.has(name))
  if (missing.length > 0) {
    const given = missing.map((name) => JSON.stringify(name)).join(', ')
    throw new ConfigurationError(`loadMcpConfig: ${names(found).join(' and ')} has no server ${given}.`)
  }
  return { servers: Object.fromEntries(servers), files: names(found) }
}

async function readTextAt(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new ConfigurationError(`loadMcpConfig: ${path} cannot be read (${String(code)}).`, { cause: error })
  }
}

/** Variables of the entry itself override those of its file. */
async function withEnvFile(
  { server, envFile }: ReadServer,
  place: { readonly file: string; readonly server: string },
  folder: string,
): Promise<McpServer> {
  if (envFile === undefined) return server
  const text = await readTextAt(resolve(folder, envFile))
  if (text === undefined)
    throw createConfigError(place, `its envFile ${JSON.stringify(envFile)} is not there.`)
  const { env, ...others } = server as StdioServer
  return { ...others, env: { ...parseEnvFile(text), ...env } }
}

/** A file of a host, and what its variables stand for. */
export interface ConfigFile {
  readonly host: McpHost
  /** Its name, for errors. */
  readonly file: string
  readonly text: string
  readonly scope: ConfigScope
  readonly values: VariableValues
  /** The servers to read. Default: all. */
  readonly only?: readonly string[] | undefined
}

/**
 * Reads the servers of a file. Pure: all that it depends on is given. Throws `ConfigurationError`, which names the file, the
 * server and what is wrong, and no value.
 */
export function readMcpConfig(given: ConfigFile): ReadonlyMap<string, ReadServer> {
  const { host, file, text, values, only } = given
  const root = host === 'codex' ? parseTomlConfig(text, file) : parseJsonConfig(text, file)
  if (!isObject(root)) throw createConfigError({ file }, 'It is not an object.')
  const entries = readEntries(root, given)
  const read = [...entries].filter(([name]) => only === undefined || only.includes(name))
  return new Map(
    read.map(([server, raw]) => {
      const place = { file, server }
      if (!isObject(raw)) throw createConfigError(place, 'it is not an object.')
      const entry = parseEntry(raw, place, createExpansion(host, values, place))
      return [server, readServer(entry, host, values.env)]
    }),
  )
}

/** Under which key hosts keep their servers. */
const keys: Readonly<Partial<Record<McpHost, string>>> = { vscode: 'servers', codex: 'mcp_servers' }

function readEntries(
  root: Readonly<Record<string, unknown>>,
  { host, file, scope, values }: ConfigFile,
): ReadonlyMap<string, unknown> {
  const key = keys[host] ?? 'mcpServers'
  const projects = host === 'claude-code' ? getOwn(root, 'projects') : undefined
  const project = isObject(projects) ? getOwn(projects, values.folder) : undefined
  return new Map(
    Object.entries({
      ...(scope !== 'one_project' && readServers(root, key, file)),
      ...(scope !== 'every_project' && isObject(project) && readServers(project, key, file)),
    }),
  )
}

function readServers(
  holder: Readonly<Record<string, unknown>>,
  key: string,
  file: string,
): Readonly<Record<string, unknown>> {
  const servers = getOwn(holder, key)
  if (servers === undefined || servers === null) return {}
  if (isObject(servers)) return servers
  throw createConfigError({ file }, `${key} has to be an object of servers.`)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The variables of a file of lines `NAME=value`, as editors read it. Lines of another form are left out. */
export function parseEnvFile(text: string): Readonly<Record<string, string>> {
  const entries = text.split(/\r?\n/).flatMap((line) => {
    const at = line.indexOf('=')
    const name = line
      .slice(0, Math.max(at, 0))
      .replace(/^\s*export\s/, '')
      .trim()
    return /^[A-Za-z_]\w*$/.test(name) ? [[name, parsePlainValue(line.slice(at + 1).trim())] as const] : []
  })
  return Object.fromEntries(entries)
}

function parsePlainValue(value: string): string {
  const [quote] = value
  const isQuoted = (quote === '"' || quote === "'") && value.length > 1 && value.endsWith(quote)
  return isQuoted ? value.slice(1, -1) : value
}

/** Where a host keeps its files. */
export interface HostPlace {
  readonly platform: NodeJS.Platform
  readonly home: string
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Which part of a file is read: Claude Code keeps servers of one project, and of all, in one file of the user. */
export type ConfigScope = 'all' | 'one_project' | 'every_project'

interface HostFile {
  readonly path: string
  readonly scope: ConfigScope
}

/** The files of a host, the one that holds over the others first. */
export function listHostFiles(host: McpHost, place: HostPlace): readonly HostFile[] {
  const files = findHostPaths(host, place).map((path): HostFile => ({ path, scope: 'all' }))
  if (host !== 'claude-code') return files
  const path = joinOn(place.platform)(place.home, '.claude.json')
  return [{ path, scope: 'one_project' }, ...files, { path, scope: 'every_project' }]
}

function joinOn(platform: NodeJS.Platform): (...parts: string[]) => string {
  const system = platform === 'win32' ? win32 : posix
  return (...parts) => system.join(...parts)
}

function findHostPaths(host: McpHost, { platform, home, folder, env }: HostPlace): readonly string[] {
  const join = joinOn(platform)
  switch (host) {
    case 'claude-desktop':
      return [join(applicationData(), 'Claude', 'claude_desktop_config.json')]
    case 'claude-code':
      return [join(folder, '.mcp.json')]
    case 'cursor':
      return [join(folder, '.cursor', 'mcp.json'), join(home, '.cursor', 'mcp.json')]
    case 'vscode':
      return [join(folder, '.vscode', 'mcp.json'), join(applicationData(), 'Code', 'User', 'mcp.json')]
    case 'codex':
      return [
        join(folder, '.codex', 'config.toml'),
        join(env['CODEX_HOME'] ?? join(home, '.codex'), 'config.toml'),
      ]
    case 'gemini':
      return [join(folder, '.gemini', 'settings.json'), join(home, '.gemini', 'settings.json')]
    case 'windsurf':
      return [join(home, '.codeium', 'windsurf', 'mcp_config.json')]
  }

  function applicationData(): string {
    if (platform === 'win32') return env['APPDATA'] ?? join(home, 'AppData', 'Roaming')
    if (platform === 'darwin') return join(home, 'Library', 'Application Support')
    return env['XDG_CONFIG_HOME'] ?? join(home, '.config')
  }
}

const maxCharacters = 5_000_000

/** Reads JSON, with comments and commas at the end of lists, as editors write it. Throws `ConfigurationError`. */
export function parseJsonConfig(text: string, file: string): unknown {
  requireSize(text, file)
  const read = readJsonWithComments(text)
  if ('fault' in read) throw createConfigError({ file }, `${read.fault} Correct it there.`)
  return read.value
}

/** Reads TOML. Throws `ConfigurationError`. */
export function parseTomlConfig(text: string, file: string): unknown {
  requireSize(text, file)
  try {
    return parseToml(withoutMark(text))
  } catch (error) {
    // The library's message shows the lines around the fault, which may hold keys.
    const place = error instanceof TomlError ? ` at line ${error.line}, column ${error.column}` : ''
    throw createConfigError({ file }, `It is not TOML${place}. Correct it there.`)
  }
}

function requireSize(text: string, file: string): void {
  if (text.length > maxCharacters) {
    throw createConfigError(
      { file },
      `It has ${text.length} characters; a configuration has ${maxCharacters} at most.`,
    )
  }
}

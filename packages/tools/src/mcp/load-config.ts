import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { posix, resolve, win32 } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { getOwn, omitUndefined, option, requireOptions, readCode } from '@tallystick/core/internal'
import { parse as parseToml, TomlError } from 'smol-toml'
import { readJsonWithComments, withoutMark } from '../json-with-comments.ts'
import { type Environment, mcpServer, type McpServer, type StdioServer } from './options.ts'
import { cleanLine, looksSecret } from './secrets.ts'

/** The programs whose files of MCP servers can be read. */
export const mcpHosts = [
  'claude-desktop',
  'claude-code',
  'cursor',
  'vscode',
  'codex',
  'gemini',
  'windsurf',
] as const
export type McpHost = (typeof mcpHosts)[number]

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
    for (const [name, { server, envFile }] of read) {
      if (servers.has(name)) continue
      if (envFile === undefined) {
        servers.set(name, server)
        continue
      }
      const lines = await readTextAt(resolve(folder, envFile))
      if (lines === undefined) {
        const place = { file, server: name }
        throw createConfigError(place, `its envFile ${JSON.stringify(envFile)} is not there.`)
      }
      // Variables of the entry itself override those of its file.
      const { env: own, ...others } = server as StdioServer
      servers.set(name, { ...others, env: { ...parseEnvFile(lines), ...own } })
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
    const code = readCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new ConfigurationError(`loadMcpConfig: ${path} cannot be read (${String(code)}).`, { cause: error })
  }
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
  if (text.length > maxCharacters) {
    throw createConfigError(
      { file },
      `It has ${text.length} characters; a configuration has ${maxCharacters} at most.`,
    )
  }
  const parsed = host === 'codex' ? { value: parseTomlConfig(text, file) } : readJsonWithComments(text)
  if ('fault' in parsed) throw createConfigError({ file }, `${parsed.fault} Correct it there.`)
  const root = parsed.value
  if (!isObject(root)) throw createConfigError({ file }, 'It is not an object.')
  const entries = readEntries(root, given)
  const read = [...entries].filter(([name]) => only === undefined || only.includes(name))
  return new Map(
    read.map(([server, raw]) => {
      const place = { file, server }
      if (!isObject(raw)) throw createConfigError(place, 'it is not an object.')
      const entry = parseEntry(raw, place, host, values)
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
    const value = line.slice(at + 1).trim()
    const [quote] = value
    const isQuoted = (quote === '"' || quote === "'") && value.length > 1 && value.endsWith(quote)
    return /^[A-Za-z_]\w*$/.test(name) ? [[name, isQuoted ? value.slice(1, -1) : value] as const] : []
  })
  return Object.fromEntries(entries)
}

/** The facts about a machine that decide where a host keeps its files. */
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
  const system = place.platform === 'win32' ? win32 : posix
  const path = system.join(place.home, '.claude.json')
  return [{ path, scope: 'one_project' }, ...files, { path, scope: 'every_project' }]
}

function findHostPaths(host: McpHost, { platform, home, folder, env }: HostPlace): readonly string[] {
  const system = platform === 'win32' ? win32 : posix
  const join = (...parts: string[]): string => system.join(...parts)
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

/** Reads TOML. Throws `ConfigurationError`. */
function parseTomlConfig(text: string, file: string): unknown {
  try {
    return parseToml(withoutMark(text))
  } catch (error) {
    // The library's message shows the lines around the fault, which may hold keys.
    const place = error instanceof TomlError ? ` at line ${error.line}, column ${error.column}` : ''
    throw createConfigError({ file }, `It is not TOML${place}. Correct it there.`)
  }
}

/** Where something is wrong: in which file, and at which of its servers. */
interface ConfigPlace {
  readonly file: string
  readonly server?: string
}

/** An error that names the file, the server and the fault, and never a value: that may be a key. */
export function createConfigError({ file, server }: ConfigPlace, what: string): ConfigurationError {
  const where = server === undefined ? '' : ` The MCP server ${JSON.stringify(cleanLine(server, 64))}:`
  return new ConfigurationError(`${cleanLine(file, 500)}:${where} ${what}`)
}

/** A server of a file, and the file of variables that it names. */
export interface ReadServer {
  readonly server: McpServer
  readonly envFile?: string
}

/** Makes a server of an entry, in the manner of its host. Throws `ConfigurationError`. */
function readServer(
  entry: ServerEntry,
  host: McpHost,
  env: Readonly<Record<string, string | undefined>>,
): ReadServer {
  const remote = readUrl(entry, host)
  const command = entry.text('command')
  if (command === undefined && remote === undefined) {
    // The others have a URL there.
    const hint = entry.has('url') ? ' Windsurf reads serverUrl, not url.' : ''
    throw createConfigError(entry.place, `it has neither a command nor a URL.${hint}`)
  }
  if (command !== undefined && remote !== undefined) {
    throw createConfigError(entry.place, 'it has a command and a URL; leave one of the two out.')
  }
  const shared = readSharedOptions(entry, host)
  const passed = (): Readonly<Record<string, string>> => passOn(entry.texts('env_vars') ?? [], env)
  // A field that is not of the server's kind is not read: a variable in it need not be set.
  const server = remote
    ? { ...remote, headers: readHeaders(entry, host, env) }
    : {
        command,
        args: entry.texts('args'),
        env: host === 'codex' ? { ...passed(), ...entry.textsByName('env') } : entry.textsByName('env'),
        cwd: entry.text('cwd'),
      }
  // Known only now: values of variables that are called like secrets, which may be within an argument or a URL.
  const secrets = [...entry.used].flatMap(([name, value]) =>
    name.startsWith('input:') || looksSecret(name) ? [value] : [],
  )
  const made = omitUndefined({
    ...server,
    ...shared,
    secrets: secrets.length === 0 ? undefined : secrets,
  }) as McpServer
  const fault = mcpServer(made)
  if (fault) throw createConfigError(entry.place, `${fault.path} ${fault.what}.`)
  const envFile =
    remote === undefined && (host === 'cursor' || host === 'vscode') ? entry.text('envFile') : undefined
  return { server: made, ...omitUndefined({ envFile }) }
}

function readUrl(
  entry: ServerEntry,
  host: McpHost,
): { readonly url: string; readonly type?: 'http' | 'sse' } | undefined {
  const written = entry.text('type') ?? entry.text('transport') ?? 'stdio'
  if (!Object.hasOwn(types, written))
    throw createConfigError(entry.place, 'its type is not one of stdio, http and sse.')
  const type = types[written]
  if (host === 'gemini') {
    const http = entry.text('httpUrl')
    if (http !== undefined) return { url: http, type: 'http' }
    const url = entry.text('url')
    return url === undefined ? undefined : { url, type: type ?? 'sse' }
  }
  const url = entry.text(host === 'windsurf' ? 'serverUrl' : 'url')
  // For http, VS Code itself falls back to the older transport.
  const given = host === 'vscode' && type === 'http' ? undefined : type
  return url === undefined ? undefined : { url, ...omitUndefined({ type: given }) }
}

/** The types of servers at a URL, as hosts write them. */
const types: Readonly<Record<string, 'http' | 'sse' | undefined>> = {
  ...{ stdio: undefined, http: 'http', sse: 'sse' },
  ...{ 'streamable-http': 'http', streamableHttp: 'http', streamable_http: 'http' },
}

/** Variables that Codex passes on by their names. */
function passOn(
  names: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const known = names.flatMap((name) => {
    const value = getOwn(env, name)
    return value === undefined ? [] : [[name, value] as const]
  })
  return Object.fromEntries(known)
}

function readHeaders(
  entry: ServerEntry,
  host: McpHost,
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> | undefined {
  if (host !== 'codex') return entry.textsByName('headers')
  if (entry.has('bearer_token')) {
    throw createConfigError(
      entry.place,
      'bearer_token is not read from a file; name a variable in bearer_token_env_var.',
    )
  }
  const readVariable = (name: string): string => {
    const value = getOwn(env, name)
    if (value !== undefined) return value
    throw createConfigError(
      entry.place,
      `the variable ${JSON.stringify(name.slice(0, 100))} is not set. Set it, or leave the server out (servers names those to read).`,
    )
  }
  const bearer = entry.text('bearer_token_env_var')
  const named = Object.entries(entry.textsByName('env_http_headers') ?? {})
  return {
    ...entry.textsByName('http_headers'),
    ...Object.fromEntries(named.map(([name, variable]) => [name, readVariable(variable)])),
    ...(bearer !== undefined && { authorization: `Bearer ${readVariable(bearer)}` }),
  }
}

function readSharedOptions(entry: ServerEntry, host: McpHost): object {
  if (host === 'codex') {
    return {
      disabled: entry.flag('enabled') === false ? true : undefined,
      required: entry.flag('required'),
      includeTools: entry.texts('enabled_tools'),
      excludeTools: entry.texts('disabled_tools'),
      startMs: entry.milliseconds('startup_timeout_sec', 1_000),
      timeoutMs: entry.milliseconds('tool_timeout_sec', 1_000),
    }
  }
  const common = { disabled: entry.flag('disabled'), excludeTools: entry.texts('disabledTools') }
  if (host !== 'gemini') return common
  return {
    ...common,
    includeTools: entry.texts('includeTools'),
    excludeTools: entry.texts('excludeTools'),
    timeoutMs: entry.milliseconds('timeout'),
  }
}

type ServerEntry = ReturnType<typeof parseEntry>

/**
 * The fields of one server in a file, each read in one way, with its variables replaced. They throw `ConfigurationError` for a value
 * of another kind.
 */
function parseEntry(
  raw: Readonly<Record<string, unknown>>,
  place: ConfigPlace,
  host: McpHost,
  values: VariableValues,
) {
  /** Values of variables that were put in, by their names. */
  const used = new Map<string, string>()
  const readField = (field: string): unknown => getOwn(raw, field)
  const read = <Value>(
    field: string,
    expected: string,
    take: (value: unknown) => Value | undefined,
  ): Value | undefined => {
    const value = readField(field)
    if (value === undefined || value === null) return undefined
    const taken = take(value)
    if (taken === undefined) throw createConfigError(place, `${field} has to be ${expected}.`)
    return taken
  }
  const takeText = (value: unknown): string | undefined =>
    typeof value === 'string' ? expandVariables(value, host, values, place, used) : undefined
  const takeScalar = (value: unknown): string | undefined =>
    typeof value === 'number' || typeof value === 'boolean' ? String(value) : takeText(value)
  return {
    place,
    used,
    has: (field: string) => readField(field) !== undefined && readField(field) !== null,
    /** A text that is not empty. */
    text: (field: string) => read(field, 'a text that is not empty', (value) => takeText(value) || undefined),
    flag: (field: string) =>
      read(field, 'true or false', (value) => (typeof value === 'boolean' ? value : undefined)),
    /** A number above 0, times `factor`. */
    milliseconds: (field: string, factor = 1) =>
      read(field, 'a number above 0', (value) => {
        const number = typeof value === 'bigint' ? Number(value) : value
        const ms = typeof number === 'number' ? Math.round(number * factor) : Number.NaN
        return ms >= 1 && ms <= 2 ** 31 - 1 ? ms : undefined
      }),
    texts: (field: string): readonly string[] | undefined =>
      read(field, 'a list of texts', (value) => {
        const texts = Array.isArray(value) ? value.map(takeScalar) : [undefined]
        return texts.every((text) => text !== undefined) ? texts : undefined
      }),
    /** Texts by name; numbers and booleans are taken as texts. */
    textsByName: (field: string): Readonly<Record<string, string>> | undefined =>
      read(field, 'an object of texts', (value) => {
        if (typeof value !== 'object' || Array.isArray(value)) return undefined
        const entries = Object.entries(value as object).map(
          ([name, each]) => [name, takeScalar(each)] as const,
        )
        const isWhole = entries.every((entry): entry is readonly [string, string] => entry[1] !== undefined)
        return isWhole ? Object.fromEntries(entries) : undefined
      }),
  }
}

/** Everything that the expansion of variables depends on. */
export interface VariableValues {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The folder of the project. */
  readonly folder: string
  /** The folder of the user. */
  readonly home: string
  /** Answers to the `inputs` of VS Code, by their ids. */
  readonly inputs: Readonly<Record<string, string>>
}

/** How hosts write variables. Claude Desktop and Codex replace none. */
const inBraces = /\$\{(?<name>[^{}$]*)\}/g
const patterns: Readonly<Partial<Record<McpHost, RegExp>>> = {
  'claude-code': inBraces,
  cursor: inBraces,
  vscode: inBraces,
  windsurf: inBraces,
  gemini: /\$(?:\{(?<name>[^{}$]*)\}|(?<bare>[A-Za-z_]\w*))/g,
}

/**
 * Replaces the variables of a text in the manner of a host, and adds which values it put in to `used`. A variable without a value
 * is a `ConfigurationError` that names it.
 */
function expandVariables(
  text: string,
  host: McpHost,
  values: VariableValues,
  place: ConfigPlace,
  used: Map<string, string>,
): string {
  const pattern = patterns[host]
  if (pattern === undefined) return text
  return text.replaceAll(pattern, (...found) => {
    const [whole] = found
    const { name = '', bare } = found.at(-1) as Readonly<Record<string, string | undefined>>
    const { variable, fallback } = bare === undefined ? findNamed(host, name) : { variable: bare }
    // Shells have more ways to write variables, and these hosts leave them as they are.
    if (variable === undefined) return whole
    const value = readValue(host, variable, values) ?? fallback
    if (value === undefined) throw createConfigError(place, describeMissing(host, variable))
    used.set(variable, value)
    return value
  })
}

/** Reads what is between the braces: a name, and in two hosts a default after `:-`. */
function findNamed(
  host: McpHost,
  name: string,
): { readonly variable: string | undefined; readonly fallback?: string } {
  if (host !== 'claude-code' && host !== 'gemini') return { variable: name }
  const at = name.indexOf(':-')
  const variable = at === -1 ? name : name.slice(0, at)
  if (!/^[A-Za-z_]\w*$/.test(variable)) return { variable: undefined }
  return { variable, ...(at !== -1 && { fallback: name.slice(at + 2) }) }
}

function readValue(
  host: McpHost,
  name: string,
  { env, folder, home, inputs }: VariableValues,
): string | undefined {
  if (host === 'claude-code' || host === 'gemini') return getOwn(env, name)
  if (name.startsWith('env:')) return getOwn(env, name.slice('env:'.length))
  if (host === 'vscode' && name.startsWith('input:')) return getOwn(inputs, name.slice('input:'.length))
  if (host === 'windsurf') return undefined
  switch (name) {
    case 'workspaceFolder':
      return folder
    case 'workspaceFolderBasename':
      return folder.split(/[\\/]/).at(-1)
    case 'userHome':
      return home
    case 'pathSeparator':
    case '/':
      return folder.includes('\\') ? '\\' : '/'
    default:
      return undefined
  }
}

function describeMissing(host: McpHost, name: string): string {
  const shown = JSON.stringify(name.slice(0, 100))
  if (name.startsWith('input:')) {
    return `the input ${shown} has no value. Give it in inputs, or leave the server out (servers names those to read).`
  }
  const isKnown = host === 'claude-code' || host === 'gemini' || name.startsWith('env:')
  if (!isKnown)
    return `the variable ${shown} is not one that ${host} knows. Write its value, or \${env:NAME}.`
  return `the variable ${shown} is not set. Set it, or leave the server out (servers names those to read).`
}

import { ConfigurationError } from '@tallystick/core'
import { getOwn, omitUndefined } from '@tallystick/core/internal'
import { mcpServer, type McpServer } from './options.ts'
import { cleanLine, looksSecret } from './secrets.ts'

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
export function readServer(
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
  const server = remote
    ? { ...remote, headers: readHeaders(entry, host, env) }
    : readProcess(entry, host, env)
  // Which texts are secrets is known only now.
  const made = omitUndefined({ ...server, ...shared, secrets: readSecrets(entry) }) as McpServer
  const fault = mcpServer(made)
  if (fault) throw createConfigError(entry.place, `${fault.path} ${fault.what}.`)
  const envFile =
    remote === undefined && (host === 'cursor' || host === 'vscode') ? entry.text('envFile') : undefined
  return { server: made, ...omitUndefined({ envFile }) }
}

interface Remote {
  readonly url: string
  readonly type?: 'http' | 'sse'
}

function readUrl(entry: ServerEntry, host: McpHost): Remote | undefined {
  const type = readType(entry)
  if (host === 'gemini') {
    const http = entry.text('httpUrl')
    if (http !== undefined) return { url: http, type: 'http' }
    const url = entry.text('url')
    return url === undefined ? undefined : { url, type: type ?? 'sse' }
  }
  const url = entry.text(host === 'windsurf' ? 'serverUrl' : 'url')
  // VS Code tries the older way itself where it says http.
  const given = host === 'vscode' && type === 'http' ? undefined : type
  return url === undefined ? undefined : { url, ...omitUndefined({ type: given }) }
}

function readType(entry: ServerEntry): 'http' | 'sse' | undefined {
  const type = entry.text('type') ?? entry.text('transport')
  switch (type) {
    case undefined:
    case 'stdio':
      return undefined
    case 'http':
    case 'streamable-http':
    case 'streamableHttp':
    case 'streamable_http':
      return 'http'
    case 'sse':
      return 'sse'
    default:
      throw createConfigError(entry.place, 'its type is not one of stdio, http and sse.')
  }
}

function readProcess(
  entry: ServerEntry,
  host: McpHost,
  env: Readonly<Record<string, string | undefined>>,
): object {
  return {
    command: entry.text('command'),
    args: entry.texts('args'),
    env: host === 'codex' ? { ...passOn(entry, env), ...entry.textsByName('env') } : entry.textsByName('env'),
    cwd: entry.text('cwd'),
  }
}

/** Variables that Codex passes on by their names. */
function passOn(
  entry: ServerEntry,
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const names = entry.texts('env_vars') ?? []
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
  const valueOf = (name: string): string => {
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
    ...Object.fromEntries(named.map(([name, variable]) => [name, valueOf(variable)])),
    ...(bearer !== undefined && { authorization: `Bearer ${valueOf(bearer)}` }),
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

/** Values of variables that are called like secrets, which may be within an argument or a URL. */
function readSecrets({ expansion }: ServerEntry): readonly string[] | undefined {
  const secrets = [...expansion.used].flatMap(([name, value]) =>
    name.startsWith('input:') || looksSecret(name) ? [value] : [],
  )
  return secrets.length === 0 ? undefined : secrets
}

/** The fields of one server in a file, each read in one way, with its variables replaced. */
interface ServerEntry {
  readonly place: ConfigPlace
  readonly expansion: Expansion
  has(field: string): boolean
  /** A text that is not empty. */
  text(field: string): string | undefined
  flag(field: string): boolean | undefined
  /** A number above 0, times `factor`. */
  milliseconds(field: string, factor?: number): number | undefined
  texts(field: string): readonly string[] | undefined
  /** Texts by name; numbers and booleans are taken as texts. */
  textsByName(field: string): Readonly<Record<string, string>> | undefined
}

/** Reads the fields of an entry. Throws `ConfigurationError` for one of another kind. */
export function parseEntry(
  raw: Readonly<Record<string, unknown>>,
  place: ConfigPlace,
  expansion: Expansion,
): ServerEntry {
  const valueOf = (field: string): unknown => getOwn(raw, field)
  const read = <Value>(
    field: string,
    expected: string,
    take: (value: unknown) => Value | undefined,
  ): Value | undefined => {
    const value = valueOf(field)
    if (value === undefined || value === null) return undefined
    const taken = take(value)
    if (taken === undefined) throw createConfigError(place, `${field} has to be ${expected}.`)
    return taken
  }
  const takeText = (value: unknown): string | undefined =>
    typeof value === 'string' ? expansion.text(value) : undefined
  const takeScalar = (value: unknown): string | undefined =>
    typeof value === 'number' || typeof value === 'boolean' ? String(value) : takeText(value)
  return {
    place,
    expansion,
    has: (field) => valueOf(field) !== undefined && valueOf(field) !== null,
    text: (field) => read(field, 'a text that is not empty', (value) => takeText(value) || undefined),
    flag: (field) =>
      read(field, 'true or false', (value) => (typeof value === 'boolean' ? value : undefined)),
    milliseconds: (field, factor = 1) =>
      read(field, 'a number above 0', (value) => {
        const number = typeof value === 'bigint' ? Number(value) : value
        const ms = typeof number === 'number' ? Math.round(number * factor) : Number.NaN
        return ms >= 1 && ms <= 2 ** 31 - 1 ? ms : undefined
      }),
    texts: (field) =>
      read(field, 'a list of texts', (value) => {
        const texts = Array.isArray(value) ? value.map(takeScalar) : [undefined]
        return texts.every((text) => text !== undefined) ? texts : undefined
      }),
    textsByName: (field) =>
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

/** Replaces the variables of a text in the manner of a host, and keeps which values it put in. */
interface Expansion {
  text(given: string): string
  /** Values of variables that were put in, by their names. */
  readonly used: ReadonlyMap<string, string>
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

/** Makes the expansion of one server's texts. A variable without a value is a `ConfigurationError` that names it. */
export function createExpansion(host: McpHost, values: VariableValues, place: ConfigPlace): Expansion {
  const used = new Map<string, string>()
  const pattern = patterns[host]
  return {
    used,
    text(given) {
      if (pattern === undefined) return given
      return given.replaceAll(pattern, (...found) => {
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
    },
  }
}

interface NamedVariable {
  readonly variable: string | undefined
  readonly fallback?: string
}

/** Reads what is between the braces: a name, and in two hosts a default after `:-`. */
function findNamed(host: McpHost, name: string): NamedVariable {
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

import { getOwn, omitUndefined } from '@tallystick/core/kit'
import { looksSecret } from '../options/known-secrets-of.ts'
import { mcpServer, type McpServer } from '../options/server-options.ts'
import { configError } from './config-error.ts'
import type { McpHost } from './mcp-host.ts'
import type { ServerEntry } from './server-entry.ts'

/** A server of a file, and the file of variables that it names. */
export interface ReadServer {
  readonly server: McpServer
  readonly envFile?: string
}

/** Makes a server of an entry, in the manner of its host. Throws `ConfigurationError`. */
export function serverOfEntry(
  entry: ServerEntry,
  host: McpHost,
  env: Readonly<Record<string, string | undefined>>,
): ReadServer {
  const remote = urlOf(entry, host)
  const command = entry.text('command')
  if (command === undefined && remote === undefined) {
    // The others have a URL there.
    const hint = entry.has('url') ? ' Windsurf reads serverUrl, not url.' : ''
    throw configError(entry.place, `it has neither a command nor a URL.${hint}`)
  }
  if (command !== undefined && remote !== undefined) {
    throw configError(entry.place, 'it has a command and a URL; leave one of the two out.')
  }
  const shared = sharedOptions(entry, host)
  const server = remote ? { ...remote, headers: headersOf(entry, host, env) } : processOf(entry, host, env)
  // Which texts are secrets is known only now.
  const made = omitUndefined({ ...server, ...shared, secrets: secretsOf(entry) }) as McpServer
  const fault = mcpServer(made, '')
  if (fault) throw configError(entry.place, `${fault.path} ${fault.what}.`)
  const envFile =
    remote === undefined && (host === 'cursor' || host === 'vscode') ? entry.text('envFile') : undefined
  return { server: made, ...omitUndefined({ envFile }) }
}

interface Remote {
  readonly url: string
  readonly type?: 'http' | 'sse'
}

function urlOf(entry: ServerEntry, host: McpHost): Remote | undefined {
  const type = typeOf(entry)
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

function typeOf(entry: ServerEntry): 'http' | 'sse' | undefined {
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
      throw configError(entry.place, 'its type is not one of stdio, http and sse.')
  }
}

function processOf(
  entry: ServerEntry,
  host: McpHost,
  env: Readonly<Record<string, string | undefined>>,
): object {
  return {
    command: entry.text('command'),
    args: entry.texts('args'),
    env:
      host === 'codex' ? { ...passedOn(entry, env), ...entry.textsByName('env') } : entry.textsByName('env'),
    cwd: entry.text('cwd'),
  }
}

/** Variables that Codex passes on by their names. */
function passedOn(
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

function headersOf(
  entry: ServerEntry,
  host: McpHost,
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> | undefined {
  if (host !== 'codex') return entry.textsByName('headers')
  if (entry.has('bearer_token')) {
    throw configError(
      entry.place,
      'bearer_token is not read from a file; name a variable in bearer_token_env_var.',
    )
  }
  const valueOf = (name: string): string => {
    const value = getOwn(env, name)
    if (value !== undefined) return value
    throw configError(
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

function sharedOptions(entry: ServerEntry, host: McpHost): object {
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
function secretsOf({ expansion }: ServerEntry): readonly string[] | undefined {
  const secrets = [...expansion.used].flatMap(([name, value]) =>
    name.startsWith('input:') || looksSecret(name) ? [value] : [],
  )
  return secrets.length === 0 ? undefined : secrets
}

import { getOwn } from '@tallystick/core/kit'
import { configError } from './config-error.ts'
import { jsonConfig, tomlConfig } from './config-text.ts'
import { expansionOf, type VariableValues } from './expansion.ts'
import type { ConfigScope } from './host-paths.ts'
import type { McpHost } from './mcp-host.ts'
import { serverEntry } from './server-entry.ts'
import { type ReadServer, serverOfEntry } from './server-of-entry.ts'

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
  const root = host === 'codex' ? tomlConfig(text, file) : jsonConfig(text, file)
  if (!isObject(root)) throw configError({ file }, 'It is no object.')
  const entries = entriesOf(root, given)
  const read = [...entries].filter(([name]) => only === undefined || only.includes(name))
  return new Map(
    read.map(([server, raw]) => {
      const place = { file, server }
      if (!isObject(raw)) throw configError(place, 'it is no object.')
      const entry = serverEntry(raw, place, expansionOf(host, values, place))
      return [server, serverOfEntry(entry, host, values.env)]
    }),
  )
}

/** Under which key hosts keep their servers. */
const keys: Readonly<Partial<Record<McpHost, string>>> = { vscode: 'servers', codex: 'mcp_servers' }

function entriesOf(
  root: Readonly<Record<string, unknown>>,
  { host, file, scope, values }: ConfigFile,
): ReadonlyMap<string, unknown> {
  const key = keys[host] ?? 'mcpServers'
  const projects = host === 'claude-code' ? getOwn(root, 'projects') : undefined
  const project = isObject(projects) ? getOwn(projects, values.folder) : undefined
  return new Map(
    Object.entries({
      ...(scope !== 'one_project' && serversAt(root, key, file)),
      ...(scope !== 'every_project' && isObject(project) && serversAt(project, key, file)),
    }),
  )
}

function serversAt(
  holder: Readonly<Record<string, unknown>>,
  key: string,
  file: string,
): Readonly<Record<string, unknown>> {
  const servers = getOwn(holder, key)
  if (servers === undefined || servers === null) return {}
  if (isObject(servers)) return servers
  throw configError({ file }, `${key} has to be an object of servers.`)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import type { Environment } from '../options/child-environment.ts'
import type { McpServer, StdioServer } from '../options/server-options.ts'
import { configError } from './config-error.ts'
import { envFileValues } from './env-file.ts'
import { type HostFile, hostFiles } from './host-paths.ts'
import { type McpHost, mcpHosts } from './mcp-host.ts'
import { readMcpConfig } from './read-mcp-config.ts'
import type { ReadServer } from './server-of-entry.ts'

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

/** What was read, ready for `mcpTools`. */
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
    path === undefined ? hostFiles(from, place) : [{ path: resolve(path), scope: 'all' }]
  const texts = await Promise.all(files.map((file) => textAt(file.path)))
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

async function textAt(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new ConfigurationError(`loadMcpConfig: ${path} cannot be read (${String(code)}).`, { cause: error })
  }
}

/** What the entry itself says holds over its file of variables. */
async function withEnvFile(
  { server, envFile }: ReadServer,
  place: { readonly file: string; readonly server: string },
  folder: string,
): Promise<McpServer> {
  if (envFile === undefined) return server
  const text = await textAt(resolve(folder, envFile))
  if (text === undefined) throw configError(place, `its envFile ${JSON.stringify(envFile)} is not there.`)
  const { env, ...others } = server as StdioServer
  return { ...others, env: { ...envFileValues(text), ...env } }
}

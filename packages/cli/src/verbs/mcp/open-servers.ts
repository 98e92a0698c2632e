import { basename, dirname, extname, resolve } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { getOwn } from '@tallystick/core/kit'
import {
  loadMcpConfig,
  type McpHost,
  mcpHosts,
  type McpManager,
  type McpOptions,
  mcpTools,
} from '@tallystick/tools/mcp'
import type { CommandContext } from '../../command/command-context.ts'
import { CommandError } from '../../command/exit-code.ts'
import { mcpOfConfig } from '../../config/mcp-of-config.ts'
import { untilStopped } from '../../terminal/until-stopped.ts'

/** Which servers are looked at. */
export interface McpVerbOptions {
  readonly config: string
  readonly from?: string
  readonly server?: string
}

/** Starts the servers of a configuration, and ends them after `use`, or when the user stops the command. */
export async function withServers<Result>(
  context: CommandContext,
  options: McpVerbOptions,
  use: (manager: McpManager, stop: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const given = await optionsOf(context, options)
  return await untilStopped(async (stop$) => {
    const stop = new AbortController()
    const manager = await mcpTools(given)
    const stopping = stop$.subscribe(() => {
      stop.abort(new CommandError('refused', 'The command was stopped.'))
      void manager.close()
    })
    try {
      return await use(manager, stop.signal)
    } finally {
      stopping.unsubscribe()
      await manager.close()
    }
  })
}

async function optionsOf(
  { workingDirectory, environment }: CommandContext,
  { config, from, server }: McpVerbOptions,
): Promise<McpOptions> {
  if (from !== undefined && !isHost(from)) {
    throw new CommandError(
      'usage',
      `--from ${JSON.stringify(from)} is not known. Use one of ${mcpHosts.join(', ')}.`,
    )
  }
  if (from === undefined && ['.ts', '.js', '.mjs'].includes(extname(config))) {
    return narrowed(await mcpOfConfig(resolve(workingDirectory, config)), server, config)
  }
  const place = {
    env: environment,
    folder: workingDirectory,
    ...(server !== undefined && { servers: [server] }),
  }
  if (from === undefined && isHost(config)) {
    const { servers } = await loadMcpConfig({ from: config, ...place })
    return { servers, environment }
  }
  const path = resolve(workingDirectory, config)
  const { servers } = await loadMcpConfig({ from: from ?? hostOf(path), path, ...place })
  return { servers, environment }
}

function isHost(name: string): name is McpHost {
  return mcpHosts.some((host) => host === name)
}

/** The program that a file is of, by where programs keep theirs. */
function hostOf(path: string): McpHost {
  const [name, folder] = [basename(path), basename(dirname(path))]
  if (name === 'claude_desktop_config.json') return 'claude-desktop'
  if (name === '.mcp.json' || name === '.claude.json') return 'claude-code'
  if (name === 'mcp_config.json') return 'windsurf'
  if (name === 'config.toml' || extname(name) === '.toml') return 'codex'
  if (folder === '.cursor') return 'cursor'
  if (folder === '.vscode') return 'vscode'
  if (folder === '.gemini') return 'gemini'
  throw new CommandError(
    'usage',
    `The name of ${path} does not tell which program it belongs to. Name the program: --from ${mcpHosts.join(' | ')}.`,
  )
}

function narrowed(options: McpOptions, server: string | undefined, config: string): McpOptions {
  if (server === undefined) return options
  const one = getOwn(options.servers, server)
  if (one === undefined) {
    throw new ConfigurationError(
      `${config} has no MCP server ${JSON.stringify(server)}. It has ${Object.keys(options.servers).join(', ') || 'no server'}.`,
    )
  }
  return { ...options, servers: { [server]: one } }
}

import { pathToFileURL } from 'node:url'
import { type Agent, ConfigurationError } from '@tallystick/core'
import { requireOptions } from '@tallystick/core/kit'
import { agentList, requireConfig, type ConfigContext, type TallystickConfig } from './config.ts'
import { configPath, type WantedConfig } from './find-config.ts'

/** Which configuration is wanted, and for what. */
export interface LoadConfigOptions extends WantedConfig {
  readonly context: ConfigContext
  /** Gets the file that is about to be loaded, where it was not named but found. */
  readonly onFound: (path: string) => void
}

/** A configuration whose agents are made, and whose servers run. */
export interface LoadedConfig extends TallystickConfig {
  readonly agents: readonly Agent<unknown>[]
}

/** Finds the configuration, imports it and sets up what it describes. Throws a `ConfigurationError`. */
export async function loadConfig({ context, onFound, ...wanted }: LoadConfigOptions): Promise<LoadedConfig> {
  const path = configPath(wanted)
  if (wanted.file === undefined) onFound(path)
  const source = await importConfig(path)
  const config: unknown =
    typeof source === 'function' ? await (source as (given: ConfigContext) => unknown)(context) : source
  if (!isConfig(config)) {
    throw new ConfigurationError(
      `${path} gives no agents, so nothing can drive the run. Let its default export be defineConfig({ agents: [ … ] }), or a function that returns that.`,
    )
  }
  requireConfig(path, config)
  return await withServersOf(config, path)
}

/** Starts the MCP servers of a configuration, and has its agents made with them. */
async function withServersOf(config: TallystickConfig, path: string): Promise<LoadedConfig> {
  const { mcp: servers, agents: given, close } = config
  if (servers === undefined) {
    if (typeof given !== 'function') return { ...config, agents: given }
    throw new ConfigurationError(
      `${path}: agents is a function of MCP servers, and mcp names no servers. Name them in mcp.servers, or let agents be a list.`,
    )
  }
  const { mcpTools } = await import('@tallystick/tools/mcp')
  const manager = await mcpTools(servers)
  const end = async (): Promise<void> => {
    await manager.close()
    await close?.()
  }
  try {
    const agents = typeof given === 'function' ? given(manager) : given
    requireOptions(path, agentList, agents, 'agents')
    return { ...config, agents, close: end }
  } catch (error) {
    await end()
    throw error
  }
}

/** The default export of a configuration. Throws a `ConfigurationError` where it cannot be imported. */
export async function importConfig(path: string): Promise<unknown> {
  try {
    const module = (await import(pathToFileURL(path).href)) as { readonly default?: unknown }
    return module.default
  } catch (cause) {
    const what = `${path} cannot be imported, so no agent is known`
    if (isUnreadable(cause)) throw new ConfigurationError(`${what}: ${typeScriptRemedy}`, { cause })
    const reason = cause instanceof Error ? cause.message : String(cause)
    const remedy = 'Correct it, or name another with --config FILE'
    throw new ConfigurationError(`${what}. ${remedy}: ${reason}`, { cause })
  }
}

const typeScriptRemedy = `it is TypeScript, which Node ${process.versions.node} does not read. Use Node 22.18 or newer, set NODE_OPTIONS=--experimental-strip-types, or write it as tallystick.config.mjs.`

/** A file of a kind that this Node does not know: from 22.18 on it takes the types out of TypeScript. */
function isUnreadable(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ERR_UNKNOWN_FILE_EXTENSION'
}

function isConfig(value: unknown): value is TallystickConfig {
  const { agents } = Object(value) as { readonly agents?: unknown }
  return Array.isArray(agents) || typeof agents === 'function'
}

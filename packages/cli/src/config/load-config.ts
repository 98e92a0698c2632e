import { pathToFileURL } from 'node:url'
import { ConfigurationError } from '@tallystick/core'
import { requireConfig, type ConfigContext, type TallystickConfig } from './config.ts'
import { configPath, type WantedConfig } from './find-config.ts'

/** Which configuration is wanted, and for what. */
export interface LoadConfigOptions extends WantedConfig {
  readonly context: ConfigContext
  /** Hears which file is about to be loaded, where it was not named but found. */
  readonly onFound: (path: string) => void
}

/** Finds the configuration, imports it and sets up what it describes. Throws a `ConfigurationError`. */
export async function loadConfig({
  context,
  onFound,
  ...wanted
}: LoadConfigOptions): Promise<TallystickConfig> {
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
  return config
}

async function importConfig(path: string): Promise<unknown> {
  try {
    const module = (await import(pathToFileURL(path).href)) as { readonly default?: unknown }
    return module.default
  } catch (cause) {
    const reason = isUnreadable(cause)
      ? typeScriptRemedy
      : cause instanceof Error
        ? cause.message
        : String(cause)
    throw new ConfigurationError(`${path} cannot be imported, so no agent is known: ${reason}`, { cause })
  }
}

const typeScriptRemedy = `it is TypeScript, which Node ${process.versions.node} does not read. Use Node 22.18 or newer, set NODE_OPTIONS=--experimental-strip-types, or write it as tallystick.config.mjs.`

/** A file of a kind that this Node does not know: from 22.18 on it takes the types out of TypeScript. */
function isUnreadable(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ERR_UNKNOWN_FILE_EXTENSION'
}

function isConfig(value: unknown): value is TallystickConfig {
  return typeof value === 'object' && value !== null && Array.isArray((value as { agents?: unknown }).agents)
}

import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ConfigurationError } from '@tallystick/core'
import type { ConfigContext, TallystickConfig } from './config.ts'

const fileNames = ['tallystick.config.ts', 'tallystick.config.js', 'tallystick.config.mjs']

/** Which configuration is wanted, and for what. */
export interface LoadConfigOptions {
  readonly workingDirectory: string
  /** A file given by name; otherwise the nearest one from the working directory upwards. */
  readonly file?: string
  readonly context: ConfigContext
}

/** The path of the configuration. Throws a `ConfigurationError` where there is none. */
export function configPath({ workingDirectory, file }: Omit<LoadConfigOptions, 'context'>): string {
  const path = file === undefined ? nearestConfig(workingDirectory) : resolve(workingDirectory, file)
  if (path !== undefined && existsSync(path)) return path
  throw new ConfigurationError(
    `No configuration was found: ${path ?? `${fileNames[0]} is neither in ${workingDirectory} nor above it`}. ` +
      'It says which agents a run is driven with. Write one that exports defineConfig({ agents }), or name it with --config FILE.',
  )
}

/** Finds the configuration, imports it and sets up what it describes. Throws a `ConfigurationError`. */
export async function loadConfig({ context, ...given }: LoadConfigOptions): Promise<TallystickConfig> {
  const path = configPath(given)
  const source = await importConfig(path)
  const config: unknown =
    typeof source === 'function' ? await (source as (given: ConfigContext) => unknown)(context) : source
  if (!isConfig(config)) {
    throw new ConfigurationError(
      `${path} gives no agents, so nothing can drive the run. Let its default export be defineConfig({ agents: [ … ] }), or a function that returns that.`,
    )
  }
  return config
}

function nearestConfig(from: string): string | undefined {
  const found = fileNames.map((name) => resolve(from, name)).find((path) => existsSync(path))
  if (found !== undefined) return found
  return dirname(from) === from ? undefined : nearestConfig(dirname(from))
}

async function importConfig(path: string): Promise<unknown> {
  try {
    const module = (await import(pathToFileURL(path).href)) as { readonly default?: unknown }
    return module.default
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new ConfigurationError(`${path} cannot be imported, so no agent is known: ${reason}`, { cause })
  }
}

function isConfig(value: unknown): value is TallystickConfig {
  return typeof value === 'object' && value !== null && Array.isArray((value as { agents?: unknown }).agents)
}

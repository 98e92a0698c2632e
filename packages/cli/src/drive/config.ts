import { existsSync, lstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  type Agent,
  ConfigurationError,
  type Model,
  type Prices,
  type RunId,
  type RuntimeRules,
} from '@tallystick/core'
import { option, type Schema, requireOptions, someRules } from '@tallystick/core/internal'
import type { ModelRef } from '@tallystick/core/vocabulary'
import type { McpManager, McpOptions } from '@tallystick/tools/mcp'

/** The context of a command that starts runs: there is no run yet. */
export interface NewRunContext {
  /** Each asks models and runs tools; all but `run` start and take up runs of all their agents. */
  readonly verb: 'run' | 'serve' | 'inspect' | 'dev'
  /** Absolute path of the ledger's file, or the connection string of its database without the password. */
  readonly ledgerPath: string
  /** The agent that was named; absent if the configuration's only one is meant. */
  readonly agent?: string
  readonly runId?: undefined
  readonly model?: undefined
}

/** The run that a command needs the agent of, and what for. */
export interface RecordedRunContext {
  /** `resume` and `fork` ask the model and run tools; `replay` does neither, so it needs no keys and no connections. */
  readonly verb: 'resume' | 'fork' | 'replay'
  /** Absolute path of the ledger's file, or the connection string of its database without the password. */
  readonly ledgerPath: string
  readonly runId: RunId
  /** The name that the run's agent was recorded under. */
  readonly agent: string
  /** The model that the run was recorded with. */
  readonly model: ModelRef
}

/** The argument of a configuration function. */
export type ConfigContext = NewRunContext | RecordedRunContext

/** The agents of a command, and what they need. */
export interface TallystickConfig extends RuntimeRules {
  /**
   * The agents. `run` starts the named one, or the only one; the other verbs take the one with the run's recorded name.
   */
  readonly agents: readonly Agent<unknown>[] | ((mcp: McpManager) => readonly Agent<unknown>[])
  /**
   * MCP servers, as `mcpTools` of `@tallystick/tools/mcp` takes them: they are started for the command, and end with it.
   * `agents` may then be a function of them.
   */
  readonly mcp?: McpOptions | undefined
  /** Models that `--model` may choose, beside those of the agents. */
  readonly models?: readonly Model[] | undefined
  /** Prices of models, as for `createRuntime`. Without them runs have no cost, and cannot limit it. */
  readonly prices?: Prices | undefined
  /** The context of all runs, as the option `context` of `runtime.run`. */
  readonly context?: unknown
  /** Called when the command has ended, also after an error. */
  readonly close?: (() => void | Promise<void>) | undefined
}

/** A configuration, or a function that sets up what its agents need and returns it. */
export type ConfigSource =
  | TallystickConfig
  | ((context: ConfigContext) => TallystickConfig | Promise<TallystickConfig>)

const { anyFunction, anyObject, fields, functionOr, listOf, maybe, valueThat } = option

const definedAgent = valueThat(
  'an agent made with defineAgent',
  (value) => typeof value === 'object' && value !== null && 'definition' in value,
)

/** Agents that a function of a configuration gives. */
const agentList: Schema = listOf(definedAgent)

const aModel = valueThat(
  "a model, such as anthropic('…')",
  (value) => typeof (Object(value) as Partial<Model>).stream === 'function',
)

const config = fields<TallystickConfig>({
  agents: functionOr(agentList),
  mcp: maybe(anyObject),
  models: maybe(listOf(aModel)),
  prices: maybe(functionOr(anyObject)),
  ...someRules,
  context: maybe(() => undefined),
  close: maybe(anyFunction),
})

/** Refuses what is not a configuration, with a `ConfigurationError`; `subject` says where it comes from. */
function requireConfig(subject: string, source: unknown): asserts source is TallystickConfig {
  requireOptions(subject, config, source)
}

/**
 * Returns the default export of `tallystick.config.ts`. Throws a `ConfigurationError` for a value that is no
 * configuration.
 */
export function defineConfig(source: ConfigSource): ConfigSource {
  if (typeof source !== 'function') requireConfig('defineConfig', source)
  return source
}

const fileNames = ['tallystick.config.ts', 'tallystick.config.js', 'tallystick.config.mjs']

interface WantedConfig {
  readonly workingDirectory: string
  /** A file given by name; otherwise the nearest one up to the root of the repository or package. */
  readonly file?: string
}

/**
 * Returns the path of the configuration. A file that is found, and not named, has to belong to the user, and no other
 * user may be able to write it, since loading it runs its code. Throws a `ConfigurationError` that says what is wrong.
 */
export function findConfig(wanted: WantedConfig): string {
  const { candidates, root } = listConfigPlaces(wanted)
  const { workingDirectory, file } = wanted
  const path = candidates.find((candidate) => existsSync(candidate))
  if (path === undefined) {
    const where =
      root === workingDirectory
        ? `not in ${workingDirectory}`
        : `neither in ${workingDirectory} nor above it up to ${root}`
    throw new ConfigurationError(
      `No configuration was found: ${file === undefined ? `${fileNames[0]} is ${where}` : candidates[0]}. ` +
        'It names the agents that drive a run. Write one that exports defineConfig({ agents }), or name it with --config FILE.',
    )
  }
  if (file === undefined) requireOwn(path)
  return path
}

/** Returns whether there is a configuration to find. */
export function hasConfig(wanted: WantedConfig): boolean {
  return listConfigPlaces(wanted).candidates.some((candidate) => existsSync(candidate))
}

interface ConfigPlaces {
  /** The nearest first. */
  readonly candidates: readonly string[]
  /** No configuration is looked for above it. */
  readonly root: string
}

function listConfigPlaces({ workingDirectory, file }: WantedConfig): ConfigPlaces {
  const folders = listFoldersUpwards(workingDirectory)
  const holding = (name: string): string | undefined =>
    folders.find((folder) => existsSync(resolve(folder, name)))
  // No configuration is looked for above the Git repository, the package without one, or the folder itself without either.
  const root = holding('.git') ?? holding('package.json') ?? workingDirectory
  const candidates =
    file === undefined
      ? folders
          .slice(0, folders.indexOf(root) + 1)
          .flatMap((folder) => fileNames.map((name) => resolve(folder, name)))
      : [resolve(workingDirectory, file)]
  return { candidates, root }
}

function listFoldersUpwards(from: string): readonly string[] {
  const above = dirname(from)
  return above === from ? [from] : [from, ...listFoldersUpwards(above)]
}

export interface ProcessUser {
  readonly userId: number
  readonly groupId: number
}

function requireOwn(path: string): void {
  const [userId, groupId] = [process.getuid?.(), process.getgid?.()]
  if (userId === undefined || groupId === undefined) return
  // The owner of a folder decides where a link in it leads.
  const real = realpathSync(path)
  for (const each of new Set([path, real])) {
    for (const [place, stats] of [
      [each, each === real ? statSync(each) : lstatSync(each)],
      [dirname(each), statSync(dirname(each))],
    ] as const) {
      const fault = findAccessFault(stats, { userId, groupId })
      if (fault === undefined) continue
      throw new ConfigurationError(
        `${path} was not loaded, since ${place} ${fault}, and loading it would run their code as you. ` +
          `If you trust it, name it with --config ${path}; else run the command in a folder of your own.`,
      )
    }
  }
}

const groupWrites = 0o020
const othersWrite = 0o002
const isSticky = 0o1000

/**
 * Returns why a user other than this one and root can change a file or a folder; `undefined` if no other user can. A
 * group with the user's own number is the user's alone, as most systems make it.
 */
export function findAccessFault(
  stats: Pick<Stats, 'uid' | 'gid' | 'mode' | 'isSymbolicLink' | 'isDirectory'>,
  { userId, groupId }: ProcessUser,
): string | undefined {
  if (stats.uid !== userId && stats.uid !== 0) return `belongs to another user (id ${stats.uid})`
  // The mode of a link says nothing; in a sticky folder no user replaces the files of others.
  if (stats.isSymbolicLink() || (stats.isDirectory() && (stats.mode & isSticky) !== 0)) return undefined
  if ((stats.mode & othersWrite) !== 0) return 'can be written by every user'
  const isOwnGroup = stats.gid === 0 || (stats.gid === groupId && groupId === userId)
  return (stats.mode & groupWrites) !== 0 && !isOwnGroup
    ? `can be written by its group (id ${stats.gid})`
    : undefined
}

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
  const path = findConfig(wanted)
  if (wanted.file === undefined) onFound(path)
  const source = await importConfig(path)
  const config: unknown =
    typeof source === 'function' ? await (source as (given: ConfigContext) => unknown)(context) : source
  const { agents } = Object(config) as { readonly agents?: unknown }
  if (!Array.isArray(agents) && typeof agents !== 'function') {
    throw new ConfigurationError(
      `${path} gives no agents, so nothing can drive the run. Let its default export be defineConfig({ agents: [ … ] }), or a function that returns that.`,
    )
  }
  requireConfig(path, config)
  return await startServers(config, path)
}

/** Starts the MCP servers of a configuration, and has its agents made with them. */
async function startServers(config: TallystickConfig, path: string): Promise<LoadedConfig> {
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

/** The default export of a configuration. Throws a `ConfigurationError` if it cannot be imported. */
export async function importConfig(
  path: string,
  remedy = 'Correct it, or name another with --config FILE',
): Promise<unknown> {
  try {
    const module = (await import(pathToFileURL(path).href)) as { readonly default?: unknown }
    return module.default
  } catch (cause) {
    const what = `${path} cannot be imported, so no agent is known`
    // From 22.18 on Node takes the types out of TypeScript.
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_UNKNOWN_FILE_EXTENSION') {
      const reading = `it is TypeScript, which Node ${process.versions.node} does not read. Use Node 22.18 or newer, set NODE_OPTIONS=--experimental-strip-types, or write it as tallystick.config.mjs.`
      throw new ConfigurationError(`${what}: ${reading}`, { cause })
    }
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new ConfigurationError(`${what}. ${remedy}: ${reason}`, { cause })
  }
}

/** The MCP servers that a configuration of this command names. Throws a `ConfigurationError` if it names no server. */
export async function readMcpOptions(path: string): Promise<McpOptions> {
  const source = await importConfig(path)
  const { mcp } = Object(source) as { readonly mcp?: McpOptions }
  if (typeof source !== 'function' && mcp !== undefined) return mcp
  throw new ConfigurationError(
    `${path} names no MCP servers. Let its default export be defineConfig({ agents, mcp: { servers: { … } } }), and not a function.`,
  )
}

import { type Agent, type Model, type Prices, type RunId } from '@tallystick/core'
import { option, type OptionCheck, requireOptions, type RuntimeRules, someRules } from '@tallystick/core/kit'
import type { McpManager, McpOptions } from '@tallystick/tools/mcp'
import { type ModelRef } from '@tallystick/core/vocabulary'

/** What a command that starts a run knows before the run is there. */
export interface NewRunContext {
  /** Both ask models and run tools; `serve` starts and takes up runs of all its agents. */
  readonly verb: 'run' | 'serve'
  /** Absolute path of the ledger's file, or the connection string of its database without the password. */
  readonly ledgerPath: string
  /** The agent that was named; absent where the configuration's only one is meant. */
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

/** What a configuration function gets. */
export type ConfigContext = NewRunContext | RecordedRunContext

/** What a command needs to drive a run. */
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
  /** What the application gives its runs, as the option `context` of `runtime.run`. */
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
export const agentList: OptionCheck = listOf(definedAgent)

const config = fields<TallystickConfig>({
  agents: functionOr(agentList),
  mcp: maybe(anyObject),
  models: maybe(listOf(valueThat("a model, such as anthropic('…')", isModel))),
  prices: maybe(functionOr(anyObject)),
  ...someRules,
  context: maybe(() => undefined),
  close: maybe(anyFunction),
})

function isModel(value: unknown): boolean {
  return typeof (Object(value) as Partial<Model>).stream === 'function'
}

/** Refuses what is no configuration, with a `ConfigurationError`; `subject` says where it comes from. */
export function requireConfig(subject: string, source: unknown): asserts source is TallystickConfig {
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

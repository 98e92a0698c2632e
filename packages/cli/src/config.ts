import type { Agent, Model, ModelRef, Prices, RunId } from '@tallystick/core'

/** What a command that starts a run knows before the run is there. */
export interface NewRunContext {
  /** `run` asks the model and runs tools. */
  readonly verb: 'run'
  /** Absolute path of the ledger's file, or the connection string of its database without the password. */
  readonly ledgerPath: string
  /** The agent that was named; absent where the configuration's only one is meant. */
  readonly agent?: string
  readonly runId?: undefined
  readonly model?: undefined
}

/** The run that a command needs the agent of, and what for. */
export interface RecordedRunContext {
  /** `resume` and `fork` ask the model and run tools; `replay` does neither, and needs what they stand on no more. */
  readonly verb: 'resume' | 'fork' | 'replay'
  /** Absolute path of the ledger's file, or the connection string of its database without the password. */
  readonly ledgerPath: string
  readonly runId: RunId
  /** The name that the run's agent was recorded under. */
  readonly agent: string
  /** The model that the run was recorded with. */
  readonly model: ModelRef
}

/** What a configuration is asked for. */
export type ConfigContext = NewRunContext | RecordedRunContext

/** What a command needs to drive a run. */
export interface TallystickConfig {
  /** `run` starts one of them, by its name where there are several; the others pick one by the run's recorded name. */
  readonly agents: readonly Agent<unknown>[]
  /** Models that `--model` may choose, beside those of the agents. */
  readonly models?: readonly Model[]
  /** What models cost, as `createRuntime` takes it. Without, runs have no cost, and no limit on it. */
  readonly prices?: Prices
  /** Called when the command is done with the run, whatever came of it. */
  readonly close?: () => void | Promise<void>
}

/** A configuration, or a function that sets up what its agents need and then gives it. */
export type ConfigSource =
  | TallystickConfig
  | ((context: ConfigContext) => TallystickConfig | Promise<TallystickConfig>)

/** The default export of `tallystick.config.ts`. Does nothing but check its type. */
export function defineConfig(source: ConfigSource): ConfigSource {
  return source
}

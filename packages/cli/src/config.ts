import type { Agent, ModelRef, RunId } from '@tallystick/core'

/** The run that a command needs the agent of, and what for. */
export interface ConfigContext {
  /** `resume` asks the model and runs tools; `replay` does neither, and needs what they stand on no more. */
  readonly verb: 'resume' | 'replay'
  /** Absolute path of the ledger's file. */
  readonly ledgerPath: string
  readonly runId: RunId
  /** The name that the run's agent was recorded under. */
  readonly agent: string
  /** The model that the run was recorded with. */
  readonly model: ModelRef
}

/** What a command needs to drive a run: `agents`, of which it picks the one by the run's recorded name. */
export interface TallystickConfig {
  readonly agents: readonly Agent<unknown>[]
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

import type { Agent, ModelRef, RunId } from '@tallystick/core'

/** The run that a command is about to drive. */
export interface ConfigContext {
  /** Absolute path of the ledger's file. */
  readonly ledgerPath: string
  readonly runId: RunId
  /** The name that the run's agent was recorded under. */
  readonly agent: string
  /** The model that the run was started with. */
  readonly model: ModelRef
}

/** What a command that drives a run needs: `agents`, of which it picks the one by the run's recorded name. */
export interface TallystickConfig {
  readonly agents: readonly Agent[]
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

import { resolve } from 'node:path'
import { reachableAgents, type Agent, type Ledger, type RunState } from '@tallystick/core'
import { foldTo } from '@tallystick/ledger'
import type { CommandContext } from './command-context.ts'
import type { ConfigContext } from './config.ts'
import { findRun } from './find-run.ts'
import { loadConfig } from './load-config.ts'
import { withLedger } from './open-ledger.ts'

/** Which run a command needs the agents for, as the command line names it. */
export interface WithAgentsOptions {
  readonly verb: ConfigContext['verb']
  readonly ledger: string
  readonly run: string
  readonly config?: string
}

/** A run that was found, with the agents of the configuration. */
export interface RunWithAgents {
  readonly ledger: Ledger
  readonly state: RunState
  /** Those that hand over or work for others, with the others. */
  readonly agents: readonly Agent<unknown>[]
}

/** Opens the ledger, finds the run, sets up the configuration for it, and closes both behind `use`. */
export function withAgents<Result>(
  { programName, workingDirectory }: CommandContext,
  { verb, ledger: ledgerPath, run, config: file }: WithAgentsOptions,
  use: (found: RunWithAgents) => Promise<Result>,
): Promise<Result> {
  return withLedger(ledgerPath, verb === 'resume' ? 'write' : 'read', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    const state = await foldTo(ledger, runId)
    const { agent, definition } = state
    const config = await loadConfig({
      workingDirectory,
      ...(file !== undefined && { file }),
      context: {
        verb,
        ledgerPath: resolve(workingDirectory, ledgerPath),
        runId,
        agent,
        model: definition.model,
      },
    })
    try {
      const agents = new Map(config.agents.flatMap(reachableAgents).map((each) => [each.name, each]))
      return await use({ ledger, state, agents: [...agents.values()] })
    } finally {
      await config.close?.()
    }
  })
}

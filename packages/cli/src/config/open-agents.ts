import { type Agent, type Ledger, type Model, type Prices, type RunState } from '@tallystick/core'
import { omitUndefined, reachableAgents, type RuntimeRules } from '@tallystick/core/kit'
import { foldTo } from '@tallystick/ledger'
import type { CommandContext } from '../command/command-context.ts'
import type { ConfigContext, RecordedRunContext } from './config.ts'
import { findRun } from '../lookup/find-run.ts'
import { ledgerSource } from '../command/ledger-place.ts'
import { loadConfig } from './load-config.ts'
import { withLedger } from '../ledger/open-ledger.ts'

/** What a configuration gives. */
export interface Configured {
  /** As the configuration names them. */
  readonly named: readonly Agent<unknown>[]
  /** Those that hand over or are given as tools, with their targets. */
  readonly agents: readonly Agent<unknown>[]
  /** Models that the configuration names beside those of the agents. */
  readonly models: readonly Model[]
  readonly prices?: Prices
  /** Hold over every agent. */
  readonly rules: RuntimeRules
  /** What the application gives its runs. */
  readonly context?: unknown
}

/** Sets up the configuration for a command, and closes it after `use`. */
export async function withConfig<Result>(
  { json, say, workingDirectory }: CommandContext,
  { file, context }: { readonly file: string | undefined; readonly context: ConfigContext },
  use: (configured: Configured) => Promise<Result>,
): Promise<Result> {
  const onFound = (path: string): void =>
    say(json ? JSON.stringify({ config: path }) : `Agents are those of ${path}`)
  const config = await loadConfig({ workingDirectory, ...omitUndefined({ file }), context, onFound })
  try {
    const { agents: named, models = [], prices, context: own } = config
    const { approval, guardrails, handoffFilter, prepareTurn, outputStream } = config
    const rules: RuntimeRules = { approval, guardrails, handoffFilter, prepareTurn, outputStream }
    const agents = [...new Map(named.flatMap(reachableAgents).map((each) => [each.name, each])).values()]
    return await use({ named, agents, models, rules, ...omitUndefined({ prices, context: own }) })
  } finally {
    await config.close?.()
  }
}

/** Which run a command needs the agents for, as the command line names it. */
export interface OpenAgentsOptions {
  readonly verb: RecordedRunContext['verb']
  readonly ledger: string
  readonly run: string
  readonly config?: string
}

/** A run that was found, with the agents of the configuration. */
export interface RunWithAgents extends Configured {
  readonly ledger: Ledger
  readonly state: RunState
}

/** Opens the ledger, finds the run, sets up the configuration for it, and closes both after `use`. */
export function openAgents<Result>(
  given: CommandContext,
  { verb, ledger: ledgerPath, run, config: file }: OpenAgentsOptions,
  use: (found: RunWithAgents) => Promise<Result>,
): Promise<Result> {
  const { programName, workingDirectory } = given
  return withLedger(ledgerPath, verb === 'replay' ? 'read' : 'write', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    const state = await foldTo(ledger, runId)
    const { agent, definition } = state
    const context: ConfigContext = {
      verb,
      ledgerPath: ledgerSource(ledgerPath, workingDirectory),
      runId,
      agent,
      model: definition.model,
    }
    return await withConfig(given, { file, context }, (configured) => use({ ...configured, ledger, state }))
  })
}

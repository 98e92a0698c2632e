import {
  type Agent,
  createRuntime,
  type Ledger,
  type Model,
  type Prices,
  type RunState,
  type Runtime,
  type RuntimeOptions,
  type RuntimeRules,
} from '@tallystick/core'
import {
  listReachableAgents,
  omitUndefined,
  overrideAgent as changeAgent,
  pickRules,
} from '@tallystick/core/internal'
import { foldTo } from '@tallystick/ledger'
import { type AgentOverrides, readGiven } from '../command/arguments.ts'
import { type CommandContext, toLedgerSource } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import { type NamedRun, withRun } from '../runs/find-run.ts'
import { type ConfigContext, loadConfig, type RecordedRunContext } from './config.ts'

/** Agents and settings of a configuration. */
export interface Configured {
  /** As the configuration names them. */
  readonly named: readonly Agent<unknown>[]
  /** All that these can reach by handing over or as tools. */
  readonly agents: readonly Agent<unknown>[]
  /** Models that the configuration names beside those of the agents. */
  readonly models: readonly Model[]
  readonly prices?: Prices
  /** Rules that hold for every agent. */
  readonly rules: RuntimeRules
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
    const rules = pickRules(config)
    const agents = [...new Map(named.flatMap(listReachableAgents).map((each) => [each.name, each])).values()]
    return await use({ named, agents, models, rules, ...omitUndefined({ prices, context: own }) })
  } finally {
    await config.close?.()
  }
}

/** A run that was found, with the agents of the configuration. */
export interface RunWithAgents extends Configured {
  readonly ledger: Ledger
  readonly state: RunState
}

/** Opens the ledger, finds the run, sets up the configuration for it, and closes both after `use`. */
export function openAgents<Result>(
  given: CommandContext,
  {
    verb,
    ledger: ledgerPath,
    run,
    config: file,
  }: NamedRun & { readonly verb: RecordedRunContext['verb']; readonly config?: string | undefined },
  use: (found: RunWithAgents) => Promise<Result>,
): Promise<Result> {
  const { workingDirectory } = given
  const named = { ledger: ledgerPath, run }
  return withRun(given, named, verb === 'replay' ? 'read' : 'write', async (ledger, runId) => {
    const state = await foldTo(ledger, runId)
    const { agent, definition } = state
    const context: ConfigContext = {
      verb,
      ledgerPath: toLedgerSource(ledgerPath, workingDirectory),
      runId,
      agent,
      model: definition.model,
    }
    return await withConfig(given, { file, context }, (configured) => use({ ...configured, ledger, state }))
  })
}

/** Creates the runtime of a configuration over a ledger. */
export function createConfiguredRuntime(
  ledger: Ledger,
  { agents, prices, rules }: Pick<Configured, 'agents' | 'prices' | 'rules'>,
  host?: RuntimeOptions['host'],
): Runtime {
  return createRuntime({ ledger, agents, ...rules, ...omitUndefined({ prices, host }) })
}

export function hasOverrides({ instructions, model, withoutTool }: AgentOverrides): boolean {
  return instructions !== undefined || model !== undefined || withoutTool !== undefined
}

/** These overrides as options of the command that continues the run. */
export function overrideArguments({
  instructions,
  model,
  withoutTool = [],
}: AgentOverrides): readonly string[] {
  return [
    ...(instructions === undefined ? [] : ['--instructions', instructions]),
    ...(model === undefined ? [] : ['--model', model]),
    ...withoutTool.flatMap((name) => ['--without-tool', name]),
  ]
}

/** Applies overrides to an agent. Without any, it returns the same agent. */
export function overrideAgent(
  agent: Agent<unknown>,
  overrides: AgentOverrides,
  configured: Pick<Configured, 'agents' | 'models'>,
): Agent<unknown> {
  if (!hasOverrides(overrides)) return agent
  const { withoutTool = [] } = overrides
  const absent = withoutTool.find((name) => agent.tools.every((tool) => tool.name !== name))
  if (absent !== undefined) {
    const names = agent.tools.map(({ name }) => name).join(', ') || 'none'
    throw new CommandError('usage', `Agent ${agent.name} has no tool ${absent}. Its tools: ${names}.`)
  }
  return changeAgent(agent, {
    model: overrides.model === undefined ? undefined : findModel(overrides.model, configured),
    instructions:
      overrides.instructions === undefined ? undefined : readGiven(overrides.instructions).trimEnd(),
    withoutTools: withoutTool,
  })
}

/** Finds a model by its id among those of the agents and of the configuration. */
function findModel(given: string, { agents, models }: Pick<Configured, 'agents' | 'models'>): Model {
  const known = [...models, ...agents.flatMap(({ model, fallbacks }) => [model, ...fallbacks])]
  const found = known.find(({ provider, modelId }) => given === modelId || given === `${provider}/${modelId}`)
  if (found !== undefined) return found
  const ids = [...new Set(known.map(({ modelId }) => modelId))].join(', ')
  throw new CommandError(
    'usage',
    `The configuration has no model ${given}. It has: ${ids}. Add others to its models: defineConfig({ agents, models: [ … ] }).`,
  )
}

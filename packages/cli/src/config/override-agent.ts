import { type Agent, type Model } from '@tallystick/core'
import { digestOf, type AgentDefinition } from '@tallystick/core/vocabulary'
import { CommandError } from '../command/exit-code.ts'
import { readGiven } from '../command/read-given.ts'
import type { Configured } from './open-agents.ts'

/** What one command changes in the configuration of an agent. */
export interface AgentOverrides {
  /** File of other instructions. */
  readonly instructions?: string
  /** Id of another model, of those that the configuration knows. */
  readonly model?: string
  /** Names of tools that it is not to have. */
  readonly withoutTool?: readonly string[]
}

/** Returns whether the command changes anything in the agent. */
export function hasOverrides({ instructions, model, withoutTool }: AgentOverrides): boolean {
  return instructions !== undefined || model !== undefined || withoutTool !== undefined
}

/** Returns these overrides as options of the command that continues the run. */
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

/** Returns an agent with other instructions, another model or fewer tools; the same agent if there are no overrides. */
export function overrideAgent(
  agent: Agent<unknown>,
  overrides: AgentOverrides,
  configured: Pick<Configured, 'agents' | 'models'>,
): Agent<unknown> {
  if (!hasOverrides(overrides)) return agent
  const { withoutTool = [] } = overrides
  const kept = ({ name }: { readonly name: string }): boolean => !withoutTool.includes(name)
  const unknown = withoutTool.find((name) => agent.tools.every((tool) => tool.name !== name))
  if (unknown !== undefined) {
    const names = agent.tools.map(({ name }) => name).join(', ') || 'none'
    throw new CommandError('usage', `Agent ${agent.name} has no tool ${unknown}. Its tools: ${names}.`)
  }
  const model = overrides.model === undefined ? agent.model : modelCalled(overrides.model, configured)
  const given = overrides.instructions === undefined ? undefined : readGiven(overrides.instructions).trimEnd()
  const { provider, api, modelId } = model
  const { digest: _old, price: _price, ...recorded } = agent.definition
  const { handoffs, policy } = recorded
  const now: Omit<AgentDefinition, 'digest'> = {
    ...recorded,
    model: { provider, api, modelId },
    instructions: given ?? recorded.instructions,
    tools: recorded.tools.filter(kept),
    ...(handoffs && { handoffs: handoffs.filter(({ tool }) => kept({ name: tool })) }),
    ...(policy && { policy: { ...policy, ...(policy.tools && { tools: policy.tools.filter(kept) }) } }),
  }
  return {
    ...agent,
    model,
    instructions: given ?? agent.instructions,
    tools: agent.tools.filter(kept),
    handoffs: agent.handoffs.filter(({ tool }) => kept(tool)),
    definition: { ...now, digest: digestOf(now) },
  }
}

/** Finds a model by its id among those of the agents and of the configuration. */
function modelCalled(given: string, { agents, models }: Pick<Configured, 'agents' | 'models'>): Model {
  const known = [...models, ...agents.flatMap(({ model, fallbacks }) => [model, ...fallbacks])]
  const found = known.find(({ provider, modelId }) => given === modelId || given === `${provider}/${modelId}`)
  if (found !== undefined) return found
  const ids = [...new Set(known.map(({ modelId }) => modelId))].join(', ')
  throw new CommandError(
    'usage',
    `The configuration has no model ${given}. It has: ${ids}. Add others to models, beside agents: defineConfig({ agents, models: [ … ] }).`,
  )
}

import type { AgentDefinition } from '../events/agent-definition.ts'
import type { Model } from '../models/model.ts'
import { computeDigest } from '../values/digest.ts'
import type { Agent } from './agent.ts'

/** What an agent has in one run instead of its own: parts that are left out stay. */
export interface AgentChange {
  readonly instructions?: string | undefined
  readonly model?: Model | undefined
  /** Names of tools and handoffs that it does not have there. */
  readonly withoutTools?: readonly string[] | undefined
}

/** Returns an agent with other instructions, another model or fewer tools, under its name; without a change, the agent itself. */
export function overrideAgent(agent: Agent<unknown>, change: AgentChange): Agent<unknown> {
  const { model = agent.model, instructions, withoutTools = [] } = change
  if (model === agent.model && instructions === undefined && withoutTools.length === 0) return agent
  const kept = ({ name }: { readonly name: string }): boolean => !withoutTools.includes(name)
  const { provider, api, modelId } = model
  const { digest: _old, price: _price, ...recorded } = agent.definition
  const { handoffs, policy } = recorded
  const now: Omit<AgentDefinition, 'digest'> = {
    ...recorded,
    model: { provider, api, modelId },
    instructions: instructions ?? recorded.instructions,
    tools: recorded.tools.filter(kept),
    ...(handoffs && { handoffs: handoffs.filter(({ tool }) => kept({ name: tool })) }),
    ...(policy && { policy: { ...policy, ...(policy.tools && { tools: policy.tools.filter(kept) }) } }),
  }
  return {
    ...agent,
    model,
    instructions: instructions ?? agent.instructions,
    tools: agent.tools.filter(kept),
    handoffs: agent.handoffs.filter(({ tool }) => kept(tool)),
    definition: { ...now, digest: computeDigest(now) },
  }
}
